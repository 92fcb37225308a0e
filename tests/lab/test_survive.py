# SPDX-License-Identifier: GPL-2.0-or-later
"""Idle connections of a node that is lost (config key survive): others know them."""
import pytest

from cluster.membership import ALL, TOKEN, serving, settled
from earshotlab import Lab, wait_for
from web import raw

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]


@pytest.fixture(scope="module", name="module_lab")
def _module_lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), datapath="bpf",
             settings={"service.inspect": "every", "service.survive": 1}) as lab:
        yield lab


@pytest.fixture(name="lab")
def _lab(module_lab):
    settled(module_lab)
    return module_lab


def idle(lab, count):
    """{socket: the node that has it}, of connections that have had an answer."""
    serving(lab)
    found = {}
    for _ in range(count):
        sock = raw.connect(lab.client, timeout=10)
        sock.sendall(raw.head("/1k"))
        found[sock] = raw.receive(sock).node
    assert set(found.values()) == set(ALL)
    return found


def kept(lab):
    """{(port, the node that has the connection): the nodes that keep it for that one}."""
    found = {}
    for node in lab.nodes:
        for flow in node.ask({"command": "flows"})["kept"]["flows"]:
            found.setdefault((flow["port"], flow["node"]), set()).add(node.name)
    return found


def wait_kept(lab, connections):
    wanted = {(sock.getsockname()[1], node) for sock, node in connections.items()}
    wait_for(lambda: wanted == set(kept(lab)), "all idle connections kept, and no other")


def told(lab):
    return sum(node.ask({"command": "flows"})["kept"]["told"] for node in lab.nodes)


def test_told(lab):
    """Each idle connection is known to the node that inspects it, or, if that has it, to the next; and no longer than it is there."""
    connections = idle(lab, 40)
    wait_kept(lab, connections)
    inspectors = {sock: raw.inspector(lab, sock.getsockname()[1]) for sock in connections}
    found = kept(lab)
    for sock, node in connections.items():
        keepers = found[sock.getsockname()[1], node]
        assert len(keepers) == 1
        assert node not in keepers
        assert keepers == {inspectors[sock]} or node == inspectors[sock]
    assert {node == inspectors[sock] for sock, node in connections.items()} == {True, False}
    before = told(lab)
    # The next request takes the connection elsewhere, or not; what was told is not true any more.
    for sock in connections:
        sock.sendall(raw.head("/1k"))
        connections[sock] = raw.receive(sock).node
    wait_for(lambda: told(lab) >= before + len(connections), "all told anew")
    wait_kept(lab, connections)
    for sock in connections:
        sock.close()
    wait_for(lambda: not kept(lab), "nothing kept")
