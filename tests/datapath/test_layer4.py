# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections that nobody reads and this node does not serve: another node gets them, by the handshake's ACK or by the first bytes."""
import contextlib
import time

import pytest

from packets import families, model
from packets.client import LINUX, PLAIN, WINDOWS
from packets.families import BOTH
from packets.loads import tell
from packets.nack import refuse
from packets.node import BLIND, DEAD_BLIND, ESTABLISHED
from packets.packet import ACK, FIN, PSH, RST

OFFERS = pytest.mark.parametrize("offer", [LINUX, WINDOWS, PLAIN], ids=lambda o: o.name)
MADE = model.NACK_MADE  # the target's answer: the socket is there
REPEAT = 0x20
AGAIN_S = (0.05, 0.2, 1.0)
QUEUED = dict(layer4_queued=1, inspect_layer4_given=1, inspect_requests=1, inspect_handovers=1)


def makes(node, what=model.Takes.HANDSHAKES):
    """The model nodes say, as nodes do each second, of what they make connections."""
    for source in (2, 3):
        tell(node, model.Takes(source - 1, time.time_ns(), 65535, what), source=source)
    node.settle()
    for _ in range(3):  # rounds of the loop that takes it
        node.ask("status")


@pytest.fixture(name="modern")
def _modern(node):
    makes(node)
    node.cluster.clear()
    yield node
    makes(node, 0)


def given(node, timeout=2):
    """The next message of a connection that n1 gives to a model node."""
    f = node.cluster.take(lambda f: f.udp and f.ip.dst in node.at[1:] and f.udp.payload[:4] == b"ESH1", "a handover message",
                          timeout)
    return node.parsed(f, node.at.index(f.ip.dst) + 1)


def has_it(node, message):
    refuse(node, message, reason=MADE)


def shaken(client, service=DEAD_BLIND, **keywords):
    """(client, the handshake's ACK as it was sent)"""
    c = client(service, **keywords)
    c.shake(ack=False)
    return c, c.send(ACK)


@BOTH
@OFFERS
def test_handshake_goes_to_another(modern, client, offer):
    node = modern
    c = client(DEAD_BLIND, offer=offer)
    with node.counts(syn_answered=1, handover_received=1, handover_nack_received=1, **QUEUED):
        c.shake(ack=False)
        node.hears_again()
        ack = c.send(ACK)
        message = given(node)
        assert (message.packet, message.attempt, message.flags & REPEAT) == (ack, 1, 0)
        has_it(node, message)
        node.settle()
    with node.counts():
        time.sleep(AGAIN_S[0] + AGAIN_S[1])
        node.no_message()
        c.silence()
    assert not node.sockets(c)


def test_handshake_is_repeated(modern, client):
    """Its client does not; so the node does, as long as nobody has said that the connection is there, and not for ever."""
    node = modern
    with node.counts(syn_answered=1, inspect_layer4_repeated=3, **QUEUED):
        _, ack = shaken(client)
        first = given(node)
        for _ in AGAIN_S:
            again = given(node)
            assert (again.packet, again.target, again.attempt) == (ack, first.target, first.attempt)
            assert again.flags & REPEAT and again.sequence > first.sequence
        time.sleep(AGAIN_S[-1] + 0.2)
        node.no_message()


@BOTH
@pytest.mark.parametrize("text", [b"", b"hello"], ids=["handshake", "first-bytes"])
def test_refused_goes_on(modern, client, text):
    """A target without a server says so: the next node of the ring has it; if that one has none either, the client is told."""
    node = modern
    c = client(DEAD_BLIND).shake(ack=False)
    sent = c.send(ACK | (PSH if text else 0), text)
    first = given(node)
    refuse(node, first)
    second = given(node)
    assert {first.target, second.target} == {1, 2} and (second.packet, second.attempt) == (sent, 2)
    refuse(node, second)
    reset = c.take("the RST")
    assert (reset.flags, reset.seq) == (RST, c.ack)
    time.sleep(1.1)  # until nobody is left alone any more


@BOTH
@OFFERS
def test_first_bytes(node, client, offer):
    """The ACK was lost: they say the same, and are repeated by their client, to the same node."""
    makes(node, 0)  # of these, a node of any version makes a connection
    node.cluster.clear()
    c = client(DEAD_BLIND, offer=offer).shake(ack=False)
    text = b"EHLO client\r\n"
    with node.counts(**QUEUED):
        sent = c.send(ACK | PSH, text)
        message = given(node)
    assert (message.packet, message.attempt, message.flags & REPEAT) == (sent, 1, 0)
    with node.counts(layer4_queued=1, inspect_repeated=1):
        sent = c.send(ACK | PSH, text)
        again = given(node)
    assert (again.packet, again.target, again.attempt) == (sent, message.target, 1) and again.flags & REPEAT
    assert not node.sockets(c)


