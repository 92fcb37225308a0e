# SPDX-License-Identifier: GPL-2.0-or-later
"""ICMP errors about the nodes' messages that no router has sent, and frames that come again and again."""
import itertools
import socket
import struct
import threading

from cluster import floods

HANDOVER_PORT = 7350
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


def unreachable(family, victim, port, peer, source, size=500):
    """Nobody takes what the victim's worker has sent to the handover port of another node."""
    quoted = floods.udp(victim, peer, port, HANDOVER_PORT, bytes(size))
    return error(family, *((3, 3) if family == 4 else (1, 4)), 0, victim, quoted, source)


def frame(lab, node, packet, interface="eth0"):
    """To one interface of the node's, whatever the address is."""
    return floods.frame(floods.mac(lab.net.link("client").mac),
                        floods.mac(node.exec(["cat", f"/sys/class/net/{interface}/address"]).stdout.strip()), packet)


def senders(lab, node):
    """(port, peer's address) of the sockets by which the node sends messages to others."""
    found = []
    for line in node.exec(["ss", "-Hun"]).stdout.splitlines():
        (_, port), (peer, peer_port) = (word.rsplit(":", 1) for word in line.split()[-2:])
        peer = peer.strip("[]")
        if peer_port == str(HANDOVER_PORT) and peer in (other.cluster_address for other in lab.nodes):
            found.append((int(port), floods.packed(peer)))
    assert len(found) >= len(lab.nodes)
    return found


class Flood(threading.Thread):
    """Frames, again and again, so many each 10 ms, by the taps in turn."""

    def __init__(self, taps, frames, at_once=1):
        super().__init__(daemon=True)
        self.frames, self.sent, self.ending = itertools.cycle(zip(itertools.cycle(taps), frames)), 0, threading.Event()
        self.at_once = at_once

    def run(self):
        while not self.ending.wait(0.01):
            for tap, data in itertools.islice(self.frames, self.at_once):
                tap.send(data)
                self.sent += 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join()
