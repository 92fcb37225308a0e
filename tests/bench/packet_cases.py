# SPDX-License-Identifier: GPL-2.0-or-later
"""The packets of ./dev bench packet, and how one kind is measured on the packet suite's node (tests/lib/packets/node.py)."""
import contextlib
import ctypes
import dataclasses
import socket
import statistics
from dataclasses import dataclass
from typing import Callable

import bpf_run
import namespaces
from earshotlab import netns, wait_for
from packets import families, packet, tables, tables_bpf
from packets.client import Client
from packets.node import CLUSTER, EACH, HANDOVER_PORT, PEER_MAC, PREFIX, WEB, Node
from packets.packet import ACK, PSH

PROGRAMS = {"es_public": "eth0", "es_cluster": "eth1", "es_reply": "eth0"}
BATCH = 64  # connections that wait to be accepted: fewer than fit into the server's queue
BODY = b"x" * 1000


@dataclass(frozen=True)
class Case:
    """One kind of packet, of clients of a family. make(bench, family): a frame of it, a new one each time.
    counter: what the node must count for each packet on its way in; run_counter: of runs by hand, if that differs.
    repeats: the program changes neither packet nor tables, so the same run can be repeated.
    speak(bench, family, n): the way out, of the node's own sockets, n segments; there are no runs by hand then."""
    program: str
    counter: str = None
    make: Callable = None
    run_counter: str = None
    repeats: bool = False
    speak: Callable = None
    family: int = 4

    def frame(self, bench):
        return self.make(bench, self.family)


