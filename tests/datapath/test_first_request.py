# SPDX-License-Identifier: GPL-2.0-or-later
"""First requests: a socket is rebuilt from one where it belongs, exactly once, or the request goes elsewhere whole."""
import struct

import pytest

from earshotlab import wait_for
from packets import model
from packets.client import LINUX, PLAIN, WINDOWS, Offer
from packets.families import BOTH
from packets.node import BLIND, ESTABLISHED, HANDOVER_PORT, MSS, RCV_WSCALE, SERVICE_INDEX, TURNS, WEB
from packets.packet import ACK, AE, CWR, ECE, FIN, NOP, PSH, opt_mss, opt_wscale

MASK = 0xFFFFFFFF
ECN = Offer("ecn", LINUX.block, model.Options(mss=1460, wscale=7, sack=True, ts=True, ecn=True), ECE | CWR)
WSCALE_0 = Offer("wscale-0", lambda ts: opt_mss(1460) + NOP + opt_wscale(0), model.Options(mss=1460, wscale=0))
WSCALE_14 = Offer("wscale-14", lambda ts: opt_mss(1460) + NOP + opt_wscale(14), model.Options(mss=1460, wscale=14))
SMALL_MSS = Offer("mss-536", lambda ts: opt_mss(536), model.Options(mss=536))

# What a request that this node serves itself counts; through the inspector and at layer 4.
KEPT = dict(request_queued=1, inspect_requests=1, inspect_kept=1, handover_received=1, handover_rebuilt=1)
SOME = range(1, 20)

# A rebuilt socket's timestamps go on from the SYN-ACK's, perhaps from a point ahead, never from one behind; far below
# where the client would take it for the past (RFC 7323 section 5.2).
AHEAD = 1 << 23


def check_reply(c, segments):
    """Sequence numbers were checked on the way; the rest of what a rebuilt connection must keep."""
    means = c.offer.means
    for before, segment in zip([None, *segments], segments):
        assert segment.ack == c.next
        assert segment.flags & ACK
        assert set(segment.options) == ({8} if means.ts else set())
        assert len(segment.payload) <= means.kept_mss() - (12 if means.ts else 0)
        if means.ts:
            assert (segment.tsval - c.first_ts) & MASK < AHEAD
            assert not before or (segment.tsval - before.tsval) & MASK < 60000
        shift = RCV_WSCALE if means.wscale is not None else 0
        assert 10000 < segment.window << shift <= 1 << 21


@BOTH
@pytest.mark.parametrize("service", [WEB, BLIND], ids=["inspected", "layer-4"])
@pytest.mark.parametrize("offer", [LINUX, WINDOWS, PLAIN, ECN, WSCALE_0, WSCALE_14, SMALL_MSS], ids=lambda o: o.name)
def test_rebuilt(node, client, offer, service):
    c = client(service, offer=offer)
    c.shake()
    c.first_ts = c.ts_recent
    text = c.get()
    with node.counts(**(KEPT if service == WEB else dict(request_blind=1))):
        c.request(text=text)
        assert c.read(len(text)) == text
    assert node.sockets(c) == [ESTABLISHED]
    body = bytes(range(256)) * 16
    with node.counts(deliver_established=SOME):
        segments = c.answer(body)
        check_reply(c, segments)
        if offer.means.ts:
            c.send(ACK | PSH, b"x", window=500)  # the last echo is of what came last
            c.next = (c.next + 1) & MASK
            sent = c.tsval
            assert c.read(1) == b"x"
            assert c.answer(b"y")[0].tsecr == sent


@pytest.mark.parametrize("offer, field, limit", [(LINUX, 40, 40 << 7), (WSCALE_14, 1, 1 << 14), (WSCALE_0, 5000, 5000),
                                                 (PLAIN, 5000, 5000)], ids=lambda p: getattr(p, "name", ""))


@BOTH
def test_client_window_is_scaled(node, client, offer, field, limit):
    """The server sends what the window allows, scaled as the handshake said, and then waits."""
    c = client(offer=offer)
    c.shake()
    c.window = field
    c.request()
    c.read(4)
    c.server.setblocking(False)
    c.server.send(bytes(100000))
    mss = offer.means.kept_mss() - (12 if offer.means.ts else 0)
    most = min(limit, 10 * mss)

    def sent():
        node.public.fence()
        return max([(f.tcp.seq + len(f.tcp.payload) - c.ack) & MASK for f in node.public.inbox
                    if c.mine(f) and f.tcp.payload], default=0)

    wait_for(lambda: sent() > most - mss, "a window full")
    assert sent() <= most


