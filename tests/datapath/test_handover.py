# SPDX-License-Identifier: GPL-2.0-or-later
"""Handover messages at the target: what builds a socket, what reaches one, and what is thrown away and why."""
import pytest

from earshotlab import wait_for
from packets import model, packet
from packets.client import LINUX, PLAIN, WINDOWS
from packets.families import BOTH, CLUSTERS
from packets.node import (CLUSTER, CRAMPED, CRAMPED_BLIND, DEAD, ESTABLISHED, HANDOVER_PORT, MSS, PEER_MAC, SERVICE_INDEX,
                          TIME_WAIT, VIP, WEB)
from packets.packet import ACK, FIN, PSH, RST, SYN

MASK = 0xFFFFFFFF
BUILT = dict(handover_received=1, handover_rebuilt=1)


@pytest.fixture
def given(node, client):
    """(client, text, its request as a packet): a flow that n2 inspects and gives to n1."""
    def make(service=WEB, offer=LINUX, **keywords):
        c = client(service, owner=2, offer=offer)
        c.forge()
        text = c.get()
        return c, text, c.ip_packet(ACK | PSH, text, **keywords)

    return make


def built(c, text):
    c.sent(text)
    assert c.read(len(text)) == text
    assert c.node.sockets(c) == [ESTABLISHED]


@BOTH
def test_largest_window_scales(node, given):
    c, text, original = given()
    with node.counts(**BUILT):
        node.message(c.handover(original, snd_wscale=14, rcv_wscale=14))
        built(c, text)


@BOTH
@CLUSTERS
@pytest.mark.parametrize("source", [2, 3])
@pytest.mark.parametrize("offer", [LINUX, WINDOWS, PLAIN], ids=lambda o: o.name)
def test_request(node, given, offer, source):
    """The whole connection is here from then on, with all that the handshake agreed on."""
    c, text, original = given(offer=offer)
    with node.counts(**BUILT):
        node.message(c.handover(original), source)
        built(c, text)
    node.no_message()
    first_ts = c.ts_recent
    segments = c.answer(bytes(3000))
    assert all(s.ack == c.next and set(s.options) == ({8} if c.offer.means.ts else set()) for s in segments)
    assert max(len(s.payload) for s in segments) == c.offer.means.kept_mss() - (12 if c.offer.means.ts else 0)
    assert not c.offer.means.ts or all((s.tsval - first_ts) & MASK < 1 << 23 for s in segments)
    with node.counts(deliver_established={1, 2}):
        c.request(text=b"next")
        assert c.read(4) == b"next"
    assert c.answer()[-1].ack == c.next


@BOTH
def test_options_are_the_messages(node, given):
    """The target has no other source for them: this client's window scale is the header's, not the cookie's."""
    c, text, original = given(offer=WINDOWS, window=40)
    with node.counts(**BUILT):
        node.message(c.handover(original, snd_wscale=3))
        built(c, text)
    c.server.setblocking(False)
    c.server.send(bytes(100000))

    def sent():
        node.public.fence()
        return max([(f.tcp.seq + len(f.tcp.payload) - c.ack) & MASK for f in node.public.inbox if c.mine(f)], default=0)

    def fills(end=1000 << 3):
        """Acknowledges what has come, with a window whose end stays: Linux 6.1 sends pieces of the old window's size."""
        got = sent()
        c.send(ACK, ack=(c.ack + got) & MASK, window=max(0, end - got) >> 3)
        return got > end - 1460

    assert sent() <= 40 << 3
    wait_for(fills, "what 8000 bytes of window allow")
    assert sent() <= 1000 << 3


def test_full_segment(node, client):
    """The largest packet that the SYN-ACK's MSS allows fits a message."""
    c = client(owner=2)
    c.forge()
    text = c.get(extra="X-Long: " + "x" * 1400)[:MSS - 12]
    original = c.ip_packet(ACK | PSH, text)
    assert len(original) + 20 + 8 + model.Handover.SIZE == 1500
    with node.counts(**BUILT):
        node.message(c.handover(original))
        built(c, text)


@BOTH
@CLUSTERS
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 64, 500])
def test_every_length_has_its_mac(node, client, size):
    c = client(owner=2)
    c.forge()
    with node.counts(**BUILT):
        node.message(c.handover(c.ip_packet(ACK | PSH, b"x" * size)))
        built(c, b"x" * size)


@BOTH
@CLUSTERS
def test_request_with_fin(node, client):
    c = client(owner=2)
    c.forge()
    text = c.get()
    with node.counts(**BUILT):
        node.message(c.handover(c.ip_packet(ACK | PSH | FIN, text)))
        assert c.read(len(text)) == text
        assert c.server.recv(1) == b""


