# SPDX-License-Identifier: GPL-2.0-or-later
"""Bytes before a request's first one are none of it: that of a keep-alive probe (RFC 9293 section 3.8.4), or an attacker's, which
nobody would have inspected."""
import pytest

from packets import model
from packets.client import LINUX, WINDOWS
from packets.node import EACH, WEB
from packets.packet import ACK, PSH

offers = pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda offer: offer.name)
services = pytest.mark.parametrize("service", [WEB, EACH])
# Below the first byte: a probe's byte, and what goes on into the request.
BELOW = pytest.mark.parametrize("below", [b"\0", b"GET /evil HTTP/1.1\r\n\r\nGET"], ids=["probe", "overlap"])
CUT = 9


def prepend(c, below):
    c.send(ACK, below, seq=c.isn)


@offers
@services
@BELOW
@pytest.mark.parametrize("pieces", [1, 2])
def test_before_the_request(node, client, service, offer, below, pieces):
    """What came below is gathered, as it may be the end of a request whose beginning was lost; that comes, and drops it."""
    c = client(service, offer=offer).shake()
    prepend(c, below)
    text = c.get(2)
    for part in (text,) if pieces == 1 else (text[:CUT], text[CUT:]):
        c.request(text=part)
    message = node.taken(2, model.REQUEST)
    assert message.packet[20 + (32 if offer is LINUX else 20):] == (text if pieces == 1 else text[:CUT])
    if pieces == 2:
        assert node.taken(2, model.FOLLOW).packet.endswith(text[CUT:])
    node.no_message()


@offers
@services
@BELOW
def test_inside_the_request(node, client, service, offer, below):
    c = client(service, offer=offer).shake()
    text = c.get()
    c.request(text=text[:CUT])
    prepend(c, below)
    c.request(text=text[CUT:])
    assert c.read(len(text)) == text
    c.answer()
    c.server.settimeout(0)
    with pytest.raises(BlockingIOError):
        c.server.recv(1)


@services
@BELOW
def test_below_only(node, client, service, below):
    """Nobody's request: it is forgotten."""
    c = client(service, offer=WINDOWS).shake()
    with node.counts(request_later_queued=1, inspect_gather_forgotten=1):
        c.send(ACK | PSH, below, seq=c.isn)
        c.silence()
    c.request()
    c.accept()


@offers
@pytest.mark.parametrize("target", [1, 2], ids=["stays", "moves"])
def test_probe_inside_a_later_request(node, client, offer, target):
    """On a connection that is here."""
    c = client(EACH, offer=offer).serve()
    c.answer()
    first = c.next
    text = c.get(target)
    c.request(text=text[:CUT])
    c.send(ACK, b"\0", seq=first - 1)
    c.request(text=text[CUT:])
    if target == 1:
        assert c.read(len(text)) == text
        c.answer()
        return
    message = node.taken(2, model.REQUEST)
    assert message.packet.endswith(text[:CUT])
    assert node.taken(2, model.FOLLOW).packet.endswith(text[CUT:])
    node.no_message()
