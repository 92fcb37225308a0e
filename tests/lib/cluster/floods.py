# SPDX-License-Identifier: GPL-2.0-or-later
"""Forged frames. As a program, a bounded flood of packets from random addresses:

    python3 -m cluster.floods --interface eth0 --source 02:.. --target 03:.. [--count N] [--rate N] [--kind KIND]
        [--vip ADDRESS]...
"""
import argparse
import collections
import itertools
import json
import random
import socket
import struct
import sys
import time

from earshotlab import families, in_namespace, topology

SYN, RST, PSH, ACK, UDP = 2, 4, 8, 16, 17
FRAME_MIN = 60
AGAIN_S = 0.7  # longer than a segment must be repeated before others are asked about it
ETH_P_ALL, ETH_P_IP, ETH_P_ARP, ETH_P_IPV6 = 3, 0x0800, 0x0806, 0x86dd
IP_AT = 14  # in a frame
SYN_OPTIONS = bytes.fromhex("020405b40402080a000000010000000001030307")
# Of nobody's that the lab has.
NETWORKS = (20, 41, 81, 103, 151, 198)


def checksum(data):
    if len(data) & 1:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def packed(address):
    """An address of either family as it is in a header."""
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def ip_packet(protocol, source, target, payload):
    """Header, of the addresses' family, and payload; addresses as 4 or 16 bytes."""
    if len(source) == 16:
        return struct.pack("!IHBB", 6 << 28, len(payload), protocol, 64) + source + target + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), random.randrange(1 << 16), 0x4000, 64, protocol, 0,
                       source, target)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def transport_checksum(protocol, source, target, segment):
    """With the pseudo header of the addresses' family (RFC 9293, RFC 8200)."""
    return checksum(source + target + struct.pack("!IHBB", len(segment), 0, 0, protocol) + segment)


def tcp(source, port, seq, ack, flags, payload=b"", options=b"", target=None, target_port=topology.PORT):
    """A packet to the service's address of the source's family."""
    target = target or packed(families.VIP6 if len(source) == 16 else topology.VIP)
    head = struct.pack("!HHIIBBHHH", port, target_port, seq, ack, (20 + len(options)) << 2, flags, 64240, 0, 0) + options
    check = transport_checksum(socket.IPPROTO_TCP, source, target, head + payload)
    return ip_packet(socket.IPPROTO_TCP, source, target, head[:16] + struct.pack("!H", check) + head[18:] + payload)


def udp(source, target, port, target_port, payload):
    """A packet without UDP checksum, or with the one that IPv6 demands."""
    head = struct.pack("!HHHH", port, target_port, 8 + len(payload), 0)
    if len(source) == 16:
        head = head[:6] + struct.pack("!H", transport_checksum(UDP, source, target, head + payload) or 0xffff)
    return ip_packet(UDP, source, target, head + payload)


def frame(source, target, packet):
    return target + source + struct.pack("!H", ETH_P_IPV6 if packet[0] >> 4 == 6 else ETH_P_IP) + packet


def random_address(target):
    """Anybody's of the target's family, but not of a net that the lab has."""
    if len(target) == 16:
        return bytes((0x20, 0x01, *random.randbytes(14)))
    return bytes((random.choice(NETWORKS), *random.randbytes(3)))


class Tap:
    """An interface, raw: what passes it, and what is put on it."""

    def __init__(self, namespace, interface, protocol=ETH_P_ALL):
        self.sock = in_namespace(namespace, socket.socket, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        self.sock.bind((interface, protocol))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.send(data)

    def frames(self, matches, timeout=0.0):
        """Those that have passed and match; waits so long for the first."""
        found = []
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.sock.settimeout(0.01)
                data = self.sock.recv(1 << 17)
                if matches(data):
                    found.append(data)
            except socket.timeout:
                if found or time.monotonic() >= deadline:
                    return found


def is_from(address, target_port=None, port=None):
    """For Tap.frames(): a TCP packet of that sender."""
    wanted = packed(address)
    begin = packet_begin(wanted, socket.IPPROTO_TCP)

    def matches(data):
        at = segment_at(data)
        return begin(data) and target_port in (None, int.from_bytes(data[at + 2:at + 4], "big")) and \
            port in (None, int.from_bytes(data[at:at + 2], "big"))
    return matches


def packet_begin(source, protocol):
    """For Tap.frames(): a packet of that sender, packed, and protocol."""
    if len(source) == 16:
        return lambda data: data[12:14] == b"\x86\xdd" and data[20] == protocol and data[22:38] == source
    return lambda data: data[12:14] == b"\x08\x00" and data[23] == protocol and data[26:30] == source


def addresses(data):
    """(source, target), packed, of a frame of IP without extension headers."""
    return (data[22:38], data[38:54]) if data[12:14] == b"\x86\xdd" else (data[26:30], data[30:34])


def segment_at(data):
    """Where the transport header of such a frame begins."""
    return IP_AT + (40 if data[12:14] == b"\x86\xdd" else 20)


def syns(vip):
    """SYNs from anybody."""
    while True:
        yield tcp(random_address(vip), random.randrange(1024, 65536), random.randrange(1 << 32), 0, SYN,
                  options=SYN_OPTIONS, target=vip)


def strays(vip, with_syn):
    """Segments of connections that never were, each once more when nobody has acknowledged it; with a SYN before it or not."""
    again = collections.deque()
    while True:
        while again and again[0][0] <= time.monotonic():
            yield again.popleft()[1]
        source, port = random_address(vip), random.randrange(1024, 65536)
        if with_syn:
            yield tcp(source, port, random.randrange(1 << 32), 0, SYN, target=vip)
        packet = tcp(source, port, random.randrange(1 << 32), random.randrange(1 << 32), ACK | PSH, b"xx", target=vip)
        again.append((time.monotonic() + AGAIN_S, packet))
        yield packet


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--interface", required=True)
    parser.add_argument("--source", type=mac, required=True)
    parser.add_argument("--target", type=mac, required=True)
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--rate", type=int, default=25000, help="packets a second")
    parser.add_argument("--vip", action="append", help="the service's address, or each of two, which take turns")
    parser.add_argument("--kind", choices=("syns", "strays", "syns-strays"), default="syns")
    options = parser.parse_args()
    streams = [syns(vip) if options.kind == "syns" else strays(vip, options.kind == "syns-strays")
               for vip in map(packed, options.vip or [topology.VIP])]
    packets = itertools.chain.from_iterable(zip(*streams))
    sent = 0
    begin = time.monotonic()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((options.interface, 0))
        while sent < options.count:
            for packet in itertools.islice(packets, min(250, options.count - sent)):
                sock.send(frame(options.source, options.target, packet).ljust(FRAME_MIN, b"\0"))
                sent += 1
            ahead = sent / options.rate - (time.monotonic() - begin)
            if ahead > 0:
                time.sleep(ahead)
    print(json.dumps({"sent": sent, "seconds": time.monotonic() - begin}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
