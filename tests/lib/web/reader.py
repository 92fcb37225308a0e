# SPDX-License-Identifier: GPL-2.0-or-later
"""Responses of backend.py, read one after the other from a connection, and compared with what they must be."""
import contextlib
import functools
import hashlib
import socket

from web import raw
from web.backend import content


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def length(target):
    return int(target.split("/")[2].split("?")[0])


@functools.lru_cache(None)
def digest(target):
    """Of what backend.py answers."""
    return sha256(content(target, length(target)))


class Reader:
    """Responses of one connection, in order, read as RFC 9112 section 6.3 says."""

    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def more(self):
        piece = self.sock.recv(1 << 18)
        if not piece:
            raise EOFError(f"the connection ended after {self.data[:200]!r}")
        self.data += piece

    def until(self, end):
        while end not in self.data:
            self.more()
        text, _, self.data = self.data.partition(end)
        return text

    def exactly(self, size):
        while len(self.data) < size:
            self.more()
        text, self.data = self.data[:size], self.data[size:]
        return text

    def response(self, target=None, method="GET", interim=False):
        """The next response, or the next final one; with `target`, its body must be what that has (backend.py)."""
        text = self.until(b"\r\n\r\n")
        response = raw.Response(text)
        response.fields = {name.lower(): value.strip() for name, _, value in (
            line.partition(":") for line in text.decode("latin-1").split("\r\n")[1:])}
        if 100 <= response.status < 200 and response.status != 101 and not interim:
            return self.response(target, method)
        if method == "HEAD" or response.status < 200 or response.status in (204, 304):
            return response
        if response.fields.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self.until(b"\r\n").partition(b";")[0], 16):
                response.add(self.exactly(size))
                assert self.exactly(2) == b"\r\n"
            while self.until(b"\r\n"):
                pass
        else:
            response.add(self.exactly(int(response.fields.get("content-length", 0))))
        if target:
            assert (response.status, response.size) == (200, length(target)), (target, response.status, response.size)
            assert response.digest.hexdigest() == digest(target), target
        return response

    def nothing(self, seconds=0.05):
        """The server has no more to say."""
        assert self.data == b""
        self.sock.settimeout(seconds)
        with contextlib.suppress(socket.timeout):
            assert self.sock.recv(1) == b"", "bytes behind the last response"
        self.sock.settimeout(10)


@contextlib.contextmanager
def connection(lab):
    with raw.connect(lab.client) as sock:
        yield sock, Reader(sock)
