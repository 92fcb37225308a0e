# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that holds packets back, and lets them go later, in order: those that a rule gives to its NFQUEUE.

    python3 -m cluster.late QUEUE SECONDS

Says "ready" when it has the queue. After SIGUSR1, it holds none any more.
"""
import collections
import select
import signal
import socket
import struct
import sys
import time

SUBSYSTEM = 3 << 8
PACKET, VERDICT, CONFIG = 0, 1, 2
ACCEPT = 1


def message(kind, queue, attribute, payload):
    """An nfnetlink message with one attribute."""
    body = struct.pack(">BBH", socket.AF_UNSPEC, 0, queue) + struct.pack("=HH", 4 + len(payload), attribute) + payload
    body += bytes(-len(body) % 4)
    return struct.pack("=IHHII", 16 + len(body), SUBSYSTEM | kind, 1, 0, 0) + body


def packets(data):
    """The numbers of the packets in what the kernel has sent."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        inside, end = at + 20, at + length
        while kind == SUBSYSTEM | PACKET and inside + 4 <= end:
            size, attribute = struct.unpack_from("=HH", data, inside)
            if attribute & 0x3fff == 1:  # NFQA_PACKET_HDR
                yield struct.unpack_from(">I", data, inside + 4)[0]
            inside += size + 3 & ~3
        at += length + 3 & ~3


def main():
    queue, seconds = int(sys.argv[1]), float(sys.argv[2])
    held = collections.deque()
    hurry = []
    signal.signal(signal.SIGUSR1, lambda *_: hurry.append(True))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as netlink:
        netlink.send(message(CONFIG, queue, 1, struct.pack(">BxH", 1, socket.AF_INET)))  # NFQNL_CFG_CMD_BIND
        netlink.send(message(CONFIG, queue, 2, struct.pack(">IB", 0, 1)))  # of packets, their headers only
        print("ready", flush=True)
        while True:
            wait = max(held[0][0] - time.monotonic(), 0) if held else 0.05
            if select.select([netlink], [], [], min(wait, 0.05))[0]:
                held.extend((time.monotonic() + seconds, number) for number in packets(netlink.recv(1 << 16)))
            while held and (hurry or held[0][0] <= time.monotonic()):
                netlink.send(message(VERDICT, queue, 2, struct.pack(">II", ACCEPT, held.popleft()[1])))


if __name__ == "__main__":
    main()
