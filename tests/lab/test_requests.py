# SPDX-License-Identifier: GPL-2.0-or-later
"""First requests as they come in the wild: in pieces, large, late, never, or no HTTP at all."""
import contextlib
import hashlib
import json
import random
import socket
import threading
import time

import pytest

from earshotlab import Lab, wait_for
from web import raw

pytestmark = pytest.mark.earshot

LATE_S = 90


class Late(threading.Thread):
    """A client that connects now and sends its request after a long time, while other tests run."""

    def __init__(self, lab):
        super().__init__(daemon=True)
        self.sock = raw.connect(lab.client)
        self.connected = time.monotonic()
        self.result = None
        self.start()

    def run(self):
        time.sleep(LATE_S)
        try:
            self.sock.sendall(raw.head("/u/1k/late"))
            self.result = raw.receive(self.sock)
        except (OSError, EOFError) as error:
            self.result = error


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="uri-hash") as lab:
        lab.late = [Late(lab) for _ in range(3)]
        yield lab


def homes(lab, count=9):
    """URIs and the nodes that serve them; every node is there."""
    uris = [f"/u/1k/{number}" for number in range(count)]
    found = {uri: raw.ask(lab.client, raw.head(uri, Connection="close"))[0].node for uri in uris}
    assert set(found.values()) == {"n1", "n2", "n3"}
    return found


def served(lab, uri, pieces, pause=0.0):
    """Send a request in pieces; the answer is right. Returns the node that gave it."""
    with raw.connect(lab.client) as sock:
        for piece in pieces:
            sock.sendall(piece)
            if pause:
                time.sleep(pause)
        response = raw.receive(sock)
        assert raw.right(response, "1k"), (uri, response.status, response.fields)
        return response.node


@pytest.mark.parametrize("pause", [0.0, 0.002], ids=["at-once", "with-pauses"])
def test_head_in_one_byte_segments(lab, pause):
    """The client stops after ten segments until it hears an ACK: what is there by then decides, without the URI."""
    before = raw.total(lab, "inspect_gathered")
    for uri in homes(lab):
        data = raw.head(uri)
        begin = time.monotonic()
        served(lab, uri, [data[i:i + 1] for i in range(len(data))], pause)
        assert time.monotonic() - begin < 1 + 2 * len(data) * pause
    assert raw.total(lab, "inspect_gathered") >= before + 9


def test_head_in_three_segments(lab):
    for uri, node in homes(lab).items():
        data = raw.head(uri)
        for cuts in ((6, 12), (3, len(data) - 1), (len(data) - 3, len(data) - 2)):
            for pause in (0, 0.02, 0.06):  # longer than a tail loss probe takes
                pieces = [data[:cuts[0]], data[cuts[0]:cuts[1]], data[cuts[1]:]]
                assert served(lab, uri, pieces, pause) == node, (uri, cuts, pause)


def test_large_head(lab):
    """12 KB of cookies, in two lines, because nginx takes no longer ones."""
    cookie = "c=" + "".join(random.choices("abcdefghij", k=6000))
    for uri, node in homes(lab).items():
        data = raw.head(uri, Cookie=cookie + "\r\nCookie: " + cookie)
        assert len(data) > 12000
        assert served(lab, uri, [data]) == node
        assert served(lab, uri, [data[at:at + 3000] for at in range(0, len(data), 3000)], 0.005) == node


def test_large_upload(lab):
    body = random.randbytes(20 << 20)
    for _ in range(3):
        with raw.connect(lab.client, timeout=30) as sock:
            sock.sendall(raw.head("/upload", "POST", Content_Length=len(body)) + body)
            response = raw.receive(sock)
        answer = json.loads(response.text)
        assert answer["bytes"] == len(body) and answer["sha256"] == hashlib.sha256(body).hexdigest()


def test_upload_expects_100_continue(lab, tmp_path):
    body = random.randbytes(3 << 20)
    (tmp_path / "body").write_bytes(body)
    begin = time.monotonic()
    done = lab.client_run(["curl", "-sS", "--max-time", "20", "--expect100-timeout", "10", "-v",
                           "-H", "Expect: 100-continue", "--data-binary", f"@{tmp_path}/body", lab.url("/upload")])
    assert json.loads(done.stdout)["sha256"] == hashlib.sha256(body).hexdigest()
    assert "100 Continue" in done.stderr
    assert time.monotonic() - begin < 8, "curl had to give up waiting for the 100"


def test_chunked_upload(lab):
    body = random.randbytes(300000)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[at:at + 7777]), body[at:at + 7777])
                      for at in range(0, len(body), 7777))
    response, _ = raw.ask(lab.client, raw.head("/upload", "POST", Transfer_Encoding="chunked") + chunks + b"0\r\n\r\n")
    assert json.loads(response.text)["sha256"] == hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize("end", ["fin", "reset"])
def test_clients_that_go_away(lab, end):
    """Connected, never asked: nothing is left on any node, and a FIN is answered at once."""
    before = raw.total(lab, "fin_before_request")
    gone = []
    for _ in range(20):
        sock = raw.connect(lab.client)
        gone.append(raw.name(sock))
        if end == "reset":
            raw.reset(sock)
            continue
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(3)
        assert sock.recv(1) == b""
        sock.close()
    if end == "fin":
        assert raw.total(lab, "fin_before_request") >= before + 20
    wait_for(lambda: not set(gone) & {line.split()[-1] for node in lab.nodes for line in raw.sockets(node)}, "no sockets")
    assert raw.ask(lab.client, raw.head("/1k"))[0].status == 200


