# SPDX-License-Identifier: GPL-2.0-or-later
"""backend.py, listening with MPTCP: python3 -m web.mptcp NODE ADDRESS PORT"""
import socket

from web import backend

IPPROTO_MPTCP = 262


def is_there():
    """Does the kernel know it?"""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError:
        return False
    return True


class Server(backend.Server):
    """The same, on a socket of another protocol."""

    def server_bind(self):
        self.socket.close()
        self.socket = socket.socket(self.address_family, self.socket_type, IPPROTO_MPTCP)
        super().server_bind()


if __name__ == "__main__":
    backend.serve(backend.Handler, Server)
