# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets to the service address that belong to no flow: one node takes them, chosen by the sender's address."""
from packets import model, packet
from packets.node import GATEWAY_MAC, VIP

REQUESTER_MAC = "02:00:00:00:00:aa"
BROADCAST = "ff:ff:ff:ff:ff:ff"
CLIENTS = [f"203.0.{i // 200}.{i % 200 + 1}" for i in range(0, 600, 5)]


def is_mine(node, address):
    return node.ring.sampled(model.address_hash(node.keys, address)) == 0


def mine_and_others(node):
    mine = [a for a in CLIENTS if is_mine(node, a)]
    others = [a for a in CLIENTS if not is_mine(node, a)]
    assert len(mine) > 10 and len(others) > 10
    return mine, others


def who_has(address, sender_ip, operation=1, dst=BROADCAST):
    return packet.eth(dst, REQUESTER_MAC, packet.ETH_ARP,
                      packet.arp(operation, REQUESTER_MAC, sender_ip, "00:00:00:00:00:00", address))


def to_vip(node, src, protocol, payload, **fields):
    node.public.send(packet.eth(node.cluster_mac, GATEWAY_MAC, packet.ETH_IP,
                                packet.ip(src, VIP, protocol, payload, **fields)))
