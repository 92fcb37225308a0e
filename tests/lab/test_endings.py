# SPDX-License-Identifier: GPL-2.0-or-later
"""How connections end: a script that is played to one server alone and to the cluster comes to the same.

What it comes to: the bytes that the client reads, how they end, and what ends its cable has brought, FIN, RST or both.
"""
import collections
import contextlib
import itertools
import re
import socket
import struct
import time

import pytest

from cluster.every import homes, start_backends, there_and_back
from earshotlab import Lab, netns, topology, wait_for
from web import raw
from web.backend import content

pytestmark = pytest.mark.earshot

SO_RCVBUFFORCE = 33
ETH_P_ALL = 3
TCP_CLOSE = 7
TCP_CLOSE_WAIT = 8
LARGE = 1500000
QUIET_S = 3.0  # who has said nothing for so long says nothing: longer than the nodes gather, and clients wait for answers
PLAYS = 4  # the request comes before, with and behind its FIN, as it happens
SERVICES = {
    "every": {"policy": "uri-hash", "settings": {"service.inspect": "every", "service.load_bound": 0}},
    "first": {"policy": "uri-hash", "settings": {"service.inspect": "first", "service.load_bound": 0}},
    "never": {"policy": "ring", "settings": {"service.inspect": "never"}},
}
CLIENTS = {"timestamps": 1, "no-timestamps": 0}
Outcome = collections.namedtuple("Outcome", "size end cable text")
Targets = collections.namedtuple("Targets", "small large late")


@pytest.fixture(scope="module", name="lab", params=SERVICES)
def _lab(request):
    with Lab(nodes=3, server="none", **SERVICES[request.param]) as lab:
        start_backends(lab, "endings", ",".join("::" if ":" in vip else "0.0.0.0" for vip in lab.net.vips))
        lab.homes = homes(lab, (f"/len/100?{number}" for number in itertools.count()), 4)
        lab.large = homes(lab, (f"/len/{LARGE}?{number}" for number in itertools.count()), 1)
        yield lab


@pytest.fixture(name="client", params=CLIENTS)
def _client(lab, request):
    netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_timestamps": CLIENTS[request.param]})
    yield lab.client
    netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_timestamps": 1})


class Cable:
    """What ends connections, as it reaches the client's machine."""

    def __init__(self, machine):
        self.socket = machine.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        # The kernel gives a frame to a socket of all protocols before IP has it, and to one of IP's only then.
        self.socket.bind(("eth0", ETH_P_ALL))
        self.socket.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ends(self, port):
        """Of the connection from that port."""
        found = set()
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, address = self.socket.recvfrom(64)
                if address[2] != socket.PACKET_OUTGOING and address[1] == 0x0800 and frame[23] == socket.IPPROTO_TCP and \
                        struct.unpack(">H", frame[36:38])[0] == port:
                    found |= {name for name, bit in (("FIN", 1), ("RST", 4)) if frame[47] & bit}
        return found


def tcp_state(sock):
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


class Player:
    """A script's client. Each of `small` moves a connection on which the one before was served, if anything does."""

    def __init__(self, sock, targets):
        self.sock, self.read = sock, b""
        self.small, self.large, self.late = targets

    def say(self, text, fin=False):
        """`fin`: in the same segment."""
        self.sock.send(text, socket.MSG_MORE if fin else 0)
        if fin:
            self.close()

    def close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def more(self):
        piece = self.sock.recv(1 << 18)
        if not piece:
            raise EOFError
        self.read += piece

    def hear(self, size):
        while len(self.read) < size:
            self.more()

    def serve(self, *targets):
        """A request each, and its whole answer."""
        for target in targets:
            begin = len(self.read)
            self.say(raw.head(target))
            while b"\r\n\r\n" not in self.read[begin:]:
                self.more()
            body = content(target, int(target.split("/")[2].split("?")[0]))
            self.hear(self.read.index(b"\r\n\r\n", begin) + 4 + len(body))

    def wait_state(self, state):
        """Until its kernel has heard what the server did."""
        wait_for(lambda: tcp_state(self.sock) == state, f"TCP state {state}", seen=lambda: f"state {tcp_state(self.sock)}")

    def to_the_end(self):
        self.sock.settimeout(QUIET_S)
        while True:
            self.more()


def closes_without_a_request(c):
    c.close()


def closes_without_a_request_after_a_while(c):
    time.sleep(0.05)
    c.close()


def closes_with_the_request(c):
    c.say(raw.head(c.small[0]), fin=True)


def closes_behind_the_request(c):
    c.say(raw.head(c.small[0]))
    c.close()


def closes_after_the_answer(c):
    c.serve(c.small[0])
    c.close()


