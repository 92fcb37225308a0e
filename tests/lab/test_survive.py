# SPDX-License-Identifier: GPL-2.0-or-later
"""Idle connections of a node that is lost (config key survive): others know them, and go on with them."""
import json
import socket
import time

import pytest

from cluster import crash
from cluster.crash import kept, wait_kept
from cluster.membership import ALL, TOKEN, serving, settled
from earshotlab import Lab, wait_for
from web import raw, timed

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

SURVIVORS = ["n1", "n3", "n4"]
SETTLES_S = 1.5  # ES_DIRECTORY_SETTLES_NS, and for datagrams on their way


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
    serving(lab)
    return crash.idle(lab, count)


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


def foretold(lab, node, asked=None):
    return json.loads(lab.node(asked or node).exec(["earshot", "explain", "--crash", node, "--json"]).stdout)


def test_foretold(lab):
    """A node can say what its crash would do to its connections."""
    connections = idle(lab, 40)
    wait_kept(lab, connections)
    for node in ALL:
        wait_for(lambda node=node: foretold(lab, node)["survive"] == list(connections.values()).count(node), f"the idle ones of {node}")
        assert foretold(lab, node)["reset"] == 0
    busy = raw.connect(lab.client, before=lambda sock: sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096))
    busy.sendall(raw.head("/1m"))
    node = raw.receive(busy, body=False).node
    told = foretold(lab, node)
    assert told["reset"] == 1 and told["services"][0]["reasons"]["answering"] == 1, told
    text = lab.node(node).exec(["earshot", "explain", "--crash", node]).stdout
    assert f"if {node} were lost now: {told['survive']} idle connections and 0 downloads would go on, 1 connections would get a RST" in text
    for other in ALL:  # each asks that node, which alone knows
        found = foretold(lab, node, asked=other)
        assert found == told and not found["partial"] and found["from"] == node, (other, found)
        assert f"if {node} were lost now: {told['survive']} idle" in lab.node(other).exec(["earshot", "explain", "--crash", node]).stdout
    done = lab.node("n1").exec(["earshot", "explain", "--crash", "n9"], check=False)
    assert done.returncode == 1 and 'no node "n9" is configured, expected n1 | n2 | n3 | n4' in done.stderr
    for sock in [busy, *connections]:
        sock.close()
    wait_for(lambda: not kept(lab), "nothing kept")


def counted(lab, name):
    return sum(lab.counters(node)[name] for node in SURVIVORS)


def metric(lab, name):
    """The sum of the survivors' samples with such a name and labels."""
    text = "".join(lab.node(node).exec(["earshot", "metrics"]).stdout for node in SURVIVORS)
    found = [int(line.split()[1]) for line in text.splitlines() if line.startswith(f"earshot_{name} ")]
    assert len(found) == len(SURVIVORS), (name, found)
    return sum(found)


@pytest.fixture(name="cut")
def _cut(lab):
    """Idle connections; cut() ends the power of n2, which has some of them."""
    connections = idle(lab, 60)
    assert "n2" in connections.values()
    wait_kept(lab, connections)
    time.sleep(SETTLES_S)
    yield connections, lambda: lab.kill("n2")
    for sock in connections:
        sock.close()
    lab.heal("n2")
    settled(lab)


def all_answer(connections, request):
    """Each is answered by a node that is there; the slowest one's time."""
    outcome = timed.ask_all(connections, request)
    assert {one.error or one.node for one in outcome.values()} <= set(SURVIVORS), outcome
    return timed.slowest(outcome.values())


def part(lab, dead):
    """The node is lost: each of the others says what it keeps for it, and that this is a part."""
    found = [foretold(lab, "n2", asked=node) for node in SURVIVORS]
    assert [(one["from"], one["partial"], one["lost"]) for one in found] == [(node, True, True) for node in SURVIVORS]
    assert sum(one["survive"] for one in found) == len(dead), found
    text = lab.node("n1").exec(["earshot", "explain", "--crash", "n2"]).stdout
    assert f"n2 is lost. A part, as n1 alone knows it: {found[0]['survive']} idle connections and 0 downloads go on" in text


