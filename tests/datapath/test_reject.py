# SPDX-License-Identifier: GPL-2.0-or-later
"""A request that the inspector refuses while its body is still coming: the client may send all of it before it reads."""
import contextlib

import pytest

from earshotlab import wait_for
from packets.client import LINUX, PLAIN
from packets.packet import ACK, FIN, PSH

# A plugin's counters go on by themselves, so these are looked at alone.
COUNTED = ("inspect_rejected", "inspect_repeated", "moved_queued", "reject_dropped", "reset_after_reject", "handover_rebuilt")
OFFERS = pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=lambda offer: offer.name)
MASK = 0xFFFFFFFF
PART = b"x" * 1000


@contextlib.contextmanager
def grows(own, **expected):
    before = own.counters()
    yield
    own.settle()

    def grown():
        after = own.counters()
        return {name: after[name] - before[name] for name in COUNTED if after[name] != before[name]}

    wait_for(lambda: grown() == expected, f"{expected} counted", seen=grown)


def refuse(own, client, offer):
    """A client whose upload was refused, and the answer that it got."""
    c = client(at=own, offer=offer)
    c.shake()
    with grows(own, inspect_rejected=1):
        c.request(text=c.get(2, extra="Content-Length: 100000\r\nX-Debug: reject 503\r\n"))
        answer = c.take("the refusal")
    check(c, answer)
    return c, answer


def check(c, answer):
    assert answer.payload.startswith(b"HTTP/1.1 503 ") and answer.flags == ACK | PSH | FIN
    assert (answer.seq, answer.ack) == (c.ack, c.next)


@OFFERS
def test_the_rest_is_taken(own, client, offer):
    """Each part is acknowledged, also behind a hole, and so is the client's FIN; nobody gets it."""
    c, answer = refuse(own, client, offer)
    c.ack = (c.ack + len(answer.payload) + 1) & MASK
    with grows(own, reject_dropped=4):
        c.send(ACK)
        for at in (0, len(PART), 50 * len(PART)):
            c.send(ACK, PART, seq=c.next + at)
            taken = c.take("its acknowledgment")
            assert (taken.flags, taken.seq, taken.payload) == (ACK, c.ack, b"")
            assert taken.ack == (c.next + at + len(PART)) & MASK
            assert taken.window > 10000
        c.send(ACK | FIN, PART, seq=c.next + 51 * len(PART))
        assert c.take("its FIN's").ack == (c.next + 52 * len(PART) + 1) & MASK
        c.silence()
    assert not own.sockets(c)


@OFFERS
def test_answer_is_lost(own, client, offer):
    """What the client sends without having heard it is answered with it, and acknowledged."""
    c, _ = refuse(own, client, offer)
    with grows(own, moved_queued=3, inspect_repeated=3):
        for flags in (0, 0, FIN):
            c.send(ACK | flags, PART)
            c.sent(PART, flags)
            check(c, c.take("the refusal"))
        c.silence()
    assert not own.sockets(c)
