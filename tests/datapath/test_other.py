# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything else to the service address: exactly one node takes it, chosen by the client's address."""
import struct

import pytest

from packets import packet
from packets.client import LINUX
from packets.node import PUBLIC, VIP, WEB
from packets.other import BROADCAST, CLIENTS, REQUESTER_MAC, mine_and_others, to_vip, who_has
from packets.packet import ACK, FIN, PSH, RST, SYN


def test_arp_is_answered_by_the_rings_node(node):
    mine, others = mine_and_others(node)
    with node.counts(arp_answered=len(mine), arp_not_mine=len(others)):
        for address in CLIENTS:
            node.public.send(who_has(VIP, address))
        answers = node.public.all(lambda f: f.arp)
    assert [f.arp.target_ip for f in answers] == [a for a in CLIENTS if a in mine]
    for f in answers:
        expected = packet.eth(REQUESTER_MAC, node.mac, packet.ETH_ARP, packet.arp(
            2, node.cluster_mac, VIP, REQUESTER_MAC, f.arp.target_ip))
        assert f.bytes[:42] == expected


@pytest.mark.parametrize("dst", ["unicast", "cluster"])
def test_arp_refresh(node, dst):
    """A client that asks again asks whom it knows (RFC 1122 section 2.3.2.1)."""
    mine, _ = mine_and_others(node)
    with node.counts(arp_answered=1):
        node.public.send(who_has(VIP, mine[0], dst=node.mac if dst == "unicast" else node.cluster_mac))
        assert node.public.take(lambda f: f.arp).arp.sender_mac == node.cluster_mac


def test_arp_of_another_node(node):
    """A peer that announces or asks is not answered with a second MAC for anything."""
    with node.counts(arp_answered={0, 1}, arp_not_mine={0, 1}):
        node.public.send(who_has(VIP, "0.0.0.0"))  # is the address in use? (RFC 5227)
    node.public.clear()
    with node.counts():
        node.public.send(who_has("10.77.0.2", CLIENTS[0]))
        node.public.send(who_has(VIP, CLIENTS[0], operation=2))
        node.public.send(packet.eth(BROADCAST, REQUESTER_MAC, packet.ETH_ARP, b"\0\1\x08\0\6\4\0\1"))
        node.public.nothing(lambda f: f.arp, "no answer")


def test_arp_for_the_nodes_own_address(node):
    """The stack's, with the node's own MAC."""
    with node.counts():
        node.public.send(who_has(PUBLIC, "10.77.0.77"))
        answer = node.public.take(lambda f: f.arp).arp
    assert (answer.sender_mac, answer.sender_ip) == (node.mac, PUBLIC)


def test_echo(node):
    mine, others = mine_and_others(node)
    with node.counts(icmp_echo_mine=len(mine), other_not_mine=len(others)):
        for address in CLIENTS:
            to_vip(node, address, packet.ICMP, packet.icmp(8, 0, b"\0\1\0\2", b"are you there"))
        replies = node.public.all(lambda f: f.icmp)
    assert [f.ip.dst for f in replies] == mine
    for f in replies:
        assert (f.ip.src, f.icmp.kind, f.icmp.rest, f.icmp.payload) == (VIP, 0, b"\0\1\0\2", b"are you there")


def test_udp_without_a_server(node):
    """As a traceroute does: one "port unreachable", not N."""
    mine, others = mine_and_others(node)
    mine, others = mine[:10], others[:10]
    with node.counts(other_mine=len(mine), other_not_mine=len(others)):
        for address in mine + others:
            to_vip(node, address, packet.UDP, packet.udp(address, VIP, 33000, 33434, b"probe"))
        replies = node.public.all(lambda f: f.icmp)
    assert [f.ip.dst for f in replies] == mine
    assert {(f.icmp.kind, f.icmp.code) for f in replies} == {(3, 3)}


def test_udp_to_the_services_port(node):
    """The service is TCP."""
    mine, _ = mine_and_others(node)
    with node.counts(other_mine=1):
        to_vip(node, mine[0], packet.UDP, packet.udp(mine[0], VIP, 33000, WEB, b"quic?"))
        assert node.public.take(lambda f: f.icmp).icmp.code == 3


