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
        listen 80 backlog=4096;
        root {docroot};
        add_header X-Node {node} always;
        location = /node {{ return 200 "{node}\\n"; }}
    }}"""
_PROXY = """\
    upstream nodes {{
        hash $request_uri consistent;
{servers}
        keepalive 128;
        keepalive_requests 100000000;
    }}
    server {{
        listen {port} backlog=4096 reuseport;
        location / {{
            proxy_pass http://nodes;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_max_temp_file_size 0;
        }}
    }}"""
_HAPROXY = """\
global
    nbthread 2
    maxconn 4000
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend web
    bind :{port}
    default_backend nodes
backend nodes
    balance uri
{servers}
"""


def make_docroot(directory, sizes=None, files=load.FILES):
    """Per size one file under many names (hard links: one copy in the page cache): /13k/0, /13k/1, ..."""
    for name, size in (sizes or SIZES).items():
        os.makedirs(os.path.join(directory, name))
        first = os.path.join(directory, name, "0")
        with open(first, "wb") as handle:
            handle.write(server.file_content(name, size))
        for number in range(1, files):
            os.link(first, os.path.join(directory, name, str(number)))


def haproxy(directory, port, servers):
    """Write its configuration there, with these addresses of servers; returns the command line that runs it."""
    command = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if not command:
        raise LabError("haproxy is not installed: apt-get install haproxy")
    config = os.path.join(directory, "haproxy.cfg")
    with open(config, "w", encoding="utf-8") as handle:
        handle.write(_HAPROXY.format(port=port, servers="\n".join(f"    server n{i} {a}:80" for i, a in enumerate(servers, 1))))
    return [command, "-db", "-f", config]


class Targets:
    """Brings up what a mode needs when it is first asked for; `stack` takes it down."""

    def __init__(self, stack, docroot, clusters=None, shims=False):
        """`clusters`: those of Earshot, by the names of modes (default: EARSHOT). `shims`: in the clients' cables, and in that of the proxies
        to the servers (tasks.py)."""
        self.stack = stack
        self.docroot = docroot
        self.clusters = EARSHOT if clusters is None else clusters
        self.wires = ["client", f"{PROXY}-clu"] if shims else []
        self.labs = {}
        self.balanced = False  # is the director set up?

    def lab(self, mode):
        """The lab of a mode."""
        key = mode if mode in self.clusters else "plain"
        if key not in self.labs:
            self.labs[key] = self._make(key)
        if mode == LVS and not self.balanced:
            self._balance(self.labs[key])
            self.balanced = True
        return self.labs[key]

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
            for name, value in self.lab(mode).counters(node).items():
                total[name] = total.get(name, 0) + value
                if name in ("inspect_owned", "inspect_requests"):
                    total[f"{name}@{node}"] = value
        return total

    def _make(self, key):
        if key == "plain":
            lab = Lab(nodes=NODES + 1, earshot=False, server="none", wires=self.wires)
        else:
            lab = Lab(server="none", **{"nodes": NODES, "wires": self.wires[:1], **self.clusters[key]})
        self.stack.enter_context(lab)
        # Otherwise a client that connects 30,000 times a second runs out of ports after two seconds.
        netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_tw_reuse": 1})
        servers = [node for node in lab.net.nodes if key != "plain" or node != PROXY]
        self._servers(lab, servers)
        if key == "plain":
            self._proxies(lab)
        else:
            lab.wait_serving()
        return lab

    def _servers(self, lab, nodes):
        """nginx on each of them; returns when all answer."""
        for node in nodes:
            self._nginx(lab, node, "server", 1, _SERVER.format(docroot=self.docroot, node=node))
        for node in nodes:
            self._wait(lab, node, 80, "bench-server.log")

    def _nginx(self, lab, node, role, workers, content):
        directory = lab.node_directory(node)
        os.makedirs(directory, exist_ok=True)
        log = f"bench-{role}.log"
        argv = server.nginx(directory, _NGINX.format(content=content), f"bench-{role}", log,
                            f"worker_processes {workers};\nworker_rlimit_nofile 8192;")
        self._start(lab, node, argv, os.path.join(directory, log))

    def _proxies(self, lab):
        servers = [lab.node(f"n{number}").cluster_address for number in range(1, NODES + 1)]
        self._nginx(lab, PROXY, "proxy", 2, _PROXY.format(
            port=PROXY_PORTS["nginx-proxy"], servers="\n".join(f"        server {a}:80;" for a in servers)))
        self._start(lab, PROXY, haproxy(lab.node_directory(PROXY), PROXY_PORTS["haproxy"], servers),
                    os.path.join(lab.node_directory(PROXY), "haproxy.log"))
        self._wait(lab, PROXY, PROXY_PORTS["nginx-proxy"], "bench-proxy.log")
        self._wait(lab, PROXY, PROXY_PORTS["haproxy"], "haproxy.log")

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
