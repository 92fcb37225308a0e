# SPDX-License-Identifier: GPL-2.0-or-later
"""All that goes wrong with a cluster, at random: kinds of failures, each of which can be undone.

    nemesis = Nemesis(lab, servers, random.Random(seed))
    history = nemesis.play(30)   # two at a time; when it returns, all is well again

A kind is a method that is marked @kind, and returns a Failure. It says what it takes hold of, so that no two are at odds:
(node, part) for parts of a node, "earshotd" being all of it but the server and the cables, "power" simply all.
"""
import contextlib
import os
import random
import signal
import threading
import time

from cluster import interfaces
from earshotlab import topology

LASTING = (0.3, 1, 2, 4)
PARTS = ("earshotd", "corosync", "server", "cluster", "public")


class Failure:
    """Something that is wrong from begin() to end(). `nodes` are those whose clients may suffer from it."""

    def __init__(self, what, holds, begin, end, nodes=None):
        self.what, self.holds = what, set(holds)
        self.begin, self.end = begin, end
        self.nodes = {name for name, _ in self.holds if name} if nodes is None else set(nodes)
        self.began = self.until = self.ended = None

    def __str__(self):
        return f"{self.what} {'+'.join(sorted(self.nodes))}".rstrip()


KINDS = []


def kind(method):
    KINDS.append(method)
    return method


class Flapping:
    """A server's listener that is closed and opened, closed and opened."""

    def __init__(self, servers, name, pauses):
        self.servers, self.name, self.pauses = servers, name, pauses
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        is_open = True
        for pause in self.pauses:
            is_open = not is_open
            self.servers.listen(self.name, is_open)
            if self.stopping.wait(pause):
                return

    def stop(self):
        self.stopping.set()
        self.thread.join()
        self.servers.listen(self.name, True)


