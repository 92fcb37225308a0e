# SPDX-License-Identifier: GPL-2.0-or-later
"""The nodes tell each other how busy they are: what n1 says, what it takes, and what it refuses."""
import time

from earshotlab import wait_for
from packets import model
from packets.loads import said, tell
from packets.node import CLUSTER, EACH, HANDOVER_PORT, PEER_MAC


def exchange(node):
    return node.ask("status")["loads"]


def test_to_each_other_node(node):
    node.cluster.clear()
    wait_for(lambda: len(said(node, 0)) > 3, "some messages")
    for target in (2, 3):
        frames = [f for f in node.cluster.loads if f.ip.dst == CLUSTER[target - 1]]
        assert frames and all(f.udp.dport == HANDOVER_PORT and f.dst == PEER_MAC[target - 1] for f in frames)
    sequences = [m.sequence for m in said(node, 0)]
    assert sequences == sorted(set(sequences))


def test_sign_of_life(own_node, client):
    """Who counts seldom, as nobody asks, says in between what it said before: of a silent node nothing is known."""
    node = own_node(tells=False)
    c = client(EACH, at=node).serve()
    node.cluster.clear()
    wait_for(lambda: sum(m.is_new for m in said(node, 0)) >= 3, "what was counted")
    heard = said(node, 0)
    assert not all(m.is_new for m in heard)
    for before, m in zip(heard, heard[1:]):
        assert m.is_new or (m.connections, m.active, m.load) == (before.connections, before.active, before.load)
    assert heard[-1].active == 1
    c.answer()


def test_what_is_in_hand(node, client):
    """A request that the server has not answered; gone with its answer."""
    c = client(EACH).serve()
    before = said(node, 0)[-1].sequence if said(node, 0) else 0
    wait_for(lambda: any(m.active == 1 for m in said(node, before)), "a request in hand")
    c.answer()
    wait_for(lambda: said(node, before)[-1].active == 0, "none")


def test_taken_and_refused(node):
    """The datapath lets them pass, whatever they say, and counts none of it."""
    sequence = time.time_ns()  # as a node's own: what comes later must not seem older
    later = model.Loads(sequence=sequence + 9).bytes(node.keys.handover[0])
    wrong = {
        "replayed": model.Loads(sequence=sequence),
        "older": model.Loads(sequence=sequence - 1),
        "from ourselves": model.Loads(sequence=sequence + 9, source=0),
        "of no node": model.Loads(sequence=sequence + 9, source=3),
        "of another version": model.Loads(sequence=sequence + 9, version=99),
        "longer": later + b"x",
        "changed": later[:20] + bytes((later[20] ^ 1,)) + later[21:],
    }
    with node.counts():
        before = exchange(node)
        tell(node, model.Loads(sequence=sequence, active=3, load=30, mean_us=1000))
        wait_for(lambda: exchange(node)["received"] == before["received"] + 1, "a message that is taken")
        for number, (what, message) in enumerate(wrong.items(), 1):
            tell(node, message)
            wait_for(lambda n=number: exchange(node)["refused"] == before["refused"] + n, f"no trust in one that is {what}")
        assert exchange(node)["received"] == before["received"] + 1
        tell(node, model.Loads(sequence=sequence - 1, source=2), source=3)
        wait_for(lambda: exchange(node)["received"] == before["received"] + 2, "another node's, which has its own count")
    with node.counts(handover_malformed=1):
        tell(node, later[:60])


def test_another_port(own_node):
    """After a reload they are told, and heard, on the new one."""
    node = own_node()
    with open(node.config_path, encoding="ascii") as handle:
        text = handle.read()
    with open(node.config_path, "w", encoding="ascii") as handle:
        handle.write(text.replace(f"handover_port = {HANDOVER_PORT}", f"handover_port = {HANDOVER_PORT + 1}"))
    node.reload()
    node.cluster.clear()
    wait_for(lambda: said(node, 0), "a message")
    assert all(f.udp.dport == HANDOVER_PORT + 1 for f in node.cluster.loads if f.ip.dst == CLUSTER[1])
    before = exchange(node)["received"]
    tell(node, model.Loads(sequence=time.time_ns()), port=HANDOVER_PORT + 1)
    wait_for(lambda: exchange(node)["received"] == before + 1, "a message that is taken")
