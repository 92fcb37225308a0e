# SPDX-License-Identifier: GPL-2.0-or-later
"""Segments with a client's addresses and ports that somebody else has sent, who does not see what goes back and forth: they do
to its connection what they would do with one server."""
import random

import pytest

from packets import model
from packets.families import BOTH
from packets.node import EACH
from packets.packet import ACK, FIN, PSH, URG

MASK = 0xFFFFFFFF
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.fixture
def idle(client):
    """A connection here that waits for its second request."""
    def make(**keywords):
        c = client(EACH, **keywords).serve()
        c.answer(EMPTY)
        return c
    return make


def moves(node, c):
    """Its next request is inspected, and takes the connection to another node."""
    with node.counts(owned_queued=1, inspect_owned=1, inspect_moved=1, inspect_moved_locality=1, handover_received=2, end_done=1,
                     end_seen=1):
        sent = c.request(target=2)
        message = node.taken(2)
    assert (message.kind, message.packet) == (model.REQUEST, sent)


def quarters(number):
    """One number in each quarter of all: of those that TCP takes, none is among them."""
    return [(number + (quarter << 30) + random.randint(1 << 27, 7 << 27)) & MASK for quarter in range(4)]


@BOTH
@pytest.mark.parametrize("flags, text", [(ACK | URG, b""), (ACK | PSH | URG, b"x"), (ACK | PSH, b"GET / HTTP/1.1\r\n"),
                                         (ACK | FIN, b"x")], ids=["urgent", "urgent-data", "data", "fin"])
@pytest.mark.parametrize("known", ["neither", "sequence", "acknowledgment"])
def test_outside_of_the_window(node, idle, flags, text, known):
    """It pins nothing, nor does the inspector get it: the stack drops it, and asks its sender whether he means it."""
    c = idle()
    with node.counts(deliver_established=4):
        for seq, ack in zip(quarters(c.next), quarters(c.ack)):
            c.send(flags, text, seq=c.next if known == "sequence" else seq, ack=c.ack if known == "acknowledgment" else ack,
                   urgent=bool(flags & URG) and 1)
    assert all((f.tcp.flags, f.tcp.ack) == (ACK, c.next) for f in node.public.all(c.mine))
    moves(node, c)