@BOTH
def test_request_and_fin_in_one(node, client):
    c = client()
    c.shake()
    text = c.get()
    c.request(text=text, flags=FIN)
    assert c.read(len(text)) == text
    assert c.server.recv(1) == b""
    segments = c.answer(b"reply")
    assert segments[-1].ack == (c.isn + 1 + len(text) + 1) & MASK
    c.server.close()
    c.take_fin()
    c.send(ACK)
    wait_for(lambda: not node.sockets(c), "the socket's end")


@BOTH
@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0), (1, 2, 0)], ids=str)
@pytest.mark.parametrize("target", [1, 2])
def test_in_three_segments(node, client, target, order):
    c = client()
    c.shake()
    text = c.get(target, extra="X-Long: " + "x" * 100 + "\r\n")
    cuts = [0, 30, 70, len(text)]
    counts = dict(request_queued=1, request_later_queued=2, inspect_requests=1, inspect_gathered=1, inspect_followed=2)
    if target == 1:
        counts |= dict(inspect_kept=1, handover_received=3, handover_rebuilt=1, handover_follow=2)
    else:
        counts |= dict(inspect_handovers=1)
    with node.counts(**counts):
        # Made in one order, with rising timestamps, and on the way in another.
        frames = [c.frame(ACK | PSH, text[cuts[i]:cuts[i + 1]], seq=c.next + cuts[i]) for i in range(3)]
        for i in order:
            node.public.send(frames[i])
        if target == 1:
            assert c.read(len(text)) == text
        else:
            messages = [node.taken(2) for _ in range(3)]
            assert [m.packet for m in messages] == [frame[14:] for frame in frames]
            assert [m.kind for m in messages] == [model.REQUEST, model.FOLLOW, model.FOLLOW]
    if target == 1:
        c.sent(text)
        assert c.answer()[-1].ack == c.next
        assert node.sockets(c) == [ESTABLISHED]
    else:
        c.silence()


@BOTH
def test_first_segment_lost(node, client):
    """It comes again, later than the second one and with a later timestamp: the socket wants the second one again."""
    c = client()
    c.shake()
    text = c.get(extra="X-Long: " + "x" * 100 + "\r\n")
    c.send(ACK | PSH, text[50:], seq=c.next + 50)
    c.send(ACK | PSH, text[:50])
    c.accept()
    c.send(ACK | PSH, text[50:], seq=c.next + 50)
    assert c.read(len(text)) == text


@BOTH
def test_segments_behind_a_decision(node, client):
    """Within the race window they follow the request; later ones are the target's business alone."""
    c = client()
    c.shake()
    c.request(target=2)
    assert node.taken(2).kind == model.REQUEST
    before = node.counters()
    body = c.send(ACK | PSH, b"body")
    assert wait_for(lambda: node.counters()["inspect_followed"] > before["inspect_followed"] or
                    node.counters()["drop_decided"] > before["drop_decided"], "the body's fate")
    if node.counters()["drop_decided"] == before["drop_decided"]:
        follow = node.taken(2)
        assert (follow.kind, follow.packet) == (model.FOLLOW, body)

    def decided():
        c.send(ACK | PSH, b"body")
        return node.counters()["drop_decided"] > before["drop_decided"]

    wait_for(decided, "the end of the race window")
    c.silence()


def test_segments_behind_what_the_client_has_heard(own_node, client):
    """Its acknowledgement by the new socket, which hears the rest itself: the inspector sends none of that. The clock of the new socket's
    timestamps says so (tcp.h); without them, it is told by more than fits into any window before."""
    node = own_node(race_window_ms=5000)
    for offer in (LINUX, WINDOWS):
        c = client(at=node, offer=offer)
        c.shake()
        c.request(target=2)
        assert node.taken(2).kind == model.REQUEST
        with node.counts(request_later_queued=1, inspect_followed=1):
            body = c.request(text=b"unheard")
            follow = node.taken(2)
        assert (follow.kind, follow.packet) == (model.FOLLOW, body)
        if offer.means.ts:
            c.ts_recent = (c.ts_recent + (1 << 22)) & MASK
        else:
            c.next = (c.next + 65535) & MASK
        with node.counts(drop_decided=1):
            c.request(text=b"heard")
        node.no_message()
        c.silence()


