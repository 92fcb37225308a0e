# SPDX-License-Identifier: GPL-2.0-or-later
"""What is dropped, and under which name; what is none of ours and must pass untouched."""
import socket
import struct

import pytest

from earshotlab import netns
from packets import packet
from packets.client import LINUX, PLAIN
from packets.families import BOTH
from packets.node import GATEWAY_MAC, PUBLIC, VIP, WEB
from packets.packet import ACK, CWR, ECE, FIN, PSH, RST, SYN, URG

BAD_FLAGS = {
    "none": 0, "fin": FIN, "psh": PSH, "urg": URG, "fin-psh-urg": FIN | PSH | URG, "syn-fin": SYN | FIN,
    "syn-ack": SYN | ACK, "syn-fin-ack": SYN | FIN | ACK, "ece-cwr": ECE | CWR,
}


@BOTH
@pytest.mark.parametrize("payload", [b"", b"GET / HTTP/1.0\r\n\r\n"], ids=["", "payload"])
@pytest.mark.parametrize("name", BAD_FLAGS)
def test_impossible_flags(node, client, name, payload):
    """Even where all else is right."""
    c = client()
    c.forge()
    with node.counts(drop_bad_flags=1):
        c.send(BAD_FLAGS[name], payload)
        c.silence()
    assert not node.sockets(c)


@BOTH
@pytest.mark.parametrize("flags", [RST, RST | ACK, RST | SYN, RST | FIN | ACK, 0xFF], ids=str)
def test_reset_of_no_flow(node, client, flags):
    c = client()
    c.forge()
    with node.counts(drop_no_flow=1):
        c.send(flags)
        c.silence()


@BOTH
def test_unknown_flow(node, client):
    c = client()
    c.ack = c.no_cookie(12345)
    with node.counts(drop_no_flow=1, cookie_invalid=2):
        c.send(ACK)
        c.send(ACK | PSH, c.get())
        c.send(ACK | FIN)
        c.silence()


def fragments(c):
    whole = c.ip_packet(ACK | PSH, c.get())[20:]
    for name, part, frag in (("first", whole[:48], 0x2000), ("later", whole[48:], 6), ("middle", whole[48:56], 0x2006)):
        yield name, packet.ip(c.ip, VIP, packet.TCP, part, frag=frag)


def seen(node, count=1):
    """Of so many fragments: connection tracking puts them together before anything is given to the netfilter datapath."""
    return 0 if node.netfilter else count


@pytest.mark.parametrize("which", [0, 1, 2], ids=["first", "last", "middle"])
def test_fragment(node, client, which):
    c = client()
    c.forge()
    with node.counts(drop_fragment=seen(node)):
        node.public.send(packet.eth(node.cluster_mac, GATEWAY_MAC, packet.ETH_IP, list(fragments(c))[which][1]))
        c.silence()


def test_fragment_of_an_established_connection(node, client):
    c = client().serve()
    with node.counts(drop_fragment=seen(node, 3)):
        for _, fragment in fragments(c):
            node.public.send(packet.eth(node.cluster_mac, GATEWAY_MAC, packet.ETH_IP, fragment))
    assert c.answer()


def malformed6(c):
    """The same of IPv6."""
    text = b"GET / HTTP/1.0\r\n\r\n"
    whole = c.ip_packet(ACK | PSH, text, options=b"")

    def ip(body, **fields):
        return packet.ip6(c.ip, c.vip, packet.TCP, body, **fields)

    return {
        "longer-than-the-frame": ip(whole[40:], total=len(whole) - 39),
        "shorter-than-its-headers": ip(whole[40:], total=19),
        "tcp-header-cut": ip(whole[40:59]),
        "tcp-header-cut-and-padded": ip(whole[40:59], total=19) + bytes(20),
        "tcp-header-of-16-bytes": c.ip_packet(ACK | PSH, text, options=b"", doff=4),
        "tcp-header-of-0-bytes": c.ip_packet(ACK | PSH, text, options=b"", doff=0),
        "tcp-options-behind-the-end": c.ip_packet(ACK | PSH, b"", options=b"", doff=8),
        "nothing-behind-ip": ip(b""),
    }


