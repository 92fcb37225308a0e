# SPDX-License-Identifier: GPL-2.0-or-later
"""A first request on the ports of an open connection: a client that has begun anew, or somebody who has guessed a cookie. The
client of the connection that is here is asked whether it still has that."""
import copy
import time

import pytest

from earshotlab import wait_for
from packets import model
from packets.client import LINUX, WINDOWS
from packets.families import BOTH, CLUSTERS
from packets.node import ESTABLISHED
from packets.packet import ACK, PSH, RST

MASK = 0xFFFFFFFF
WAIT_S = 0.6  # longer than ES_CHALLENGE_WAIT_MS (kmod/core/challenges.h)
TICK_S = 0.05  # an acknowledgement that came in the same tick of the kernel's clock as the probe passes for its answer
OFFERS = pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda o: o.name)


@pytest.fixture
def opened(node, client):
    """A client whose connection is here, and has carried a response, and the same one at the beginning of another one."""
    def make(offer=LINUX):
        c = client(owner=2, offer=offer)
        c.forge()
        text = c.get()
        node.message(c.handover(c.ip_packet(ACK | PSH, text)))
        c.sent(text)
        assert c.read(len(text)) == text
        with node.counts(deliver_established={1, 2}):
            c.answer()
        time.sleep(TICK_S)
        new = copy.copy(c)
        new.server, new.implied = None, set()
        new.isn = (c.next + 100000) & MASK
        new.next = (new.isn + 1) & MASK
        new.forge()
        return c, new

    return make


def asked(node, c, message):
    """The message has c's client asked, by a probe that a client answers."""
    newest = c.ts_recent
    with node.counts(handover_received=1, handover_asked=1):
        node.message(message)
        probe = c.take("a probe")
        while probe.seq == c.ack:  # what its socket says to what is not its
            probe = c.take("a probe")
    assert (probe.flags, probe.seq, probe.ack, probe.payload) == (ACK, (c.ack - 1) & MASK, c.next, b"")
    assert (probe.tsval is not None) == (c.offer.means.ts and not node.netfilter)
    assert probe.tsval is None or probe.tsval - newest & MASK < 60000  # milliseconds


def repeat(node, new, original, **counted):
    """The request comes again. On a slow machine this may be so late that the client is asked again."""
    with node.counts(handover_received=1, handover_asked={0, 1}, **counted):
        node.message(again(new, original))


def again(c, original, **fields):
    return c.handover(original, flags=c.handover(original).flags | model.F_REPEAT, **fields)


def answers(node, c):
    with node.counts(deliver_established={0, 1}):  # with netfilter, the kernel takes it
        c.send(ACK)


def refused(node):
    try:
        return node.taken(2, model.NACK, timeout=0.3).nack
    except AssertionError:  # nothing came
        return None


@BOTH
@CLUSTERS
@OFFERS
def test_a_client_that_answers_keeps_its_connection(node, opened, offer):
    c, new = opened(offer)
    original = new.ip_packet(ACK | PSH, new.get())
    for _ in range(2):
        asked(node, c, new.handover(original))
        answers(node, c)
        repeat(node, new, original, handover_alive={0, 1})
        answers(node, c)
        time.sleep(WAIT_S)
    node.no_message()
    assert node.sockets(c) == [ESTABLISHED]
    with node.counts(deliver_established={1, 2, 3}):
        c.request(text=b"still here")
        assert c.read(10) == b"still here"
        c.server.sendall(b"so am I")
        wait_for(lambda: c.take("the reply").payload == b"so am I", "the reply")


@BOTH
@CLUSTERS
@OFFERS
def test_a_client_that_has_begun_anew_is_served(node, opened, offer):
    """It answers in its new numbers, as TCP does (RFC 9293, 3.10.7.4), and repeats its request. It is asked twice."""
    c, new = opened(offer)
    text = new.get()
    original = new.ip_packet(ACK | PSH, text)
    asked(node, c, new.handover(original))
    with node.counts(deliver_established={0, 1}):
        new.send(ACK, seq=new.next + len(text))
    with node.counts(handover_received=range(2, 10), handover_asked=1, handover_waits=range(9), handover_time_wait=1):
        for _ in range(9):
            assert node.sockets(c) == [ESTABLISHED]
            node.message(again(new, original))
            if refused(node) == model.NACK_RETRY:
                break
    wait_for(lambda: not node.sockets(c), "the end of the old connection")
    with pytest.raises(ConnectionResetError):
        c.server.recv(1)
    c.server.close()
    c.server = None
    with node.counts(handover_received=1, handover_rebuilt=1):
        node.message(new.handover(original, attempt=1))
        new.sent(text)
        assert new.read(len(text)) == text
    new.abort()


@BOTH
def test_a_client_that_answers_the_second_question(node, opened):
    """It has just answered something else, and does that twice a second at most."""
    c, new = opened()
    original = new.ip_packet(ACK | PSH, new.get())
    asked(node, c, new.handover(original))
    for _ in range(2):
        time.sleep(WAIT_S)
        asked(node, c, again(new, original))
        answers(node, c)
    assert node.sockets(c) == [ESTABLISHED]
    c.server.sendall(b"still here")
    wait_for(lambda: c.take("the reply").payload == b"still here", "the reply")


@BOTH
def test_a_client_that_knows_no_connection_is_served_at_once(node, opened):
    """Its RST ends the old one."""
    c, new = opened()
    text = new.get()
    original = new.ip_packet(ACK | PSH, text)
    asked(node, c, new.handover(original))
    c.send(RST)
    wait_for(lambda: not node.sockets(c), "the end of the old connection")
    with node.counts(handover_received=1, handover_rebuilt=1):
        node.message(again(new, original))
        new.sent(text)
        assert new.read(len(text)) == text
    new.abort()
