# SPDX-License-Identifier: GPL-2.0-or-later
"""An HTTP/1.1 server that answers as oddly as a test wants: python3 -m web.backend NODE ADDRESS,... PORT

    /len/N              N bytes that depend on the whole target; also for HEAD
    /status/N           an empty response with that status
    /slow/MS            10 bytes as of /len, after MS milliseconds
    /chunks/N/MS        N chunks, MS milliseconds between them
    /close/N            N bytes, no length: the response ends with the connection
    /upload             SHA-256 of the request's body, which may be chunked
    /continue           the same, after 100 Continue; also without Expect
    /early/N            the answer comes before the body of the request is read
    /hints/N            103 Early Hints, then as /len/N
    /ws                 WebSocket echo (RFC 6455)
    /head               the request's own target and fields, as JSON

Each response has X-Node: NODE. A request that it cannot read is answered with 400, and the connection closed.
"""
import base64
import hashlib
import json
import signal
import socket
import socketserver
import struct
import sys
import threading
import time

WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def content(target, size):
    """The body of a response; every target has its own. /mixed/SIZE has one in which nothing repeats."""
    if target.startswith("/mixed/"):
        return hashlib.shake_128(target.encode()).digest(size)
    seed = hashlib.sha256(target.encode()).digest()
    return (seed * (size // len(seed) + 1))[:size]


class BadRequest(Exception):
    """No request that this server understands."""


class Handler(socketserver.StreamRequestHandler):
    """One connection. Method, target, fields and body are the current request's."""

    disable_nagle_algorithm = True

    def handle(self):
        try:
            while self.read_head():
                if not self.respond():
                    break
        except BadRequest:
            self.reply(400, b"", Connection="close")
        except (OSError, EOFError):
            pass

    def line(self):
        text = self.rfile.readline(65537)
        if not text.endswith(b"\r\n"):
            if text:
                raise BadRequest
            raise EOFError
        return text[:-2]

    def read_head(self):
        try:
            first = self.line()
        except EOFError:
            return False
        words = first.split(b" ")
        if len(words) != 3 or words[2] != b"HTTP/1.1" or b"\r" in first:
            raise BadRequest
        self.method, self.target = words[0].decode("latin-1"), words[1].decode("latin-1")
        self.fields = {}
        while text := self.line():
            name, colon, value = text.partition(b":")
            name = name.decode("latin-1").lower()
            if not colon or name != name.strip() or b"\r" in text or name in self.fields:
                raise BadRequest
            self.fields[name] = value.strip().decode("latin-1")
        if "content-length" in self.fields and "transfer-encoding" in self.fields:
            raise BadRequest
        return True

    def body(self):
        """The pieces of the request's body."""
        if self.fields.get("transfer-encoding") == "chunked":
            while True:
                size = self.line().partition(b";")[0]
                if not 1 <= len(size) <= 15:
                    raise BadRequest
                try:
                    size = int(size, 16)
                except ValueError as error:
                    raise BadRequest from error
                if not size:
                    break
                yield self.exactly(size)
                if self.line():
                    raise BadRequest
            while self.line():
                pass
        else:
            left = int(self.fields.get("content-length", 0))
            while left:
                piece = self.exactly(min(left, 65536))
                left -= len(piece)
                yield piece

    def exactly(self, size):
        data = self.rfile.read(size)
        if len(data) != size:
            raise EOFError
        return data

    def head(self, status, **fields):
        fields = {"X-Node": NODE, **{name.replace("_", "-"): value for name, value in fields.items()}}
        lines = [f"HTTP/1.1 {status} Status"] + [f"{name}: {value}" for name, value in fields.items()]
        return "\r\n".join(lines + ["", ""]).encode()

    def reply(self, status, body, **fields):
        self.wfile.write(self.head(status, Content_Length=len(body), **fields) + (body if self.method != "HEAD" else b""))

    method = ""

    def respond(self):
        """Answer one request; returns whether the connection goes on."""
        _, what, *rest = self.target.split("?")[0].split("/") + [""]
        if what == "early":
            self.reply(200, content(self.target, int(rest[0])))
            for _ in self.body():
                pass
            return True
        if what == "continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        digest = hashlib.sha256()
        for piece in self.body():
            digest.update(piece)
        if what in ("upload", "continue"):
            self.reply(200, digest.hexdigest().encode())
        elif what == "status":
            self.wfile.write(self.head(int(rest[0])) if rest[0] in ("204", "304") else
                             self.head(int(rest[0]), Content_Length=0))
        elif what == "hints":
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            self.reply(200, content(self.target, int(rest[0])))
        elif what == "chunks":
            self.wfile.write(self.head(200, Transfer_Encoding="chunked"))
            for number in range(int(rest[0])):
                piece = content(f"{self.target} {number}", 100)
                self.wfile.write(b"%x;n=%d\r\n%s\r\n" % (len(piece), number, piece))
                time.sleep(int(rest[1]) / 1000)
            self.wfile.write(b"0\r\nX-Trailer: yes\r\n\r\n")
        elif what == "close":
            self.wfile.write(self.head(200) + content(self.target, int(rest[0])))
            return False
        elif what == "ws":
            self.websocket()
            return False
        elif what == "slow":
            time.sleep(int(rest[0]) / 1000)
            self.reply(200, content(self.target, 10))
        elif what == "head":
            self.reply(200, json.dumps({"target": self.target, **self.fields}).encode())
        elif what in ("len", "mixed"):
            self.reply(200, content(self.target, int(rest[0])))
        else:
            self.reply(404, b"")
        return self.fields.get("connection", "").lower() != "close"

    def websocket(self):
        accept = base64.b64encode(hashlib.sha1(self.fields["sec-websocket-key"].encode() + WEBSOCKET).digest()).decode()
        self.wfile.write(self.head(101, Upgrade="websocket", Connection="Upgrade", Sec_WebSocket_Accept=accept))
        while True:
            first, second = self.exactly(2)
            size = second & 127
            if size == 126:
                size, = struct.unpack(">H", self.exactly(2))
            mask = self.exactly(4) if second & 128 else bytes(4)
            data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(self.exactly(size)))
            if first & 15 == 8:
                return
            self.wfile.write(bytes((first,)) + (bytes((size,)) if size < 126 else struct.pack(">BH", 126, size)) + data)


class Server(socketserver.ThreadingTCPServer):
    """A thread a connection."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, address, handler):
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def server_bind(self):
        if self.address_family == socket.AF_INET6:  # beside one of IPv4
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        super().server_bind()


def servers(handler, kind=Server):
    """One for each address of the command line, which listen already."""
    return [kind((address, int(sys.argv[3])), handler) for address in sys.argv[2].split(",")]


def serve(handler, kind=Server):
    """Until SIGTERM, with the command line's name, addresses and port."""
    global NODE  # pylint: disable=global-statement
    NODE = sys.argv[1]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    for server in servers(handler, kind):
        server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("listening", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    serve(Handler)
