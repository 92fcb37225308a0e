# SPDX-License-Identifier: GPL-2.0-or-later
"""A program with a client's connection, and what it gives away of it."""
import concurrent.futures
import ctypes
import errno
import os

from earshotlab import wait_for
from packets import model, packet
from packets.client import LINUX, MASK
from packets.model import ANSWER, ASK, CONNECTION, READY
from packets.node import CLUSTER, HANDOVER_PORT, PEER_MAC, PROGRAM
from tree import BUILD


def library():
    loaded = ctypes.CDLL(os.path.join(BUILD, "lib/libearshot.so.1"))
    loaded.request_handover.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    return loaded


class Program:
    """A program on n1 with a connection of a client, and n2 as the test plays it."""

    def __init__(self, node, client, library, offer=LINUX, service=PROGRAM, shakes=True):
        self.node, self.library = node, library
        self.client = client(service, offer=offer)
        if shakes:
            self.client.shake()
        self.shaken_ts = self.client.ts_recent
        self.pool = concurrent.futures.ThreadPoolExecutor(1)

    def request(self, text=b"POST /upload HTTP/1.1\r\nHost: test\r\n\r\n", read=None):
        """The client sends, the program reads so much of it."""
        self.client.request(text=text)
        self.client.take("the acknowledgment")
        self.text = self.client.read(len(text) if read is None else read)
        return self

    def go(self, node="n2", given=None, fd=None):
        """request_handover() in a thread of its own."""
        given = self.text if given is None else given
        fd = self.client.server.fileno() if fd is None else fd
        os.environ["EARSHOT_HANDOVER_SOCKET"] = self.node.control + ".handover"
        self.future = self.pool.submit(self.library.request_handover, fd, node and node.encode(), given, len(given))
        return self

    def result(self, timeout=10):
        value = self.future.result(timeout)
        return errno.errorcode[-value] if value < 0 else value

    def taken(self, kind):
        """The next message of that kind to n2; others are repetitions of what was taken before."""
        return self.node.taken(2, kind)

    def answer(self, message, what, expects=None):
        """As n2's datapath answers a message."""
        reply = model.Handover.parse(message._body() + bytes(8) + message.packet)
        reply.kind, reply.nack, reply.mac = ANSWER, what, None
        reply.source, reply.target, reply.stream = message.target, 0, model.STREAM_DATAPATH
        if expects is not None:
            reply.next_request_seq = expects & MASK
        self.node.sequence += 1
        reply.sequence = self.node.sequence
        self.node.cluster.send(packet.eth(self.node.cluster.node_mac, PEER_MAC[1], packet.ETH_IP, packet.ip(
            CLUSTER[1], CLUSTER[0], packet.UDP,
            packet.udp(CLUSTER[1], CLUSTER[0], HANDOVER_PORT, message.ports[0],
                       reply.pack(self.node.keys.handover[0])))))

    def agreed(self):
        """n2 has said that it would; returns the first message that gives it the connection."""
        self.answer(self.taken(ASK), READY)
        return self.taken(CONNECTION)

    def only_asked(self):
        """Nothing was given to n2; the question comes again after 10 ms, where the machine is slow."""
        self.node.cluster.nothing(lambda f: f.udp and f.udp.payload[5] != ASK, "only questions")
        self.node.cluster.clear()

    def lives(self, text=b"and more"):
        """The connection is where it was, and works."""
        c = self.client
        c.request(text=text)
        assert c.read(len(text)) == text
        c.answer()

    def gone(self):
        wait_for(lambda: not self.node.sockets(self.client), "the socket gone")
        self.node.settle()
        self.client.silence("nothing said to the client")


def segment_of(message):
    kind = packet.ETH_IP6 if message.packet[0] >> 4 == 6 else packet.ETH_IP
    return packet.parse(packet.eth("00:00:00:00:00:00", "00:00:00:00:00:00", kind, message.packet))