def malformed(c):
    """Named packets whose headers contradict each other or end too early."""
    text = b"GET / HTTP/1.0\r\n\r\n"
    whole = c.ip_packet(ACK | PSH, text, options=b"")

    def ip(body, **fields):
        return packet.ip(c.ip, VIP, packet.TCP, body, **fields)

    return {
        "ip-options": ip(whole[20:], options=b"\x94\x04\0\0"),
        "ip-header-of-16-bytes": ip(whole[20:], ihl=4),
        "ip-header-of-60-bytes": ip(whole[20:], ihl=15),
        "longer-than-the-frame": ip(whole[20:], total=len(whole) + 1),
        "shorter-than-its-headers": ip(whole[20:], total=39),
        "total-length-0": ip(whole[20:], total=0),
        "tcp-header-cut": ip(whole[20:39]),
        "tcp-header-cut-and-padded": ip(whole[20:39], total=39) + bytes(20),
        "tcp-header-of-16-bytes": c.ip_packet(ACK | PSH, text, options=b"", doff=4),
        "tcp-header-of-0-bytes": c.ip_packet(ACK | PSH, text, options=b"", doff=0),
        "tcp-options-behind-the-end": c.ip_packet(ACK | PSH, b"", options=b"", doff=8),
        "nothing-behind-ip": ip(b""),
    }


MALFORMED = ["longer-than-the-frame", "shorter-than-its-headers", "tcp-header-cut", "tcp-header-cut-and-padded",
             "tcp-header-of-16-bytes", "tcp-header-of-0-bytes", "tcp-options-behind-the-end", "nothing-behind-ip"]


# What the kernel drops before netfilter sees it.
DROPPED_BEFORE = "ip-header-of-16-bytes", "ip-header-of-60-bytes", "longer-than-the-frame", "total-length-0"


def dropped_as_malformed(node, c, name, text):
    c.forge()
    with node.counts(drop_malformed=not (node.netfilter and name in DROPPED_BEFORE)):
        node.public.send(packet.eth(node.cluster_mac, GATEWAY_MAC, c.ethertype(), text))
        c.silence()
    assert not node.sockets(c) and not node.pending(WEB)


@BOTH
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(node, client, name):
    c = client()
    dropped_as_malformed(node, c, name, (malformed6 if c.family == 6 else malformed)(c)[name])


@pytest.mark.parametrize("name", ["ip-options", "ip-header-of-16-bytes", "ip-header-of-60-bytes", "total-length-0"])
def test_malformed_header_of_ipv4(node, client, name):
    c = client()
    dropped_as_malformed(node, c, name, malformed(c)[name])


@pytest.mark.parametrize("size", range(0, 20, 3))
def test_frame_that_ends_in_the_ip_header(node, client, size):
    """Not looked at; the stack throws it away."""
    c = client()
    with node.counts():
        node.public.send(packet.eth(node.cluster_mac, GATEWAY_MAC, packet.ETH_IP, c.ip_packet(SYN)[:size] or b"\x45"))
        c.silence()


