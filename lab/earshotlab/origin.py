# SPDX-License-Identifier: GPL-2.0-or-later
"""What nginx cannot answer by itself: one small HTTP server on a Unix socket, behind all nodes' nginx.

    POST, PUT /upload    reads the whole body; {"node": ..., "bytes": ..., "sha256": ...}
    GET, POST /slow/MS   answers after MS milliseconds
    GET /chunked/N       N chunks of 1000 bytes
    GET /drip/N          N chunks of 10 bytes, one in 100 ms
    GET /upgrade         101, then echoes what it gets until the client closes its side

Run as: python3 origin.py SOCKET
"""
import contextlib
import hashlib
import http.server
import json
import os
import socketserver
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def address_string(self):
        return "nginx"  # the peer of a Unix socket has no address

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def node(self):
        return self.headers.get("X-Node", "")

    def answer(self, status, body, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def asked(self):
        """("slow", "100") of /slow/100"""
        return (self.path.split("?")[0] + "//").split("/")[1:3]

    @staticmethod
    def drops(count):
        for number in range(count):
            yield b"%010d" % number
            time.sleep(0.1)

    def body(self):
        """The request's body in pieces; nginx always tells its length, also of a chunked one."""
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            piece = self.rfile.read(min(left, 1 << 16))
            if not piece:
                raise ConnectionError("the body ended early")
            left -= len(piece)
            yield piece

    def slow(self, argument):
        time.sleep(min(int(argument), 60000) / 1000)
        self.answer(200, f"{self.node()}\n".encode())

    def chunks(self, chunks):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def upload(self):
        digest, size = hashlib.sha256(), 0
        for piece in self.body():
            digest.update(piece)
            size += len(piece)
        what, argument = self.asked()
        if what == "slow" and argument.isdigit():
            self.slow(argument)
            return
        result = {"node": self.node(), "bytes": size, "sha256": digest.hexdigest()}
        self.answer(200, json.dumps(result).encode(), "application/json")

    do_POST = do_PUT = upload

    def do_GET(self):
        what, argument = self.asked()
        if what == "slow" and argument.isdigit():
            self.slow(argument)
        elif what == "chunked" and argument.isdigit():
            self.chunks(b"%010d" % number * 100 for number in range(int(argument)))
        elif what == "drip" and argument.isdigit():
            self.chunks(self.drops(int(argument)))
        elif what == "upgrade":
            self.send_response(101)
            self.send_header("Upgrade", self.headers.get("Upgrade", "echo"))
            self.send_header("Connection", "upgrade")
            self.end_headers()
            self.close_connection = True
            while piece := self.rfile.read1(1 << 16):
                self.wfile.write(piece)
        else:
            self.answer(404, b"no such thing\n")


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        pass  # a client that goes away in the middle is an ordinary thing in a lab


def main():
    with contextlib.suppress(FileNotFoundError):
        os.unlink(sys.argv[1])
    with Server(sys.argv[1], Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
