# SPDX-License-Identifier: GPL-2.0-or-later
"""A node's loss is its own affair: with leases that nodes grant each other, only its share waits for corosync to form anew."""
import itertools
import select
import signal
import socket
import threading
import time

import pytest

from cluster.membership import ALL, settled
from earshotlab import Lab, daemon, wait_for
from web import raw

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

TOKEN = 1.0
STEP = 0.02  # between two new connections to the share of one node
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


_next_port = itertools.cycle(range(20000, 30000))  # what the kernel never chooses: topology.py


def ports(lab):
    """Fresh client ports for each node, whose connections it inspects when all are there."""
    found, count = {node: [] for node in ALL}, int(LONGEST / STEP)
    while min(map(len, found.values())) < count:
        port = next(_next_port)
        found[raw.inspector(lab, port)].append(port)
    return {node: some[:count] for node, some in found.items()}


def knock(lab, deed, seconds, of_nodes):
    """New connections to each node's share, all the time; after a second, `deed` is done, and so long after that they end. For
    each node, when each began, counted from then, and how long the handshake took; None: it has not ended."""
    order = [(node, port) for row in zip(*([(n, p) for p in some] for n, some in of_nodes.items())) for node, port in row]
    poll, waiting, results = select.poll(), {}, {node: [] for node in ALL}
    doer, begun, done = threading.Thread(target=deed), None, None
    start = time.monotonic()
    for number, (node, port) in enumerate(order + [(None, None)]):
        due = start + number * STEP / len(ALL) + (0 if node else 2 * GAP)
        if begun is None and due > start + 1:
            begun = time.monotonic()
            doer.start()
        if begun and not done and not doer.is_alive():
            done = time.monotonic()
        if node and done and due > done + seconds:
            node, due = None, due + 2 * GAP
        while True:
            for fd, _ in poll.poll(max(0, due - time.monotonic()) * 1000):
                sock, node_of, began = waiting.pop(fd)
                poll.unregister(fd)
                took = None if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) else time.monotonic() - began
                results[node_of].append((began, took))
                raw.reset(sock)
            if time.monotonic() >= due:
                break
        if not node:
            break
        sock = lab.client.socket()
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("", port))
        sock.connect_ex(raw.service(lab))
        waiting[sock.fileno()] = (sock, node, time.monotonic())
        poll.register(sock.fileno(), select.POLLOUT)
    for sock, node, began in waiting.values():
        results[node].append((began, None))
        sock.close()
    doer.join()
    return {node: sorted(((began - begun, took) for began, took in some), key=lambda r: r[0]) for node, some in results.items()}


def slow(results):
    """Of those that took longer than a round trip and a busy machine's pause: when they began, and how long they took."""
    return [(round(began, 3), took and round(took, 3)) for began, took in results if took is None or took > GAP]


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


def test_granted(lab):
    """People see who grants what."""
    wait_for(lambda: all(n["granted_ms"] > 0 for n in lab.status("n1")["nodes"] if n["name"] != "n1"), "the grants")
    assert lab.status("n1")["membership"]["granted_ms"] > 0
    assert "granted by the other nodes for" in lab.node("n1").exec(["earshot", "status"]).stdout
