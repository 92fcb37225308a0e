# SPDX-License-Identifier: GPL-2.0-or-later
"""inspect = every, byte by byte: whatever client and server do on a connection, nothing is lost, doubled or mixed up."""
import base64
import contextlib
import hashlib
import itertools
import os
import socket
import struct
import threading
import time

import pytest

from cluster.every import homes, start_backends
from earshotlab import Lab, wait_for
from web import raw
from web.backend import content
from web.frames import chunked, frame
from web.reader import Reader, connection

pytestmark = pytest.mark.earshot

NODES = 4
EVERY = {"service.inspect": "every", "service.load_bound": 0}


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=NODES, policy="uri-hash", server="none", settings=EVERY) as lab:
        start_backends(lab, "backend")
        lab.homes = homes(lab, (f"/len/{300 + 37 * number}?{number}" for number in itertools.count()), 12)
        yield lab


def rotation(lab, count, step=1):
    """Targets each of which lives on another node than the one before."""
    lists = list(lab.homes.values())
    return [lists[i * step % len(lists)][i // len(lists) % 12] for i in range(count)]


def good(lab, sock, reader, targets):
    """Requests one after the other, each served by its own node."""
    by_target = {target: node for node, targets in lab.homes.items() for target in targets}
    for target in targets:
        sock.sendall(raw.head(target))
        assert reader.response(target).node == by_target[target], target


def pins(lab):
    return {name: value for node in lab.nodes for name, value in lab.counters(node.name).items() if name.startswith("pin_")
            and value}


def pin_total(lab, name):
    return raw.total(lab, f"pin_{name}")


def test_a_thousand_requests_on_one_connection(lab):
    before = raw.total(lab, "inspect_moved", "inspect_stayed"), raw.total(lab, "syn_answered")
    with connection(lab) as (sock, reader):
        good(lab, sock, reader, rotation(lab, 1000))
        port = sock.getsockname()[1]
        assert sum(len(raw.sockets(node, port)) for node in lab.nodes) == 1  # one socket, on one node
    assert raw.total(lab, "inspect_moved", "inspect_stayed") == before[0] + 999
    assert raw.total(lab, "syn_answered") == before[1] + 1


@pytest.mark.parametrize("step", [1, 2, 3])
def test_there_and_back(lab, step):
    """A, B, A, C, …: a node meets connections that it had before."""
    nodes = list(lab.homes)
    names = [nodes[1 + i // 2 * step % (NODES - 1) if i % 2 else 0] for i in range(200)]
    with connection(lab) as (sock, reader):
        good(lab, sock, reader, [lab.homes[name][i % 12] for i, name in enumerate(names)])


@pytest.mark.parametrize("depth", [2, 5, 20, 50])
def test_pipelined(lab, depth):
    targets = rotation(lab, depth)
    before = pin_total(lab, "pipelined")
    with connection(lab) as (sock, reader):
        sock.sendall(b"".join(raw.head(target) for target in targets))
        nodes = {reader.response(target).node for target in targets}
        assert len(nodes) == 1
        sock.sendall(raw.head(targets[0]))  # pinned for good
        assert reader.response(targets[0]).node in nodes
        reader.nothing()
    assert pin_total(lab, "pipelined") == before + 1


def test_pipelined_and_cut_anywhere(lab):
    """After a good request, three at once in two segments, cut at each byte."""
    targets = rotation(lab, 4)
    text = b"".join(raw.head(target) for target in targets[1:])
    for cut in range(1, len(text)):
        with connection(lab) as (sock, reader):
            good(lab, sock, reader, targets[:1])
            sock.sendall(text[:cut])
            if cut % 3 == 0:
                time.sleep(0.002)
            sock.sendall(text[cut:])
            for target in targets[1:]:
                reader.response(target)
            assert reader.data == b""


def test_next_request_during_a_slow_response(lab):
    """The server pauses between chunks, and the client does not wait: the connection must not leave."""
    for delay in (0.0, 0.005, 0.03, 0.07):
        with connection(lab) as (sock, reader):
            good(lab, sock, reader, rotation(lab, 2))
            sock.sendall(raw.head("/chunks/6/20"))
            time.sleep(delay)
            following = rotation(lab, 3)
            for target in following:
                sock.sendall(raw.head(target))
            slow = reader.response()
            assert slow.text == b"".join(content(f"/chunks/6/20 {number}", 100) for number in range(6))
            for target in following:
                assert reader.response(target).node == slow.node
            reader.nothing()


def test_after_a_slow_response(lab):
    """Who waits for its end may move again."""
    with connection(lab) as (sock, reader):
        for _ in range(4):
            sock.sendall(raw.head("/chunks/3/10"))
            assert reader.response().size == 300
            good(lab, sock, reader, rotation(lab, 5))


@pytest.mark.parametrize("target,method,status", [
    ("/len/5000", "HEAD", 200), ("/status/204", "GET", 204), ("/status/304", "GET", 304), ("/hints/500", "GET", 200),
    ("/status/500", "GET", 500)])


def test_responses_without_a_body_and_interim_ones(lab, target, method, status):
    with connection(lab) as (sock, reader):
        for _ in range(3):
            good(lab, sock, reader, rotation(lab, 5))
            sock.sendall(raw.head(target, method))
            assert reader.response(None, method).status == status
        good(lab, sock, reader, rotation(lab, 5))
        reader.nothing()


def test_response_that_ends_with_the_connection(lab):
    with connection(lab) as (sock, reader):
        good(lab, sock, reader, rotation(lab, 3))
        sock.sendall(raw.head("/close/70000"))
        reader.until(b"\r\n\r\n")
        with contextlib.suppress(EOFError):
            while True:
                reader.more()
        assert reader.data == content("/close/70000", 70000)


@pytest.mark.parametrize("extension,trailers", [("", ""), (";name=\"v\";x", ""), ("", "A: b\r\nC: d\r\n"), (";e", "A: b\r\n")])
@pytest.mark.parametrize("cut", [None, 1, 40], ids=["at-once", "bytes", "pieces"])
def test_chunked_upload(lab, extension, trailers, cut):
    pieces = [b"GET / HTTP/1.1\r\n\r\n", b"0\r\n\r\n", os.urandom(100)]
    body = chunked(pieces, extension, trailers)
    with connection(lab) as (sock, reader):
        good(lab, sock, reader, rotation(lab, 3))
        request = raw.head("/upload", "POST", Transfer_Encoding="chunked")
        if cut:
            sock.sendall(request)
            for at in range(0, len(body), cut):
                sock.sendall(body[at:at + cut])
        else:
            sock.sendall(request + body)
        assert reader.response().text == hashlib.sha256(b"".join(pieces)).hexdigest().encode()
        if cut:  # the rest of its body came uninspected: it stays
            for target in rotation(lab, 3):
                sock.sendall(raw.head(target))
                reader.response(target)
        else:
            good(lab, sock, reader, rotation(lab, 5))
        reader.nothing()


@pytest.mark.parametrize("size", [0, 1, 1000, 20000, 3000000])
def test_upload(lab, size):
    body = os.urandom(size)
    with connection(lab) as (sock, reader):
        for number in range(4):
            good(lab, sock, reader, rotation(lab, 3))
            sock.sendall(raw.head(f"/upload?{number}", "POST", Content_Length=size) + body)
            assert reader.response().text == hashlib.sha256(body).hexdigest().encode()
        good(lab, sock, reader, rotation(lab, 3))
        reader.nothing()


def test_expect_continue(lab):
    body = os.urandom(5000)
    with connection(lab) as (sock, reader):
        for number in range(4):
            good(lab, sock, reader, rotation(lab, 3))
            sock.sendall(raw.head(f"/continue?{number}", "POST", Content_Length=len(body), Expect="100-continue"))
            assert reader.response(interim=True).status == 100
            sock.sendall(body)
            assert reader.response().text == hashlib.sha256(body).hexdigest().encode()
        good(lab, sock, reader, rotation(lab, 3))


def test_early_response(lab):
    """The answer is complete before the request is: its body belongs to nobody else."""
    body = os.urandom(40000)
    with connection(lab) as (sock, reader):
        for number in range(4):
            target = f"/early/200?{number}"
            sock.sendall(raw.head(target, "POST", Content_Length=len(body)))
            sock.sendall(body[:20000])
            assert reader.response().text == content(target, 200)
            sock.sendall(body[20000:])
            for following in rotation(lab, 3):
                sock.sendall(raw.head(following))
                reader.response(following)
        reader.nothing()


class Traffic(threading.Thread):
    """Connections that move all the time, until it is ended."""

    def __init__(self, lab):
        super().__init__(daemon=True)
        self.lab, self.error, self.requests, self.ended = lab, None, 0, threading.Event()
        self.sock = raw.connect(lab.client)
        self.start()

    def run(self):
        try:
            with self.sock:
                reader = Reader(self.sock)
                while not self.ended.is_set():
                    good(self.lab, self.sock, reader, rotation(self.lab, 8))
                    self.requests += 8
        except (OSError, EOFError, AssertionError) as error:
            self.error = error

    def end(self):
        self.ended.set()
        self.join(20)
        assert self.error is None and self.requests, self.error


def test_websocket(lab):
    """10,000 frames through Upgrade, while other connections move."""
    before = pin_total(lab, "upgrade")
    others = [Traffic(lab) for _ in range(3)]
    with connection(lab) as (sock, reader):
        good(lab, sock, reader, rotation(lab, 3))
        sock.sendall(raw.head("/ws", Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Version=13,
                              Sec_WebSocket_Key=base64.b64encode(bytes(16)).decode()))
        assert reader.response().status == 101
        for at in range(0, 10000, 50):
            messages = [b"%d " % number * (1 + number % 40) for number in range(at, at + 50)]
            sock.sendall(b"".join(frame(message) for message in messages))
            for message in messages:
                first, size = reader.exactly(2)
                size = size if size < 126 else struct.unpack(">H", reader.exactly(2))[0]
                assert (first, reader.exactly(size)) == (0x82, message)
    for other in others:
        other.end()
    assert pin_total(lab, "upgrade") == before + 1


SMUGGLING = {
    "length-and-chunked": b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 44\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two-lengths": b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 39\r\n\r\n",
    "bare-cr": b"GET /len/10 HTTP/1.1\r\nHost: x\rContent-Length: 39\r\n\r\n",
    "folded": b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n 39\r\n\r\n",
    "space-before-colon": b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length : 39\r\n\r\n",
    "chunk-size-overflow": b"POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000002\r\n",
    "bare-lf": b"GET /len/10 HTTP/1.1\nHost: x\n\n",
    "coding-list": b"POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("shape", SMUGGLING)
@pytest.mark.parametrize("together", [True, False], ids=["one-segment", "two-segments"])
def test_smuggling(lab, shape, together):
    """What hides behind the odd request never moves and never gets at another client's connection."""
    hidden = raw.head("/len/77?hidden")
    with connection(lab) as (victim, victim_reader), connection(lab) as (sock, reader):
        good(lab, victim, victim_reader, rotation(lab, 3))
        good(lab, sock, reader, rotation(lab, 3))
        moved = raw.total(lab, "inspect_moved")
        if together:
            sock.sendall(SMUGGLING[shape] + hidden)
        else:
            sock.sendall(SMUGGLING[shape])
            sock.sendall(hidden)
        answers = b""
        sock.settimeout(1)
        with contextlib.suppress(socket.timeout, ConnectionResetError):
            while piece := sock.recv(65536):
                answers += piece
        assert answers.startswith(b"HTTP/1.1 "), answers
        # Nobody else sends requests, so this counts the odd connection's moves only.
        assert raw.total(lab, "inspect_moved") == moved
        assert {line.split()[1] for line in answers.split(b"\r\n") if line.startswith(b"X-Node")}.__len__() == 1
        good(lab, victim, victim_reader, rotation(lab, 8))
        victim_reader.nothing()


def test_flows(lab):
    """`earshot flows` on the node that has the connection, and on no other."""
    with connection(lab) as (sock, reader):
        targets = rotation(lab, 9)
        good(lab, sock, reader, targets)
        port = sock.getsockname()[1]

        def shown():
            return {node.name: flow for node in lab.nodes for flow in node.ask({"command": "flows"})["flows"]
                    if flow["port"] == port}

        (name, flow), = shown().items()
        assert targets[-1] in lab.homes[name]
        assert (flow["state"], flow["requests"], flow["moves"], flow["pin"]) == ("idle", 9, 8, "none")
        node = next(node for node in lab.nodes if node.name == name)
        text = node.exec(["earshot", "flows"]).stdout
        assert any(line.split() == [lab.net.client_address, str(port), "web", "idle", "9", "8", "none"]
                   for line in text.splitlines()), text
    wait_for(lambda: not shown(), "the connection gone")


def test_reload_between_first_and_every(lab):
    """Connections that were made before stay where they are, those made after move; none breaks."""
    config = lab.config_file
    with open(config, encoding="utf-8") as handle:
        every = handle.read()
    with connection(lab) as (old, old_reader):
        good(lab, old, old_reader, rotation(lab, 4))
        try:
            for text in (every.replace("inspect = every", "inspect = first"), every):
                assert text != every or "inspect = every" in text
                with open(config, "w", encoding="utf-8") as handle:
                    handle.write(text)
                for node in lab.nodes:
                    node.exec(["earshot", "reload"])
                for target in rotation(lab, 6):
                    old.sendall(raw.head(target))
                    old_reader.response(target)
                with connection(lab) as (sock, reader):
                    for target in rotation(lab, 6):
                        sock.sendall(raw.head(target))
                        reader.response(target)
        finally:
            with open(config, "w", encoding="utf-8") as handle:
                handle.write(every)
            for node in lab.nodes:
                node.exec(["earshot", "reload"])
    with connection(lab) as (sock, reader):
        good(lab, sock, reader, rotation(lab, 8))


def test_daemon_restarts_under_connections(lab):
    """earshotd ends and starts again on every node: no connection breaks; those that were asked meanwhile stay."""
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(connection(lab)) for _ in range(8)]
        for sock, reader in many:
            good(lab, sock, reader, rotation(lab, 3))
        for node in lab.nodes:
            node.signal("earshotd")
        for sock, reader in many[:4]:
            target = rotation(lab, 1)[0]
            sock.sendall(raw.head(target))
            reader.response(target)
        for node in lab.nodes:
            node.start("earshotd")
        for sock, reader in many[4:]:
            good(lab, sock, reader, rotation(lab, 8))
        for sock, reader in many[:4]:
            for target in rotation(lab, 4):
                sock.sendall(raw.head(target))
                reader.response(target)