@BOTH
def test_epoch_and_spare_fields_do_not_matter_without_membership(node, given):
    c, text, original = given()
    with node.counts(**BUILT):
        node.message(c.handover(original, epoch=99, attempt=2, requests=7, moves=3, pin=5, next_request_seq=c.next))
        built(c, text)


def test_second_key(node, given):
    """A sender that has rotated later or earlier than this node."""
    assert len(node.keys.handover) > 0
    node.earshot("keygen", "--stage", node.key_file)
    node.load_keys()
    node.reload()
    c, text, original = given()
    with node.counts(**BUILT):
        node.message(c.handover(original), key=node.keys.handover[1])
        built(c, text)
    for _ in range(2):  # the staged one becomes the only one
        node.earshot("keygen", "--rotate", node.key_file)
    node.load_keys()
    node.reload()


@CLUSTERS
class TestRefused:
    """Nothing is built, nothing goes out, and the counter says why."""

    def refused(self, node, given, counter, received=False, message=None, **fields):
        c, _, original = given()
        send = {k: fields.pop(k) for k in ("key", "length", "cut", "data", "dport", "sport", "source") if k in fields}
        counts = {counter: 1} if counter else {}
        if received:
            counts["handover_received"] = 1
        with node.counts(**counts):
            node.message(message(c, original) if message else c.handover(original, **fields), **send)
            c.silence()
        node.no_message()
        assert not node.sockets(c) and not node.pending(WEB)

    def test_wrong_mac(self, node, given):
        self.refused(node, given, "handover_bad_mac", mac=0x1234567890ABCDEF)

    def test_wrong_key(self, node, given):
        self.refused(node, given, "handover_bad_mac", key=node.keys.cookie[0])

    @pytest.mark.parametrize("at", [*range(5, 48), *range(56, 60), 76, 90, -1])
    def test_every_byte_is_covered(self, node, given, at):
        """A bit of the header or of the packet was changed on the way."""
        c, _, original = given()
        sequence = node.sequence = node.sequence + 1
        data = bytearray(c.handover(original, source=1, sequence=sequence).pack(node.keys.handover[0]))
        data[at] ^= 0x40
        counter = "handover_wrong_target" if at == 7 else "handover_malformed" if at in (24, 25) else "handover_bad_mac"
        with node.counts(**{counter: 1}):
            node.message(c.handover(original, sequence=sequence), data=bytes(data))
        assert not node.sockets(c)

    def test_magic(self, node, given):
        self.refused(node, given, "handover_malformed", magic=0x45534832)

    @pytest.mark.parametrize("version", [0, 1, 3, 255])
    def test_version(self, node, given, version):
        self.refused(node, given, "handover_malformed", version=version)

    @pytest.mark.parametrize("kind", [0, 4, 255])
    def test_kind(self, node, given, kind):
        self.refused(node, given, "handover_malformed", received=True, kind=kind)

    @pytest.mark.parametrize("target", [1, 2, 127, 255])
    def test_target(self, node, given, target):
        """Heard, but for another node: nothing is said about its contents."""
        self.refused(node, given, "handover_wrong_target", target=target)

    def test_unknown_source(self, node, given):
        """Beyond what the replay windows can tell apart."""
        self.refused(node, given, "handover_malformed", source=2,
                     message=lambda c, original: c.handover(original, source=200))

    @pytest.mark.parametrize("packet_len", [0, 1, 39, 40, 9999, 65535])
    def test_packet_length(self, node, given, packet_len):
        self.refused(node, given, "handover_malformed", packet_len=packet_len)

    @pytest.mark.parametrize("scale", [15, 16, 64, 255])
    @pytest.mark.parametrize("whose", ["snd_wscale", "rcv_wscale"])
    def test_window_scale(self, node, given, whose, scale):
        """No kernel shifts a window by more than 14 (RFC 7323, 2.3)."""
        self.refused(node, given, "handover_malformed", **{whose: scale})

    @pytest.mark.parametrize("length", [8, 63, 64, 70])
    def test_datagram_length(self, node, given, length):
        self.refused(node, given, "handover_malformed", length=length)

    @pytest.mark.parametrize("cut", [1, 40, 80])
    def test_truncated(self, node, given, cut):
        self.refused(node, given, "handover_malformed", cut=cut)

    @pytest.mark.parametrize("size", [0, 1, 4, 55, 56])
    def test_truncated_header(self, node, given, size):
        c, _, original = given()
        with node.counts(handover_malformed=1):
            node.message(c.handover(original), data=c.handover(original).pack(node.keys.handover[0])[:size])

    def test_from_a_wrong_port(self, node, given):
        """What comes to another port is no REQUEST, though it comes from the handover port as a NACK does."""
        self.refused(node, given, "handover_malformed", received=True, dport=5000, sport=HANDOVER_PORT)

    def test_fragmented(self, node, given, cluster_family):
        c, _, original = given()
        data = c.handover(original, source=1, sequence=node.sequence + 1).pack(node.keys.handover[0])
        # The connection tracking keeps it, for the rest.
        with node.counts(handover_partial=not node.netfilter):
            node.cluster.send(packet.datagram(node.cluster.node_mac, PEER_MAC[1], node.at[1], node.at[0], 40000, HANDOVER_PORT,
                                              data, **packet.first_part(cluster_family)))

    INNER = {
        "no-service": lambda c, o: c.handover(packet.ip(c.ip, VIP, packet.TCP, packet.tcp(
            c.ip, VIP, c.port, 99, seq=c.next, ack=c.ack, flags=ACK | PSH, payload=b"GET"))),
        "no-service-address": lambda c, o: c.handover(packet.ip(c.ip, CLUSTER[0], packet.TCP, packet.tcp(
            c.ip, CLUSTER[0], c.port, WEB, seq=c.next, ack=c.ack, flags=ACK | PSH, payload=b"GET"))),
        "udp": lambda c, o: c.handover(packet.ip(c.ip, VIP, packet.UDP, packet.udp(c.ip, VIP, 1, WEB, b"x" * 40))),
        "ip-options": lambda c, o: c.handover(packet.ip(c.ip, VIP, packet.TCP, o[20:], options=b"\1" * 4)),
        "fragment": lambda c, o: c.handover(packet.ip(c.ip, VIP, packet.TCP, o[20:], frag=0x2000)),
        "too-long": lambda c, o: c.handover(packet.ip(c.ip, VIP, packet.TCP, o[20:], total=len(o) + 1)),
        "too-short": lambda c, o: c.handover(packet.ip(c.ip, VIP, packet.TCP, o[20:], total=len(o) - 1)),
        "cut": lambda c, o: c.handover(o[:39]),
        "empty": lambda c, o: c.handover(b""),
        "doff": lambda c, o: c.handover(c.ip_packet(ACK | PSH, b"GET", options=b"", doff=3)),
        "ipv6": lambda c, o: c.handover(b"\x60" + o[1:]),
    }

    @pytest.mark.parametrize("name", INNER)
    def test_inner_packet(self, node, given, name):
        """Authentic messages whose packet cannot be one: a bug of the sender, but not ours to fall over."""
        counter = "handover_wrong_target" if name.startswith("no-service") else "handover_malformed"
        self.refused(node, given, counter, received=True, message=self.INNER[name])


