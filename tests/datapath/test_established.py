# SPDX-License-Identifier: GPL-2.0-or-later
"""A connection whose socket is here belongs to the stack, whoever inspects its flow."""
import struct

import pytest

from earshotlab import wait_for
from packets import packet
from packets.client import LINUX
from packets.established import OWNERS, served
from packets.node import ESTABLISHED, FIN_WAIT2, GATEWAY_MAC, MSS, TIME_WAIT, VIP, WEB, WINDOW
from packets.packet import ACK, FIN, NOP, PSH, RST, SYN, opt_ts

MASK = 0xFFFFFFFF


@OWNERS
def test_delivered(node, client, owner):
    c = served(node, client, owner)
    c.answer()
    with node.counts(deliver_established=3):
        for i in range(3):
            c.request(text=b"request %d" % i)
            assert c.read(9) == b"request %d" % i
    assert c.answer()[-1].ack == c.next


@OWNERS
def test_syn(node, client, owner):
    """To the stack, which challenges it: so TCP gets rid of half-dead peers (RFC 5961 section 4)."""
    c = served(node, client, owner)
    c.answer()
    with node.counts(deliver_syn_established=1):
        c.send(SYN, seq=c.next + 70000, options=LINUX.block(c.tsval + 9))
        challenge = c.take("the challenge ACK")
        assert (challenge.flags, challenge.ack, challenge.seq) == (ACK, c.next, c.ack)
    c.silence("no SYN-ACK")
    assert node.sockets(c) == [ESTABLISHED]
    with node.counts(deliver_established=1):
        c.send(RST, seq=challenge.ack, options=b"")
    assert not node.sockets(c)
    with node.counts(**{"syn_answered" if owner == 1 else "drop_not_mine": 1}):
        c.server.close()
        c.renew()
        node.public.send(c.syn_frame())
        if owner == 1:
            c.take_synack()


@OWNERS
def test_reset(node, client, owner):
    c = served(node, client, owner)
    with node.counts(deliver_established=1):
        c.send(RST)
    assert not node.sockets(c)
    with pytest.raises(ConnectionResetError):
        c.server.recv(1)


@OWNERS
def test_client_closes(node, client, owner):
    c = served(node, client, owner)
    c.answer()
    with node.counts(deliver_established=2):
        c.send(ACK | FIN)
        c.next = (c.next + 1) & MASK
        assert c.server.recv(1) == b""
        c.server.close()
        c.take_fin()
        c.send(ACK)
    wait_for(lambda: not node.sockets(c), "the socket's end")


@OWNERS
def test_server_closes(node, client, owner):
    """FIN_WAIT2 is a TIME_WAIT socket to the kernel, and a connection to us: data, FIN and RST go to the stack."""
    c = served(node, client, owner)
    c.answer()
    c.server.close()
    c.take_fin()
    with node.counts(deliver_established=1):
        c.send(ACK)
    assert set(node.sockets(c)) <= {FIN_WAIT2, TIME_WAIT}
    with node.counts(deliver_established=1):
        c.send(ACK | FIN)
        c.next = (c.next + 1) & MASK
        assert c.take("the last ACK").ack == c.next
    assert node.sockets(c) == [TIME_WAIT]


def test_data_in_fin_wait2(node, client):
    """Nobody reads it any more: the stack resets."""
    c = client().serve()
    c.server.close()
    c.take_fin()
    c.send(ACK)
    with node.counts(deliver_established=1):
        c.send(ACK | PSH, b"more")
        assert c.take("the RST").flags & RST
    assert not node.sockets(c)


def test_impossible_flags_are_the_stacks_business(node, client):
    c = client().serve()
    # What the connection tracking takes for invalid, is not of this connection to the netfilter datapath.
    with node.counts(deliver_established=3, drop_no_flow=range(4 * node.netfilter) or 0):
        c.send(0)
        c.send(FIN | PSH)
        c.send(SYN | FIN | ACK)
    c.answer()


@OWNERS
def test_bad_checksum(node, client, owner):
    """The stack checks it."""
    c = served(node, client, owner)
    c.answer()
    with node.counts(deliver_established=1):
        c.send(ACK | PSH, b"damaged", check=1)
        c.silence()
    c.request(text=b"sound")
    assert c.read(5) == b"sound"


def test_old_timestamp(node, client):
    """PAWS works in the rebuilt socket (RFC 7323 section 5)."""
    c = client().serve()
    c.answer()
    c.send(ACK | PSH, b"from the past", options=NOP * 2 + opt_ts(c.tsval - 1000, c.ts_recent))
    duplicate = c.take("the duplicate ACK")
    assert (duplicate.ack, duplicate.flags) == (c.next, ACK)
    c.request(text=b"now")
    assert c.read(3) == b"now"


def test_out_of_order_and_sack(node, client):
    c = client().serve()
    c.answer()
    c.send(ACK | PSH, b"second", seq=c.next + 5)
    gap = c.take("the duplicate ACK")
    assert gap.ack == c.next
    assert gap.options[5] == struct.pack(">II", (c.next + 5) & MASK, (c.next + 11) & MASK)
    c.send(ACK | PSH, b"first")
    assert c.read(11) == b"firstsecond"


def test_retransmits_what_is_lost(node, client):
    c = client().serve()
    reply = b"reply" * 100
    first = c.answer(reply, acknowledge=False)
    again = c.take("the retransmission")
    assert (again.seq, again.payload) == (first[-1].seq, first[-1].payload)
    c.send(ACK)


def test_window_opens_as_the_stack_says(node, client):
    """More than the SYN-ACK promised can be sent, once the socket says so."""
    c = client().serve()
    window = c.answer()[-1].window << 10
    assert window >= WINDOW
    data = bytes(MSS)
    for _ in range(min(window, 60000) // MSS):
        c.request(text=data)
    assert c.read(min(window, 60000) // MSS * MSS)


def icmp_error(node, c, kind, code, rest, segment):
    """An ICMP error of a router, about a packet from the service to the client."""
    inner = packet.ip(VIP, c.ip, packet.TCP, packet.tcp(VIP, c.ip, WEB, c.port, seq=segment.seq, ack=segment.ack,
                                                       flags=ACK))[:28]
    node.public.send(packet.eth(node.cluster_mac, GATEWAY_MAC, packet.ETH_IP, packet.ip(
        "192.0.2.1", VIP, packet.ICMP, packet.icmp(kind, code, rest, inner))))


@OWNERS
def test_path_mtu(node, client, owner):
    """An ICMP error goes to all stacks; the one whose connection it is about sends smaller segments."""
    # From where no other test's client comes: the kernel remembers it for ten minutes.
    c = served(node, client, owner, place=node.place(WEB, owner, "203.0.113"))
    big = c.answer(bytes(1400), acknowledge=False)
    assert len(big[0].payload) == 1400
    with node.counts(icmp_error=1):
        icmp_error(node, c, 3, 4, struct.pack(">HH", 0, 1000), big[0])
    again = c.take("a smaller segment")
    assert (again.seq, len(again.payload)) == (big[0].seq, 1000 - 52)
    c.send(ACK)


def test_icmp_errors_of_no_connection(node, client):
    """Every node gets them, whoever the client is."""
    for owner in (1, 2):
        c = client(owner=owner)
        c.forge()
        with node.counts(icmp_error=3):
            for kind, code in ((3, 1), (11, 0), (12, 0)):
                icmp_error(node, c, kind, code, bytes(4), type("S", (), {"seq": 1, "ack": 2}))
            c.silence()
