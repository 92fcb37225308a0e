# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that clients send on idle connections of a lost node before anybody knows that it is lost (config key survive): another
node takes them up as soon as it may, and not with their clients' next repetition.

The token is long, so that clients repeat at long intervals by then: after 0.2, 0.6 and 1.4 s, and not before 3 s again, while the
lease is over some 2.3 s after the cut. Whose request was taken up without having come again is counted, so no time is judged.
"""
import time

import pytest

from cluster import crash
from cluster.membership import serving, settled
from earshotlab import Lab
from sizes import FULL, size
from web import raw, timed

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

SURVIVORS = ["n1", "n3", "n4"]
COUNT = size(60, 1000, "EARSHOT_CONNECTIONS")
TOKEN_MS = 1000
SENT_S = 0.5  # after the cut; each is repeated twice or more before the lease is over
SETTLES_S = 1.5  # ES_DIRECTORY_SETTLES_NS, and for datagrams on their way


@pytest.fixture(scope="module", name="lab", params=["4", "6"])
def _lab(request):
    with Lab(nodes=4, membership="corosync", policy="wrr", token=TOKEN_MS, datapath="bpf", family=request.param,
             settings={"service.inspect": "every", "service.survive": 1}) as lab:
        settled(lab)
        yield lab


@pytest.fixture(name="dead")
def _dead(lab):
    """Idle connections of n2, which others keep."""
    serving(lab)
    connections = crash.idle(lab, COUNT)
    crash.wait_kept(lab, connections)
    time.sleep(SETTLES_S)
    yield [sock for sock, node in connections.items() if node == "n2"]
    for sock in connections:
        sock.close()
    lab.heal("n2")
    settled(lab, timeout=30)


def counted(lab):
    found = {}
    for node in SURVIVORS:
        for name, value in lab.counters(node).items():
            found[name] = found.get(name, 0) + value
    return lambda name: sum(lab.counters(node)[name] for node in SURVIVORS) - found[name]


def power_cut(lab, socks, request):
    """n2 loses its power, and then its clients ask: {socket: Asked}, and what was counted since."""
    since = counted(lab)
    lab.kill("n2")
    outcome = timed.ask_all(socks, request, over=SENT_S)
    print(f"{len(socks)} requests: held {since('inspect_survive_held')} times, {since('inspect_survive_asked')} asked, "
          f"{since('inspect_survive_answered')} taken up at once; slowest {timed.slowest(outcome.values()):.2f} s")
    return outcome, since


def all_go_on(lab, dead, request):
    outcome, since = power_cut(lab, dead, request)
    assert {one.error or one.node for one in outcome.values()} <= set(SURVIVORS), outcome
    assert since("inspect_survived") == len(dead)
    assert since("inspect_survive_answered") >= len(dead) / 2
    assert since("inspect_survive_asked") <= 2 * len(dead)
    # They are connections like any other, whose answers have just the bytes that they should have.
    for _ in range(3):
        outcome = timed.ask_all(dead, raw.head("/1k"))
        assert {one.error or one.node for one in outcome.values()} <= set(SURVIVORS), outcome
        assert {len(one.data.partition(b"\r\n\r\n")[2]) for one in outcome.values()} == {1024}


def test_power_cut(lab, dead):
    all_go_on(lab, dead, raw.head("/1k"))


@pytest.mark.parametrize("lacks", ["tcp_timestamps", *(["tcp_sack", "tcp_window_scaling"] if FULL else [])])
def test_options(lab, lacks, request):
    """Of clients that do not offer them."""
    lab.client.exec(["sysctl", "-qw", f"net.ipv4.{lacks}=0"])
    try:
        all_go_on(lab, request.getfixturevalue("dead"), raw.head("/1k"))
    finally:
        lab.client.exec(["sysctl", "-qw", f"net.ipv4.{lacks}=1"])


def test_long_head(lab, dead):
    """Only its first segment is kept; the rest comes when that is acknowledged."""
    all_go_on(lab, dead, raw.head("/1k", Cookie="c" * 6000))


def test_unsafe(lab, dead):
    """One that may have been executed is not executed by another node; its client is told as soon."""
    outcome, since = power_cut(lab, dead, raw.head("/upload/1", method="PUT", Content_Length=2) + b"ab")
    assert {one.error for one in outcome.values()} == {ConnectionResetError}, outcome
    assert since("inspect_survive_unsafe") == len(dead)
    assert since("inspect_survived") == 0
    assert since("inspect_survive_answered") >= len(dead) / 2


def test_clients_that_have_left(lab, dead):
    """They are asked, too, and say that they have no such connection."""
    gone, stay = dead[::2], dead[1::2]
    since = counted(lab)
    lab.kill("n2")
    for sock in gone:
        sock.sendall(raw.head("/1k"))
    time.sleep(0.7)
    for sock in gone:
        raw.reset(sock)
    outcome = timed.ask_all(stay, raw.head("/1k"))
    assert {one.error or one.node for one in outcome.values()} <= set(SURVIVORS), outcome
    settled(lab, SURVIVORS)
    assert since("inspect_survived") == len(stay)
