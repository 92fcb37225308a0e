# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames with a tag of IEEE 802.1Q. What is of a VLAN is not this interface's, but one's above it; a tag with number 0 names no
VLAN, only a priority, and the frame is like one without."""
import socket
import struct

import pytest

from earshotlab import netns
from packets import packet
from packets.client import LINUX
from packets.node import CLUSTER, HANDOVER_PORT, PEER_MAC, VIP, WEB
from packets.other import CLIENTS, who_has
from packets.packet import ACK, PSH

PACKET_AUXDATA, SOL_PACKET, VLAN_VALID = 8, 263, 1 << 4
VLANS = pytest.mark.parametrize("tag", [10, 4094, 5 << 13 | 10], ids=["10", "4094", "10-with-priority"])
PRIORITIES = pytest.mark.parametrize("tag", [0, 5 << 13], ids=["0", "5"])


def tagged(frame, tag):
    return frame[:12] + struct.pack(">HH", 0x8100, tag) + frame[12:]


def message_frame(node, c, text):
    """n2 hands a request over to n1."""
    message = c.handover(c.ip_packet(ACK | PSH, text), source=1, target=0)
    node.sequence += 1
    message.sequence = node.sequence
    return packet.eth(node.cluster.node_mac, PEER_MAC[1], packet.ETH_IP, packet.ip(
        CLUSTER[1], CLUSTER[0], packet.UDP, packet.udp(CLUSTER[1], CLUSTER[0], 40000, HANDOVER_PORT,
                                                       message.pack(node.keys.handover[0]))))


@VLANS
def test_vlan(node, client, tag):
    """Nothing is counted, and nobody answers."""
    c, moved = client(), client(owner=2)
    moved.forge()
    with node.counts():
        node.public.send(tagged(c.syn_frame(), tag))
        node.public.send(tagged(who_has(VIP, CLIENTS[0]), tag))
        node.cluster.send(tagged(message_frame(node, moved, moved.get()), tag))
        c.silence()
        node.public.nothing(lambda f: f.arp, "no answer to ARP")
    assert not node.pending(WEB)


@PRIORITIES
def test_priority(node, client, tag):
    c = client()
    node.slot()
    node.public.send(tagged(c.syn_frame(), tag))
    c.take_synack()
    text = c.get()
    node.public.send(tagged(c.frame(ACK | PSH, text), tag))
    c.sent(text)
    assert c.read(len(text)) == text
    node.public.send(tagged(c.frame(ACK | PSH, b"more"), tag))
    c.sent(b"more")
    assert c.read(4) == b"more"
    c.answer()


@PRIORITIES
def test_handover_with_priority(node, client, tag):
    c = client(owner=2)
    c.forge()
    text = c.get()
    with node.counts(handover_received=1, handover_rebuilt=1):
        node.cluster.send(tagged(message_frame(node, c, text), tag))
        assert c.read(len(text)) == text


@PRIORITIES
def test_answers_have_no_tag(node, client, tag):
    """Wherever they are sent from: a switch may drop what its port does not expect."""
    c = client(offer=LINUX)

    def listening():
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        s.bind(("pub", 3))
        s.settimeout(8)
        return s

    with netns.in_namespace(node.far, listening) as s:
        node.slot()
        node.public.send(tagged(c.syn_frame(), tag))
        c.take_synack()
        while True:
            data, ancillary, _, _ = s.recvmsg(2048, 128)
            f = packet.parse(data)
            if f.src == node.mac and f.tcp and c.mine(f):
                break
        status, = struct.unpack_from("=I", ancillary[0][2])
        assert not status & VLAN_VALID, "the SYN-ACK has a tag"
