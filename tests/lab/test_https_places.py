# SPDX-License-Identifier: GPL-2.0-or-later
"""More clients than earshot-tls may have: those that say nothing, or wait, make room; while all are in use, others wait, also those that
another node moves here."""
import concurrent.futures
import contextlib
import ssl
import threading
import time

import pytest

from cluster import secure as cluster
from cluster.secure import ALL
from earshotlab import tls, wait_for
from web import raw
from web.backend import content

pytestmark = pytest.mark.earshot
MOST = 20  # of each node
HANDSHAKE_S = 10


@pytest.fixture(scope="module", name="lab")
def _lab():
    # Where the datapath reads the first bytes of TLS, for the home in a ticket, earshot-tls has no connection before these.
    with cluster.moving_lab({"tls.workers": 1, "tls.max_connections": MOST, "tls.resume": "ring"}) as lab:
        yield lab
        assert cluster.total(lab, "moves_lost") == 0


def silent(lab, data=b""):
    sock = raw.connect(lab.client, (lab.net.vip, tls.PORT))
    sock.sendall(data)
    return sock


def hello():
    """The first half of a ClientHello."""
    goes = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), goes, server_hostname="a").do_handshake()
    return goes.read()[:100]


def has_ended(sock):
    sock.setblocking(False)
    try:
        return not sock.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True


class Flood:
    """Connections that ask nothing, as many as three times what all nodes may have; another one for each that ends."""

    def __init__(self, lab, data):
        self.lab, self.data, self.socks, self.opened, self.is_over = lab, data, [], 0, False
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.is_over:
            self.socks = [sock for sock in self.socks if not (has_ended(sock) and not sock.close())]
            while len(self.socks) < 9 * MOST and not self.is_over:
                with contextlib.suppress(OSError):
                    self.socks.append(silent(self.lab, self.data))
                    self.opened += 1
            time.sleep(0.05)

    def __enter__(self):
        self.thread.start()
        wait_for(lambda: self.opened >= 9 * MOST, "the flood", 60)
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()
        for sock in self.socks:
            sock.close()


def open_connections(lab, node):
    counted = cluster.counters(lab, node)
    return counted["accepted"] - counted["ended"]


def ask(lab, node, target="/len/1000", timeout=60):
    sock, reader = cluster.connect(lab, timeout=timeout)
    sock.sendall(raw.head(target, X_To=node))
    response = reader.response()
    assert response.status == 200 and response.node == node
    return sock, reader


@pytest.mark.parametrize("data", [b"", hello()], ids=["silent", "slow"])
def test_flood(lab, data):
    """Connections without a handshake, or with a slow one, keep nobody out."""
    before = cluster.total(lab, "ousted_new")
    with Flood(lab, data):
        for node in ALL * 3:
            began = time.monotonic()
            ask(lab, node)[0].close()
            assert time.monotonic() - began < HANDSHAKE_S, "it waited until their time was over"
            assert all(open_connections(lab, each) <= MOST for each in ALL)
    assert cluster.total(lab, "ousted_new") > before


@pytest.mark.parametrize("data", [b"", hello()], ids=["silent", "slow"])
def test_handshake_takes_too_long(lab, data):
    """Without others it ends all the same."""
    began = time.monotonic()
    with silent(lab, data) as sock:
        sock.settimeout(3 * HANDSHAKE_S)
        with contextlib.suppress(ConnectionResetError):
            assert not sock.recv(1)
    assert HANDSHAKE_S - 1 < time.monotonic() - began < 3 * HANDSHAKE_S


def test_idle(lab):
    """The one that has waited longest for its next request is told, and goes; later ones are served."""
    before = cluster.counters(lab, "n1")["ousted_idle"]
    clients = [ask(lab, "n1") for _ in range(2 * MOST)]
    assert cluster.counters(lab, "n1")["ousted_idle"] - before >= MOST
    wait_for(lambda: open_connections(lab, "n1") <= MOST, "the end of those that were told", 20)
    with clients[0][0] as first:
        assert first.recv(1) == b""  # close_notify
    sock, reader = clients[-1]
    sock.sendall(raw.head("/len/77", X_To="n1"))
    assert reader.response("/len/77").text == content("/len/77", 77)
    for sock, _ in clients:
        sock.close()


def test_all_in_use(lab):
    """Those that come meanwhile get what they want when others have ended, by whatever node they come."""
    before = cluster.counters(lab, "n1")["full"]
    with concurrent.futures.ThreadPoolExecutor(3 * MOST) as pool:
        slow = [pool.submit(ask, lab, "n1", f"/slow/4000?{number}") for number in range(3 * MOST)]
        for each in slow:
            each.result()[0].close()
    assert cluster.counters(lab, "n1")["full"] > before
    wait_for(lambda: not any(open_connections(lab, node) for node in ALL), "the end of all", 60)


def test_reload(lab):
    """Another bound holds from then on."""
    wait_for(lambda: not any(seen["failing"] for node in ALL for seen in lab.status(node)["nodes"]), "the checks that came while all were in use", 30)
    with cluster.changed(lab) as change:
        change(f"max_connections = {MOST}", "max_connections = 5")
        clients = [ask(lab, "n1") for _ in range(15)]
        wait_for(lambda: open_connections(lab, "n1") <= 5, "no more than five", 20)
    for sock, _ in clients:
        sock.close()