class Nemesis:
    def __init__(self, lab, servers, chance):
        self.lab, self.servers, self.chance = lab, servers, chance
        self.names = list(lab.net.nodes)
        self.wired = [link.name for link in lab.net.links.values() if link.wired]
        self.key = os.path.join(lab.directory, "cluster.key")

    def play(self, seconds, at_once=2):
        """The schedule. Returns what was done, in order."""
        history, active = [], []
        now = time.monotonic()
        end = now + seconds
        pause = self._pause()
        try:
            while (now := time.monotonic()) < end:
                self._end([one for one in active if now >= one.until], active)
                if len(active) < at_once and now >= pause:
                    self._begin(active, history)
                    pause = self._pause()
                time.sleep(0.02)
        finally:
            self._end(list(active), active)
        return history

    def _pause(self):
        return time.monotonic() + self.chance.uniform(0.05, 0.7)

    def _begin(self, active, history):
        """The draws are the same whatever is under way, so that a seed is a schedule."""
        one, lasting = self.chance.choice(KINDS)(self), self.chance.choice(LASTING)
        if any(one.holds & other.holds for other in active):
            return
        print(f"{time.monotonic():.1f} {one}", flush=True)
        active.append(one)
        history.append(one)
        one.began = time.monotonic()
        one.begin()
        one.until = time.monotonic() + lasting

    @staticmethod
    def _end(those, active):
        for one in those:
            one.end()
            one.ended = time.monotonic()
            active.remove(one)
            print(f"{one.ended:.1f} over: {one}", flush=True)

    def restore(self):
        """Orders that a node did not hear, since it was no member."""
        self._reload()
        for name in self.names:
            self.lab.node(name).exec(["earshot", "undrain", name])
            self.lab.node(name).exec(["earshot", "weight", name, "100"])

    # --- what the kinds have in common

    def _node(self):
        return self.lab.node(self.chance.choice(self.names))

    def _ask(self, *arguments):
        """By any node; one that is no member cannot be told anything."""
        with contextlib.suppress(Exception):
            self.lab.node(random.choice(self.names)).exec(["earshot", *arguments], timeout=10)

    def _reload(self):
        for node in self.lab.nodes:
            if node.name not in self.lab.dead:
                with contextlib.suppress(Exception):  # no daemon, or one that stands still
                    node.exec(["earshot", "reload"], timeout=2)

    @staticmethod
    def _all(node):
        return {(node.name, part) for part in PARTS}

    @staticmethod
    def _processes(node):
        return {(node.name, "earshotd"), (node.name, "corosync")}

    @staticmethod
    def _serving(node):
        """What the server gets: one such thing at a time, and no other server meanwhile."""
        return {(node.name, "server")}

    # --- machines and processes

    @kind
    def power(self):
        node = self._node()

        def heal():
            self.lab.heal(node.name)
            self.servers.start(node.name)

        return Failure("power off", self._all(node), lambda: self.lab.kill(node.name), heal)

    @kind
    def daemon_killed(self):
        node = self._node()
        return Failure("kill earshotd", self._processes(node), lambda: node.signal("earshotd", signal.SIGKILL),
                       lambda: node.start("earshotd"))

    @kind
    def daemon_stopped(self):
        node = self._node()
        return Failure("freeze earshotd", self._processes(node), lambda: node.signal("earshotd", signal.SIGSTOP),
                       lambda: node.signal("earshotd", signal.SIGCONT))

    @kind
    def daemon_left(self):
        node = self._node()
        return Failure("leave", self._processes(node), lambda: node.stop("earshotd"), lambda: node.start("earshotd"))

    @kind
    def corosync_killed(self):
        node = self._node()
        return Failure("kill corosync", self._processes(node), node.corosync.kill, node.corosync.start)

    @kind
    def corosync_stopped(self):
        node = self._node()
        return Failure("freeze corosync", self._processes(node), lambda: node.signal("corosync", signal.SIGSTOP),
                       lambda: node.signal("corosync", signal.SIGCONT))

    @kind
    def listener_flaps(self):
        node = self._node()
        flapping = Flapping(self.servers, node.name, [self.chance.uniform(0.05, 0.5) for _ in range(200)])
        return Failure("flapping listener", {(node.name, "server")}, flapping.thread.start, flapping.stop)

    # --- cables

    @kind
    def cable_pulled(self):
        return self._cut("cut", False)

    @kind
    def frames_lost(self):
        return self._cut("lose frames of", True)

    @kind
    def frames_lost_one_way(self):
        direction = self.chance.choice(("in", "out"))
        return self._cut(f"lose frames {direction} of", direction)

    def _cut(self, what, silent):
        node, network = self._node(), self.chance.choice(("cluster", "public"))
        return Failure(f"{what} {network}", {(node.name, network)}, lambda: node.cut(network, silent=silent),
                       lambda: node.mend(network))

    @kind
    def partition(self):
        networks = self.chance.choice((["cluster"], ["cluster"], ["public"], ["cluster", "public"]))
        shuffled = self.chance.sample(self.names, len(self.names))
        size = self.chance.choice((1, 1, len(shuffled) // 2))
        groups = [shuffled[size:], shuffled[:size]]
        return Failure(f"partition {groups} of {'+'.join(networks)}", {(None, "partition")},
                       lambda: self.lab.partition(groups, networks=networks), self.lab.heal_partition, nodes=self.names)

    @kind
    def bad_cable(self):
        """Late by more than a client waits before it repeats, or losing."""
        link = self.chance.choice(self.wired)
        settings = self.chance.choice(({"loss": 0.05, "dup": 0.02, "reorder": 0.02}, {"delay": "110ms"}, {"loss": 0.3}))
        before = {"loss": 0, "dup": 0, "reorder": 0, "delay": 0}
        if link == "client":
            settings, before = {"loss": 0.05}, {"loss": 0.01}
        name = link.partition("-")[0]
        return Failure(f"bad cable {link} {settings}", {(None, link)}, lambda: self.lab.wire(link).set(**settings),
                       lambda: self.lab.wire(link).set(**before), nodes=[name] if name in self.names else self.names)

    # --- what changes on a machine under a daemon that runs

    @kind
    def address_removed(self):
        node, vips = self._node(), self.lab.net.vips
        vip = self.chance.choice(vips) if len(vips) > 1 else vips[0]

        def change(verb):
            node.exec(["ip", "address", verb, f"{vip}/{128 if ':' in vip else 32}", "dev", "lo"])

        return Failure(f"no service address {vip}", self._serving(node), lambda: change("del"), lambda: change("add"))

    @kind
    def sysctl_changed(self):
        node = self._node()
        name, wrong = self.chance.choice((("net.ipv4.conf.all.rp_filter", "1"), ("net.ipv4.tcp_syncookies", "0")))
        found = node.exec(["sysctl", "-n", name]).stdout.strip()
        return Failure(f"sysctl {name}", self._serving(node), lambda: node.exec(["sysctl", "-q", "-w", f"{name}={wrong}"]),
                       lambda: node.exec(["sysctl", "-q", "-w", f"{name}={found}"]))

    @kind
    def packets_dropped(self):
        """A firewall that lets no request through to the server, and that no look finds."""
        node = self._node()
        rules = "".join(f"{'ip6' if ':' in vip else 'ip'} daddr {vip} tcp dport {topology.PORT} drop; "
                        for vip in self.lab.net.vips)
        table = f"table inet nemesis {{ chain input {{ type filter hook input priority 0; {rules}}}; }}"
        return Failure("firewall", self._serving(node), lambda: node.exec(["nft", table]),
                       lambda: node.exec(["nft", "delete table inet nemesis"]))

    @kind
    def interface_made_anew(self):
        node = self._node()
        network, part = self.chance.choice((("clu", "cluster"), ("pub", "public")))
        if interfaces.link_of(self.lab, node.name, network).wired:
            return self._cut("cut", False)
        # Without it, no daemon starts.
        return Failure(f"no {part} interface", {(node.name, part), (None, "partition")} | self._processes(node),
                       lambda: interfaces.remove(self.lab, node.name, network),
                       lambda: interfaces.make(self.lab, node.name, network))

    # --- operators

    @kind
    def drain(self):
        node = self._node()
        return Failure("drain", {(None, "orders")}, lambda: self._ask("drain", node.name),
                       lambda: self._ask("undrain", node.name), nodes=[])

    @kind
    def weight(self):
        node, weight = self._node(), str(self.chance.choice((10, 50, 300)))
        return Failure(f"weight {weight}", {(None, "orders")}, lambda: self._ask("weight", node.name, weight),
                       lambda: self._ask("weight", node.name, "100"), nodes=[])

    @kind
    def reload(self):
        """Another weight, by the configuration."""
        node = self._node()
        begins = f"node {node.name} {{\n"
        with open(self.lab.config_file, encoding="utf-8") as handle:
            text = handle.read()

        def write(content):
            with open(self.lab.config_file, "w", encoding="utf-8") as handle:
                handle.write(content)
            self._reload()

        return Failure("reload", {(None, "orders")}, lambda: write(text.replace(begins, f"{begins}    weight = 50\n")),
                       lambda: write(text), nodes=[])

    @kind
    def rotation(self):
        """As `earshot keygen --help` says it."""
        def step(option):
            self.lab.node(self.names[0]).exec(["earshot", "keygen", option, self.key])
            self._reload()

        processes = set().union(*(self._processes(node) for node in self.lab.nodes))
        return Failure("rotate keys", {(None, "orders")} | processes, lambda: step("--stage"), lambda: step("--rotate"), nodes=[])