class TestNotOurs:
    """What is not addressed to the service passes as if there were no datapath."""

    def test_echo_to_the_nodes_own_address(self, node):
        with node.counts():
            node.public.send(packet.eth(node.mac, GATEWAY_MAC, packet.ETH_IP, packet.ip(
                "198.51.100.9", PUBLIC, packet.ICMP, packet.icmp(8, 0, b"\0\7\0\1", b"ping"))))
            reply = node.public.take(lambda f: f.icmp and f.ip.dst == "198.51.100.9")
            assert (reply.ip.src, reply.icmp.kind, reply.icmp.payload) == (PUBLIC, 0, b"ping")

    def test_tcp_to_the_nodes_own_address(self, node):
        """The same port, another address: a listener of the node's own."""
        node.listen(WEB + 1000, address=PUBLIC)
        syn = packet.tcp("198.51.100.9", PUBLIC, 4000, WEB + 1000, seq=5, flags=SYN, options=LINUX.block(1))
        with node.counts():
            node.public.send(packet.eth(node.mac, GATEWAY_MAC, packet.ETH_IP,
                                        packet.ip("198.51.100.9", PUBLIC, packet.TCP, syn)))
            synack = node.public.take(lambda f: f.tcp and f.ip.dst == "198.51.100.9").tcp
            assert (synack.flags & (SYN | ACK), synack.ack) == (SYN | ACK, 6)
        reset = packet.tcp("198.51.100.9", PUBLIC, 4000, WEB + 1000, seq=6, flags=RST)
        node.public.send(packet.eth(node.mac, GATEWAY_MAC, packet.ETH_IP,
                                    packet.ip("198.51.100.9", PUBLIC, packet.TCP, reset)))

    @pytest.mark.parametrize("kind", [0x86DD, 0x88CC, 0x0801, 0x8100])
    def test_other_ethertypes(self, node, kind):
        """Even when they look like a packet to the service behind the Ethernet header."""
        syn = packet.ip("198.51.100.9", VIP, packet.TCP, packet.tcp("198.51.100.9", VIP, 4000, WEB, flags=SYN))
        with node.counts():
            node.public.send(packet.eth(node.cluster_mac, GATEWAY_MAC, kind, syn))
            node.public.nothing(lambda f: f.tcp, "silence")

    def test_other_addresses_with_the_cluster_mac(self, node):
        """Multicast and addresses that nobody has."""
        with node.counts():
            for address in ("224.0.0.1", "10.77.0.101", "255.255.255.255", "203.0.113.7"):
                node.public.send(packet.eth(node.cluster_mac, GATEWAY_MAC, packet.ETH_IP, packet.ip(
                    "198.51.100.9", address, packet.TCP, packet.tcp("198.51.100.9", address, 4000, WEB, flags=SYN))))
            node.public.nothing(lambda f: f.tcp, "silence")

    def test_connections_of_the_node_itself(self, node):
        """It connects to the service of another machine: not our business, though the port is the same."""
        def connect():
            s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            s.setblocking(False)
            s.connect_ex(("203.0.113.7", WEB))
            return s

        with node.counts():
            s = netns.in_namespace(node.namespace, connect)
            syn = node.public.take(lambda f: f.tcp and f.ip.dst == "203.0.113.7")
            assert (syn.tcp.flags, syn.ip.src) == (SYN | (syn.tcp.flags & (ECE | CWR)), PUBLIC)
            synack = packet.tcp("203.0.113.7", PUBLIC, WEB, syn.tcp.sport, seq=9, ack=syn.tcp.seq + 1, flags=SYN | ACK)
            node.public.send(packet.eth(node.mac, GATEWAY_MAC, packet.ETH_IP,
                                        packet.ip("203.0.113.7", PUBLIC, packet.TCP, synack)))
            done = node.public.take(lambda f: f.tcp and f.ip.dst == "203.0.113.7" and f.tcp.flags & ACK)
            assert done.tcp.ack == 10
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()


def test_unicast_mode(own_node, client):
    """A shared station address, flooded by the switch: such frames are none of ours for the card, and served."""
    node = own_node(mac_mode="unicast")
    assert not int(node.cluster_mac[:2], 16) & 1
    for offer in (LINUX, PLAIN):
        c = client(at=node, offer=offer)
        with node.counts(syn_answered=1, drop_handshake_ack=1):
            c.shake()
        text = c.get()
        c.request(text=text)
        assert c.read(len(text)) == text
        assert c.answer()
    asked = "198.51.100.8"
    node.public.send(packet.eth("ff:ff:ff:ff:ff:ff", GATEWAY_MAC, packet.ETH_ARP, packet.arp(
        1, GATEWAY_MAC, asked, "00:00:00:00:00:00", PUBLIC)))
    assert node.public.take(lambda f: f.arp).arp.sender_mac == node.mac
