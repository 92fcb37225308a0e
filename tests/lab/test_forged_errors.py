# SPDX-License-Identifier: GPL-2.0-or-later
"""ICMP errors about the nodes' messages that no router has sent: from the clients' network, to a node's cluster address."""
import socket
import struct
import time

import pytest

from cluster import floods
from earshotlab import Lab
from web import raw

pytestmark = pytest.mark.earshot

HANDOVER_PORT = 7350
LONG = {4: 700, 6: 1220}  # bytes more than a head has: as a browser's with its cookies
MTU = {4: 552, 6: 1280}  # the least that the kernel takes


def error(family, kind, code, word, victim, quoted, source):
    """An ICMP error to the victim, with what it quotes."""
    head = struct.pack("!BBHI", kind, code, 0, word)
    check = floods.checksum(head + quoted) if family == 4 else \
        floods.transport_checksum(socket.IPPROTO_ICMPV6, source, victim, head + quoted)
    protocol = socket.IPPROTO_ICMP if family == 4 else socket.IPPROTO_ICMPV6
    return floods.ip_packet(protocol, source, victim, head[:2] + struct.pack("!H", check) + head[4:] + quoted)


def too_big(family, victim, peer, source):
    """The victim's datagram to the handover port of another node is longer than its way allows."""
    quoted = floods.udp(victim, peer, HANDOVER_PORT, HANDOVER_PORT, bytes(900))[:48]
    return error(family, *((3, 4) if family == 4 else (2, 0)), MTU[family], victim, quoted, source)


def put(lab, tap, node, packet):
    """By the node's public interface, whatever the address is."""
    tap.send(floods.frame(floods.mac(lab.net.link("client").mac),
                          floods.mac(node.exec(["cat", "/sys/class/net/eth0/address"]).stdout.strip()), packet))


def wrong(lab, family, count):
    """How many of so many long requests are not answered."""
    failed = 0
    for _ in range(count):
        try:
            response, _ = raw.ask(lab.client, raw.head("/1k", Cookie="x" * LONG[family]), address=(lab.net.vip, 80), timeout=2.5)
            failed += not raw.right(response, "1k")
        except (OSError, AssertionError):
            failed += 1
    return failed


@pytest.mark.parametrize("family", [4, 6])
def test_too_big(family):
    """One packet for each pair of nodes says that longer ones do not get through: nobody believes it."""
    with Lab(nodes=3, policy="wrr", family=str(family)) as lab:
        assert not wrong(lab, family, 12)
        source = floods.packed((lab.net.client_addresses if family == 4 else lab.net.client_addresses6)[0])
        before = {node.name: lab.counters(node.name) for node in lab.nodes}
        with floods.Tap(lab.net.client, "eth0") as tap:
            for victim in lab.nodes:
                for peer in lab.nodes:
                    put(lab, tap, victim, too_big(family, *(floods.packed(node.cluster_address) for node in (victim, peer)), source))
        time.sleep(0.2)
        for node in lab.nodes:
            others = [other for other in lab.nodes if other is not node]
            assert not any("mtu" in node.exec(["ip", "route", "get", other.cluster_address]).stdout for other in others)
        assert not wrong(lab, family, 24)
        for node in lab.nodes:
            assert lab.counters(node.name)["handover_malformed"] == before[node.name]["handover_malformed"]