def queued(offer, segments):
    """What is counted of a request of so many segments. Without timestamps each later one looks like a first one to the datapath by
    a chance of 1 in 2,048 (cookie.h); the inspector knows better."""
    like_a_first = (0,) if offer.means.ts else (0, 1, 2)
    return {"request_queued": {1 + count for count in like_a_first},
            "request_later_queued": {segments - 1 - count for count in like_a_first}}


@BOTH
@pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda o: o.name)
def test_longer_than_a_client_sends_unheard(node, client, offer):
    """After its ten first segments it is told that they have arrived, behind a gap: it sends on and forgets nothing. The
    server gets the whole of it."""
    c = client(offer=offer)
    c.shake()
    size = 1300
    text = c.get(extra="".join(f"A{i}: {'x' * 1000}\r\n" for i in range(20)))
    parts = [text[i:i + size] for i in range(0, len(text), size)]
    with node.counts(**queued(offer, len(parts)), inspect_gathered=1, inspect_gather_asked=1, inspect_requests=1, inspect_kept=1,
                     inspect_followed=len(parts) - 1, handover_received=len(parts), handover_rebuilt=1,
                     handover_follow=len(parts) - 1):
        for n, part in enumerate(parts):
            c.request(text=part)
            if n < 9 or n == len(parts) - 1:
                continue
            asked = c.take("the question for more")
            first = (c.isn + 1) & MASK
            assert (asked.flags, asked.seq, asked.ack, asked.payload) == (ACK, c.ack, first, b"")
            assert asked.options[5] == struct.pack(">II", (first + size) & MASK, c.next)
            assert len(text) < asked.window << RCV_WSCALE <= 65535
        assert c.read(len(text)) == text
    assert node.sockets(c) == [ESTABLISHED]


def test_longer_than_a_client_sends_unheard_at_all(node, client):
    """It does not understand that it should send more: what there is decides, and it is counted."""
    c = client(offer=PLAIN)
    c.shake()
    text = c.get(extra="".join(f"A{i}: {'x' * 1000}\r\n" for i in range(20)))
    with node.counts(**queued(PLAIN, 10), inspect_gathered=1, inspect_gather_timeout=1, inspect_gather_full=1, inspect_requests=1,
                     inspect_ambiguous=1, inspect_kept=1, inspect_followed=9, handover_received=10, handover_rebuilt=1,
                     handover_follow=9):
        for n in range(10):
            c.request(text=text[n * 1300:(n + 1) * 1300])
        assert c.read(13000) == text[:13000]


@pytest.mark.parametrize("headers, size, said", [(300, 10, "300 headers: rules and plugins see the first 256"),
                                                 (20, 800, "only the first ten segments decide"), (10, 10, None)])
def test_explain_tells_of_long_heads(node, headers, size, said):
    arguments = [f"--header=A{n}: {'x' * size}" for n in range(headers - 1)] + ["--header=Host: x"]
    told = node.earshot("explain", f"--service=s{WEB}", *arguments, "/").stdout
    assert said in told if said else "segments" not in told and "headers" not in told


def test_not_complete_in_time(node, client):
    """What is there decides."""
    c = client()
    c.shake()
    part = b"GET / HTTP/1.1\r\nHost:"
    with node.counts(request_queued=1, inspect_gathered=1, inspect_gather_timeout=1, inspect_requests=1, inspect_ambiguous=1,
                     inspect_kept={0, 1}, inspect_handovers={0, 1}, handover_received={0, 1}, handover_rebuilt={0, 1}):
        c.request(text=part)
        if node.ring.content("/") == 0:
            assert c.read(len(part)) == part
        else:
            assert node.taken(node.ring.content("/") + 1).packet[-len(part):] == part


