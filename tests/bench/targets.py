# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured: the modes, and the labs, servers and proxies behind them.

    plain lab    client -- brpub -- n1, n2, n3 (nginx) and n4 (haproxy, nginx as a proxy, LVS), no earshotd, no tc program
    earshot labs client -- brpub -- n1, n2, n3 (nginx, earshotd), one lab for each configuration

The servers are the same everywhere: nginx with one worker, the same configuration, the same files, no access log.
The proxies reach them over the private network. A lab that is not being measured is idle.
"""
import os
import shutil

from earshotlab import Lab, LabError, netns, process, server, topology, wait_for
from earshotlab.probe import get, receives

import load
import proxies

SIZES = {"1k": 1 << 10, "13k": 13 << 10, "100k": 100 << 10, "1m": 1 << 20}
NODES = 3
PROXY = f"n{NODES + 1}"
PROXY_PORTS = {"haproxy": 8001, "nginx-proxy": 8002}
WORKERS = {"inspector.workers": 0}  # what a user gets; the labs of tests have more
EARSHOT = {
    "earshot": {"policy": "wrr", "settings": WORKERS},
    "earshot-netfilter": {"policy": "wrr", "settings": WORKERS, "datapath": "netfilter"},
    "earshot-netfilter-jhash": {"policy": "wrr", "settings": {**WORKERS, "cluster.ring_hash": "jhash"}, "datapath": "netfilter"},
    "earshot-one": {"policy": "wrr", "settings": WORKERS, "nodes": 1},
    "earshot-netfilter-one": {"policy": "wrr", "settings": WORKERS, "datapath": "netfilter", "nodes": 1},
    "earshot-ring": {"policy": "ring", "settings": WORKERS},
    "earshot-uri": {"policy": "uri-hash", "settings": WORKERS},
    "earshot-every": {"policy": "uri-hash", "settings": {**WORKERS, "service.inspect": "every", "service.load_bound": 0}},
}
# Alike but for survive, which needs corosync: what it costs to tell others of idle connections.
for mode, survive in (("earshot-corosync", "off"), ("earshot-survive", 1)):
    EARSHOT[mode] = {"policy": "uri-hash", "membership": "corosync",
                     "settings": {**EARSHOT["earshot-every"]["settings"], "service.survive": survive}}
# Every request inspected, and the policy's own parameters: what moves, moves because the policy finds that worth it.
HOT = {f"{policy}-{membership}": {"policy": policy, "settings": {**WORKERS, "service.inspect": "every"}, "membership": membership}
       for policy in ("wlc", "uri-hash", "lard", "lard-r") for membership in ("static", "corosync")}
EARSHOT.update(HOT)
LVS = "lvs-dr"
DEFAULT_MODES = ("direct", "earshot", "haproxy", "nginx-proxy")
MODES = ("direct", *EARSHOT, *PROXY_PORTS, LVS)

_NGINX = """\
    access_log off;
    keepalive_requests 100000000;
{content}"""
_SERVER = """\
    server {{
        listen 80 backlog=4096;{more}
        root {docroot};
        add_header X-Node {node} always;
        location = /node {{ return 200 "{node}\\n"; }}
    }}"""


def make_docroot(directory, sizes=None, files=load.FILES):
    """Per size one file under many names (hard links: one copy in the page cache): /13k/0, /13k/1, ..."""
    for name, size in (sizes or SIZES).items():
        os.makedirs(os.path.join(directory, name))
        first = os.path.join(directory, name, "0")
        with open(first, "wb") as handle:
            handle.write(server.file_content(name, size))
        for number in range(1, files):
            os.link(first, os.path.join(directory, name, str(number)))


class Targets:
    """Brings up what a mode needs when it is first asked for; `stack` takes it down.

    A subclass measures other modes: with its own `clusters`, url(), and _listens(), _proxies(), _configure() and _await() for what it has
    in its labs.
    """

    fronts = ("proxy",)  # roles of the machines of the plain lab that are no servers
    read_counters = staticmethod(Lab.counters)

    def __init__(self, stack, docroot, clusters=None, shims=False, nodes=NODES):
        """`clusters`: those of Earshot, by the names of modes, with a lab's options (default: EARSHOT). `shims`: in the clients' cables,
        and in that of the proxies to the servers (tasks.py)."""
        self.stack = stack
        self.docroot = docroot
        self.clusters = EARSHOT if clusters is None else clusters
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.front = {role: f"n{number}" for number, role in enumerate(self.fronts, nodes + 1)}
        self.wires = ["client", f"{self.front['proxy']}-clu"] if shims else []
        self.labs = {}
        self.balanced = False  # is the director set up?

    def lab(self, mode):
        """The lab of a mode."""
        key = self.key(mode)
        if key not in self.labs:
            self._make(key)
        if mode == LVS and not self.balanced:
            self._balance(self.labs[key])
            self.balanced = True
        return self.labs[key]

    def key(self, mode):
        """The name of the mode's lab: that of a cluster, or "plain"."""
        return mode if mode in self.clusters else "plain"

    def url(self, mode):
        lab = self.lab(mode)
        if mode in self.clusters:
            return lab.url("").rstrip("/")
        if mode == "direct":
            return f"http://{lab.node('n1').public_address}"
        if mode == LVS:
            return f"http://{topology.VIP}"
        return f"http://{lab.node(PROXY).public_address}:{PROXY_PORTS[mode]}"

    def check(self, mode):
        """What the mode serves is what all serve; LabError if it is not."""
        url = self.url(mode).removeprefix("http://")
        host, _, port = url.partition(":")
        for size, length in SIZES.items():
            status, _, body = get(self.lab(mode).net.client, host, int(port or topology.PORT), f"/{size}/0", 30)
            if status != 200 or body != server.file_content(size, length):
                raise LabError(f"{mode}: GET http://{url}/{size}/0: status {status}, {len(body)} bytes, not the file")

    def identities(self, mode):
        """The namespaces of the mode's lab, and those of the others, whose daemons tick."""
        of = {key: {netns.identity(namespace) for namespace in lab.net.namespaces} for key, lab in self.labs.items()}
        mine = next(key for key, lab in self.labs.items() if lab is self.lab(mode))
        return of[mine], set().union(*(names for key, names in of.items() if key != mine))

    def counters(self, mode):
        """The cluster's counters, summed over its nodes; nothing for a mode without earshotd."""
        total = {}
        for node in self.lab(mode).net.nodes if mode in self.clusters else ():
            for name, value in self.read_counters(self.lab(mode), node).items():
                total[name] = total.get(name, 0) + value
                if name in ("inspect_owned", "inspect_requests"):
                    total[f"{name}@{node}"] = value
        return total

    def _make(self, key):
        if key == "plain":
            lab = Lab(nodes=len(self.names) + len(self.fronts), earshot=False, server="none", wires=self.wires)
        else:
            lab = Lab(server="none", **{"nodes": len(self.names), "wires": self.wires[:1], **self.clusters[key]})
        self.stack.enter_context(lab)
        # Otherwise a client that connects 30,000 times a second runs out of ports after two seconds.
        netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_tw_reuse": 1})
        servers = self.names if key == "plain" else lab.net.nodes
        for node in servers:
            self._nginx(lab, node, "server", 1, _SERVER.format(docroot=self.docroot, node=node, more=self._listens(lab, node)))
        for node in servers:
            self._wait(lab, node, 80, "bench-server.log")
        if key == "plain":
            self._proxies(lab)
        else:
            self._configure(lab, key)
        self.labs[key] = lab
        self._await(key)

    def _listens(self, _lab, _node):
        """Where else a server listens, as lines of its configuration, each after a line break."""
        return ""

    def _nginx(self, lab, node, role, workers, content):
        directory = lab.node_directory(node)
        os.makedirs(directory, exist_ok=True)
        log = f"bench-{role}.log"
        argv = server.nginx(directory, _NGINX.format(content=content), f"bench-{role}", log,
                            f"worker_processes {workers};\nworker_rlimit_nofile 8192;")
        self._start(lab, node, argv, os.path.join(directory, log))

    def _proxies(self, lab):
        """What is between clients and servers in the plain lab."""
        pools = [("nodes", {node: lab.node(node).cluster_address for node in self.names}, "by uri")]
        self._proxy(lab, [f":{PROXY_PORTS['haproxy']}"], f"        listen {PROXY_PORTS['nginx-proxy']} backlog=4096 reuseport;", pools)
        self._wait(lab, PROXY, PROXY_PORTS["nginx-proxy"], "bench-proxy.log")
        self._wait(lab, PROXY, PROXY_PORTS["haproxy"], "haproxy.log")

    def _proxy(self, lab, binds, listens, pools, settings=""):
        """nginx and HAProxy on their machine; see proxies.py."""
        node = self.front["proxy"]
        self._nginx(lab, node, "proxy", proxies.WORKERS, proxies.nginx(listens, pools))
        self._start(lab, node, proxies.haproxy(lab.node_directory(node), binds, pools, settings),
                    os.path.join(lab.node_directory(node), "haproxy.log"))

    def _configure(self, lab, key):
        """What else a cluster has, once its servers answer."""

    def _await(self, key):
        """Returns when the lab's modes have answers."""
        if key != "plain":
            self.labs[key].wait_serving()

    def _balance(self, lab):
        """LVS with direct routing: the proxies' machine is the director. The nodes have the address on lo as they have it
        for Earshot, and do not answer ARP for it (topology.py): the director has it on the wire."""
        address = f"{topology.VIP}/32"
        netns.ip_batch(lab.net.namespace(PROXY), [f"address del {address} dev lo", f"address add {address} dev eth0"])
        tool = shutil.which("ipvsadm") or shutil.which("ipvsadm", path="/usr/sbin:/sbin")
        if not tool:
            raise LabError("ipvsadm is not installed: apt-get install ipvsadm")
        service = f"{topology.VIP}:{topology.PORT}"
        # The same choice as "earshot" makes: in turn.
        for command in [["-A", "-t", service, "-s", "rr"],
                        *(["-a", "-t", service, "-r", lab.node(f"n{number}").public_address, "-g"]
                          for number in range(1, NODES + 1))]:
            done = lab.node(PROXY).exec([tool, *command], check=False)
            if done.returncode:
                raise LabError(f"ipvsadm {' '.join(command)}: {done.stderr.strip()} (a kernel without ip_vs?)")
        wait_for(lambda: receives(lab.net.client, topology.VIP, topology.PORT), f"answer through LVS at {service}",
                 lab.options["timeout"])

    @staticmethod
    def _start(lab, node, command, log):
        with open(log, "ab") as handle:
            lab.node(node).popen(command, stdout=handle, stderr=handle)

    @staticmethod
    def _wait(lab, node, port, log):
        address = lab.node(node).public_address
        try:
            wait_for(lambda: receives(lab.net.client, address, port), f"answer of {node} at {address}:{port}",
                     lab.options["timeout"])
        except LabError as error:
            raise LabError(str(error), process.log_tail(os.path.join(lab.node_directory(node), log))) from error