def closes_with_the_request_for_much(c):
    c.say(raw.head(c.large), fin=True)


def closes_behind_the_request_for_much(c):
    c.say(raw.head(c.large))
    c.close()


def closes_while_it_reads(c):
    c.say(raw.head(c.large))
    c.hear(100000)
    c.close()


def closes_while_its_window_is_closed(c):
    c.say(raw.head(c.large))
    time.sleep(0.05)
    c.close()
    time.sleep(0.05)


def is_waited_for(c):
    """The server does not answer before the FIN."""
    c.say(raw.head(c.late))
    time.sleep(0.01)
    c.say(b"more")
    time.sleep(0.01)
    c.close()


def gives_up_within_the_head(c):
    c.say(raw.head(c.small[0])[:-7], fin=True)


def gives_up_behind_half_a_head(c):
    c.say(raw.head(c.small[0])[:-7])
    c.close()


def gives_up_behind_pieces_of_a_head(c):
    text = raw.head(c.small[0])
    for at in (0, 5, 10):
        c.say(text[at:at + 5])
        time.sleep(0.001)
    c.close()


def closes_with_the_last_piece_of_the_head(c):
    text = raw.head(c.small[0])
    c.say(text[:5])
    time.sleep(0.001)
    c.say(text[5:], fin=True)


def gives_up_within_a_body(c):
    c.say(raw.head("/upload", "POST", Content_Length=5000) + b"x" * 1000)
    c.close()


def gives_up_within_a_chunk(c):
    c.say(raw.head("/upload", "POST", Transfer_Encoding="chunked") + b"100\r\n123", fin=True)


def later(script):
    """The same on a connection that was served, and moved, before."""
    def play_later(c):
        c.serve(*c.small[1:])
        script(c)

    play_later.__name__ = f"{script.__name__}_later"
    return play_later


def server_closes_unannounced(c):
    c.say(raw.head("/bye/0"))
    c.wait_state(TCP_CLOSE_WAIT)
    c.say(raw.head(c.small[0]))


def server_resets(c):
    c.say(raw.head("/reset/0"))
    c.wait_state(TCP_CLOSE)
    c.say(raw.head(c.small[0]))


def server_says_more_than_it_was_asked(c):
    c.serve("/len/100?more")
    c.say(raw.head("/more/0"))
    while not c.read.endswith(b"this"):
        c.more()
    c.serve(c.small[0])
    c.close()


HALF_CLOSES = [closes_with_the_request, closes_behind_the_request, closes_after_the_answer,
               closes_with_the_request_for_much, closes_behind_the_request_for_much, closes_while_it_reads, is_waited_for,
               gives_up_within_the_head, gives_up_behind_half_a_head, gives_up_behind_pieces_of_a_head,
               closes_with_the_last_piece_of_the_head, gives_up_within_a_body, gives_up_within_a_chunk]
SCRIPTS = [closes_without_a_request, closes_without_a_request_after_a_while, closes_while_its_window_is_closed,
           *HALF_CLOSES, *map(later, HALF_CLOSES), server_closes_unannounced, server_resets,
           server_says_more_than_it_was_asked]


def play(machine, cable, address, script, targets):
    with raw.connect(machine, address) as sock:
        port = sock.getsockname()[1]
        player = Player(sock, targets)
        try:
            script(player)
            player.to_the_end()
        except EOFError:
            end = "FIN"
        except ConnectionError:
            end = "RST"
        except socket.timeout:
            end = "silence"
        if end != "silence":
            wait_for(lambda: tcp_state(sock) == TCP_CLOSE,
                     f"the client's socket closed, after {end}")
        ends = cable.ends(port)
    text = re.sub(rb"X-Node: n\d", b"X-Node: n", player.read)
    return Outcome(len(text), end, ends, text)


def targets_of(lab, number):
    names = sorted(lab.homes)
    names = names[number:] + names[:number]
    small = there_and_back({name: lab.homes[name] for name in names}, 0)
    return Targets([target for _, target in itertools.islice(small, 4)], lab.large[names[1]][0], f"/late/9?{number}")


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.__name__.replace("_", "-") for script in SCRIPTS])
def test_comes_to_the_same(lab, client, script):
    with Cable(client) as cable:
        for number in range(PLAYS):
            targets = targets_of(lab, number % 3)
            alone = play(client, cable, (lab.nodes[0].public_address, topology.PORT), script, targets)
            assert alone.end != "silence", "the script shows nothing"
            cluster = play(client, cable, raw.service(lab), script, targets)
            assert cluster[:3] == alone[:3], "bytes, end and cable: cluster, alone"
            assert cluster.text == alone.text