@pytest.mark.parametrize("when", ["before", "at once", "later"])
def test_power_cut(lab, cut, when):
    """A node loses its power: the clients of its idle connections do not notice, be it before the others have, or long after. Whoever
    asks when all have does not wait for anything but the other nodes' answers."""
    connections, power_cut = cut
    dead = [node for node in connections.values() if node == "n2"]
    survived, resets = counted(lab, "inspect_survived"), counted(lab, "inspect_stray_resets")
    power_cut()
    if when != "before":
        settled(lab, SURVIVORS)
    if when == "later":
        time.sleep(2)
        part(lab, dead)
    slowest = all_answer(connections, raw.head("/1k"))
    print(f"{when}: {len(dead)} of {len(connections)} connections were of n2; the slowest answer took {slowest:.2f} s")
    if when == "later":
        assert slowest < 0.5
    assert counted(lab, "inspect_survived") == survived + len(dead)
    assert metric(lab, 'connections_survived_total{kind="idle"}') == survived + len(dead)
    # They are connections like any other.
    for _ in range(3):
        all_answer(connections, raw.head("/1k"))
    assert counted(lab, "inspect_stray_resets") == resets


def test_long_head(lab, cut):
    """A head of several segments, such as one with cookies, goes on like any other."""
    connections, power_cut = cut
    dead = [node for node in connections.values() if node == "n2"]
    survived, long = counted(lab, "inspect_survived"), counted(lab, "inspect_survive_long")
    power_cut()
    settled(lab, SURVIVORS)
    print(f"the slowest answer took {all_answer(connections, raw.head('/1k', Cookie='c' * 6000)):.2f} s")
    assert counted(lab, "inspect_survived") == survived + len(dead)
    assert counted(lab, "inspect_survive_long") - long <= len(dead)  # virtual cards may merge all of it into one packet


PUT = raw.head("/upload/1", method="PUT", Content_Length=2) + b"ab"


def test_unsafe(lab, cut):
    """Sent when the lost node cannot take it any more, it is executed as any other."""
    unsafe, survived = counted(lab, "inspect_survive_unsafe"), counted(lab, "inspect_survived")
    connections, power_cut = cut
    dead = [node for node in connections.values() if node == "n2"]
    power_cut()
    settled(lab, SURVIVORS)
    time.sleep(1)  # ES_DIRECTORY_MISSED_NS
    all_answer(connections, PUT)
    assert counted(lab, "inspect_survive_unsafe") == unsafe
    assert counted(lab, "inspect_survived") == survived + len(dead)


def test_unsafe_in_doubt(lab, cut):
    """Sent before the lost node's lease is over, it may have been executed."""
    unsafe = counted(lab, "inspect_survive_unsafe")
    connections, _ = cut
    dead = [sock for sock, node in connections.items() if node == "n2"]
    lab.node("n2").cut(silent=True)
    outcome = timed.ask_all(dead, PUT)
    assert {one.error for one in outcome.values()} == {ConnectionResetError}, outcome
    assert counted(lab, "inspect_survive_unsafe") == unsafe + len(dead)
    assert metric(lab, 'connections_reset_total{kind="idle",reason="unsafe"}') == unsafe + len(dead)
    lab.kill("n2")


def test_without_the_daemon(lab, cut):
    """The daemon of a node ends, and its kernel goes on: with the idle connections another node does."""
    connections, _ = cut
    lab.node("n2").signal("earshotd")
    settled(lab, SURVIVORS)
    all_answer(connections, raw.head("/1k"))
    lab.start("n2", "earshotd")
    settled(lab)
    outcome = timed.ask_all(connections, raw.head("/1k"))
    assert {one.error or one.node for one in outcome.values()} <= set(ALL), outcome
    lab.kill("n2")
