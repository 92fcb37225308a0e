# SPDX-License-Identifier: GPL-2.0-or-later
"""The labs of papers_cached.py: nodes with cached pages, behind a front end as plain LVS is one, and with Earshot.

    plain lab    client -- brpub -- n1... (nginx), "nat" (DNAT in turn, as LVS-NAT), "route" (by ports, as LVS-DR)
    earshot labs client -- brpub -- n1... (nginx, earshotd), one lab for each configuration

IPVS itself is not in every kernel. "nat" keeps a table of connections, as LVS does, and replies pass it; "route" keeps none,
and nodes reply directly.
"""
from cluster import rules
from earshotlab import Lab, LabError, netns, topology, wait_for
from earshotlab.probe import receives

import targets

make_docroot = targets.make_docroot

NAT, ROUTE, DIRECT = "nat", "route", "direct"
FRONTS = (NAT, ROUTE)
EARSHOT = {
    "ring": ("ring", {"service.inspect": "never"}, ""),
    "wlc": ("wlc", {"service.inspect": "first"}, ""),
    "xlard-r": ("xlard-r", {"service.inspect": "first"}, ""),
    # One server behind all inspectors, as behind Yang and Luo's distributor.
    "distributor": ("wrr", {"service.inspect": "first"}, 'location "/" { nodes = n1 }\n'),
}
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

    def __init__(self, stack, docroot, nodes):
        super().__init__(stack, docroot)
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.fronts = {NAT: f"n{nodes + 1}", ROUTE: f"n{nodes + 2}"}

    def lab(self, mode):
        key = "plain" if mode in FRONTS else "distributor" if mode == DIRECT else mode
        if key not in self.labs:
            self.labs[key] = self._make(key)
        return self.labs[key]

    def url(self, mode):
        lab = self.lab(mode)
        machine = {NAT: self.fronts[NAT], DIRECT: "n1"}.get(mode)
        return f"http://{lab.node(machine).public_address if machine else topology.VIP}"

    def counters(self, mode):
        """The cluster's counters, summed over its nodes; nothing for a mode without earshotd."""
        total = {}
        for node in self.names if mode in EARSHOT else ():
            for name, value in self.lab(mode).counters(node).items():
                total[name] = total.get(name, 0) + value
        return total

    def _make(self, key):
        if key == "plain":
            lab = Lab(nodes=len(self.names) + len(FRONTS), earshot=False, server="none")
        else:
            policy, settings, _ = EARSHOT[key]
            lab = Lab(nodes=len(self.names), server="none", policy=policy, settings={**targets.WORKERS, **settings})
        self.stack.enter_context(lab)
        netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_tw_reuse": 1})
        self._servers(lab, self.names)
        if key == "plain":
            self._translate(lab)
            self._route(lab)
        else:
            rules.add(lab, EARSHOT[key][2])
            lab.wait_serving()
        return lab

    def _translate(self, lab):
        """LVS-NAT: the front end gives connections to the nodes' private addresses in turn, and gets their replies."""
        front = lab.node(self.fronts[NAT])
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
        self._await(lab, front.public_address)

    def _route(self, lab):
        """LVS-DR: the front end chooses by the hash of addresses and ports; nodes have the address, and reply directly."""
        front = lab.node(self.fronts[ROUTE])
        netns.set_sysctls(front.namespace, {"net.ipv4.ip_forward": 1, **_ROUTE_SYSCTLS})
        hops = " ".join(f"nexthop via {lab.node(node).public_address} dev eth0" for node in self.names)
        netns.ip_batch(front.namespace, [f"address del {topology.VIP}/32 dev lo", f"route add {topology.VIP}/32 {hops}"])
        netns.ip_batch(lab.net.client, [f"route add {topology.VIP}/32 via {front.public_address}"])
        self._await(lab, topology.VIP)

    @staticmethod
    def _await(lab, address):
        wait_for(lambda: receives(lab.net.client, address, topology.PORT), f"an answer through the front end at {address}",
                 lab.options["timeout"])
