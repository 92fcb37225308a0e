# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that reads requests itself and asks its node's daemon where to serve them (inspector/ask/wire.h)."""
import collections
import ipaddress
import itertools
import socket
import struct

from earshotlab import daemon

MAGIC, VERSION = 0x45534151, 1
REQUEST, MOVED, STAYED, DONE, TAKEN = range(5)
WORDS = ("stay", "move", "reject", "reset", "drains", "serves")
ASK, ANSWER = "=IHHQ36sHBBIIQQ", "=IHHQ64s"
Answer = collections.namedtuple("Answer", "word id node page")


def packed(address):
    """As struct es_addr: of IPv4, the mapped address."""
    address = ipaddress.ip_address(address)
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def path_of(node):
    return daemon.control_path(node.namespace).replace(".sock", ".ask")


class Asker:
    """One process; `client` and `service` are (address, port)."""

    def __init__(self, node, service, client=("198.51.100.7", 40000)):
        self.flow = packed(client[0]) + packed(service[0]) + struct.pack("!HH", client[1], service[1])
        self.ids = itertools.count(1)
        self.news = []  # answers that belong to no question, as they came
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(10)
        self.sock.connect(path_of(node))

    def say(self, kind, number, text=b"", first=False, moves=0, status=0, size=0, took_us=0):
        self.sock.send(struct.pack(ASK, MAGIC, VERSION, kind, number, self.flow, moves, first, 3, status, 0, size, took_us) + text)

    def hear_any(self):
        """The next message: an answer, or news, whose id is 0."""
        data = self.sock.recv(65536)
        magic, version, word, number, node = struct.unpack_from(ANSWER, data)
        assert (magic, version) == (MAGIC, VERSION)
        return Answer(WORDS[word], number, node.rstrip(b"\0").decode(), data[struct.calcsize(ANSWER):])

    def hear(self):
        """The next answer."""
        while not (answer := self.hear_any()).id:
            self.news.append(answer)
        return answer

    def ask(self, uri, **named):
        """Where to? -> Answer"""
        number = next(self.ids)
        self.say(REQUEST, number, f"GET {uri} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), **named)
        answer = self.hear()
        assert answer.id == number
        return answer

    def take(self, uri="/"):
        """A request that another node has sent here. -> its number"""
        number = next(self.ids)
        self.say(TAKEN, number, f"GET {uri} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), moves=1)
        return number

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()
