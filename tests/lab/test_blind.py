# SPDX-License-Identifier: GPL-2.0-or-later
"""A service that nobody inspects: servers that speak first, with real clients of several kinds."""
import collections
import contextlib
import socket
import threading

import pytest

from earshotlab import Lab, netns, topology
from web import raw

pytestmark = pytest.mark.earshot

CLIENTS = {
    "plain": {"tcp_timestamps": 1, "tcp_sack": 1, "tcp_window_scaling": 1},
    "no-timestamps": {"tcp_timestamps": 0, "tcp_sack": 1, "tcp_window_scaling": 1},
    "nothing": {"tcp_timestamps": 0, "tcp_sack": 0, "tcp_window_scaling": 0},
}


def serve(listener, name):
    def one(connection):
        with connection, contextlib.suppress(OSError):
            connection.sendall(f"220 {name} ready\r\n".encode())
            connection.sendall(b"250 " + connection.recv(1000))

    with contextlib.suppress(OSError):
        while True:
            threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="ring", server="none") as lab, contextlib.ExitStack() as stack:
        for node in lab.nodes:
            listener = stack.enter_context(node.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((topology.VIP, topology.PORT))
            listener.listen(64)
            threading.Thread(target=serve, args=(listener, node.name), daemon=True).start()
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
        yield lab


@pytest.mark.parametrize("kind", CLIENTS)
def test_server_speaks_first(lab, kind):
    """Each connection hears its own node's server, and is heard; the ring spreads them."""
    netns.set_sysctls(lab.net.client, {f"net.ipv4.{name}": value for name, value in CLIENTS[kind].items()})
    greeted = collections.Counter()
    for number in range(30):
        with raw.connect(lab.client) as sock:
            greeted[sock.recv(100).decode()] += 1
            sock.sendall(b"EHLO %d\r\n" % number)
            assert sock.recv(100) == b"250 EHLO %d\r\n" % number
            assert sock.recv(100) == b""
    assert set(greeted) == {f"220 {name} ready\r\n" for name in ("n1", "n2", "n3")}
    assert raw.total(lab, "handshake_blind") >= 30