class TestSecondRequest:
    """At most one socket is made from one request."""

    def test_while_it_lives(self, node, given):
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        with node.counts(handover_received=2, handover_duplicate=2):
            node.message(c.handover(original))
            node.message(c.handover(original), source=3)
            assert c.take("the stack's ACK").ack == c.next
        assert node.sockets(c) == [ESTABLISHED] and not node.pending(WEB)
        assert c.answer()

    def test_when_it_is_long_answered(self, node, given):
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        c.answer()
        c.request(text=b"another")
        c.read(7)
        with node.counts(handover_received=1, handover_duplicate=1):
            node.message(c.handover(original))
        assert node.sockets(c) == [ESTABLISHED] and not node.pending(WEB)

    @pytest.mark.parametrize("how", ["reset", "aborted", "time-wait", "closed"])
    def test_when_the_connection_is_over(self, node, given, how):
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        c.answer()
        if how == "reset":
            c.send(RST)
        elif how == "aborted":
            c.abort()
        elif how == "time-wait":
            c.time_wait()
        else:
            c.send(ACK | FIN)
            c.next = (c.next + 1) & MASK
            c.server.close()
            c.take_fin()
            c.send(ACK)
        wait_for(lambda: node.sockets(c) == ([TIME_WAIT] if how == "time-wait" else []), "the end of the connection")
        with node.counts(handover_received=1, handover_old=1):
            node.message(c.handover(original))
        assert node.sockets(c) == ([TIME_WAIT] if how == "time-wait" else []) and not node.pending(WEB)

    def test_next_connection_of_the_same_ports(self, node, given):
        """Another request, so another socket, right after the first one is gone."""
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        c.send(RST)
        c.server.close()
        c.server = None
        c.renew()
        c.forge()
        text = c.get()
        with node.counts(**BUILT):
            node.message(c.handover(c.ip_packet(ACK | PSH, text)))
            built(c, text)


