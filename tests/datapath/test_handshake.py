# SPDX-License-Identifier: GPL-2.0-or-later
"""Between the SYN-ACK and the first request: nothing is kept, and what must be answered is answered."""
import pytest

from packets import model
from packets.client import LINUX, PLAIN, WINDOWS
from packets.families import BOTH
from packets.node import BLIND, ESTABLISHED, RCV_WSCALE, WEB, WINDOW
from packets.packet import ACK, FIN, NOP, PSH, RST, opt_ts
from packets.wire import TIMEOUT_S

MASK = 0xFFFFFFFF
OFFERS = pytest.mark.parametrize("offer", [LINUX, WINDOWS, PLAIN], ids=lambda o: o.name)
# Age of a cookie in slots; -1 is a client whose node's clock is ahead.
FRESH, OLD = [-1, 0, 1, 2], [3, 4, 5]


def aged(c, age):
    c.forge(slot=c.node.slot() - age)
    return c


@BOTH
@OFFERS
def test_ack_is_silent(node, client, offer):
    c = client(offer=offer)
    c.forge()
    with node.counts(drop_handshake_ack=1):
        c.send(ACK)
        c.silence()
    assert not node.sockets(c)


@BOTH
def test_ethernet_padding_is_no_request(node, client):
    c = client(offer=PLAIN)
    c.forge()
    with node.counts(drop_handshake_ack=1):
        node.public.send(c.frame(ACK) + b"GET / ")
        c.silence()


@BOTH
@OFFERS
def test_server_speaks_first(node, client, offer):
    """Where nobody inspects, the handshake's ACK makes the socket: the server says what it will, the client then answers."""
    c = client(BLIND, offer=offer)
    with node.counts(syn_answered=1, handshake_blind=1):
        c.shake(ack=True)
        c.accept()
    assert node.sockets(c) == [ESTABLISHED]
    with node.counts(deliver_established=range(1, 9)):
        c.answer(b"220 ready\r\n")
        text = b"EHLO client\r\n"
        c.request(text=text)
        assert c.read(len(text)) == text
        c.answer(b"250 " + text)
        c.send(ACK | FIN)
        c.sent(b"", FIN)
        assert c.server.recv(1) == b""


@BOTH
@OFFERS
def test_client_speaks_at_once(node, client, offer):
    """The first bytes are right behind the ACK: one socket, one request."""
    c = client(BLIND, offer=offer)
    c.shake(ack=True)
    text = c.get()
    c.request(text=text)
    assert c.read(len(text)) == text
    assert node.sockets(c) == [ESTABLISHED]
    node.listeners[BLIND].settimeout(0.2)
    with pytest.raises(TimeoutError):
        node.listeners[BLIND].accept()
    node.listeners[BLIND].settimeout(TIMEOUT_S)


@BOTH
@OFFERS
def test_acknowledged_twice(node, client, offer):
    """While it is open, the ACK is its socket's; when it is over, nothing comes of it."""
    c = client(BLIND, offer=offer)
    c.shake(ack=True).accept()
    with node.counts(deliver_established=1):
        c.send(ACK)
        c.silence()
    first = dict(seq=c.next, ack=c.ack, options=c.options())
    c.abort()
    assert c.take("the server's RST").flags & RST
    with node.counts(reset_repeated={0, 1}, handover_old={0, 1}):
        c.send(ACK, **first)
        node.settle()
    assert not node.sockets(c) and not node.pending(BLIND)


@BOTH
def test_ack_makes_no_socket(node, client):
    """Where requests are inspected, it says nothing."""
    c = client(WEB)
    c.shake(ack=False)
    node.hears_again()
    with node.counts(drop_handshake_ack=1):
        c.send(ACK)
        c.silence()
    assert not node.sockets(c)


@BOTH
def test_ack_of_a_forger(node, client):
    c = client(BLIND)
    c.forge()
    for seq, ack in ((c.next + 1, c.ack), (c.next, c.ack ^ 1 << 20), (c.next, c.ack ^ 1)):
        with node.counts(drop_handshake_ack={0, 1}, drop_no_flow={0, 1}):
            c.send(ACK, seq=seq, ack=ack)
            c.silence()
    c.ts_recent ^= 1
    with node.counts(drop_handshake_ack=1):
        c.send(ACK)
        c.silence()
    assert not node.sockets(c)


@BOTH
@pytest.mark.parametrize("garbage", [b"", b"\0"], ids=["0-bytes", "1-byte"])
@OFFERS
def test_keepalive_probe(node, client, offer, garbage):
    """RFC 9293 section 3.8.4: one byte before what is next, with or without one byte of garbage."""
    c = client(offer=offer)
    c.shake()
    if garbage and not offer.means.ts:
        # The byte could be one of a request in single bytes: acknowledging it would lose it.
        with node.counts(request_later_queued=1, inspect_gather_forgotten=1):
            c.send(ACK, garbage, seq=c.isn)
            c.silence("a byte that nothing proves to be garbage")
        return
    node.hears_again()
    with node.counts(keepalive_answered=2):
        for _ in range(2):
            c.send(ACK, garbage, seq=c.isn)
            probe_tsval = c.tsval
            expected_tsval = c.ts_recent
            answer = c.take("the keep-alive's ACK")
            assert answer.flags == ACK and not answer.payload
            assert answer.seq == c.ack
            assert answer.ack == c.next
            assert answer.window == WINDOW >> (RCV_WSCALE if offer.means.wscale is not None else 0)
            if offer.means.ts:
                assert (answer.tsval, answer.tsecr) == (expected_tsval, probe_tsval)
            else:
                assert answer.block == b""
        c.silence("one answer each")
    c.request()
    assert c.read(4) == b"GET "


