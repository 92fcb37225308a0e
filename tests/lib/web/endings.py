# SPDX-License-Identifier: GPL-2.0-or-later
"""backend.py, and servers that end connections in ways of their own: python3 -m web.endings NODE ADDRESS PORT

    /more/MS    an answer of 10 bytes as of /len, and MS milliseconds later bytes that nobody asked for
    /bye/MS     such an answer; MS milliseconds later the server closes, which it did not announce
    /reset/MS   the same with a RST
    /late/N     N bytes as of /len, once the client has closed its side; in front of them what it sent until then
"""
import socket
import struct
import time

from web import backend


class Handler(backend.Handler):
    """The same, and those."""

    def respond(self):
        _, what, *rest = self.target.split("?")[0].split("/")
        if what not in ("more", "bye", "reset", "late"):
            return super().respond()
        if what == "late":
            heard = self.rfile.read()
            self.reply(200, heard + backend.content(self.target, int(rest[0])))
            return False
        self.reply(200, backend.content(self.target, 10))
        time.sleep(int(rest[0]) / 1000)
        if what == "more":
            self.wfile.write(b"nobody asked for this")
            return True
        if what == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        return False


if __name__ == "__main__":
    backend.serve(Handler)
