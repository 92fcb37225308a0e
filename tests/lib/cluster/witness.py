# SPDX-License-Identifier: GPL-2.0-or-later
"""Who answers whom, as the client's cable sees it: no connection may have answers of two nodes.

Every frame with payload that the client receives is kept by family, client port, sender's MAC and sequence number.
"""
import select
import socket
import struct
import threading

ETH_P_ALL, ETH_P_IP, ETH_P_IPV6 = 3, 0x0800, 0x86dd
SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 263, 6, 23, 33


def segment(frame):
    """(family, sender, where the TCP header begins, where the packet ends), of a frame that has one."""
    kind = int.from_bytes(frame[12:14], "big")
    if kind == ETH_P_IP and frame[23] == socket.IPPROTO_TCP:
        return 4, frame[26:30], 14 + (frame[14] & 15) * 4, 14 + int.from_bytes(frame[16:18], "big")
    if kind == ETH_P_IPV6 and frame[20] == socket.IPPROTO_TCP:  # no node sends extension headers
        return 6, frame[22:38], 54, 54 + int.from_bytes(frame[18:20], "big")
    return None


class Witness:
    def __init__(self, lab):
        self.socket = lab.client.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind(("eth0", ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.vips = {socket.inet_pton(socket.AF_INET6 if ":" in vip else socket.AF_INET, vip) for vip in lab.net.vips}
        self.seen = {}  # {(family, client port, client's acknowledged byte): {MAC: sequence numbers}}
        self.lost = 0
        self.stopping = False
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()
        self.lost = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        self.socket.close()

    def _watch(self):
        while True:
            stopping = self.stopping
            if not select.select([self.socket], [], [], 0 if stopping else 0.2)[0]:
                if stopping:  # and all that came before is read
                    return
                continue
            frame = self.socket.recv(200)
            family, sender, at, end = segment(frame) or (0, None, 0, 0)
            if sender not in self.vips:
                continue
            port, seq, ack, offset = struct.unpack(">HIIB", frame[at + 2:at + 13])
            if end > at + (offset >> 4) * 4:
                # The acknowledged byte tells connections of the same port apart, and requests of one connection.
                self.seen.setdefault((family, port, ack), {}).setdefault(frame[6:12].hex(":"), set()).add(seq)

    def problems(self):
        """What was answered by two nodes, as lines of text."""
        assert not self.lost, f"{self.lost} frames were not seen"
        double = {key: macs for key, macs in self.seen.items() if len(macs) > 1}
        return [f"{len(double)} of {len(self.seen)} requests answered by two nodes: {list(double.items())[:3]}"] if double else []

    def assert_one_answer_each(self):
        """Returns how many requests were answered."""
        assert not self.problems(), self.problems()
        return len(self.seen)
