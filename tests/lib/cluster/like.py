#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that hands its connections over to others of its kind, as earshot-tls does: like.py LIBRARY NODE PORT ADDRESS...

It reads lines. "to NODE" has it hand the connection over, whose program reads the same line with "!" as its first byte, and says that it took it. Any
other line is answered with the node's name. If a handover is refused, it says so and serves on.
"""
import ctypes
import os
import socket
import socketserver
import sys
import threading


class Like(socketserver.BaseRequestHandler):
    """One connection."""

    def line(self):
        data = b""
        while not data.endswith(b"\n"):
            piece = self.request.recv(1)
            if not piece:
                return b""
            data += piece
        return data

    def handle(self):
        while line := self.line():
            text = self.server.node
            if line.startswith(b"to "):
                given = b"!" + line[1:]
                result = self.server.library.request_handover(self.request.fileno(), line[3:].strip(), given, len(given))
                if result == 0:
                    return
                text += f" kept it: {os.strerror(-result)}"
            elif line.startswith(b"!"):
                text += " took it"
            self.request.sendall(text.encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    """Listens whether the address is there already or not."""
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, node, library, address, port):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.node, self.library = node, library
        super().__init__((address, port), Like)

    def server_bind(self):
        self.socket.setsockopt(socket.SOL_IP, 15, 1)  # IP_FREEBIND
        super().server_bind()

    def shutdown_request(self, request):
        request.close()  # and no shutdown(): the connection may be another's by now


if __name__ == "__main__":
    loaded = ctypes.CDLL(sys.argv[1])
    loaded.request_handover.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    for at in sys.argv[4:]:
        threading.Thread(target=Server(sys.argv[2], loaded, at, int(sys.argv[3])).serve_forever).start()
