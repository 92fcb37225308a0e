# SPDX-License-Identifier: GPL-2.0-or-later
"""inspect = every where two nodes have the netfilter datapath, and two BPF: connections move from each kind to each, whatever the
kernels of the former forget, and whether or not their daemons are there."""
import itertools
import random
import time

import pytest

from cluster import conntrack
from cluster.every import NODES, SETTINGS, ask, homes, patients, snmp, start_backends, there_and_back, walk
from earshotlab import Lab, wait_for
from web import raw
from web.reader import connection, digest

pytestmark = pytest.mark.earshot

NETFILTER = ("n2", "n4")
LABS = {"v4": ("4", "siphash"), "v6": ("6", "siphash"), "jhash": ("4", "jhash")}


@pytest.fixture(scope="module", name="lab", params=LABS)
def _lab(request):
    family, ring_hash = LABS[request.param]
    with Lab(nodes=NODES, policy="uri-hash", server="none", datapath="bpf", family=family,
             node_datapath={name: "netfilter" for name in NETFILTER}, settings={**SETTINGS, "cluster.ring_hash": ring_hash}) as lab:
        start_backends(lab)
        lab.homes = homes(lab, (f"/len/{300 + 37 * number}?{number}" for number in itertools.count()), 12)
        yield lab


def test_from_each_kind_to_each(lab):
    """No connection breaks, and each request is served where it should be."""
    kinds = {node.name: lab.status(node.name)["datapath"]["type"] for node in lab.nodes}
    assert {name for name, kind in kinds.items() if kind == "netfilter"} == set(NETFILTER)
    names = ("ActiveOpens", "EstabResets", "OutRsts", "TCPChallengeACK")
    before, moved = snmp(lab, *names), {node.name: lab.counters(node.name)["end_done"] for node in lab.nodes}
    walkers = walk(lab, [there_and_back(lab.homes, number) for number in range(16)], digest, requests=100)
    assert snmp(lab, *names) == [before[0] + 16, *before[1:]]
    pairs = {pair for walker in walkers for pair in zip(walker.seen, walker.seen[1:])}
    assert pairs >= set(itertools.permutations(kinds, 2))
    for name, count in moved.items():
        assert lab.counters(name)["end_done"] > count + 100, name


def test_packets_that_slots_do_not_tell_of(lab):
    """A node must hear what comes for a connection that it has moved away: the kernel drops nothing of this service."""
    port = next(raw.ports(lab, "n1", first=20000))
    before = {name: queued(lab, name) for name in NETFILTER}
    for _ in range(20):
        with raw.connect(lab.client, port=port) as sock:
            sock.sendall(raw.head(lab.homes["n1"][0], Connection="close"))
            assert raw.receive(sock).node == "n1"
        port = next(raw.ports(lab, "n1", first=port + 1))
    for name, count in before.items():
        assert queued(lab, name) - count >= 80  # each connection has four packets at least


def queued(lab, name):
    """How many packets the kernel has given to that node's daemon so far."""
    lines = lab.node(name).exec(["cat", "/proc/net/netfilter/nfnetlink_queue"]).stdout.splitlines()
    return sum(int(line.split()[7]) for line in lines)


def test_entries_are_flushed_amid_moves(lab):
    """As by `conntrack -F`. A connection may break whose handshake was just between two packets."""
    with patients(lab, 4):
        for number in range(60):
            conntrack.flush(lab.node(NETFILTER[number % 2]))
            time.sleep(random.uniform(0.005, 0.05))


@pytest.mark.parametrize("name", NETFILTER)
def test_daemon_is_killed_amid_moves(lab, name):
    """Its connections stay where they are until there is another daemon, which knows them. One breaks whose socket was just ended,
    so that another node could have it: nobody knows any more which."""
    with patients(lab, 6):
        for _ in range(3):
            time.sleep(random.uniform(0.3, 0.6))
            lab.node(name).signal("earshotd")
            time.sleep(0.1)
            lab.node(name).start("earshotd")
    with connection(lab) as (sock, reader):
        ask(sock, reader, [(node, targets[0]) for node, targets in lab.homes.items()])  # and all move again
