# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that speaks first, as those of mail do: `web.greeter NODE ADDRESS PORT` says "220 NODE", then answers each line with
"250 NODE " and the line, until "QUIT"."""
import socket
import socketserver
import sys


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        try:
            self.wfile.write(f"220 {NODE}\r\n".encode())
            for line in self.rfile:
                self.wfile.write(f"250 {NODE} ".encode() + line)
                if line.startswith(b"QUIT"):
                    break
        except OSError:
            pass  # its client has gone: a check, most often


if __name__ == "__main__":
    NODE, ADDRESS, PORT = sys.argv[1:]
    Server.address_family = socket.AF_INET6 if ":" in ADDRESS else socket.AF_INET
    with Server((ADDRESS, int(PORT)), Handler) as server:
        server.serve_forever()
