# SPDX-License-Identifier: GPL-2.0-or-later
"""Loading and unloading while connections are open and requests come in."""
import functools
import os
import random
import threading
import time

from earshotlab import Lab, daemon, server, topology
from ko import FILE, PATIENCE_S, load, unload, unload_patiently
from web import raw

ROUNDS = int(os.environ.get("EARSHOT_UNLOADS") or 10)
SEED = int(os.environ.get("EARSHOT_SEED") or 7)
KEPT = 6  # connections that live through all of it


def _serve(lab, nodes):
    for node in nodes:
        lab.start(node, "earshotd")
    lab.wait_serving()


def test_not_under_a_daemon():
    with Lab(nodes=2, datapath="module") as lab:
        assert lab.client.get("/1k")[0] == 200
        assert unload() != 0
        assert lab.client.get("/1k")[0] == 200
    unload_patiently()
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
        unload_patiently()
        load()
        connection.close()


@functools.cache
def content(name):
    """Of a file that every node has."""
    return server.file_content(name, server.FILES[name])


class Kept:
    """A connection that is open all the time. What it gets is compared, byte by byte."""

    def __init__(self, lab):
        self._http = raw.http_connection(lab.client, PATIENCE_S)
        self._response = self._name = self._first = None

    def begin(self, name="1m"):
        """Ask for more than the socket buffers hold, and read the beginning only."""
        self._http.request("GET", f"/{name}")
        self._response = self._http.getresponse()
        assert self._response.status == 200
        self._first = self._response.read(1000)
        self._name = name

    def finish(self):
        """Read the rest of it; the node that has served it."""
        assert self._first + self._response.read() == content(self._name)
        return self._response.headers["X-Node"]

    def get(self, name="13k"):
        """Both."""
        self.begin(name)
        return self.finish()

    def close(self):
        self._http.close()


def _kill_daemons(lab):
    for node in ("n1", "n2"):
        lab.crash(node, "earshotd")


def test_again_and_again_under_traffic():
    """New connections all the time; others stay open, some in the middle of a download, and end on their node."""
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
        kept = [Kept(lab) for _ in range(KEPT)]
        clients = [threading.Thread(target=traffic, args=(lab,)) for _ in range(2)]
        for client in clients:
            client.start()
        try:
            nodes = [connection.get() for connection in kept]
            for number in range(ROUNDS):
                before = served[0]
                deadline = time.monotonic() + PATIENCE_S
                while served[0] < before + 3:
                    assert time.monotonic() < deadline, "no request was served"
                    time.sleep(0.01)
                for connection in kept[::2]:
                    connection.begin()
                _kill_daemons(lab)
                unload_patiently()
                load()
                _serve(lab, ("n1", "n2"))
                after = [c.get() if i % 2 else c.finish() for i, c in enumerate(kept)]
                # The first unloading has made strangers of them: such a connection stays where it is.
                assert not number or after == nodes
                nodes = after
        finally:
            stop.set()
            for client in clients:
                client.join()
            for connection in kept:
                connection.close()


def test_a_daemon_is_killed_wherever_it_is():
    """While it starts, configures, attaches or serves: what it leaves half done, the module unloads with."""
    chance = random.Random(SEED)
    with Lab(nodes=2, datapath="module", settings={"service.inspect": "every"}) as lab:
        _kill_daemons(lab)
        started = time.monotonic()
        _serve(lab, ("n1", "n2"))
        takes = (time.monotonic() - started) / 2
        _kill_daemons(lab)
        for _ in range(ROUNDS):
            for node in ("n1", "n2"):
                argv = daemon.command_line(lab.config_file, node, daemon.control_path(lab.node(node).namespace))
                child = lab.node(node).popen(argv)
                # This waits for a time, and not for a condition: each moment of a start shall be met.
                time.sleep(chance.uniform(0, 1.2 * takes))
                child.kill()
                child.wait()
            unload_patiently()
            load()
        _serve(lab, ("n1", "n2"))
        assert lab.client.get("/1k")[0] == 200