class TestFollow:
    """Later segments of a first request."""

    def test_with_a_socket(self, node, given):
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        with node.counts(handover_received=2, handover_follow=2):
            for part in (b"one", b"two"):
                node.message(c.handover(c.ip_packet(ACK | PSH, part), model.FOLLOW))
                c.sent(part)
                assert c.read(3) == part
        assert c.answer()[-1].ack == c.next

    def test_heard_before(self, node, given):
        """The socket has it from the client itself: it does not tell that of what a node sends there for the second time."""
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        one, two = c.request(text=b"one"), c.ip_packet(ACK | PSH, b"two")
        assert c.read(3) == b"one" and c.answer()[-1].ack == c.next
        with node.counts(handover_received=1, handover_follow_heard=1):
            node.message(c.handover(one, model.FOLLOW))
        c.silence("the word that it has come twice")
        half = c.ip_packet(ACK | PSH, b"onetwo", seq=(c.next - 3) & MASK)
        with node.counts(handover_received=2, handover_follow=1, handover_follow_heard=1):
            node.message(c.handover(half, model.FOLLOW))
            assert c.read(3) == b"two"
            node.message(c.handover(two, model.FOLLOW))

    def test_beyond_the_window(self, node, given):
        """A new socket's is 64 KB: what lies behind comes back, for the sender knows more of that than the client. One of a version
        before does not, and the socket drops it."""
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        beyond = c.ip_packet(ACK | PSH, b"beyond", seq=(c.next + 70000) & MASK)
        with node.counts(handover_received=1, handover_follow_beyond=1):
            sent = c.handover(beyond, model.FOLLOW, request_flags=model.FOLLOW_F_BACK, attempt=2)
            node.message(sent)
            nack = node.taken(2, model.NACK)
        assert (nack.nack, nack.attempt, nack.packet) == (model.NACK_BEYOND, 2, beyond)
        with node.counts(handover_received=1, handover_follow=1):
            node.message(c.handover(beyond, model.FOLLOW))
        with node.counts(handover_received=1, handover_follow=1):
            node.message(c.handover(c.ip_packet(ACK | PSH, b"here"), model.FOLLOW, request_flags=model.FOLLOW_F_BACK))
            assert c.read(4) == b"here"

    def test_out_of_order(self, node, given):
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        with node.counts(handover_received=2, handover_follow=2):
            one, two = (c.ip_packet(ACK | PSH, part, seq=c.next + i) for i, part in ((0, b"one"), (3, b"two")))
            node.message(c.handover(two, model.FOLLOW))
            node.message(c.handover(one, model.FOLLOW))
            assert c.read(6) == b"onetwo"

    def test_without_a_socket(self, node, given):
        c, _, original = given()
        with node.counts(handover_received=1, handover_follow_lost=1):
            node.message(c.handover(original, model.FOLLOW))
            c.silence()
        node.no_message()
        assert not node.sockets(c)


