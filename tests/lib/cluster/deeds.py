# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster whose servers write down each request that they execute (web/ledger.py), clients that ask for each thing
once, and what must hold of both.

    with Deeds(lab) as deeds:
        deeds.run(5)                      # while things go wrong
        deeds.wait_told(deeds.now())      # nobody waits any longer
    assert not deeds.problems()
"""
import asyncio
import collections
import os
import signal
import socket
import struct

import tree
from earshotlab import topology, wait_for
from web import ledger, raw
from web.traffic import Connection, Request, Traffic

TOLD_S = 15  # after all is well again, nobody waits for longer


class Servers:
    """The ledger's server on each node."""

    def __init__(self, lab):
        self.lab, self.children = lab, {}
        for node in lab.nodes:
            self.start(node.name)

    def start(self, name):
        node = self.lab.node(name)
        child = node.popen([*tree.module("web.ledger"), name, ",".join(self.lab.net.vips), str(topology.PORT),
                            self.file(name)], stdout=-1)
        assert child.stdout.readline() == "listening\n", f"the server of {name}"
        self.children[name] = child

    def file(self, name):
        return os.path.join(self.lab.node_directory(name), "ledger")

    def listen(self, name, is_open):
        """Close or open the listener; connections go on."""
        self.children[name].send_signal(signal.SIGUSR2 if is_open else signal.SIGUSR1)

    def executed(self):
        """{(method, target): [(node, whether the body was right), ...]}"""
        found = collections.defaultdict(list)
        for name in self.children:
            for node, method, target, right in ledger.read(self.file(name)):
                found[method, target].append((node, right))
        return found


class Patient(Connection):
    """One that gives up only when all that it sent was acknowledged, and nothing came for a while: a host that lost its
    power then tells it nothing, and it sends nothing that somebody else could answer."""

    PATIENCE_S = 8

    async def _more(self):
        while True:
            try:
                return await asyncio.wait_for(super()._more(), self.PATIENCE_S)
            except asyncio.TimeoutError:
                if not self._unacknowledged():
                    raise ConnectionAbortedError("acknowledged, and not answered") from None

    def _unacknowledged(self):
        """tcpi_unacked: segments"""
        return struct.unpack_from("I", self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 24)[0]


class Deeds(Traffic):
    """Clients that ask for each target once, half of them by POST."""

    CONNECTION = Patient

    def __init__(self, lab, kept=15, fresh=15, pause=0.05):
        super().__init__(lab, kept=kept, fresh=fresh, pause=pause, patience=600)
        self.servers = Servers(lab)
        # Who repeats ever more seldom may find out half an outage after its end; Linux 6.15 knows a limit.
        lab.client.exec(["sysctl", "-q", "-e", "-w", "net.ipv4.tcp_rto_max_ms=4000"])

    def request(self, number):
        target = f"/{number}"
        return (Request("POST", target, ledger.request_body(target)) if self.is_unsafe(target)
                else Request("GET", target, b""))

    @staticmethod
    def is_unsafe(target):
        """Of what is asked for here: by POST."""
        return int(target[1:]) % 2 == 1

    def is_right(self, request, node, body):
        return body == ledger.answer_body(node, request.target)

    def wait_told(self, since):
        """All that was asked by then has been answered, or its client told that it will not be."""
        def waiting():
            return [one for one in list(self.open.values()) if one.began <= since]

        def sockets():
            return "".join(f"\n{one.kind} {one.client}: {one.request.method} {one.request.target}, for "
                           f"{self.now() - one.began:.1f} s, port {one.port}: {one.port and raw.states(self.lab, one.port)}"
                           for one in waiting()[:3])

        wait_for(lambda: not waiting(), f"an end of what was asked before, {len(waiting())} requests", TOLD_S, sockets)

    def problems(self):
        """No POST is executed twice, each arrives as it was sent, and an answer is of the one that executed it."""
        executed = self.servers.executed()
        found = []

        def add(what, list_of):
            if list_of:
                found.append(f"{len(list_of)} {what}, of {len(executed)}: {list_of[:5]}")

        add("unsafe requests executed twice", [(key, by) for key, by in executed.items() if key[0] == "POST" and len(by) > 1])
        add("requests changed on their way", [key for key, by in executed.items() if not all(right for _, right in by)])
        add("wrong answers", self.wrong)
        return found