class Bench(contextlib.ExitStack):
    """A node with its servers, and its programs."""

    def __enter__(self):
        super().__enter__()
        try:
            namespaces.delete_stale(PREFIX)
            self.node = self.enter_context(Node())
            self.node.start()
            for port in (WEB, EACH):
                self.node.listen(port)
            self.enter_context(families.dual_stack(self.node))
            with contextlib.closing(tables_bpf.Driver(self.node, {
                    "es_states": ctypes.sizeof(tables.State)})) as found:
                self.programs = bpf_run.of_map(found.map_id("es_states"), PROGRAMS)
            self.programs["empty"] = bpf_run.empty()
            for program in self.programs.values():
                self.callback(program.close)
            self.ifindex = netns.in_namespace(self.node.namespace, lambda: {
                name: socket.if_nametoindex(interface) for name, interface in PROGRAMS.items()})
            self.flows = {}
        except BaseException:
            self.close()
            raise
        return self

    def served(self, service, family):
        """A connection that is open, the same for the whole run."""
        if (service, family) not in self.flows:
            c = self.flows[service, family] = Client(self.node, service, family=family).serve()
            if service == EACH:  # the beginning of an answer that does not end
                c.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 4000000000\r\n\r\n")
        return self.flows[service, family]

    # By hand

    def _singles(self, case, frames, cold):
        """Median nanoseconds of single runs of a program, less those of the empty one."""
        def run():
            took, nothing = [], []
            for frame in frames:
                for program, into in (("empty", nothing), (case.program, took)):
                    if cold:
                        bpf_run.chill()
                    into.append(self.programs[program].run(frame, 1, self.ifindex[case.program]))
            return statistics.median(took) - statistics.median(nothing)

        return netns.in_namespace(self.node.namespace, run)

    def _repeated(self, case, frame, repeats):
        def run():
            took, nothing = (self.programs[program].run(frame, repeats, self.ifindex[case.program])
                             for program in (case.program, "empty"))
            return took - nothing

        return netns.in_namespace(self.node.namespace, run)

    def _by_hand(self, case, repeats, packets):
        """{way: nanoseconds} of runs by hand; the node must have counted them as the case says."""
        counter, cold_packets = case.run_counter or case.counter, max(10, packets // 10)
        before, ran = self.node.counters()[counter], cold_packets
        cold = self._singles(case, [case.frame(self) for _ in range(cold_packets)], True)
        if case.repeats:
            ran += repeats
            warm = self._repeated(case, case.frame(self), repeats)
        else:
            warm, left = [], packets
            while left > 0:  # in parts: the inspector's queue is not endless
                frames = [case.frame(self) for _ in range(min(left, BATCH))]
                warm.append(self._singles(case, frames, False))
                left -= len(frames)
                ran += len(frames)
                self._calm()
            warm = statistics.median(warm)
        counted = self.node.counters()[counter] - before
        assert counted >= ran, f"{case.program} counted {counted} of {counter} in {ran} runs, so something else was measured"
        return {"warm": warm, "cold": cold}

    # Under load

    def _nothing_counted(self, packets):
        """Nanoseconds for which the kernel says that the empty program runs."""
        program = self.programs["empty"]
        before = program.ran()
        program.run(bytes(64), 100 * packets)
        after = program.ran()
        return (after[0] - before[0]) / (after[1] - before[1])

    def _send(self, case, packets):
        before = self.node.counters()[case.counter]
        wire = self.node.cluster if case.program == "es_cluster" else self.node.public
        for start in range(0, packets, BATCH):
            frames = [case.frame(self) for _ in range(start, min(start + BATCH, packets))]
            for frame in frames:
                wire.send(frame)
            self._calm()
        wait_for(lambda: self.node.counters()[case.counter] - before >= packets, f"{packets} of {case.counter}")

    def _under_load(self, case, packets):
        """Nanoseconds a run, of packets that come over the wire or leave the node's sockets."""
        if case.make:
            case.frame(self)  # a connection that it needs is open from now on
        else:
            case.speak(self, case.family, 1)
        program = self.programs[case.program]
        before = program.ran()
        if case.speak:
            case.speak(self, case.family, packets)
        else:
            self._send(case, packets)
        after = program.ran()
        ran = after[1] - before[1]
        assert ran >= packets, f"{case.program} ran {ran} times for {packets} packets"
        return (after[0] - before[0]) / ran - self._nothing_counted(packets)

    def _calm(self):
        """Nothing waits to be inspected or accepted, and nothing that came is kept."""
        self.node.settle()
        self.node.pending(WEB)
        self.node.public.clear()
        self.node.cluster.clear()

    def measure(self, case, repeats, packets, can_count):
        """{way: nanoseconds or None} of one round."""
        found = {"warm": None, "cold": None, "load": None}
        if case.make:
            found |= self._by_hand(case, repeats, packets)
        self._calm()
        if can_count:
            found["load"] = self._under_load(case, packets)
        self._calm()
        return {way: value if value is None else round(value, 1) for way, value in found.items()}


def _overheard(bench, family):
    c = Client(bench.node, owner=2, family=family)
    c.forge()
    return c.frame(ACK | PSH, BODY)


def _syn(bench, family):
    return Client(bench.node, family=family).syn_frame()


def _bare_ack(bench, family):
    c = Client(bench.node, family=family)
    c.forge()
    return c.frame(ACK)


def _delivered(bench, family):
    return bench.served(WEB, family).frame(ACK)


def _request(bench, family):
    c = Client(bench.node, family=family)
    c.forge()
    return c.frame(ACK | PSH, c.get(2))


def _handover(bench, family):
    c = Client(bench.node, owner=2, family=family)
    c.forge()
    message = c.handover(c.ip_packet(ACK | PSH, c.get()), source=1)
    bench.node.sequence += 1
    message.sequence = bench.node.sequence
    data = message.pack(bench.node.keys.handover[0])
    return packet.eth(bench.node.cluster.node_mac, PEER_MAC[1], packet.ETH_IP, packet.ip(
        CLUSTER[1], CLUSTER[0], packet.UDP, packet.udp(CLUSTER[1], CLUSTER[0], 40000, HANDOVER_PORT, data)))


def _speaks(service):
    def speak(bench, family, packets):
        c = bench.served(service, family)
        for _ in range(packets):
            c.answer(BODY)

    return speak


IPV4 = {
    "overheard": Case("es_public", "drop_not_mine", _overheard, repeats=True),
    "own-syn": Case("es_public", "syn_answered", _syn),
    "own-ack": Case("es_public", "drop_handshake_ack", _bare_ack, repeats=True),
    "delivered": Case("es_public", "deliver_established", _delivered, repeats=True),
    "first-request": Case("es_public", "request_queued", _request),
    "handover": Case("es_cluster", "handover_rebuilt", _handover, run_counter="handover_received"),
    "reply": Case("es_reply", speak=_speaks(WEB)),
    "reply-read": Case("es_reply", speak=_speaks(EACH)),
}
V6 = "-v6"  # behind the name of the same packet of a client with IPv6
CASES = IPV4 | {name + V6: dataclasses.replace(case, family=6) for name, case in IPV4.items()}
