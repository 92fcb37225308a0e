# SPDX-License-Identifier: GPL-2.0-or-later
"""Two nodes and a quorum device: who is left when one is lost goes on with the device's vote, and never do both answer."""
import time

import pytest

from cluster import crash
from cluster.crash import wait_kept
from cluster.membership import TOKEN, settled
from cluster.witness import Witness
from earshotlab import Lab, wait_for
from web import raw, timed
from web.traffic import Traffic, distribution

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

NODES = ["n1", "n2"]
SETTLES_S = 1.5  # ES_DIRECTORY_SETTLES_NS, and for datagrams on their way


def cluster(device):
    return Lab(nodes=2, membership="corosync", policy="wrr", token=int(TOKEN * 1000), device=device, datapath="bpf",
               settings={"service.inspect": "every", "service.survive": 1})


@pytest.fixture(scope="module", name="module_lab")
def _module_lab():
    with cluster(True) as lab:
        yield lab


@pytest.fixture(name="lab")
def _lab(module_lab):
    whole(module_lab)
    yield module_lab
    module_lab.heal_partition()
    module_lab.mend("qnetd")
    for node in NODES:
        module_lab.mend(node)
        if node in module_lab.dead:
            module_lab.heal(node)


def whole(lab):
    settled(lab, NODES, 30)
    for node in lab.nodes:
        node.qdevice.wait_vote()


def idle(lab):
    """Connections of both nodes between two requests, which the other node knows."""
    connections = crash.idle(lab, 40, NODES)
    wait_kept(lab, connections)
    time.sleep(SETTLES_S)
    return connections


def is_silent(lab, node):
    return lab.status(node)["membership"]["silent"]


def all_answer(connections, nodes):
    outcome = timed.ask_all(connections, raw.head("/1k"))
    assert {one.error or one.node for one in outcome.values()} <= set(nodes), outcome
    return timed.slowest(outcome.values())


def test_power_cut(lab):
    """The other one serves all as soon as corosync has the device's vote, and goes on with idle connections of the lost one."""
    connections = idle(lab)
    with Witness(lab) as witness, Traffic(lab, kept=10) as traffic:
        traffic.wait_nodes(NODES)
        cut = traffic.now()
        lab.kill("n2")
        settled(lab, ["n1"])
        alone = traffic.now()
        slowest = all_answer(connections, ["n1"])
        traffic.wait_nodes(["n1"], alone)
    print(f"n1 is alone after {alone - cut:.2f} s; {list(connections.values()).count('n2')} idle connections of n2 were answered within "
          f"{slowest:.2f} s; new connections took {distribution(traffic.slow(cut))}")
    assert lab.node("n1").qdevice.has_vote()
    assert not [f for f in traffic.broken if f.began > alone], traffic.broken[-3:]
    assert not traffic.failures("kept", {"n1"})
    witness.assert_one_answer_each()
    for sock in connections:
        sock.close()


def test_device_is_lost(lab):
    """Nothing changes, until a node is lost as well: then the other one is silent, and serves again when the device is back."""
    epoch = lab.status("n1")["membership"]["epoch"]
    with Traffic(lab, kept=10) as traffic:
        traffic.wait_nodes(NODES)
        lab.cut("qnetd", silent=True)
        for node in lab.nodes:
            node.qdevice.wait_vote(False)
        traffic.wait_nodes(NODES, traffic.now())
    traffic.assert_whole()
    settled(lab, NODES)
    assert lab.status("n1")["membership"]["epoch"] == epoch
    with Witness(lab) as witness:
        lab.kill("n2")
        lab.node("n1").corosync.wait_quorate(False, ["n1"])
        wait_for(lambda: is_silent(lab, "n1"), "n1's silence")
        with pytest.raises(OSError):
            lab.client.get("/1k", timeout=1)
        lab.mend("qnetd")
        settled(lab, ["n1"], 30)
        assert lab.client.get("/1k")[1]["X-Node"] == "n1"
    witness.assert_one_answer_each()


def test_split(lab):
    """Both hear the clients and reach the device, but not each other: one goes on, with the other's idle connections, too."""
    connections = idle(lab)
    with Witness(lab) as witness, Traffic(lab, kept=10, patience=20) as traffic:
        traffic.wait_nodes(NODES)
        lab.partition([["n1"], ["n2"]], networks=["cluster"])
        wait_for(lambda: [is_silent(lab, node) for node in NODES] == [False, True] and lab.node("n1").corosync.sees(True, ["n1"]),
                 "n1 alone, and n2's silence")
        settled(lab, ["n1"])
        apart = traffic.now()
        all_answer(connections, ["n1"])
        traffic.wait_nodes(["n1"], apart)
        assert is_silent(lab, "n2")
        lab.heal_partition()
        whole(lab)
        healed = traffic.now()
        all_answer(connections, NODES)
        traffic.wait_nodes(NODES, healed)
    assert "n2" not in {a.node for a in traffic.answers if apart < a.began and a.began + a.seconds < healed - 5}
    assert not [f for f in traffic.broken if f.began > healed], traffic.broken[-3:]
    witness.assert_one_answer_each()
    for sock in connections:
        sock.close()


@pytest.fixture(name="slow")
def _slow():
    """Where the device gives its vote away two seconds before its loser knows, which is longer than a lease."""
    with cluster({"timeout": 5000}) as lab:
        whole(lab)
        yield lab


def test_vote_moves(slow):
    """The node that is alone loses the device, which gives its vote to the other one before the former knows. That waits for longer
    than it takes the former to know."""
    lab = slow
    lab.kill("n1")
    settled(lab, ["n2"], 40)
    lab.partition([["n1"], ["n2"]], networks=["cluster"])
    lab.heal("n1")
    with Witness(lab) as witness, Traffic(lab, kept=0, fresh=60, pause=0.005, patience=20) as traffic:
        traffic.wait_nodes(["n2"])
        assert is_silent(lab, "n1") and not lab.node("n1").corosync.quorate()
        cut = traffic.now()
        lab.node("n2").cut("cluster", silent=True)
        lab.node("n1").corosync.wait_quorate(True, ["n1"])
        moved = traffic.now()
        settled(lab, ["n1"], 30)
        alone = traffic.now()
        traffic.wait_nodes(["n1"], alone)
    answered = witness.assert_one_answer_each()
    print(f"the vote has moved after {moved - cut:.2f} s, n1 serves after {alone - cut:.2f} s; {answered} requests answered, once each")
    assert is_silent(lab, "n2")