@pytest.mark.parametrize("service", [WEB, BLIND])
@pytest.mark.parametrize("what", ["request", "fin", "keepalive"])
@pytest.mark.parametrize("age", OLD)
def test_expired(node, client, age, what, service):
    """The client is told to connect again."""
    c = aged(client(service), age)
    with node.counts(cookie_expired=1):
        if what == "request":
            c.send(ACK | PSH, c.get())
        elif what == "fin":
            c.send(ACK | FIN)
        else:
            c.send(ACK, seq=c.isn)
        reset = c.take("the RST")
        assert (reset.flags, reset.seq, reset.ack) == (RST, c.ack, 0)
    assert not node.sockets(c)


@BOTH
@pytest.mark.parametrize("age", FRESH)
def test_not_expired(node, client, age):
    c = aged(client(), age)
    text = c.get()
    with node.counts(request_queued=1, inspect_requests=1, inspect_kept=1, handover_received=1, handover_rebuilt=1):
        c.request(text=text)
        assert c.read(len(text)) == text


def test_a_slot_too_far_ahead(node, client):
    """Eight slots before: as if from the future, it would have to be authentic for it, and it is not."""
    c = aged(client(), -2)
    c.ack = c.no_cookie(c.ack)
    with node.counts(cookie_invalid=1):
        c.send(ACK | PSH, c.get())
        c.silence()


def test_ack_of_an_expired_handshake(node, client):
    """Nothing to do, and nothing to answer: the client has not asked for anything."""
    c = aged(client(), 3)
    with node.counts(drop_no_flow=1):
        c.send(ACK)
        c.silence()


BITS = {"slot": 1 << 29, "flow-tag": 1, "options": 1 << 12, "flow-tag-high": 1 << 9}


@pytest.mark.parametrize("bit", BITS)
def test_bad_cookie(node, client, bit):
    c = client()
    c.forge()
    # By chance (1 in 1024) another slot or other options give the same flow tag.
    c.ack = ((c.cookie ^ BITS[bit]) + 1) & MASK
    with node.counts(cookie_invalid={0, 1}, request_later_queued={0, 1}, inspect_gather_forgotten={0, 1}):
        c.send(ACK | PSH, c.get())
        c.silence()
    assert not node.sockets(c) and not node.pending(WEB)


@pytest.mark.parametrize("what", ["isn-tag", "client-isn", "tsecr"])
def test_right_flow_wrong_handshake(node, client, what):
    """Only the flow is proven, so it may be a later segment of a request; without a first one it is forgotten."""
    c = client()
    c.forge()
    options = None
    if what == "isn-tag":
        c.ack = ((c.cookie ^ 1 << 20) + 1) & MASK
    elif what == "client-isn":
        c.next += 1
    else:
        options = NOP * 2 + opt_ts(c.tsval, c.ts_recent ^ 1)
    with node.counts(request_later_queued=1, inspect_gather_forgotten=1):
        c.send(ACK | PSH, c.get(), options=options)
        c.silence()
    assert not node.sockets(c) and not node.pending(WEB)


@BOTH
def test_cookie_of_another_flow(node, client):
    c, other = client(), client()
    other.forge()
    c.isn, c.next, c.ack, c.ts_recent = other.isn, other.next, c.no_cookie(other.ack), other.ts_recent
    with node.counts(cookie_invalid=1):
        c.send(ACK | PSH, c.get())
        c.silence()


@BOTH
def test_request_of_another_nodes_flow(node, client):
    c = client(owner=2)
    c.forge()
    with node.counts(drop_not_mine=4):
        c.send(ACK)
        c.send(ACK | PSH, c.get())
        c.send(ACK | FIN)
        c.send(RST)
        c.silence()


@BOTH
def test_every_option_class_survives(node, client, family):
    """What a node without any memory knows of the client's options, told to another node."""
    for wscale in (None, 0, 7, 14):
        for mss in model.Options.STEPS[family]:
            c = client(offer=type(LINUX)("x", LINUX.block, model.Options(mss=mss, wscale=wscale, sack=mss > 1300,
                                                                         ts=True, ecn=bool(wscale))))
            c.forge()
            c.request(target=2)
            message = node.taken(2)
            assert (message.mss, message.snd_wscale) == (mss, wscale or 0)
            assert message.rcv_wscale == (0 if wscale is None else RCV_WSCALE)
            assert message.flags == (wscale is not None) | (mss > 1300) << 1 | 1 << 2 | bool(wscale) << 3
