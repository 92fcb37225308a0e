# SPDX-License-Identifier: GPL-2.0-or-later
"""A node with a lease, and connections of which the client knows more or less.

The daemon has static membership, so nobody but the test writes the live words (tables.py).
"""
import pytest

from earshotlab import wait_for
from packets import model
from packets.node import BLIND, EACH, ESTABLISHED, WEB
from packets.packet import ACK, PSH, RST

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
STAYED = dict(owned_queued=1, inspect_owned=1, inspect_stayed=1, handover_received=1, stay_delivered=1)
BUILT = dict(handover_received=1, handover_rebuilt=1)
SOME = range(1, 100)
each_service = pytest.mark.parametrize("service", [WEB, BLIND, EACH])


@pytest.fixture
def leased(node):
    """The node's tables; its lease holds."""
    with node.leased() as tables:
        yield tables


@pytest.fixture
def silent(leased):
    leased.lease(0)
    return leased


def begins(node, client, *arguments):
    """A connection of which the client knows that its request arrived, and no more."""
    c = client(*arguments).serve()
    acknowledged = c.take("the acknowledgement")
    assert not acknowledged.payload and acknowledged.ack == c.next
    return c


def unheard(node, client, leased, *arguments):
    """One of which the client does not even know that its request arrived."""
    leased.lease(3600, firm=False)
    before = node.counters()["reply_unsure"]
    c = client(*arguments).serve()
    wait_for(lambda: node.counters()["reply_unsure"] > before, "an acknowledgement that is kept back", seen=node.counters)
    c.silence()
    return c


def told(c):
    """The client takes a RST: its sequence number is the very byte that it expects (RFC 5961, 3.2)."""
    reset = c.take("a RST")
    assert reset.flags & RST and reset.seq == c.ack and not reset.payload


def stands(node, c):
    """Nothing of the connection has arrived at the server, nothing at the client."""
    c.silence()
    c.server.setblocking(False)
    with pytest.raises(BlockingIOError):
        c.server.recv(1)
    c.server.settimeout(8)
    assert node.sockets(c) == [ESTABLISHED]


def goes_on(node, c, **counted):
    """Two requests and their answers, to the byte, and the end; and nothing is counted but that."""
    inspected = {name: 2 * value for name, value in STAYED.items()} if c.service == EACH else {}
    with node.counts(deliver_established=SOME, **inspected, **counted):
        for size in (0, 1000):
            text = c.get(extra=f"X: {'x' * size}\r\n")
            c.request(text=text)
            assert c.read(len(text)) == text
            c.answer(OK)
        c.closes()


def from_another(node, client, service=EACH, source=2, owner=2, **fields):
    """(client, text, message): a request that another node gives to this one."""
    c = client(service, owner=owner)
    c.forge()
    text = c.get()
    return c, text, c.handover(c.ip_packet(ACK | PSH, text), next_request_seq=c.next + len(text), **fields)


def moved_here(node, client, **counted):
    c, text, message = from_another(node, client, moves=1, requests=1)
    message.flags |= model.F_MOVED
    with node.counts(**BUILT, **counted):
        node.message(message)
        c.sent(text)
        assert c.read(len(text)) == text
    return c


def nacked(node, c, sent, reason):
    """The message came back to n2, and nobody else heard of it."""
    back = node.taken(2, model.NACK)
    assert (back.nack, back.packet, back.sequence > 0) == (reason, sent.packet, True)
    c.silence()
    node.no_message()
    assert not node.sockets(c)
