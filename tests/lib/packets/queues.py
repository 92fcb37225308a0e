# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets that wait for the netfilter datapath. BPF programs and the module have decided about a frame before the kernel looks at the
next one; this datapath is a thread, which takes packets out of the kernel's queues, and ARP out of a packet socket."""
from earshotlab import netns, wait_for

QUEUES, PACKETS = "/proc/thread-self/net/netfilter/nfnetlink_queue", "/proc/thread-self/net/packet"
TOTAL = 2  # packets of a queue about which nobody has decided
SOCK_DGRAM, TYPE, PROTOCOL, WAITING = "2", 2, 3, 6
TAKEN = ("0806", "0003")  # ARP; and copies of what servers send, by a socket for all protocols


class Queues:
    """Those of a node, in whose namespace the files were opened, so that they tell of it from wherever they are read."""

    def __init__(self, node):
        self._node = node
        self._files = netns.in_namespace(node.namespace, lambda: [open(name, encoding="ascii") for name in (QUEUES, PACKETS)])

    def close(self):
        for file in self._files:
            file.close()

    def _waiting(self):
        """How many packets and bytes wait. A packet that is being decided waits."""
        rows = []
        for file in self._files:
            file.seek(0)
            rows.append([line.split() for line in file])
        queues, sockets = rows
        return [int(row[TOTAL]) for row in queues] + [
            int(row[WAITING]) for row in sockets if row[TYPE] == SOCK_DGRAM and row[PROTOCOL] in TAKEN]

    def drain(self):
        """Waits until the daemon has dealt with all that came; not for one that is stopped or gone."""
        while not self._node.is_gone() and not self._node.is_frozen():
            wait_for(lambda: not any(self._waiting()) or self._node.is_gone(), "the datapath deals with what has come", seen=self._waiting)
            if self._node.is_gone():
                return
            # Who answers has the engine's lock: what it took out of a socket, it has dealt with.
            self._node.counters()
            if not any(self._waiting()):
                return
