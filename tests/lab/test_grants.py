# SPDX-License-Identifier: GPL-2.0-or-later
"""A node's loss is its own affair: with leases that nodes grant each other, only its share waits for corosync to form anew."""
import re
import signal

import pytest

from cluster import crash
from cluster.membership import ALL, settled
from earshotlab import Lab, daemon, wait_for

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

TOKEN = 1.0
# Without grants, all wait for more than a second. The netfilter datapath is the daemon, which a busy machine has wait, too.
GAP = 0.8 if daemon.DATAPATH == "netfilter" else 0.25
LONGEST = 12  # that these go on
OTHERS = ["n1", "n3", "n4"]


@pytest.fixture(scope="module", name="module_lab")
def _module_lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:
        yield lab


@pytest.fixture(name="lab")
def _lab(module_lab):
    settled(module_lab)
    return module_lab


def ports(lab):
    return crash.ports(lab, int(LONGEST / crash.STEP))


def knock(lab, deed, seconds, of_nodes):
    return crash.knock(lab, deed, seconds, of_nodes, 2 * GAP)


def slow(results):
    """Of those that took longer than a round trip and a busy machine's pause: when they began, and how long they took."""
    return crash.slow(results, GAP)


def report(name, results, nodes):
    waits = [took for node in nodes for _, took in results[node] if took is not None]
    print(f"{name}: {len(waits)} new connections of {nodes}, the slowest took {max(waits) * 1000:.0f} ms; "
          f"slow: {[(node, slow(results[node])) for node in nodes if slow(results[node])]}")


def test_power_cut(lab):
    """The others do not pause; the lost node's share is served again as soon as corosync has formed anew."""
    results = knock(lab, lambda: lab.kill("n2"), 4, ports(lab))
    report("power cut", results, OTHERS)
    lost = slow(results["n2"])
    lab.heal("n2")
    settled(lab)
    print(f"n2's share waited from {lost[0][0]} s to {lost[-1][0]} s")
    assert not [node for node in OTHERS if slow(results[node])]
    assert lost[-1][0] - lost[0][0] < 2.5 * TOKEN


@pytest.mark.parametrize("how", ["leaves", "joins"])
def test_in_order(lab, how):
    """Nobody notices."""
    of_nodes = ports(lab)
    if how == "joins":
        lab.stop("n2", "earshotd")
        settled(lab, OTHERS)
    results = knock(lab, lambda: (lab.stop if how == "leaves" else lab.start)("n2", "earshotd"), 1, of_nodes)
    report(how, results, ALL)
    if how == "leaves":
        lab.start("n2", "earshotd")
    settled(lab)
    assert not [node for node in ALL if slow(results[node])]


def test_corosync_hangs(lab):
    """All that a node can do without its corosync, it goes on doing until the others have formed anew."""
    corosync = lab.node("n2")
    results = knock(lab, lambda: corosync.signal("corosync", signal.SIGSTOP), 5, ports(lab))
    report("corosync hangs", results, OTHERS)
    print(f"n2's share: {slow(results['n2'])[:1]} … {slow(results['n2'])[-1:]}")
    corosync.signal("corosync", signal.SIGCONT)
    settled(lab, timeout=30)
    assert not [node for node in OTHERS if slow(results[node])]


def test_two_nodes():
    """Each needs the other's grants: the one that is left is silent until corosync has formed anew, and says that it has quorum."""
    with Lab(nodes=2, membership="corosync", policy="wrr", token=int(TOKEN * 1000), corosync={"quorum.two_node": 1}) as lab:
        settled(lab, ["n1", "n2"])
        results = knock(lab, lambda: lab.kill("n2"), 4, ports(lab))
    for node in ("n1", "n2"):
        waited = slow(results[node])
        print(f"two nodes: {node}'s share waited from {waited[0][0]} s to {waited[-1][0]} s" if waited else f"{node}: no wait")
        assert not waited or waited[-1][0] < 2.5 * TOKEN


def test_granted(lab):
    """People see who grants what."""
    wait_for(lambda: all(n["granted_ms"] > 0 for n in lab.status("n1")["nodes"] if n["name"] != "n1"), "the grants")
    assert lab.status("n1")["membership"]["granted_ms"] > 0
    assert "granted by the other nodes for" in lab.node("n1").exec(["earshot", "status"]).stdout
    assert re.search(r"^lease: \d+ ms more; granted by n2 \(\d+ ms\), n3 \(\d+ ms\), n4 \(\d+ ms\)$",
                     lab.node("n1").exec(["earshot", "nodes"]).stdout, re.MULTILINE)
