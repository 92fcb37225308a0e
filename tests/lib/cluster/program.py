#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An inspector as in Fig. 3 of the DTS paper, which does what the request's head says: program.py LIBRARY ADDRESS PORT

    X-To: n2, n3     the nodes that are asked to take the connection, one after the other; "self" is this one
    X-Read: N        not more than N bytes are read before that (default 4096); none with 0
    X-Linger: MS     so long it waits before, while the client may go on sending
    X-Hello: N       before that it answers itself: 200 with N bytes, and waits until the client has them, and for the
                     head of the next request
    X-Give: N        the last N bytes that were read are given back; with "more", one byte more than there were

If nobody takes it, it answers itself: 299 with the list of what request_handover() returned, and reads on.
"""
import ctypes
import errno
import json
import socket
import socketserver
import sys
import time


PATIENCE = 5


def library(path):
    loaded = ctypes.CDLL(path)
    loaded.request_handover.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    return loaded


def fields(text):
    lines = text.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


class Program(socketserver.BaseRequestHandler):
    """One connection."""

    def read(self, limit):
        data = b""
        while len(data) < limit and b"\r\n\r\n" not in data:
            piece = self.request.recv(limit - len(data))
            if not piece:
                break
            data += piece
        return data

    def handle(self):
        try:
            while self.one():
                pass
        except OSError as error:
            print(f"{self.client_address}: {error}", file=sys.stderr, flush=True)

    def one(self):
        # Looked at first, so that X-Read can say how much of it is read.
        head, since, pause = b"", time.monotonic(), 0.001
        while b"\r\n\r\n" not in head:
            before, head = head, self.request.recv(65536, 2)  # MSG_PEEK
            if not head or time.monotonic() > since + PATIENCE:  # the rest of a body that nobody took, and no request
                return False
            if head == before:
                time.sleep(pause)
                pause = min(2 * pause, 0.1)
        said = fields(head)
        data = self.read(int(said.get("x-read", 4096))) if said.get("x-read") != "0" else b""
        if "x-hello" in said:
            size = int(said["x-hello"])
            self.request.sendall(b"HTTP/1.1 200 OK\r\nX-Node: program\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
            return True
        time.sleep(int(said.get("x-linger", 0)) / 1000)
        given = data
        if said.get("x-give") == "more":
            given = b"?" + data
        elif "x-give" in said:
            given = data[len(data) - int(said["x-give"]):]
        results = []
        for node in filter(None, (name.strip() for name in said.get("x-to", "self").split(","))):
            name = None if node == "self" else node.encode()
            results.append(self.server.lib.request_handover(self.request.fileno(), name, given, len(given)))
            if results[-1] in (0, -errno.ECONNRESET, -errno.ETIMEDOUT):
                return False
        while b"\r\n\r\n" not in data:
            data += self.request.recv(65536)
        body = json.dumps(results).encode()
        self.request.sendall(b"HTTP/1.1 299 Kept\r\nX-Node: program\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        return True


class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6 if ":" in "".join(sys.argv[2:3]) else socket.AF_INET
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def shutdown_request(self, request):
        request.close()  # and no shutdown(): the connection may be another's by now


if __name__ == "__main__":
    with Server((sys.argv[2], int(sys.argv[3])), Program) as server:
        server.lib = library(sys.argv[1])
        server.serve_forever()
