# SPDX-License-Identifier: GPL-2.0-or-later
"""inspect = every, as clients see it: the same bytes as with `first`, wherever requests and responses are cut.

What test_moves.py has already is not repeated; this is what else a stream can look like (every.py: how to try `first`).
"""
import base64
import contextlib
import itertools
import os
import random
import socket
import time

import pytest

from cluster.every import (MOVES, NODES, SETTINGS, Mover, ask, homes, snmp, start_backends, steps, there_and_back,
                           to_the_end, walk)
from earshotlab import Lab, netns, wait_for
from web import raw
from web.backend import content
from web.frames import chunked, frame
from web.reader import Reader, connection, digest, sha256
from web.scripted import SCRIPTS

pytestmark = pytest.mark.earshot

PLAIN = {"tcp_timestamps": 1, "tcp_sack": 1, "tcp_window_scaling": 1, "tcp_ecn": 2}
CLIENTS = {
    "plain": {},
    "no-timestamps": {"tcp_timestamps": 0},
    "nothing": {"tcp_timestamps": 0, "tcp_sack": 0, "tcp_window_scaling": 0},
    "ecn": {"tcp_ecn": 1},
}


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=NODES, policy="uri-hash", server="none", settings=SETTINGS) as lab:
        start_backends(lab)
        lab.homes = homes(lab, (f"/len/{300 + 37 * number}?{number}" for number in itertools.count()), 12)
        yield lab


@contextlib.contextmanager
def sysctls(lab, values):
    def put(these):
        netns.set_sysctls(lab.net.client, {f"net.ipv4.{key}": value for key, value in these.items()})

    put({**PLAIN, **values})
    try:
        yield
    finally:
        put(PLAIN)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_thousand_requests(lab, client):
    """One connect, no reset, whatever TCP options the client has; large bodies too, which need its window."""
    large = homes(lab, (f"/len/300000?{number}" for number in range(200)), 2)
    with sysctls(lab, CLIENTS[client]):
        before = snmp(lab, "ActiveOpens", "EstabResets", "OutRsts", "TCPChallengeACK")
        patterns = [itertools.chain(itertools.islice(there_and_back(large, 0), 16),
                                    itertools.islice(there_and_back(lab.homes, 1), 984))]
        (walker,) = walk(lab, patterns, digest, requests=1000)
        assert snmp(lab, "ActiveOpens", "EstabResets", "OutRsts", "TCPChallengeACK") == [before[0] + 1, *before[1:]]
    assert len(walker.seen) == 1000 and len(set(walker.seen)) == (NODES if MOVES else 1)


BURSTS = [(2, 1), (3, 1), (5, 1), (20, 61), (50, 131)]


@pytest.mark.parametrize("depth,stride", BURSTS, ids=[f"{depth}-deep" for depth, _ in BURSTS])
@pytest.mark.parametrize("first", [True, False], ids=["new", "used"])
def test_pipelined_and_cut(lab, depth, stride, first):
    """A burst in two segments, with a pause that lets the server answer the first part: in order, each once."""
    asked = steps(lab, depth + 1)
    text = b"".join(raw.head(target) for _, target in asked[1:])
    pauses = itertools.cycle((0.0005, 0.003))
    for cut in range(1, len(text), stride):
        with connection(lab) as (sock, reader):
            if not first:
                ask(sock, reader, asked[:1])
            sock.sendall(text[:cut])
            time.sleep(next(pauses))
            sock.sendall(text[cut:])
            for _, target in asked[1:]:
                reader.response(target)
            to_the_end(sock, reader)


def play(sock, reader, name, pause=""):
    """Ask for a script and check what comes: the node that sent it."""
    script = SCRIPTS[name]
    sock.sendall(raw.head(f"/script/{name}{pause}", script.method))
    return played(reader, name)


def played(reader, name):
    response = reader.response(None, SCRIPTS[name].method)
    assert (response.status, response.text) == (SCRIPTS[name].status, SCRIPTS[name].body)
    return response.node


