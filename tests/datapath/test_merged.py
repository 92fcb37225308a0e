# SPDX-License-Identifier: GPL-2.0-or-later
"""A large request on a used connection, whose window is wide: it arrives in packets of up to 64 KB, merged by a virtual link
or the network card. The inspector gets them whole: nothing has to be sent a second time."""
import pytest

from packets import model
from packets.client import LINUX, WINDOWS
from packets.node import EACH, MSS
from packets.packet import ACK, PSH

MERGED = 64000  # about what one packet can say of its length
offers = pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda offer: offer.name)


def used(client, **keywords):
    c = client(EACH, **keywords).serve()
    c.answer()
    return c


def post(c, target, size):
    head = f"POST {c.node.uri(target)} HTTP/1.1\r\nHost: test\r\nContent-Length: "
    body = size - len(head) - len("12345\r\n\r\n")
    return f"{head}{body}\r\n\r\n{'x' * (body - 1)}!".encode()


def segment(c):
    return MSS - len(c.options())


def sends(c, text):
    c.node.public.send_partial(c.frame(ACK | PSH, text, check="partial"), gso_size=segment(c))
    c.sent(text)


@offers
@pytest.mark.parametrize("size", [16000, 17001, 60000, MERGED])
def test_stays(node, client, offer, size):
    c = used(client, offer=offer)
    text = post(c, 1, size)
    # The netfilter datapath cuts before it decides; else the inspector does.
    more = dict.fromkeys(("owned_later_queued", "inspect_followed"), range(100)) if node.netfilter else {}
    with node.counts(owned_queued=1, inspect_owned=1, inspect_stayed=1, handover_received=range(1, 100), stay_delivered=1,
                     handover_follow=range(100), **more):
        sends(c, text)
        assert c.read(len(text)) == text
    assert c.answer()[-1].ack == c.next


@offers
@pytest.mark.parametrize("size", [17001, 60000])
def test_moves(node, client, offer, size):
    c = used(client, offer=offer)
    text = post(c, 2, size)
    sends(c, text)
    pieces = [node.taken(2, model.REQUEST).packet]
    while sum(len(p) - 40 - len(c.options()) for p in pieces) < len(text):
        pieces.append(node.taken(2, model.FOLLOW).packet)
    assert b"".join(p[40 + len(c.options()):] for p in pieces) == text


def test_two_packets(node, client):
    """The second is on its way before anybody has looked at the first."""
    c = used(client)
    text = post(c, 1, 50000)  # the socket takes that much
    sends(c, text[:25000])
    sends(c, text[25000:])
    assert c.read(len(text)) == text
    assert c.answer()[-1].ack == c.next
