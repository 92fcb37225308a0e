# SPDX-License-Identifier: GPL-2.0-or-later
"""Many idle connections whose node is lost (config key survive): all of them answer their next request."""
import time

import pytest

from cluster.membership import ALL, TOKEN, serving, settled
from earshotlab import Lab, wait_for
from sizes import FULL, size
from web import raw, timed

pytestmark = [pytest.mark.earshot, pytest.mark.corosync, pytest.mark.wire]

SURVIVORS = ["n1", "n3", "n4"]
COUNT = size(400, 2000, "EARSHOT_CONNECTIONS")
SETTLES_S = 1.5

LACKS = ["tcp_timestamps", *(["tcp_sack", "tcp_window_scaling"] if FULL else [])]
FAMILIES = ["4", "6"] if FULL else [None]


def lab_of(nodes=4, survive=1, **options):
    return Lab(nodes=nodes, membership="corosync", policy="wrr", token=int(TOKEN * 1000), datapath="bpf", wires=["client"],
               settings={"service.inspect": "every", "service.survive": survive}, **options)


def idle(lab, count):
    """{socket: its node}, all of which are kept by others."""
    serving(lab)
    socks = [raw.connect(lab.client, timeout=30) for _ in range(count)]
    asked = timed.ask_all(socks, raw.head("/1k"))
    assert not [one for one in asked.values() if one.error]
    wait_for(lambda: kept(lab) >= count, "all connections kept", 60, lambda: f"{kept(lab)} of {count}")
    time.sleep(SETTLES_S)
    return {sock: one.node for sock, one in asked.items()}


def kept(lab):
    return sum(node.ask({"command": "flows"})["kept"]["total"] for node in lab.nodes)


def answers(socks, by):
    """All of them are answered by these nodes; prints how long that took."""
    asked = timed.ask_all(socks, raw.head("/1k"))
    failed = [one for one in asked.values() if one.error]
    assert not failed, f"{len(failed)} of {len(asked)} were lost: {failed[:3]}"
    assert {one.node for one in asked.values()} <= set(by)
    print("".join(f"p{int(part * 100)} {timed.slowest(asked.values(), part) * 1000:.0f} ms, " for part in (0.5, 0.99)) +
          f"slowest {timed.slowest(asked.values()) * 1000:.0f} ms")
    return asked


def survives(lab, breaks, mends, count=COUNT):
    connections = idle(lab, count)
    lost = [sock for sock, node in connections.items() if node == "n2"]
    print(f"\n{len(lost)} of {count} connections are of n2")
    breaks()
    settled(lab, SURVIVORS, timeout=20)
    time.sleep(0.2)
    answers(connections, SURVIVORS)
    answers(connections, SURVIVORS)
    for sock in connections:
        sock.close()
    mends()
    settled(lab, timeout=30)


@pytest.fixture(scope="module", name="lab", params=FAMILIES)
def _lab(request):
    with lab_of(family=request.param) as lab:
        settled(lab)
        yield lab


def test_power_cut(lab):
    survives(lab, lambda: lab.kill("n2"), lambda: lab.heal("n2"))


def test_cable_is_cut(lab):
    """Both of its cables: the node lives, and hears nobody."""
    survives(lab, lambda: lab.node("n2").cut(), lambda: lab.node("n2").mend(), size(60, 500))


def test_cluster_cable_is_cut(lab):
    """The node hears its clients still, and may not answer them."""
    survives(lab, lambda: lab.node("n2").cut("cluster"), lambda: lab.node("n2").mend("cluster"), size(60, 500))


def test_bad_cable(lab):
    """1% of the segments are lost, 1% come twice, 1% late, both ways."""
    wire = lab.wire("client")
    wire.set(loss=0.01, dup=0.01, reorder=0.01)
    try:
        survives(lab, lambda: lab.kill("n2"), lambda: lab.heal("n2"), size(100, 1000))
    finally:
        wire.clear()


@pytest.mark.parametrize("lacks", LACKS)
def test_options(lab, lacks):
    """Of a client that does not offer them."""
    lab.client.exec(["sysctl", "-qw", f"net.ipv4.{lacks}=0"])
    try:
        survives(lab, lambda: lab.kill("n2"), lambda: lab.heal("n2"), size(60, 500))
    finally:
        lab.client.exec(["sysctl", "-qw", f"net.ipv4.{lacks}=1"])


def test_second_death():
    """Of five nodes a second one is lost a second later: what the first one's keepers knew, others know by then."""
    everyone, left = [*ALL, "n5"], ["n1", "n3", "n5"]
    with lab_of(nodes=5, survive=2) as lab:
        settled(lab, everyone)
        connections = idle(lab, size(100, 500))
        lab.kill("n2")
        time.sleep(1)
        lab.kill("n4")
        settled(lab, left, timeout=20)
        time.sleep(1)
        answers(connections, left)
