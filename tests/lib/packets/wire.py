# SPDX-License-Identifier: GPL-2.0-or-later
"""The far end of one of the node's links: a raw socket, so that nothing comes or goes that the test does not see."""
import os
import select
import socket
import struct
import time

from packets import model, packet

PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 15, 23
SOL_PACKET = 263
VIRTIO_NEEDS_CSUM, VIRTIO_GSO_TCPV4, VIRTIO_GSO_TCPV6 = 1, 1, 4
# In an emulated machine (tests/vm), which may get no CPU for seconds, the lab's patience is longer, and so is ours.
TIMEOUT_S = max(8.0, float(os.environ.get("EARSHOT_LAB_TIMEOUT") or 0) / 4)


class Wire:
    """Must be made inside the far end's namespace. Frames that nobody took yet are in `inbox`; what the nodes tell
    each other of their loads, many times a second, is apart, in `loads`."""

    def __init__(self, interface, node_address, node_mac, fence_address):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind((interface, 3))  # ETH_P_ALL
        self.merged = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.merged.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self.merged.bind((interface, 0))
        self.node_address, self.node_mac, self.fence_address = node_address, node_mac, fence_address
        self.fences = 0
        self.settled = None  # called where more than frames and the kernel must be waited for
        self.inbox = []
        self.loads = []

    def close(self):
        self.socket.close()
        self.merged.close()

    def send(self, frame):
        self.socket.send(frame)

    def send_partial(self, frame, gso_size=0):
        """A TCP frame as virtual links carry them: checksum not yet filled in, perhaps several segments merged."""
        is_v6 = frame[12:14] == b"\x86\xdd"
        start = 54 if is_v6 else 34
        doff = (frame[start + 12] >> 4) * 4
        gso_type = (VIRTIO_GSO_TCPV6 if is_v6 else VIRTIO_GSO_TCPV4) if gso_size else 0
        header = struct.pack("=BBHHHH", VIRTIO_NEEDS_CSUM, gso_type, start + doff, gso_size, start, 16)
        self.merged.send(header + frame)

    def _pump(self, timeout):
        ready = select.select([self.socket], [], [], max(0, timeout))[0]
        while ready:
            f = packet.parse(self.socket.recv(65536))
            assert f.src == self.node_mac, f"not the node's own MAC as source: {packet.describe(f)} from {f.src}"
            (self.loads if f.udp and f.udp.payload[:4] == model.LOADS_MAGIC else self.inbox).append(f)
            ready = select.select([self.socket], [], [], 0)[0]

    def take(self, match, what="a frame", timeout=TIMEOUT_S):
        """The first frame that fits; waits for it."""
        deadline = time.monotonic() + timeout
        while True:
            for i, f in enumerate(self.inbox):
                if match(f):
                    return self.inbox.pop(i)
            left = deadline - time.monotonic()
            if left <= 0:
                seen = "".join(f"\n  {packet.describe(f)}" for f in self.inbox[-10:])
                raise AssertionError(f"{what} did not come; came:{seen or ' nothing'}")
            self._pump(left)

    def fence(self):
        """Returns when the node has dealt with all that was sent, and what it sent then is here."""
        self._ask()
        if self.settled:
            self.settled()
            self._ask()

    def _ask(self):
        """The node answers a question for its own address: no frame is on its way any more."""
        self.fences += 1
        # Told apart by MAC, since each address would take a place in the machine's one neighbour table.
        asker = f"02:fe:00:00:{self.fences >> 8 & 255:02x}:{self.fences & 255:02x}"
        self.send(packet.eth("ff:ff:ff:ff:ff:ff", asker, packet.ETH_ARP, packet.arp(
            1, asker, self.fence_address, "00:00:00:00:00:00", self.node_address)))
        self.take(lambda f: f.arp and f.arp.operation == 2 and f.arp.target_mac == asker, "the fence's answer")

    def all(self, match):
        """Takes all frames that fit and are there by now; does not wait for more than the node's reaction."""
        self.fence()
        found = [f for f in self.inbox if match(f)]
        self.inbox = [f for f in self.inbox if not match(f)]
        return found

    def nothing(self, match, what):
        """No such frame."""
        found = self.all(match)
        assert not found, f"{what}, but: " + "; ".join(packet.describe(f) for f in found)

    def clear(self):
        self._pump(0)
        self.inbox.clear()
        self.loads.clear()