class TestNack:
    """What cannot be served here goes back whole, so that the sender needs no memory of it."""

    def nack(self, node, sent, original, source=2):
        nack = node.taken(source, model.NACK)
        assert nack.packet == original
        assert nack.stream == model.STREAM_DATAPATH
        for name in ("epoch", "service", "attempt", "mss", "snd_wscale", "rcv_wscale", "flags", "requests", "moves", "pin",
                     "next_request_seq"):
            assert getattr(nack, name) == getattr(sent, name), name
        assert nack.ports == (HANDOVER_PORT, 40000)
        return nack

    @CLUSTERS
    @pytest.mark.parametrize("source", [2, 3])
    def test_no_listener(self, node, given, source):
        c, _, original = given(DEAD)
        sequences = []
        for _ in range(3):
            with node.counts(handover_received=1, handover_nacked=1):
                sent = node.message(c.handover(original, attempt=1, next_request_seq=77), source)
                nack = self.nack(node, sent, original, source)
                c.silence()
            assert nack.nack == model.NACK_NO_LISTENER
            sequences.append(nack.sequence)
        assert sequences == [sequences[0] + i for i in range(3)]
        assert SERVICE_INDEX[DEAD] == nack.service

    def test_nack_is_signed_with_the_current_key(self, node, given):
        c, _, original = given(DEAD)
        key = node.keys.handover[-1]
        sent = node.message(c.handover(original), key=key)
        nack = self.nack(node, sent, original)
        assert nack.mac == nack.sign(node.keys.handover[0])

    @BOTH
    @CLUSTERS
    def test_stale_time_wait(self, node, given):
        """It dies here, and the sender is asked to try the same node again."""
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        c.answer()
        c.time_wait()
        c.renew()
        c.forge()
        text = c.get()
        original = c.ip_packet(ACK | PSH, text)
        if not node.netfilter:  # whose SYN ends it: a connection is made at once
            with node.counts(handover_received=1, handover_time_wait=1):
                sent = node.message(c.handover(original))
                assert self.nack(node, sent, original).nack == model.NACK_RETRY
                c.silence()
            assert not node.sockets(c)
        with node.counts(**BUILT):
            node.message(c.handover(original, attempt=1))
            built(c, text)
        assert c.answer()

    def test_late_duplicate_of_an_older_connection(self, node, given):
        """It must not end the one that is here."""
        c, text, original = given()
        node.message(c.handover(original))
        built(c, text)
        first = c.next - len(text)
        c.answer()
        for back in (2, 100000, 1 << 30):
            old = c.ip_packet(ACK | PSH, c.get(), seq=first - back)
            with node.counts(handover_received=1, handover_old=1):
                node.message(c.handover(old))
                c.silence()
        node.no_message()
        assert node.sockets(c) == [ESTABLISHED]
        assert c.answer()

    def test_accept_queue_full(self, node, given):
        """Dropped without a word: the client's retransmission comes when there is room again."""
        held, held_text, original = given(CRAMPED)
        with node.counts(**BUILT):
            node.message(held.handover(original))
            wait_for(lambda: node.sockets(held), "a connection that nobody accepts")
        c, text, original = given(CRAMPED)
        with node.counts(handover_received=1, handover_accept_full=1):
            node.message(c.handover(original))
            c.silence()
        node.no_message()
        assert not node.sockets(c)
        assert held.read(len(held_text)) == held_text
        with node.counts(**BUILT):
            node.message(c.handover(original))
            built(c, text)


def test_accept_queue_full_at_layer_4(node, client):
    """The same where no message is involved."""
    held, c = client(CRAMPED_BLIND), client(CRAMPED_BLIND)
    held.shake().request()
    wait_for(lambda: node.sockets(held), "a connection that nobody accepts")
    c.shake()
    text = c.get()
    c.send(ACK | PSH, text)
    c.silence()
    assert not node.sockets(c)
    held.read(4)
    c.request(text=text)
    assert c.read(len(text)) == text


@BOTH
@pytest.mark.parametrize("flags", [SYN, RST, RST | ACK, SYN | ACK, FIN, 0])
def test_request_that_is_no_request(node, given, flags):
    """An authentic sender never sends one; if it does, the node must not fall over it."""
    c, _, _ = given()
    original = c.ip_packet(flags)
    with node.counts(handover_received=1, handover_rebuilt={0, 1}, rebuild_refused={0, 1}, handover_malformed={0, 1}):
        node.message(c.handover(original))
    assert not node.pending(WEB) and ESTABLISHED not in node.sockets(c)
    c.send(RST, options=b"")
    c, text, original = given()
    with node.counts(**BUILT):
        node.message(c.handover(original))
        built(c, text)


class TestNotMessages:
    """Other traffic on the private network is none of ours."""

    @CLUSTERS
    def test_udp_to_another_port(self, node, cluster_family):
        with node.counts():
            node.cluster.send(packet.datagram(node.cluster.node_mac, PEER_MAC[1], node.at[1], node.at[0], 4000, 5000, b"hello"))
            assert node.cluster.take(lambda f: f.icmp).icmp.code == (3 if cluster_family == 4 else 4)

    def test_echo(self, node):
        with node.counts():
            node.cluster.send(packet.eth(node.cluster.node_mac, PEER_MAC[1], packet.ETH_IP, packet.ip(
                CLUSTER[1], CLUSTER[0], packet.ICMP, packet.icmp(8, 0, b"\0\1\0\1", b"ping"))))
            assert node.cluster.take(lambda f: f.icmp).icmp.kind == 0

    @CLUSTERS
    def test_message_to_another_address(self, node, given, cluster_family):
        """A switch that floods: not looked at, or the windows of sequences would mix."""
        c, _, original = given()
        data = c.handover(original, source=1, sequence=node.sequence + 1).pack(node.keys.handover[0])
        with node.counts():
            node.cluster.send(packet.datagram(node.cluster.node_mac, PEER_MAC[1], node.at[1],
                                              "10.78.0.9" if cluster_family == 4 else "2001:db8:78::9", 40000, HANDOVER_PORT, data))
