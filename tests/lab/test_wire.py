# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot-wire in a lab: what is lost, doubled, reordered and delayed, and that nothing is otherwise."""
import contextlib
import json
import os
import signal
import socket
import time

import pytest

from cluster.command import network
from earshotlab import LabError, process, server, wait_for

pytestmark = pytest.mark.wire
DATAGRAMS = 2000
SO_RCVBUFFORCE = 33


class Stream:
    """Numbered datagrams between the client and a node, over the link "client"."""

    def __init__(self, lab, stack):
        self.lab = lab
        self.client = stack.enter_context(lab.client.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.node = stack.enter_context(lab.node("n1").socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.addresses = {self.client: ("10.77.1.1", 9000), self.node: ("10.77.0.1", 9000)}
        for end, address in self.addresses.items():
            end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            end.bind(address)
            end.settimeout(5)
        self.send("in", 1)  # the ARP queries too
        self.send("out", 1)
        self.lab.wire("client").zero()

    def send(self, direction, count=DATAGRAMS):
        """Send so many datagrams, wait for what the wire lets through; returns their numbers as they arrive."""
        wire = self.lab.wire("client")
        source, target = (self.client, self.node) if direction == "out" else (self.node, self.client)
        before = wire.stats()[direction]
        for number in range(count):
            source.sendto(b"%d" % number, self.addresses[target])

        def through():
            stats = wire.stats()[direction]
            return stats if stats["received"] - before["received"] >= count and not stats["waiting"] else None

        stats = wait_for(through, "all datagrams on the wire")
        assert stats["socket_drops"] == stats["overflow"] == stats["send_failed"] == 0
        target.settimeout(5)
        return [int(target.recv(100)) for _ in range(stats["sent"] - before["sent"] - self._arp(before, stats, count))]

    @staticmethod
    def _arp(before, stats, count):
        """Frames on the wire that are none of ours; only the first stream has any."""
        return stats["received"] - before["received"] - count


@pytest.fixture
def wired():
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(network(1, wires=["client", "n1-clu"], wire_seed=4711))
        yield Stream(lab, stack)


def test_wire_is_perfect_unless_told_otherwise(wired):
    for direction in ("in", "out"):
        assert wired.send(direction) == list(range(DATAGRAMS))
    stats = wired.lab.wire("client").stats()
    assert stats["seed"] == 4711
    for direction in ("in", "out"):
        assert stats[direction]["lost"] == stats[direction]["duplicated"] == stats[direction]["delayed"] == 0


def test_wire_loses(wired):
    wire = wired.lab.wire("client")
    wire.set("in", loss=0.05)
    arrived = wired.send("in")
    lost = wire.stats()["in"]["lost"]
    assert 50 <= lost <= 160  # 100 on average, standard deviation 10
    assert len(arrived) == DATAGRAMS - lost and arrived == sorted(set(arrived))
    assert wired.send("out") == list(range(DATAGRAMS)), "the other direction is not touched"
    wire.clear()
    assert wired.send("in") == list(range(DATAGRAMS))


def test_wire_doubles(wired):
    wired.lab.wire("client").set("out", dup=0.05)
    arrived = wired.send("out")
    doubled = wired.lab.wire("client").stats()["out"]["duplicated"]
    assert 50 <= doubled <= 160
    assert len(arrived) == DATAGRAMS + doubled and sorted(set(arrived)) == list(range(DATAGRAMS))


def test_wire_reorders(wired):
    wired.lab.wire("client").set("out", reorder=0.05, reorder_ms=3)
    arrived = wired.send("out")
    assert sorted(arrived) == list(range(DATAGRAMS))
    overtaken = sum(1 for i, number in enumerate(arrived) if any(later < number for later in arrived[i + 1:i + 200]))
    assert overtaken > 20
    assert 50 <= wired.lab.wire("client").stats()["out"]["reordered"] <= 160


def test_wire_delays_without_reordering(wired):
    wired.lab.wire("client").set(delay="20ms", jitter="10ms")
    started = time.monotonic()
    assert wired.send("out", 200) == list(range(200))
    assert time.monotonic() - started >= 0.010
    assert wired.lab.client.get("/node", host="10.77.0.1")[0] == 200
    assert wired.lab.wire("client").stats()["out"]["delayed"] >= 200


def test_wire_drops_exactly_the_next(wired):
    wired.lab.wire("client").set("out", drop_next=3)
    assert wired.send("out", 10) == list(range(3, 10))
    assert wired.lab.wire("client").stats()["out"]["settings"]["drop_next"] == 0


def test_wire_rate(wired):
    frame = 14 + 20 + 8 + 3
    wired.lab.wire("client").set("out", rate_mbit=frame * 8 / 1000)  # one frame per millisecond
    started = time.monotonic()
    assert wired.send("out", 300) == list(range(300))
    assert 0.25 <= time.monotonic() - started < 3


def test_wire_refuses_nonsense(wired):
    wire = wired.lab.wire("client")
    for settings in ({"loss": 2}, {"loss": -1}, {"loss": "x"}, {"limit": 1.5}, {"delay": "2 fortnights"}, {"lost": 1}):
        with pytest.raises(LabError):
            wire.set(dup=0.5, **settings)
    assert wire.stats()["in"]["settings"]["dup"] == 0, "a refused command has changed something"
    with pytest.raises(LabError):
        wired.lab.wire("n1-pub").set(loss=0.1)


def test_tcp_survives_a_bad_wire(wired):
    wire = wired.lab.wire("client")
    wire.segment(wired.lab.net.switch)
    wire.set(loss=0.02, dup=0.02, reorder=0.02, delay_ms=1, jitter_ms=0.5)
    status, _, body = wired.lab.client.get("/1m", host="10.77.0.1", timeout=30)
    assert (status, body) == (200, server.file_content("1m", 1 << 20))
    stats = wire.stats()["in"]
    assert stats["lost"] and stats["duplicated"] and stats["reordered"]
    assert stats["received"] >= (1 << 20) // 1460, "super-frames on a segmented link"


def test_wire_survives_link_changes_and_power_cuts(wired):
    lab = wired.lab
    lab.cut("client")
    with pytest.raises(OSError):
        lab.client.get("/node", host="10.77.0.1", timeout=0.3)
    lab.mend("client")
    lab.kill("n1")
    lab.heal("n1")
    assert lab.node("n1").get("/node", host="10.78.0.1")[0] == 200
    wait_for(lambda: lab.client.get("/node", host="10.77.0.1", timeout=1)[0] == 200, "the client's way back")


def test_wire_writes_its_figures(wired):
    wire = wired.lab.wire("n1-clu")
    record = next(record for record in wired.lab.records if record["name"] == "wire-n1-clu")
    process.send(record, signal.SIGUSR1)
    wait_for(lambda: os.path.exists(wire.stats_file), "figures after SIGUSR1")
    with open(wire.stats_file, encoding="ascii") as handle:
        assert json.load(handle)["a2b"]["lost"] == 0
    with open(wire.log, encoding="ascii") as handle:
        assert "seed=" in handle.read()
