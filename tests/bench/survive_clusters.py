# SPDX-License-Identifier: GPL-2.0-or-later
"""The clusters of `./dev bench survive`: Earshot without and with survive, and two front-ends of keepalived and HAProxy."""
import contextlib
import functools
import os
import shutil
import subprocess
import tempfile

import proxies
from cluster import crash
from cluster.membership import ALL, serving, settled
from earshotlab import Lab, LabError, daemon, netns, topology, wait_for
from earshotlab.probe import receives

START_S = 60  # of a cluster, on a busy machine
EARSHOT = {"earshot": {}, "earshot-survive": {"service.survive": 1}}
KEEPALIVED = "keepalived"
NAMES = (*EARSHOT, KEEPALIVED)
CLIENT = {"net.ipv4.tcp_rmem": "4096 131072 1048576"}  # or its kernel has a slow download before the machine dies
ADVERTS = ("1", "0.3")  # seconds between two signs of life; the first one is keepalived's default
FRONT_ENDS, SERVERS = ["n1", "n2"], ["n3", "n4"]
FLOATING = "10.77.0.200"  # of the front-ends
FRONT_PORT = 8001

_KEEPALIVED = """\
global_defs {{
    vrrp_version 3
}}
vrrp_instance web {{
    state BACKUP
    interface eth0
    virtual_router_id 51
    priority {priority}
    advert_int {advert}
    virtual_ipaddress {{
        {address}/16 dev eth0
    }}
}}
"""


@functools.cache
def resumes():
    """Does this build know `resume` of a service?"""
    with tempfile.TemporaryDirectory(prefix="earshot-bench-") as directory:
        key, config = os.path.join(directory, "key"), os.path.join(directory, "conf")
        daemon.make_key(key)
        for settings in ({}, {"service.resume": "on"}):
            with open(config, "w", encoding="utf-8") as handle:
                handle.write(daemon.config_text(topology.Topology("x", 4), key, "wrr", "bpf", "corosync",
                                                {"service.inspect": "every", "service.survive": 1, **settings}))
            done = subprocess.run([daemon.binary("earshot"), "check-config", config], capture_output=True, text=True, check=False)
            if done.returncode and not settings:
                raise LabError("a configuration with survive is refused", done.stderr)
    return not done.returncode


class Earshot:
    """Four nodes with corosync, of which n2 dies."""

    is_earshot, victim, address, servers = True, "n2", None, ALL

    def __init__(self, stack, docroot, name, token):
        self.token, self.detected_s = token, 3 * token / 1000
        more = {"service.resume": "on"} if EARSHOT[name] and resumes() else {}
        self.name = name + ("-resume" if more else "")
        self.survives = bool(EARSHOT[name])
        self.lab = stack.enter_context(Lab(
            nodes=4, membership="corosync", policy="wrr", token=token, datapath="bpf", docroot=docroot, timeout=START_S,
            settings={"service.inspect": "every", **EARSHOT[name], **more}))
        netns.set_sysctls(self.lab.net.client, CLIENT)
        self._whole()

    def _whole(self):
        settled(self.lab, ALL, START_S)
        serving(self.lab)

    def url(self, target):
        return self.lab.url(target)

    def has_died(self, node):
        """Has it, which has a connection, or whose share a new one belongs to, lost its power?"""
        return node == self.victim

    def shares(self, count):
        return crash.ports(self.lab, count)

    def wait_kept(self, connections):
        if self.survives:
            crash.wait_kept(self.lab, connections)

    def heal(self):
        self.lab.heal(self.victim)
        self._whole()


class Keepalived:
    """Two front-ends, of which the active one dies, and two servers."""

    is_earshot, name, victim, address, servers = False, "keepalived, HAProxy", "n1", (FLOATING, FRONT_PORT), None

    def __init__(self, stack, docroot, advert):
        self.token = f"advert_int {advert}"
        self.detected_s = 4 * float(advert) + 1  # three adverts and a priority's part of one
        self.advert = advert
        self.lab = stack.enter_context(Lab(nodes=4, earshot=False, docroot=docroot, timeout=START_S))
        netns.set_sysctls(self.lab.net.client, CLIENT)
        for node in FRONT_ENDS:
            self._start(node)
        self._whole()

    def _start(self, node):
        directory = self.lab.node_directory(node)
        command = shutil.which("keepalived") or shutil.which("keepalived", path="/usr/sbin")
        if not command:
            raise LabError("keepalived is not installed: apt-get install keepalived")
        config = os.path.join(directory, "keepalived.conf")
        with open(config, "w", encoding="utf-8") as handle:
            handle.write(_KEEPALIVED.format(priority=100 - FRONT_ENDS.index(node), advert=self.advert, address=FLOATING))
        os.chmod(config, 0o600)
        pids = {name: os.path.join(directory, name) for name in ("pid", "vrrp_pid")}
        for path in pids.values():  # of before the power cut: it believes them
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        servers = {server: self.lab.node(server).cluster_address for server in SERVERS}
        for name, argv in (("haproxy", proxies.haproxy(directory, [f":{FRONT_PORT}"], [("nodes", servers, "by uri")])),
                           ("keepalived", [command, "--vrrp", "--dont-fork", "--log-console", "--use-file", config,
                                           *(f"--{name}={path}" for name, path in pids.items())])):
            with open(os.path.join(directory, f"{name}.log"), "ab") as handle:
                self.lab.node(node).popen(argv, stdout=handle, stderr=handle)

    def _whole(self):
        """The first front-end has the address, and clients an answer by it."""
        wait_for(lambda: FLOATING in netns.ip("-n", self.lab.net.namespace(self.victim), "-o", "address", "show", "dev", "eth0"),
                 f"{FLOATING} at {self.victim}", START_S)
        wait_for(lambda: receives(self.lab.net.client, *self.address), "answer through HAProxy", START_S)

    def url(self, target):
        return f"http://{FLOATING}:{FRONT_PORT}{target}"

    def has_died(self, _node):
        """All connections go through the machine that has the address."""
        return True

    def shares(self, count):
        return {self.victim: crash.fresh_ports(count)}

    def wait_kept(self, _connections):
        """Nobody keeps any."""

    def heal(self):
        self.lab.heal(self.victim)
        self._start(self.victim)
        self._whole()


def which(names, tokens):
    """What makes each cluster that is to be measured, in the order of the table: (stack, docroot) to the cluster."""
    made = [functools.partial(Earshot, name=name, token=int(token)) for token in tokens for name in names if name in EARSHOT]
    adverts = ADVERTS if len(tokens) > 1 else ADVERTS[:1]
    return made + [functools.partial(Keepalived, advert=advert) for advert in adverts if KEEPALIVED in names]
