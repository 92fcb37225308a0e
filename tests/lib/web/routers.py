# SPDX-License-Identifier: GPL-2.0-or-later
"""What routers on the way to a client say to servers."""
import socket
import struct

from earshotlab import netns

TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 19, 20, 21  # linux/tcp.h
TCP_RECV_QUEUE, TCP_REPAIR_OFF_NO_WP = 1, -1


def checksum(data):
    """RFC 1071's, of an even number of bytes."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def next_seq(sock):
    """The sequence number that the client expects of the server next."""
    sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE)
        return sock.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ) & 0xffffffff
    finally:
        sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP)


def say_too_big(lab, sock, mtu):
    """What a router says on the way to the client: the last segment was too large for its next link."""
    client, vip = sock.getsockname()[0], sock.getpeername()[0]
    segment = struct.pack("!HHIIHHHH", sock.getpeername()[1], sock.getsockname()[1], next_seq(sock), 0, 0x5010, 512, 0, 0)
    if ":" in vip:
        addresses = socket.inet_pton(socket.AF_INET6, vip) + socket.inet_pton(socket.AF_INET6, client)
        quoted = struct.pack("!IHBB", 6 << 28, 1400, socket.IPPROTO_TCP, 64) + addresses + segment
        kind, message = socket.IPPROTO_ICMPV6, struct.pack("!BBHI", 2, 0, 0, mtu) + quoted
    else:
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 1500, 0xffff, 0x4000, 64, socket.IPPROTO_TCP, 0, socket.inet_aton(vip),
                             socket.inet_aton(client))
        quoted = header[:10] + struct.pack("!H", checksum(header)) + header[12:] + segment
        kind, message = socket.IPPROTO_ICMP, struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + quoted
        message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
    with netns.in_namespace(lab.net.client, socket.socket, sock.family, socket.SOCK_RAW, kind) as router:
        router.sendto(message, (vip, 0))
