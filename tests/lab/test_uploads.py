# SPDX-License-Identifier: GPL-2.0-or-later
"""Uploads by curl through three nodes: all of their bytes arrive, each segment once, and nothing waits for a timer."""
import collections
import hashlib
import json
import os
import re

import pytest

from earshotlab import Lab

pytestmark = [pytest.mark.earshot, pytest.mark.wire]

ALL = ["n1", "n2", "n3"]
SEGMENT = 1368 - 12  # what the lab's cluster network leaves of a segment with timestamps
UPLOADS = 20
# How curl sends a file. It waits a second for 100 Continue, if it asks for that.
FRAMINGS = {"length": ["-H", "Expect:"], "chunked": ["-H", "Expect:", "-H", "Transfer-Encoding: chunked"],
            "expected": ["-H", "Expect: 100-continue"]}


@pytest.fixture(scope="module", name="lab")
def _lab():
    """The client is a millisecond away, and nothing merges its segments: they come one by one, as on a real network."""
    with Lab(nodes=3, policy="uri-hash", wires=["client"], segment=True) as lab:
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