@pytest.mark.parametrize("text, counter", [(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", "inspect_tls"),
                                           (b"SSH-2.0-test\r\n", "inspect_not_http"),
                                           (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "inspect_http2")],
                         ids=["tls", "ssh", "http2"])


def test_not_http(node, client, text, counter):
    """The ring decides: this node."""
    c = client()
    c.shake()
    with node.counts(**{counter: {0, 1}}, inspect_gathered={0, 1}, inspect_gather_timeout={0, 1}, **KEPT):
        c.request(text=text)
        assert c.read(len(text)) == text


@BOTH
@pytest.mark.parametrize("target", [2, 3])
def test_handed_over(node, client, target):
    """One message with the client's packet, bytes unchanged; the client hears nothing from here."""
    c = client()
    c.shake()
    with node.counts(request_queued=1, inspect_requests=1, inspect_handovers=1):
        sent = c.request(target=target)
        message = node.taken(target)
        assert message.packet == sent
        c.silence()
        node.no_message()
    expected = c.handover(sent)
    assert (message.kind, message.service, message.attempt, message.nack) == (model.REQUEST, SERVICE_INDEX[WEB], 0, 0)
    for name in ("mss", "snd_wscale", "rcv_wscale", "flags", "epoch", "stream", "requests",
                 "next_request_seq"):
        if name != "epoch":
            assert getattr(message, name) == getattr(expected, name), name
    assert message.ports[1] == HANDOVER_PORT
    assert not node.sockets(c)


@BOTH
def test_repeated_request_goes_to_the_same_node(node, client):
    """Though the policy would take the next one."""
    c = client(TURNS)
    c.shake()
    text = c.get()
    before = node.counters()
    c.send(ACK | PSH, text)
    wait_for(lambda: node.counters()["inspect_requests"] > before["inspect_requests"], "the decision")
    while node.counters()["inspect_kept"] > before["inspect_kept"]:  # it was this node's turn
        before = node.counters()
        c = client(TURNS)
        c.shake()
        text = c.get()
        c.send(ACK | PSH, text)
        wait_for(lambda: node.counters()["inspect_requests"] > before["inspect_requests"], "the decision")
    first = model.Handover.parse(node.cluster.take(lambda f: f.udp).udp.payload)
    with node.counts(request_queued=5, inspect_repeated=5):
        for i in range(5):
            repeated = c.send(ACK | PSH, text)
            message = node.taken(first.target + 1)
            assert (message.packet, message.kind, message.sequence) == (repeated, model.REQUEST, first.sequence + i + 1)
    node.no_message()
    node.pending(TURNS)


@BOTH
def test_repeated_request_finds_its_socket(node, client):
    c = client()
    c.shake()
    text = c.get()
    c.request(text=text)
    assert c.read(len(text)) == text
    with node.counts(deliver_established=3):
        for _ in range(3):
            c.send(ACK | PSH, text, seq=c.isn + 1)
        assert c.take("the stack's ACK").ack == c.next
    assert not node.pending(WEB)
    assert node.sockets(c) == [ESTABLISHED]
    assert c.answer()


@BOTH
def test_later_request_of_a_flow_that_was_given_away(node, client):
    """The inspecting node hears it too, and must not make a second socket from it."""
    c = client()
    c.shake()
    c.request(target=2)
    node.taken(2)
    c.ack = c.no_cookie(c.ack + 500)  # the reply came from n2
    with node.counts(cookie_invalid=1, drop_no_flow=1):
        c.request(target=1)
        c.send(ACK)
        c.silence()
    node.no_message()
    assert not node.sockets(c) and not node.pending(WEB)


@BOTH
@pytest.mark.parametrize("service", [WEB, BLIND], ids=["inspected", "layer-4"])
def test_bad_checksum(node, client, service):
    """Never served; and the client's retransmission, which is whole, is served at once."""
    c = client(service)
    c.shake()
    text = c.get()
    bad = dict(request_queued=1, inspect_bad_checksum=1) if service == WEB else dict(request_blind=1)
    with node.counts(**bad):
        c.send(ACK | PSH, text, check=0x1234)
        c.silence()
    assert not node.sockets(c) and not node.pending(service)
    c.request(text=text)
    wait_for(lambda: node.sockets(c), "the connection", timeout=2)
    assert c.read(len(text)) == text


@BOTH
@pytest.mark.parametrize("length", [1, 2, 95, 96, 97, 127, 128, 129, 1001, 1368])
def test_checksum_of_any_length(node, client, length):
    """Nobody has checked it before the datapath, of a layer-4 service, does."""
    c = client(BLIND)
    c.shake()
    text = bytes(range(1, 256)) * 6
    with node.counts(request_blind=1):
        c.request(text=text[:length])
        assert c.read(length) == text[:length]


@BOTH
def test_checksum_left_to_hardware(node, client):
    c = client()
    c.shake()
    text = c.get(2)
    with node.counts(request_queued=1, inspect_requests=1, inspect_handovers=1):
        options = c.options()
        node.public.send_partial(c.frame(ACK | PSH, text, check="partial", options=options))
        assert node.taken(2).packet == c.ip_packet(ACK | PSH, text, options=options)  # with its checksum filled in
    c = client()
    c.shake()
    text = c.get(1)
    node.public.send_partial(c.frame(ACK | PSH, text, check="partial"))
    assert c.read(len(text)) == text


@BOTH
@pytest.mark.parametrize("target", [1, 2])
def test_merged_segments(node, client, target):
    """As a virtual link or the card's receive offload brings them: cut again into what fits a message."""
    c = client()
    more = 20 if c.family == 6 else 0  # bytes that its header is longer
    c.shake()
    text = c.get(target, extra="X-Long: " + "x" * 3000 + "\r\n")
    node.public.send_partial(c.frame(ACK | PSH, text, check="partial"), gso_size=MSS - 12 - more)
    c.sent(text)
    if target == 1:
        assert c.read(len(text)) == text
        assert c.answer()[-1].ack == c.next
        return
    messages = [node.taken(2) for _ in range(3)]
    assert [m.kind for m in messages] == [model.REQUEST, model.FOLLOW, model.FOLLOW]
    assert [len(m.packet) for m in messages[:2]] == [MSS - 12 + 52] * 2
    assert b"".join(m.packet[52 + more:] for m in messages) == text


def test_layer_4_knows_no_later_segments(node, client):
    c = client(BLIND)
    c.shake()
    with node.counts(drop_no_flow=1):
        c.send(ACK | PSH, b"second", seq=c.next + 100)
        c.silence()


def test_urgent_and_ecn_bits_do_no_harm(node, client):
    c = client()
    c.shake()
    text = c.get()
    with node.counts(**KEPT):
        c.send(ACK | PSH | CWR, text)
        assert c.read(len(text)) == text


@BOTH
@pytest.mark.parametrize("checksum", [None, "partial"], ids=["", "checksum-left-to-hardware"])
@pytest.mark.parametrize("bits", [CWR, CWR | ECE, AE, AE | CWR | ECE], ids=["cwr", "cwr-ece", "ae", "all"])
@pytest.mark.parametrize("first", ["request", "request-uninspected", "handshake", "fin"])
def test_first_segment_does_not_change_what_ecn_means(node, client, first, bits, checksum):
    """The handshake has agreed on RFC 3168's. The kernel takes these bits of the packet that makes a socket for accurate ECN's (from
    6.18 on), and what it says by those means congestion to the client, with each segment."""
    c = client(BLIND if first in ("request-uninspected", "handshake") else WEB, offer=ECN).shake(ack=False)
    text = c.get()

    def send(flags, payload=b""):
        frame = c.frame(ACK | flags, payload, check=checksum)
        (node.public.send_partial if checksum else node.public.send)(frame)
        c.sent(payload, flags)

    if first == "fin":
        send(FIN | bits)
        c.accept()
    elif first == "handshake":
        send(bits)
        c.accept()
        send(PSH, text)
    else:
        send(PSH | bits, text)
    if first != "fin":
        assert c.read(len(text)) == text
    for _ in range(3):
        assert not any(segment.flags & ECE for segment in c.answer(bytes(3000)))
    c.abort()
    node.public.all(c.mine)


def test_second_key(node, client):
    """Rotation: the new key signs, the old one's handshakes are good still; other keys' are not."""
    old = node.keys
    node.earshot("keygen", "--stage", node.key_file)
    node.load_keys()
    staged = node.keys
    node.reload()
    assert staged.cookie[0] == old.cookie[0]
    early = client()
    node.public.send(early.syn_frame())
    early.take_synack()  # under the old key
    foreseen = client()
    foreseen.forge(key=staged.cookie[1])
    foreseen.request()
    foreseen.read(4)
    node.earshot("keygen", "--rotate", node.key_file)
    node.load_keys()
    node.reload()
    assert node.keys.cookie == staged.cookie[::-1] and node.keys.ring == old.ring
    with node.counts(**KEPT):
        early.request()
        early.read(4)
    late = client().shake()  # under the new key
    with node.counts(request_queued=1, inspect_requests=1, inspect_handovers=1):
        late.request(target=3)
        message = node.taken(3)
        assert message.sign(node.keys.handover[0]) == message.mac
    node.earshot("keygen", "--rotate", node.key_file)
    node.load_keys()
    node.reload()
    gone = client()
    gone.forge(key=old.cookie[0])
    gone.ack = gone.no_cookie(gone.ack)
    with node.counts(cookie_invalid=1):
        gone.request()
        gone.silence()
