# SPDX-License-Identifier: GPL-2.0-or-later
"""The ring while machines die, are cut off, come and go: real corosync, real clients."""
import signal
import time

import pytest

from earshotlab import Lab, wait_for
from traffic import Traffic, distribution

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

ALL = ["n1", "n2", "n3", "n4"]
TOKEN = 0.5
# Consensus after the token's loss, then the rings' change; on a machine with two cores.
DETECTED = 2.2 * TOKEN + 1.5


def settled(lab, members=ALL, timeout=15):
    """All of these are members, and the same ring is in force on all of them."""
    def check():
        seen = [lab.status(node) for node in members]
        return (all(s["membership"]["phase"] == "stable" and not s["membership"]["silent"] for s in seen)
                and len({s["membership"]["epoch"] for s in seen}) == 1
                and all({n["name"] for n in s["nodes"] if n["member"]} == set(members) for s in seen))

    wait_for(check, f"a ring of {members}", timeout)


@pytest.fixture(scope="module", name="module_lab")
def _module_lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:
        yield lab


@pytest.fixture(name="lab")
def _lab(module_lab):
    settled(module_lab)
    return module_lab


def others(node):
    return set(ALL) - {node}


def report(name, traffic, since):
    print(f"{name}: fresh connections took {distribution(traffic.slow(since))}, "
          f"failures: {len(traffic.failures('kept', since=since))} kept, {len(traffic.failures('fresh', since=since))} fresh")


def test_power_cut(lab):
    """Connections of other nodes go on; new ones work as soon as the failure is detected."""
    with Traffic(lab) as traffic:
        traffic.run(1.5)
        traffic.assert_whole()
        assert traffic.nodes() == set(ALL)
        cut = traffic.now()
        lab.kill("n2")
        traffic.run(DETECTED)
        works = traffic.now()
        traffic.run(2)
    assert not traffic.failures("kept", others("n2"))
    assert not [f for f in traffic.broken if f.began > works], traffic.broken[-3:]
    # A client whose SYN was lost sends it again after 1 s and 3 s; its request after 0.2, 0.4, 0.8, 1.6 s.
    report("power cut", traffic, cut)
    assert traffic.slow(works)[0] < 1
    lab.heal("n2")
    settled(lab)


@pytest.mark.parametrize("what", ["earshotd", "corosync"])
def test_killed_process(lab, what):
    """No client notices that a daemon or its corosync dies: what the node has goes on, the others take over the rest."""
    with Traffic(lab) as traffic:
        traffic.run(1)
        killed = traffic.now()
        lab.node("n3").signal(what, signal.SIGKILL)
        traffic.run(DETECTED)
        gone = traffic.now()
        traffic.run(1)
    report(f"{what} killed", traffic, killed)
    assert not traffic.failures("kept") and not [f for f in traffic.broken if f.kind == "fresh"], traffic.broken[:5]
    if what == "earshotd":
        assert "n3" not in {a.node for a in traffic.answers if a.began > gone and a.kind == "fresh"}
    else:
        wait_for(lambda: lab.status("n3")["membership"]["silent"], "silence")
        assert not lab.status("n3")["membership"]["connected"]
    lab.start("n3", what)
    settled(lab)


@pytest.mark.parametrize("network", ["cluster", "public"])
def test_cable_pulled(lab, network):
    with Traffic(lab) as traffic:
        traffic.run(1)
        cut = traffic.now()
        lab.node("n4").cut(network)
        traffic.run(DETECTED)
        works = traffic.now()
        traffic.run(1.5)
        assert lab.status("n4")["membership"]["silent"]
        lab.node("n4").mend(network)
        mended = traffic.now()
        settled(lab)
        traffic.run(1)
    report(f"{network} cable pulled", traffic, cut)
    assert not traffic.failures("kept", others("n4"))
    assert not [f for f in traffic.broken if f.kind == "fresh" and f.began > works], traffic.broken[-3:]
    assert "n4" not in {a.node for a in traffic.answers if works < a.began < mended and a.kind == "fresh"}
    assert "n4" in traffic.nodes(mended)


def test_leave_and_join(lab):
    """In order: not one request fails, and only the leaver's share changes hands."""
    flows = [(f"198.51.100.{i % 250}", 1024 + 7 * i) for i in range(400)]

    def inspectors(node):
        return [lab.node(node).ask({"command": "ring", "lookup": {"address": address, "port": port}})["lookup"]["node"]
                for address, port in flows]

    before = inspectors("n1")
    with Traffic(lab, kept=40, fresh=20) as traffic:
        for _ in range(3):
            traffic.run(0.5)
            lab.stop("n2", "earshotd")
            settled(lab, ["n1", "n3", "n4"])
            between = inspectors("n1")
            assert all(b == a for a, b in zip(before, between) if a != "n2") and "n2" not in between
            traffic.run(0.5)
            lab.start("n2", "earshotd")
            settled(lab)
            assert inspectors("n1") == before
        since = traffic.now()
        traffic.run(0.5)
    traffic.assert_whole()
    assert traffic.nodes(since) == set(ALL)
    slow = traffic.slow(0)
    print("longest", slow[:10])


def test_suspended_daemon(lab):
    """One that hangs is left out, and comes back by itself."""
    with Traffic(lab) as traffic:
        traffic.run(0.5)
        lab.node("n1").signal("earshotd", signal.SIGSTOP)
        try:
            wait_for(lambda: "n1" not in {n["name"] for n in lab.status("n2")["nodes"] if n["member"]}, "exclusion", 10)
            settled(lab, ["n2", "n3", "n4"])
            since = traffic.now()
            traffic.run(1)
            assert not [f for f in traffic.broken if f.began > since]
        finally:
            lab.node("n1").signal("earshotd", signal.SIGCONT)
        settled(lab)
        back = traffic.now()
        traffic.run(1)
    assert "n1" in traffic.nodes(back)
    assert not traffic.failures("kept"), traffic.failures("kept")[:3]


def test_all_at_once(lab):
    """Quorum lost everywhere, and found again."""
    lab.partition([["n1", "n2"], ["n3", "n4"]], networks=["cluster"])
    wait_for(lambda: all(lab.status(n)["membership"]["silent"] for n in ALL), "silence", 5)
    with pytest.raises(OSError):
        lab.client.get("/1k", timeout=1)
    lab.heal_partition()
    settled(lab)
    assert lab.client.get("/1k", timeout=5)[0] == 200
    time.sleep(0.1)
