# SPDX-License-Identifier: GPL-2.0-or-later
"""A head that pauses where a rule may refuse its request: the rest of it is waited for, and its client is helped to send it."""
import time

import pytest

from earshotlab import wait_for
from packets.client import LINUX, PLAIN
from packets.packet import ACK, FIN, PSH

CUT, REST = b"GET /sec", b"ret/x HTTP/1.1\r\nHost: x\r\n\r\n"
PAUSE_S = 0.6  # three times gather_timeout_ms
OFFERS = pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=lambda offer: offer.name)


@pytest.fixture(name="strict")
def _strict(own_node):
    """A node with a rule that denies /secret/."""
    node = own_node()
    with open(node.config_path, "a", encoding="ascii") as handle:
        handle.write('\nrule secret { path = "/secret/"  deny = yes  status = 410 }\n')
    node.reload()
    return node


@OFFERS
def test_a_pause_gets_past_no_rule(strict, client, offer):
    """The client probes once meanwhile, and then goes on."""
    c = client(at=strict, offer=offer)
    c.shake()
    with strict.counts(request_queued=2, request_later_queued=1, inspect_gather_waited=1, inspect_gathered=1, inspect_rejected=1):
        c.request(text=CUT)
        time.sleep(PAUSE_S)
        c.send(ACK | PSH, CUT, seq=c.next - len(CUT))
        c.silence()
        c.request(text=REST)
        answer = c.take("the refusal")
    assert answer.payload.startswith(b"HTTP/1.1 410 ") and answer.flags == ACK | PSH | FIN
    assert (answer.seq, answer.ack) == (c.ack, c.next)
    assert not strict.sockets(c)


def given_up(c, text):
    """The client has repeated its first segment twice: it is told that it is here, and sends no more of it."""
    c.request(text=text)
    for _ in range(2):
        c.silence()
        c.send(ACK | PSH, text, seq=c.next - len(text))
    told = c.take("the acknowledgment")
    assert (told.flags, told.seq, told.ack, told.payload) == (ACK, c.ack, c.next, b"")
    c.silence()


@OFFERS
def test_a_client_that_waits_is_denied(strict, client, offer):
    """It takes its first segment for lost, and sends the rest of its head when that is acknowledged."""
    c = client(at=strict, offer=offer)
    c.shake()
    with strict.counts(request_queued=3, request_later_queued=1, inspect_gather_waited=1, inspect_gather_acked=1, inspect_gathered=1,
                       inspect_rejected=1):
        given_up(c, CUT)
        c.request(text=REST)
        answer = c.take("the refusal")
    assert answer.payload.startswith(b"HTTP/1.1 410 ") and (answer.seq, answer.ack) == (c.ack, c.next)
    assert not strict.sockets(c)


@OFFERS
def test_a_client_that_waits_is_served(strict, client, offer):
    """Another path: its server gets all of it once, though what was acknowledged is given to it again and again."""
    c = client(at=strict, offer=offer)
    c.shake()
    text = c.get(1)
    given_up(c, text[:5])
    c.request(text=text[5:])
    assert c.read(len(text)) == text
    wait_for(lambda: strict.counters()["inspect_repeated"] == 3, "the last repetition")
    c.answer()
    c.closes()


def test_a_head_without_end(strict, client):
    """Nobody knows whether the rule would refuse it."""
    c = client(at=strict)
    c.shake()
    with strict.counts(request_queued=1, inspect_gather_waited=1, inspect_gather_refused=1, inspect_gather_timeout=1,
                       inspect_not_http=1, inspect_gathered=1, inspect_rejected=1):
        c.request(text=CUT)
        wait_for(lambda: strict.counters()["inspect_gather_refused"], "the refusal", 20)
        answer = c.take("the refusal")
    assert answer.payload.startswith(b"HTTP/1.1 408 ") and answer.flags == ACK | PSH | FIN
    assert not strict.sockets(c)