def test_bytes_behind_the_handshake(modern, client):
    """The target hears its client itself, but from when it has the socket on: what came before is told it as well."""
    node = modern
    c, _ = shaken(client)
    message = given(node)
    with node.counts(layer4_queued=1, inspect_repeated=1, request_later_queued=1, inspect_followed=1):
        first = c.send(ACK | PSH, b"one ")
        second = c.send(ACK | PSH, b"two", seq=c.next + 4)
        told = [given(node), given(node)]
    assert [m.packet for m in told] == [first, second]
    assert [m.kind for m in told] == [model.REQUEST, model.FOLLOW] and {m.target for m in told} == {message.target}
    has_it(node, message)


def test_fin_at_once(node, client):
    c = client(DEAD_BLIND).shake(ack=False)
    with node.counts(**QUEUED):
        fin = c.send(ACK | FIN)
        message = given(node)
    assert (message.packet, message.attempt) == (fin, 1)


def test_node_of_an_older_version(node, client):
    """It takes no handshake alone: that is left to the first bytes, if there are any."""
    makes(node, 0)
    node.cluster.clear()
    with node.counts(syn_answered=1, layer4_queued=1, inspect_layer4_left=1):
        c, _ = shaken(client)
        c.silence()
    node.no_message()
    with node.counts(**QUEUED):
        sent = c.send(ACK | PSH, b"hello")
        assert given(node).packet == sent


def test_server_returns(modern, client):
    """What was given away stays so, whatever comes of it meanwhile."""
    node = modern
    c, ack = shaken(client)
    message = given(node)
    has_it(node, message)
    listener = node.listen(DEAD_BLIND)
    try:
        with node.counts(layer4_queued=2, inspect_repeated=2):
            again = c.send(ACK)
            assert given(node).target == message.target
            sent = c.send(ACK | PSH, b"hello")
            told = given(node)
            assert (told.packet, told.target) == (sent, message.target) and again != ack
        assert not node.sockets(c) and not node.pending(DEAD_BLIND)
        other, _ = shaken(client)
        other.accept()
    finally:
        node.listeners.pop(DEAD_BLIND)
        listener.close()


def new(node, packet):
    """The next message with that packet which is no repetition: on a busy machine, those come before an answer is read."""
    return next(m for m in iter(lambda: given(node), None) if m.packet == packet and not m.flags & REPEAT)


@BOTH
def test_backup_node_serves_last(own_node, client, family):
    """Its own share of connections goes to the others, its server works or not; here they stay when both have refused them."""
    node = own_node(backup=True)
    with families.dual_stack(node) if family == 6 else contextlib.nullcontext():
        makes(node)
        node.cluster.clear()
        c, ack = shaken(client, BLIND, at=node)
        message = new(node, ack)
        assert not node.sockets(c)
        has_it(node, message)
        c, ack = shaken(client, BLIND, at=node)
        first = new(node, ack)
        refuse(node, first)
        second = new(node, ack)
        assert {first.target, second.target} == {1, 2} and not node.pending(BLIND)
        refuse(node, second)
        c.accept()
        c.answer(b"220 ready\r\n")
        assert node.sockets(c) == [ESTABLISHED]


@pytest.mark.no_netfilter("without its daemon it answers nothing")
def test_without_the_inspector(own_node, client):
    """Nobody can say who serves it: the client is told at once, as ever."""
    node = own_node(fallback_after_ms=300)
    node.daemon.send_signal(19)
    time.sleep(0.5)
    try:
        c = client(DEAD_BLIND, at=node)
        c.shake(ack=False)
        c.send(ACK)
        assert c.take("the RST").flags == RST
    finally:
        node.daemon.send_signal(18)


@BOTH
@OFFERS
def test_target_makes_the_socket(node, client, offer):
    """Of the ACK alone: its server may speak first. What comes twice is answered, and makes no second one."""
    c = client(BLIND, owner=2, offer=offer)
    c.forge()
    message = c.handover(c.ip_packet(ACK), attempt=1)
    with node.counts(handover_received=1, handover_rebuilt=1):
        node.message(message)
        c.accept()
    assert node.sockets(c) == [ESTABLISHED]
    with node.counts(handover_received=1, handover_duplicate=1):
        node.message(c.handover(c.ip_packet(ACK), attempt=1))
        answer = node.taken(2, model.NACK)
        assert answer.nack == MADE
    c.answer(b"220 ready\r\n")
    c.request(text=b"QUIT\r\n")
    assert c.read(6) == b"QUIT\r\n"
    c.answer(b"221 bye\r\n")
    c.abort()
    assert c.take("the server's RST").flags & RST
    with node.counts(handover_received=1, handover_old=1):
        node.message(c.handover(c.ip_packet(ACK, seq=c.isn + 1, ack=c.cookie + 1), attempt=1))
        assert node.taken(2, model.NACK).nack == MADE
    assert not node.sockets(c) and not node.pending(BLIND)


@BOTH
def test_target_without_a_server(node, client):
    c = client(DEAD_BLIND, owner=2)
    c.forge()
    with node.counts(handover_received=1, handover_nacked=1):
        node.message(c.handover(c.ip_packet(ACK), attempt=1))
        assert node.taken(2, model.NACK).nack == model.NACK_NO_LISTENER
    assert not node.sockets(c)
