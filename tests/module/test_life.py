# SPDX-License-Identifier: GPL-2.0-or-later
"""Loading and unloading while connections are open and requests come in."""
import os
import threading
import time

from earshotlab import Lab, topology
from ko import FILE, load, unload

ROUNDS = int(os.environ.get("EARSHOT_UNLOADS") or 10)


def _unloaded():
    """Who was killed lets go of the module a moment later."""
    deadline = time.monotonic() + 20
    while unload():
        assert time.monotonic() < deadline, "the module is still in use"
        time.sleep(0.02)


def _serve(lab, nodes):
    for node in nodes:
        lab.start(node, "earshotd")
    lab.wait_serving()


def test_not_under_a_daemon():
    with Lab(nodes=2, datapath="module") as lab:
        assert lab.client.get("/1k")[0] == 200
        assert unload() != 0
        assert lab.client.get("/1k")[0] == 200
    _unloaded()
    load()


def test_connections_outlive_it():
    """The sockets are the kernel's own: what is open goes on, as on a machine that had never heard of Earshot."""
    with Lab(nodes=2, datapath="module") as lab:
        connection = lab.client.socket()
        connection.settimeout(10)
        connection.connect((topology.VIP, topology.PORT))
        request = b"GET /1k HTTP/1.1\r\nHost: lab\r\n\r\n"
        connection.sendall(request)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        for node in ("n1", "n2"):
            lab.crash(node, "earshotd")
        _unloaded()
        load()
        connection.close()


def test_again_and_again_under_traffic():
    assert os.path.exists(FILE)
    stop = threading.Event()
    served = [0]

    def traffic(lab):
        while not stop.is_set():
            try:
                served[0] += lab.client.get("/1k")[0] == 200
            except OSError:
                pass

    with Lab(nodes=2, datapath="module", settings={"service.inspect": "every"}) as lab:
        clients = [threading.Thread(target=traffic, args=(lab,)) for _ in range(2)]
        for client in clients:
            client.start()
        try:
            for _ in range(ROUNDS):
                before = served[0]
                deadline = time.monotonic() + 20
                while served[0] < before + 3:
                    assert time.monotonic() < deadline, "no request was served"
                    time.sleep(0.01)
                for node in ("n1", "n2"):
                    lab.crash(node, "earshotd")
                _unloaded()
                load()
                _serve(lab, ("n1", "n2"))
        finally:
            stop.set()
            for client in clients:
                client.join()
