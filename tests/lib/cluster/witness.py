# SPDX-License-Identifier: GPL-2.0-or-later
"""Who answers whom, as the client's cable sees it: no connection may have answers of two nodes.

Every frame with payload that the client receives is kept by client port, sender's MAC and sequence number.
"""
import socket
import struct
import threading

from earshotlab import topology

ETH_P_IP = 0x0800
SOL_PACKET, PACKET_STATISTICS, SO_RCVBUFFORCE = 263, 6, 33


class Witness:
    def __init__(self, lab):
        self.socket = lab.client.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.socket.bind(("eth0", ETH_P_IP))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.socket.settimeout(0.2)
        self.vip = socket.inet_aton(topology.VIP)
        self.seen = {}  # (client port, client's acknowledged byte, MAC) of each answer's first frame
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
            try:
                frame, address = self.socket.recvfrom(200)
            except socket.timeout:
                if self.stopping:  # and all that came before is read
                    return
                continue
            if address[2] == socket.PACKET_OUTGOING or frame[26:30] != self.vip or frame[23] != 6:
                continue
            at = 14 + (frame[14] & 15) * 4
            port, seq, ack, offset = struct.unpack(">HIIB", frame[at + 2:at + 13])
            payload = struct.unpack(">H", frame[16:18])[0] - (frame[14] & 15) * 4 - (offset >> 4) * 4
            if payload > 0:
                # The acknowledged byte tells connections of the same port apart, and requests of one connection.
                self.seen.setdefault((port, ack), {}).setdefault(frame[6:12].hex(":"), set()).add(seq)

    def problems(self):
        """What was answered by two nodes, as lines of text."""
        assert not self.lost, f"{self.lost} frames were not seen"
        double = {key: macs for key, macs in self.seen.items() if len(macs) > 1}
        return [f"{len(double)} of {len(self.seen)} requests answered by two nodes: {list(double.items())[:3]}"] if double else []

    def assert_one_answer_each(self):
        """Returns how many requests were answered."""
        assert not self.problems(), self.problems()
        return len(self.seen)
