# SPDX-License-Identifier: GPL-2.0-or-later
"""The labs of papers_cached.py: nodes with cached pages, behind a front end as plain LVS is one, and with Earshot.

    plain lab    client -- brpub -- n1... (nginx), "nat" (DNAT in turn, as LVS-NAT), "route" (by ports, as LVS-DR)
    earshot labs client -- brpub -- n1... (nginx, earshotd), one lab for each configuration

IPVS itself is not in every kernel. "nat" keeps a table of connections, as LVS does, and replies pass it; "route" keeps none,
and nodes reply directly.
"""
from cluster import rules
from earshotlab import LabError, netns, topology, wait_for
from earshotlab.probe import receives

import targets

make_docroot = targets.make_docroot

NAT, ROUTE, DIRECT = "nat", "route", "direct"
FRONTS = (NAT, ROUTE)
EARSHOT = {
    "ring": {"policy": "ring", "settings": {**targets.WORKERS, "service.inspect": "never"}},
    "wlc": {"policy": "wlc", "settings": {**targets.WORKERS, "service.inspect": "first"}},
    "xlard-r": {"policy": "xlard-r", "settings": {**targets.WORKERS, "service.inspect": "first"}},
    "distributor": {"policy": "wrr", "settings": {**targets.WORKERS, "service.inspect": "first"}},
}
# One server behind all inspectors, as behind Yang and Luo's distributor.
RULES = {"distributor": 'location "/" { nodes = n1 }\n'}
_NAT = """\
table ip front {{
    chain in {{
        type nat hook prerouting priority dstnat;
        ip daddr {address} tcp dport {port} dnat to numgen inc mod {count} map {{ {nodes} }}
    }}
}}
"""
_NAT_TABLE = 100  # of routes: what a node sends from its private address goes back through the front end
# The connections of a whole run may not fill the table.
_NAT_SYSCTLS = {f"net.netfilter.nf_conntrack_tcp_timeout_{state}": 1 for state in ("time_wait", "close", "last_ack")}
_ROUTE_SYSCTLS = {"net.ipv4.fib_multipath_hash_policy": 1, "net.ipv4.conf.all.send_redirects": 0,
                  "net.ipv4.conf.eth0.send_redirects": 0}


class Targets(targets.Targets):
    """Brings up what a mode needs when it is first asked for; `stack` takes it down."""

    fronts = FRONTS

    def __init__(self, stack, docroot, nodes):
        super().__init__(stack, docroot, EARSHOT, nodes=nodes)

    def key(self, mode):
        return "distributor" if mode == DIRECT else super().key(mode)

    def url(self, mode):
        lab = self.lab(mode)
        machine = {NAT: self.front[NAT], DIRECT: "n1"}.get(mode)
        return f"http://{lab.node(machine).public_address if machine else topology.VIP}"

    def _configure(self, lab, key):
        rules.add(lab, RULES.get(key))

    def _proxies(self, lab):
        self._translate(lab)
        self._route(lab)

    def _translate(self, lab):
        """LVS-NAT: the front end gives connections to the nodes' private addresses in turn, and gets their replies."""
        front = lab.node(self.front[NAT])
        netns.set_sysctls(front.namespace, {"net.ipv4.ip_forward": 1})
        nodes = ", ".join(f"{number} : {lab.node(node).cluster_address}" for number, node in enumerate(self.names))
        table = _NAT.format(address=front.public_address, port=topology.PORT, count=len(self.names), nodes=nodes)
        done = front.exec(["nft", "-f", "-"], check=False, input=table)
        if done.returncode:
            raise LabError("nft takes no DNAT in turn (a kernel without nft_nat or nft_numgen?)", done.stderr)
        netns.set_sysctls(front.namespace, _NAT_SYSCTLS)
        for node in self.names:
            netns.ip_batch(lab.net.namespace(node), [
                f"rule add from {lab.node(node).cluster_address} lookup {_NAT_TABLE}",
                f"route add default via {front.cluster_address} dev eth1 table {_NAT_TABLE}"])
        self._reached(lab, front.public_address)

    def _route(self, lab):
        """LVS-DR: the front end chooses by the hash of addresses and ports; nodes have the address, and reply directly."""
        front = lab.node(self.front[ROUTE])
        netns.set_sysctls(front.namespace, {"net.ipv4.ip_forward": 1, **_ROUTE_SYSCTLS})
        hops = " ".join(f"nexthop via {lab.node(node).public_address} dev eth0" for node in self.names)
        netns.ip_batch(front.namespace, [f"address del {topology.VIP}/32 dev lo", f"route add {topology.VIP}/32 {hops}"])
        netns.ip_batch(lab.net.client, [f"route add {topology.VIP}/32 via {front.public_address}"])
        self._reached(lab, topology.VIP)

    @staticmethod
    def _reached(lab, address):
        wait_for(lambda: receives(lab.net.client, address, topology.PORT), f"an answer through the front end at {address}",
                 lab.options["timeout"])
