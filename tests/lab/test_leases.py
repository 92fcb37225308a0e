# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes with the netfilter datapath in a cluster with corosync, beside BPF nodes: what their kernels may go on with, and what must
stand still, when their daemons die, hang, leave, or are cut off."""
import itertools
import signal

import pytest

from cluster.every import NODES, SETTINGS, homes, patients, snmp, start_backends, there_and_back, walk
from cluster.membership import ALL, DETECTED, TOKEN, hear, settled
from cluster.witness import Witness
from earshotlab import Lab, topology, wait_for
from web import raw
from web.reader import digest
from web.traffic import Traffic

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

NETFILTER = ("n2", "n3", "n4")
OTHERS = ["n1", "n2", "n4"]
THINK_MS = 2000


def cluster(policy="wrr", **settings):
    return Lab(nodes=NODES, membership="corosync", policy=policy, token=int(TOKEN * 1000), datapath="bpf",
               node_datapath={name: "netfilter" for name in NETFILTER}, **settings)


@pytest.fixture(scope="module", name="module_lab")
def _module_lab():
    with cluster() as lab:
        yield lab


@pytest.fixture(name="lab")
def _lab(module_lab):
    settled(module_lab)
    return module_lab


@pytest.fixture(name="thinking")
def _thinking():
    """A cluster whose servers take their time."""
    with cluster(server="none") as lab:
        start_backends(lab)
        settled(lab)
        yield lab


def go(lab, how):
    node = lab.node("n3")
    if how == "killed":
        node.signal("earshotd", signal.SIGKILL)
    elif how == "hung":
        node.signal("earshotd", signal.SIGSTOP)
    else:
        node.cut("cluster")


def come_back(lab, how):
    node = lab.node("n3")
    if how == "killed":
        lab.start("n3", "earshotd")
    elif how == "hung":
        node.signal("earshotd", signal.SIGCONT)
    else:
        node.mend("cluster")


def test_datapaths(lab):
    """The two kinds of nodes serve what each of them inspects."""
    kinds = {node: lab.status(node)["datapath"]["type"] for node in ALL}
    assert kinds == {"n1": "bpf", "n2": "netfilter", "n3": "netfilter", "n4": "netfilter"}
    with Traffic(lab) as traffic:
        traffic.wait_nodes(ALL)
    traffic.assert_whole()


@pytest.mark.parametrize("how", ["killed", "hung", "cut"])
def test_one_is_lost(lab, how):
    """What it has goes on in its kernel, once its client knows it; the others serve the rest, and nothing is answered twice."""
    with Witness(lab) as witness, Traffic(lab) as traffic:
        traffic.run(0.5)
        idle = {}
        for _ in range(24):
            sock = raw.connect(lab.client, timeout=8)
            sock.sendall(raw.head("/1k"))
            idle[sock] = raw.receive(sock).node
        go(lab, how)
        settled(lab, OTHERS)
        works = traffic.now()
        for sock, node in idle.items():
            sock.sendall(raw.head("/1k"))
            assert raw.receive(sock).node == node
        traffic.run(1)
        back = traffic.now()
        come_back(lab, how)
        settled(lab)
        traffic.wait_nodes(ALL, traffic.now())
        for sock in idle:
            sock.close()
    assert set(idle.values()) == set(ALL)
    assert not traffic.failures("kept", {"n1", "n2", "n4"})
    assert not [f for f in traffic.broken if f.kind == "fresh" and f.began > works], traffic.broken[-3:]
    assert "n3" not in {a.node for a in traffic.answers
                        if works < a.began and a.began + a.seconds < back and a.kind == "fresh"}
    witness.assert_one_answer_each()


def test_power_cut(lab):
    with Traffic(lab) as traffic:
        traffic.run(0.5)
        lab.kill("n3")
        traffic.run(DETECTED)
        works = traffic.now()
        traffic.run(1)
    assert not traffic.failures("kept", {"n1", "n2", "n4"})
    assert not [f for f in traffic.broken if f.began > works], traffic.broken[-3:]
    lab.heal("n3")
    settled(lab)


def ask(lab, count=60):
    """Connections whose requests are being thought about, all of which servers have."""
    connections = [lab.client.socket() for _ in range(count)]
    for number, connection in enumerate(connections):
        connection.settimeout(10)
        connection.connect((topology.VIP, topology.PORT))
        connection.sendall(f"GET /slow/{THINK_MS}?{number} HTTP/1.1\r\nHost: lab\r\n\r\n".encode())
    wait_for(lambda: sum(n["connections"] for n in lab.status("n1")["nodes"]) >= count, "the sockets", 2)
    return connections


def test_left_while_its_server_thinks(thinking):
    """The others know what it has, so it answers, without its daemon."""
    connections = ask(thinking)
    thinking.stop("n3", "earshotd")
    answered, told = hear(connections)
    assert not told and set(answered) == set(ALL)
    thinking.start("n3", "earshotd")
    settled(thinking)


@pytest.mark.parametrize("how", ["killed", "hung"])
def test_lost_while_its_server_thinks(thinking, how):
    """It may not answer any more. Who does not repeat a request, since it was acknowledged, is told so when the daemon is back."""
    with Witness(thinking) as witness:
        connections = ask(thinking)
        go(thinking, how)
        settled(thinking, OTHERS)
        come_back(thinking, how)
        answered, told = hear(connections)
    print(f"{how}: {len(answered)} answered, {told} told")
    assert set(answered) == set(OTHERS)
    assert told > 5
    witness.assert_one_answer_each()
    settled(thinking)


@pytest.fixture(scope="module", name="moving")
def _moving():
    """A cluster that decides about each request."""
    with cluster("uri-hash", server="none", settings=SETTINGS) as lab:
        start_backends(lab)
        settled(lab)
        lab.homes = homes(lab, (f"/len/{300 + 37 * number}?{number}" for number in itertools.count()), 12)
        yield lab


def test_moves(moving):
    """From each kind to each, also before a client has acknowledged anything there."""
    names = ("ActiveOpens", "EstabResets", "OutRsts", "TCPChallengeACK")
    before = snmp(moving, *names)
    walkers = walk(moving, [there_and_back(moving.homes, number) for number in range(16)], digest, requests=60)
    assert snmp(moving, *names) == [before[0] + 16, *before[1:]]
    assert {pair for walker in walkers for pair in zip(walker.seen, walker.seen[1:])} >= set(itertools.permutations(ALL, 2))


@pytest.mark.parametrize("how", ["killed", "hung", "cut"])
def test_one_is_lost_amid_moves(moving, how):
    """Each request has one answer, if any, and what a node has lost breaks once. What it has in its kernel waits, or goes on."""
    with Witness(moving) as witness, patients(moving, 8):
        for _ in range(2):
            go(moving, how)
            settled(moving, OTHERS)
            come_back(moving, how)
            settled(moving)
    witness.assert_one_answer_each()