def test_client_that_goes_away_within_its_head(lab):
    for end in ("fin", "reset"):
        with raw.connect(lab.client) as sock:
            port = sock.getsockname()[1]
            sock.sendall(b"GET /1k HT")
            time.sleep(0.02)
            if end == "reset":
                raw.reset(sock)
            else:
                sock.close()
        wait_for(lambda: all("TIME-WAIT" in line for lines in raw.sockets_everywhere(lab, port).values()
                             for line in lines), f"no socket of port {port} after {end}", 8)


def test_responses_without_body(lab):
    with raw.connect(lab.client) as sock:
        for method, target, status in (("HEAD", "/100k", 200), ("GET", "/status/204", 204), ("GET", "/status/304", 304),
                                       ("HEAD", "/none", 404), ("GET", "/1k", 200)) * 2:
            sock.sendall(raw.head(target, method))
            response = raw.receive(sock, body=(method, target) == ("GET", "/1k"))
            assert response.status == status
            assert response.size == (1024 if target == "/1k" else 0)
    for method, target, status in (("HEAD", "/100k", 200), ("GET", "/status/204", 204), ("GET", "/status/304", 304)):
        with raw.connect(lab.client) as sock:
            sock.sendall(raw.head(target, method, Connection="close"))
            response = raw.receive(sock, body=False)
            assert response.status == status and response.size == 0 and sock.recv(1) == b""


CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(32)) + b"\x00\x00\x04\x13\x01\x13\x02\x01\x00" + \
    b"\x00\x97" + bytes(0x97)
GARBAGE = {
    "tls": CLIENT_HELLO,
    "binary": bytes(range(128, 256)) * 8,
    "one-byte": b"\x00",
    "line-ends": b"\r\n\r\n\r\n\r\n",
    "words": b"hello world\r\n\r\n",
    "bare-lf": b"GET /1k HTTP/1.1\nHost: x\n\n",
    "nul": b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
    "h2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "big": b"\xff" * 30000,
    "two-lengths": b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "head-too-large": b"GET /1k HTTP/1.1\r\nHost: x\r\n" + b"X: %s\r\n" % (b"y" * 7000) * 8 + b"\r\n",
}
# What a server waits on for more, and so do we: behind it comes another line that no server takes.
UNFINISHED = ("one-byte", "line-ends")


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_is_answered_or_closed(lab, what):
    for _ in range(3):
        begin = time.monotonic()
        with raw.connect(lab.client, timeout=3) as sock:
            sock.sendall(GARBAGE[what])
            if what in UNFINISHED:
                time.sleep(0.05)
                sock.sendall(b"\x01nonsense\r\n\r\n")
            data = b""
            with contextlib.suppress(ConnectionResetError):
                data = sock.recv(65536)
        assert time.monotonic() - begin < 3
        if what == "bare-lf":
            assert data.startswith(b"HTTP/1.1 200 ")
        elif data:
            # 505 and the like: who takes it for HTTP at all answers so. HTTP/2 is answered in HTTP/2.
            assert data.startswith((b"HTTP/1.1 4", b"HTTP/1.1 505", b"<html>", b"\x00\x00")) or b"400" in data, data[:80]


def test_half_close_after_the_request(lab):
    for uri, node in homes(lab).items():
        with raw.connect(lab.client) as sock:
            sock.sendall(raw.head(uri))
            sock.shutdown(socket.SHUT_WR)
            response = raw.receive(sock)
            assert raw.right(response, "1k") and response.node == node
            assert sock.recv(1) == b""


def test_http_1_0_without_host(lab):
    """Another content than the same path of a host, and one all the same."""
    for uri in homes(lab):
        nodes = set()
        for _ in range(3):
            with raw.connect(lab.client) as sock:
                sock.sendall(raw.head(uri, version="HTTP/1.0", Host=None))
                response = raw.receive(sock)
                assert raw.right(response, "1k")
                assert sock.recv(1) == b""
            nodes.add(response.node)
        assert len(nodes) == 1, nodes


def test_many_idle_connections(lab):
    """As browsers do: connections in advance, used later. No node has a socket for them."""
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(raw.connect(lab.client)) for _ in range(500)]
        # Of a connection that was over before, with the same port, one may still wait.
        held = {line.split()[-1] for node in lab.nodes for line in raw.sockets(node) if not line.startswith("TIME-WAIT")}
        assert not {raw.name(sock) for sock in idle} & held
        random.shuffle(idle)
        nodes = set()
        for number, sock in enumerate(idle):
            sock.sendall(raw.head(f"/u/1k/idle{number}"))
        for sock in idle:
            response = raw.receive(sock)
            assert raw.right(response, "1k")
            nodes.add(response.node)
        assert nodes == {"n1", "n2", "n3"}


def test_keepalive_probes_before_the_request(lab):
    """A client that probes an idle connection is told that it lives, although no node has a socket for it."""
    def probing(sock):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 2)):
            sock.setsockopt(socket.IPPROTO_TCP, option, value)

    before = raw.total(lab, "keepalive_answered")
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(raw.connect(lab.client, before=probing)) for _ in range(6)]
        wait_for(lambda: raw.total(lab, "keepalive_answered") >= before + 6 * 5, "five probes each", 12)
        for sock in socks:
            sock.sendall(raw.head("/1k"))
            assert raw.right(raw.receive(sock), "1k")


def test_late_requests(lab):
    """Last, because it waits for clients that connected when the lab came up."""
    for late in lab.late:
        late.join(LATE_S + 20)
        assert isinstance(late.result, raw.Response), late.result
        assert raw.right(late.result, "1k")
        late.sock.close()
