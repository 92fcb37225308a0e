# SPDX-License-Identifier: GPL-2.0-or-later
"""Uploads by curl through three nodes: all of their bytes arrive, each segment once, and nothing waits for a timer."""
import collections
import hashlib
import json
import os
import re

import pytest

from earshotlab import Lab, daemon

pytestmark = [pytest.mark.earshot, pytest.mark.wire]

ALL = ["n1", "n2", "n3"]
SEGMENT = 1368 - 12  # what the lab's cluster network leaves of a segment with timestamps
UPLOADS = 20
# How curl sends a file. It waits for 100 Continue, if it asks for that.
FRAMINGS = {"length": ["-H", "Expect:"], "chunked": ["-H", "Expect:", "-H", "Transfer-Encoding: chunked"],
            "expected": ["-H", "Expect: 100-continue", "--expect100-timeout", "60"]}
PATIENCE_MS = 4000


@pytest.fixture(scope="module", name="lab")
def _lab():
    """The client is a millisecond away, and nothing merges its segments: they come one by one, as on a real network."""
    with Lab(nodes=3, policy="uri-hash", wires=["client"], segment=True) as lab:
        lab.wire("client").set(delay="1ms")
        yield lab


@pytest.fixture(scope="module", name="rule")
def _rule():
    """A rule wants more of each request than a client can send unacknowledged, and much patience is had with it."""
    os.environ.setdefault("EARSHOT_PLUGIN_DIR", os.path.join(daemon.BUILD, "plugins"))
    with Lab(nodes=3, policy="uri-hash", settings={"inspector.gather_timeout_ms": PATIENCE_MS}) as lab:
        with open(lab.config_file, encoding="utf-8") as handle:
            text = handle.read()
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(re.sub(r"(service web \{)", r'\1\n plugin debug { file = "debug.so" config = "answer more 100000" budget_us = 1000000 }\n',
                                text))
        for node in ALL:
            lab.node(node).exec(["earshot", "reload"])
        yield lab


@pytest.fixture(name="moves")
def _moves():
    with Lab(nodes=3, policy="uri-hash", wires=["client"], segment=True,
             settings={"service.inspect": "every", "service.load_bound": 0, "service.handover_cost": 0}) as lab:
        lab.wire("client").set(delay="1ms")
        yield lab


def told(machine, *names):
    """These of the kernel's counters."""
    text = machine.exec(["nstat", "-asz", *names]).stdout
    return collections.Counter({name: int(value) for name, value in re.findall(r"^(\w+)\s+(\d+)", text, re.M)})


def twice(lab):
    """Segments that servers' sockets have got once more: each is told to the client (RFC 2883)."""
    names = ("TcpExtTCPDSACKOldSent", "TcpExtTCPDSACKOfoSent")
    return sum((told(lab.node(node), *names) for node in ALL), collections.Counter()).total()


def upload(lab, path, framing, number):
    """By whom it is answered, and within what time behind the head."""
    done = lab.client_run(["curl", "-sS", "-m", "20", "-T", path, *FRAMINGS[framing], "-w", "\n%{time_pretransfer} %{time_total}",
                           lab.url(f"/upload?{number}")])
    answer, times = done.stdout.splitlines()
    begin, end = map(float, times.split())
    return json.loads(answer), end - begin


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("size", [60_000, 200_000])
def test_each_segment_comes_once(lab, tmp_path, size, framing):
    """A node hears itself what its client sends once its socket is there: nobody sends it that again."""
    body = os.urandom(size)
    (tmp_path / "body").write_bytes(body)
    before, nodes = twice(lab), set()
    for number in range(UPLOADS):
        answer, _ = upload(lab, str(tmp_path / "body"), framing, f"{size}-{framing}-{number}")
        assert (answer["bytes"], answer["sha256"]) == (size, hashlib.sha256(body).hexdigest())
        nodes.add(answer["node"])
    assert nodes == set(ALL)
    assert twice(lab) - before <= UPLOADS * size / SEGMENT * 0.05


# Of a chunked body between ten segments and the window, its client may keep the last chunk back: it takes the first segment for lost,
# which it was told, and is allowed nothing more.
@pytest.mark.parametrize("size, framing", [(size, framing) for size in (10, 20_000, 60_000, 200_000) for framing in FRAMINGS
                                           if framing != "chunked" or not 13_680 < size < 65_536])
def test_nothing_is_waited_for_that_cannot_come(rule, tmp_path, size, framing):
    """What ends before, what is longer than a client may send, and what waits for the server's word: the rule hears at once that no
    more comes."""
    body = os.urandom(size)
    (tmp_path / "body").write_bytes(body)
    for number in range(3):
        answer, seconds = upload(rule, str(tmp_path / "body"), framing, f"rule-{size}-{framing}-{number}")
        assert (answer["bytes"], answer["sha256"]) == (size, hashlib.sha256(body).hexdigest())
        assert seconds < PATIENCE_MS / 1000 / 2


def test_a_connection_with_a_wide_window_moves(moves, tmp_path):
    """The new socket's is 64 KB. What the client has sent beyond that is sent again from a node, and not after the client's 200 ms."""
    size, sums = 200_000, []
    (tmp_path / "body").write_bytes(body := os.urandom(size))
    before = told(moves.client, "TcpExtTCPTimeouts")
    for number in range(10):
        command = ["curl", "-sS", "-m", "20", "-H", "Expect:", "-w", "\n"]
        for turn in range(6):
            command += ["-T", str(tmp_path / "body"), moves.url(f"/upload?{number}.{turn}")]
        sums += [json.loads(line)["sha256"] for line in moves.client_run(command).stdout.splitlines() if line]
    assert sums == [hashlib.sha256(body).hexdigest()] * 60
    counted = sum((collections.Counter(moves.counters(node)) for node in ALL), collections.Counter())
    assert counted["inspect_moved"] >= 20 and counted["handover_follow_beyond"] and counted["inspect_follow_again"], counted
    # On a busy machine, segments lie in the netfilter datapath's queue for longer than race_window_ms.
    if moves.options["datapath"] != "netfilter":
        timeouts = (told(moves.client, "TcpExtTCPTimeouts") - before).total()
        assert timeouts <= counted["inspect_moved"] / 4, counted
