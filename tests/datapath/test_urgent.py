# SPDX-License-Identifier: GPL-2.0-or-later
"""Urgent data (RFC 6093): a server reads it apart from the rest, or not at all, so it does not read what the inspector would. A
connection with it is served where the ring says, and pinned."""
import pytest

from packets import model
from packets.client import LINUX, WINDOWS
from packets.node import EACH, WEB
from packets.packet import ACK, PSH, URG
CUT = 6

offers = pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda offer: offer.name)
services = pytest.mark.parametrize("service", [WEB, EACH])


def disguised(c):
    """A request for n2 to the inspector; and what the server reads, without its urgent byte, at `at`."""
    path = next(p for p in map("/u{}".format, range(1000)) if c.node.ring.content(p + "X", "test") == 1)
    text = c.get(path=path)
    at = text.index(b" HTTP")
    return text[:at] + b"X" + text[at:], text, at


def is_pinned(node, c, service):
    pins = [f["pin"] for f in node.ask("flows", limit=50000)["flows"] if (f["address"], f["port"]) == (c.ip, c.port)]
    return service == WEB or pins == ["ambiguous"]


@pytest.fixture
def idle(client):
    """A connection here that waits for its second request."""
    def make(**keywords):
        c = client(EACH, **keywords).serve()
        c.answer()
        return c
    return make


@offers
@services
def test_first_request(node, client, service, offer):
    c = client(service, offer=offer).shake()
    sent, read, at = disguised(c)
    # The netfilter datapath counts the pin that comes with a handover, too.
    with node.counts(request_queued=1, inspect_ambiguous=1, inspect_requests=1, inspect_kept=1, handover_received=1,
                     handover_rebuilt=1, pin_ambiguous=node.netfilter and service == EACH):
        c.send(ACK | PSH | URG, sent, urgent=at + 1)
        c.sent(sent)
        assert c.read(len(read)) == read
    node.no_message()
    c.answer()
    c.request(text=c.get(2))
    c.read(1)
    assert is_pinned(node, c, service)


@offers
@services
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["in-order", "overtaken"])
def test_in_pieces(node, client, service, offer, order):
    """Only the second segment is marked; the first waits for it, or it for the first."""
    c = client(service, offer=offer).shake()
    sent, read, at = disguised(c)
    for i in order:
        part = (sent[:CUT], sent[CUT:])[i]
        c.send(ACK | PSH | (URG if i else 0), part, seq=c.next + i * CUT, urgent=i and at + 1 - CUT)
    c.sent(sent)
    assert c.read(len(read)) == read
    node.no_message()
    c.answer()
    c.request(text=c.get(2))
    c.read(1)
    assert is_pinned(node, c, service)


@offers
def test_repeated(node, client, offer):
    """It goes again where it went, and says the same."""
    c = client(EACH, offer=offer).shake()
    sent, read, at = disguised(c)
    for _ in range(2):
        c.send(ACK | PSH | URG, sent, urgent=at + 1)
    c.sent(sent)
    assert c.read(len(read)) == read
    c.answer()
    assert not node.pending(EACH)


@offers
def test_later_request(node, idle, offer):
    c = idle(offer=offer)
    sent, read, at = disguised(c)
    with node.counts(deliver_established=1, pin_ambiguous=1):
        c.send(ACK | PSH | URG, sent, urgent=at + 1)
        c.sent(sent)
        assert c.read(len(read)) == read


@offers
def test_announced_before_a_later_request(node, idle, offer):
    """The mark may come with a bare acknowledgment, and the request itself look like any other."""
    c = idle(offer=offer)
    sent, read, at = disguised(c)
    with node.counts(deliver_established=2, pin_ambiguous=1):
        c.send(ACK | URG, urgent=at + 1)
        c.request(text=sent)
        assert c.read(len(read)) == read


def test_announced_in_a_body(node, client):
    """The rest of a request that is on its way to another node: that one must see the mark itself."""
    c = client(EACH).shake()
    head = f"POST {node.uri(2)} HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n".encode()
    c.request(text=head)
    node.taken(2, model.REQUEST)
    with node.counts(request_later_queued=1):
        c.send(ACK | PSH | URG, b"hello", urgent=20)
        c.silence()
    node.no_message()