@pytest.mark.parametrize("name", SCRIPTS)
def test_responses_of_every_form(lab, name):
    """A client that waits for the end of a response moves behind it, if that end is beyond doubt."""
    for pause in ("", "/2"):
        with connection(lab) as (sock, reader):
            ask(sock, reader, steps(lab, 3))
            for _ in range(3 if SCRIPTS[name].clear else 1):
                node = play(sock, reader, name, pause)
                if SCRIPTS[name].clear:
                    ask(sock, reader, steps(lab, 5))
            if not SCRIPTS[name].clear:
                for _, target in steps(lab, 5):
                    sock.sendall(raw.head(target))
                    assert reader.response(target).node == node
            to_the_end(sock, reader)


@pytest.mark.parametrize("name", SCRIPTS)
def test_requests_within_responses_of_every_form(lab, name):
    """The next requests come in a pause of the response: they wait for it, on the same node."""
    count = len(SCRIPTS[name].pieces)
    for after in sorted({0, 1, count // 2, count - 1}):
        following = steps(lab, 3)
        with connection(lab) as (sock, reader):
            ask(sock, reader, steps(lab, 3, 1))
            sock.sendall(raw.head(f"/script/{name}/4", SCRIPTS[name].method))
            time.sleep(0.002 + 0.004 * after)
            for _, target in following:
                sock.sendall(raw.head(target))
            played(reader, name)
            for _, target in following:
                reader.response(target)
            to_the_end(sock, reader)


@pytest.mark.parametrize("read", [0, 1, 400000, 799999])
def test_request_within_a_large_response(lab, read):
    """The client reads some of it, asks for more, reads on: its window is closed and opens again."""
    large = "/len/800000?large"
    def small_window(sock):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20000)

    with raw.connect(lab.client, before=small_window) as sock:
        reader = Reader(sock)
        ask(sock, reader, steps(lab, 3))
        sock.sendall(raw.head(large))
        reader.until(b"\r\n\r\n")
        body = reader.exactly(read)
        for _, target in steps(lab, 4):
            sock.sendall(raw.head(target))
        body += reader.exactly(800000 - read)
        assert sha256(body) == digest(large)
        for _, target in steps(lab, 4):
            reader.response(target)
        to_the_end(sock, reader)


def test_response_ended_by_close_swallows_nothing(lab):
    """Requests behind one whose response ends with the connection get none, and no other connection gets theirs."""
    for pause in (0, 0.005):
        with connection(lab) as (other, other_reader), connection(lab) as (sock, reader):
            ask(other, other_reader, steps(lab, 3))
            ask(sock, reader, steps(lab, 3, 1))
            sock.sendall(raw.head("/close/3000000"))
            time.sleep(pause)
            for _, target in steps(lab, 3, 2):
                sock.sendall(raw.head(target))
            reader.until(b"\r\n\r\n")
            with contextlib.suppress(EOFError, ConnectionResetError):  # the server did not read them: a reset is right
                while True:
                    reader.more()
            whole = content("/close/3000000", 3000000)
            assert whole.startswith(reader.data)
            ask(other, other_reader, steps(lab, 5))
            to_the_end(other, other_reader)


UPLOADS = {"plain": ("", ""), "extensions-and-trailers": (";n=\"a;b\";x", "A: b\r\nC: d\r\n")}


@pytest.mark.parametrize("form", UPLOADS)
@pytest.mark.parametrize("behind", ["waits", "glued"])
def test_chunked_upload_cut_anywhere(lab, form, behind):
    """In two segments, cut at each byte; the GET behind it comes after the answer, or with the upload's last bytes."""
    pieces = [b"0\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"]
    text = raw.head("/upload", "POST", Transfer_Encoding="chunked") + chunked(pieces, *UPLOADS[form])
    right = sha256(b"".join(pieces)).encode()
    (before,), ((_, target),) = steps(lab, 1), steps(lab, 1, 1)
    get = raw.head(target)
    pauses = itertools.cycle((0, 0.001, 0.003))
    for cut in range(1, len(text)):
        with connection(lab) as (sock, reader):
            ask(sock, reader, [before])
            sock.sendall(text[:cut])
            time.sleep(next(pauses))
            sock.sendall(text[cut:] + (get if behind == "glued" else b""))
            assert reader.response().text == right
            if behind == "waits":
                sock.sendall(get)
            reader.response(target)
            to_the_end(sock, reader)


@pytest.mark.parametrize("target", ["/upload", "/continue", "/early/200"])
@pytest.mark.parametrize("coding", ["length", "chunked"])
@pytest.mark.parametrize("waits", [True, False], ids=["waits", "at-once"])
def test_expectations(lab, target, coding, waits):
    """100-continue: given, not given, a final answer instead; the body at once or later. Then other requests."""
    body = os.urandom(3000)
    fields = {"Content_Length": len(body)} if coding == "length" else {"Transfer_Encoding": "chunked"}
    wire = body if coding == "length" else chunked([body[:1000], body[1000:]])
    with connection(lab) as (sock, reader):
        for number in range(4):
            for _, other in steps(lab, 2, number):  # where they are served is not the matter here
                sock.sendall(raw.head(other))
                reader.response(other)
            request = raw.head(f"{target}?{number}", "POST", Expect="100-continue", **fields)
            sock.sendall(request + (b"" if waits else wire))
            if waits and target == "/continue":
                assert reader.response(interim=True).status == 100
            if waits:
                time.sleep(0.005)
                sock.sendall(wire)
            right = content(f"{target}?{number}", 200) if "early" in target else sha256(body).encode()
            assert reader.response().text == right
        to_the_end(sock, reader)


def test_websocket_with_requests_in_its_frames(lab):
    """10,000 frames that read like HTTP on the wire, on two connections, while others move."""
    lure = [raw.head(target) for _, target in steps(lab, 8)]
    with Mover(lab), Mover(lab, 1), connection(lab) as one, connection(lab) as two:
        for number, (sock, reader) in enumerate((one, two)):
            ask(sock, reader, steps(lab, 3, number))
            sock.sendall(raw.head(f"/ws?{number}", Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Version=13,
                                  Sec_WebSocket_Key=base64.b64encode(bytes(16)).decode()))
            assert reader.response().status == 101
        for at in range(0, 10000, 25):
            (sock, reader) = (one, two)[at // 25 % 2]
            for text in (lure[(at + i) % 8] for i in range(25)):  # masked with zeros: each a segment that is a request
                sock.sendall(bytes((0x82, 128 | len(text))) + bytes(4) + text)
                assert reader.exactly(2 + len(text)) == bytes((0x82, len(text))) + text
            if at % 1000 == 0:
                large = random.randbytes(30000)
                sock.sendall(frame(large))
                assert reader.exactly(4)[:2] == b"\x82\x7e" and reader.exactly(30000) == large
        for sock, reader in (one, two):
            assert reader.data == b""


@pytest.mark.parametrize("end", ["half-close", "half-close-later", "reset"])
def test_client_that_ends_with_a_moving_request(lab, end):
    """The FIN or RST right behind the request meets the connection on its way to another node."""
    for number in range(40):
        with connection(lab) as (sock, reader):
            asked = steps(lab, 4, number)
            ask(sock, reader, asked[:3])
            port = sock.getsockname()[1]
            sock.sendall(raw.head(asked[3][1]))
            if end == "reset":
                raw.reset(sock)
            else:
                time.sleep(0.0005 * (end == "half-close-later"))
                sock.shutdown(socket.SHUT_WR)
                reader.response(asked[3][1])
                with pytest.raises(EOFError):
                    reader.more()
                assert reader.data == b""
        wait_for(lambda port=port: all("TIME-WAIT" in line for lines in raw.sockets_everywhere(lab, port).values()
                                       for line in lines), f"no socket of port {port}", 8)