@pytest.mark.parametrize("flags", [SYN, ACK, ACK | FIN, ACK | PSH])
def test_tcp_to_another_port(node, flags):
    """One node's stack answers, with a RST since nobody listens."""
    mine, others = mine_and_others(node)
    mine, others = mine[:10], others[:10]
    with node.counts(other_mine=len(mine), other_not_mine=len(others)):
        for address in mine + others:
            to_vip(node, address, packet.TCP, packet.tcp(address, VIP, 4000, 22, seq=7, ack=9, flags=flags))
        replies = node.public.all(lambda f: f.tcp and f.tcp.sport == 22)
    assert [f.ip.dst for f in replies] == mine
    assert all(f.tcp.flags & RST for f in replies)


def test_tcp_server_on_another_port(node):
    """Whole connections work: ssh to the service address reaches one node."""
    mine, _ = mine_and_others(node)
    node.listen(2222)
    with node.counts(other_mine=1):
        to_vip(node, mine[1], packet.TCP, packet.tcp(mine[1], VIP, 4000, 2222, seq=7, flags=SYN, options=LINUX.block(1)))
        synack = node.public.take(lambda f: f.tcp).tcp
        assert (synack.flags & (SYN | ACK), synack.ack) == (SYN | ACK, 8)
    # The connection tracking knows it now.
    with node.counts(other_mine=not node.netfilter):
        to_vip(node, mine[1], packet.TCP, packet.tcp(mine[1], VIP, 4000, 2222, seq=8, flags=RST))


def test_other_protocols(node):
    """Protocols without ports go the same way."""
    mine, others = mine_and_others(node)
    with node.counts(other_mine=1, other_not_mine=1):
        for address in (mine[0], others[0]):
            to_vip(node, address, 132, bytes(16))  # SCTP
        node.public.all(lambda f: f.icmp)


@pytest.mark.parametrize("kind, code", [(3, 0), (3, 3), (3, 4), (11, 0), (11, 1), (12, 0)])
def test_icmp_errors_go_to_all(node, kind, code):
    mine, others = mine_and_others(node)
    inner = packet.ip(VIP, mine[0], packet.TCP, packet.tcp(VIP, mine[0], WEB, 4000, seq=1))[:28]
    with node.counts(icmp_error=2):
        for address in (mine[0], others[0]):
            to_vip(node, address, packet.ICMP, packet.icmp(kind, code, struct.pack(">HH", 0, 1400), inner))


def test_icmp_that_is_no_error(node):
    """Redirects, timestamps and unknown types: one node, like echo."""
    mine, others = mine_and_others(node)
    for kind in (5, 13, 42):
        with node.counts(icmp_echo_mine=1, other_not_mine=1):
            for address in (mine[0], others[0]):
                to_vip(node, address, packet.ICMP, packet.icmp(kind, 0, bytes(4), bytes(32)))
    node.public.all(lambda f: f.icmp)


def test_icmp_behind_ip_options(node):
    """The type is where the header says."""
    mine, others = mine_and_others(node)
    with node.counts(icmp_error=1):
        to_vip(node, others[0], packet.ICMP, packet.icmp(11, 0, bytes(4), bytes(range(28))), options=b"\1" * 8)
    with node.counts(other_not_mine=1):
        to_vip(node, others[0], packet.ICMP, packet.icmp(8, 0, bytes(4), bytes(range(28))), options=b"\1" * 8)
    with node.counts(icmp_echo_mine=1):
        to_vip(node, mine[0], packet.ICMP, packet.icmp(8, 0, bytes(4), bytes(range(28))), options=b"\1" * 8)
        assert node.public.take(lambda f: f.icmp).icmp.kind == 0


def test_fragmented_datagram(node):
    """All fragments reach one node, which puts them together."""
    mine, others = mine_and_others(node)
    for address, count in ((mine[2], "icmp_echo_mine"), (others[2], "other_not_mine")):
        whole = packet.icmp(8, 0, b"\0\1\0\3", bytes(range(200)) * 4)
        # Where the connection tracking has put them together, they are one; of an echo that it knows, none.
        with node.counts(**{count: {0, 1} if node.netfilter else 2}):
            to_vip(node, address, packet.ICMP, whole[:400], ident=77, frag=0x2000)
            to_vip(node, address, packet.ICMP, whole[400:], ident=77, frag=50)
            replies = node.public.all(lambda f: f.icmp)
        assert [f.icmp.payload for f in replies] == ([bytes(range(200)) * 4] if address == mine[2] else [])
