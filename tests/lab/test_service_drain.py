# SPDX-License-Identifier: GPL-2.0-or-later
"""A node is drained of one service, under load: no request fails, its other services go on, and so it is after a restart."""
import collections
import json
import threading
import time

import pytest

from cluster.membership import TOKEN, settled
from earshotlab import Lab, wait_for
from web import raw

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

SECOND = """
service second {{
    address = {address}
    port = 81
    policy = wrr
    inspect = every
}}
service blind {{
    address = {address}
    port = 82
    inspect = never
}}
"""
ALL = ["n1", "n2", "n3"]
PORTS = {"web": 80, "second": 81, "blind": 82}


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, membership="corosync", policy="wrr", token=int(TOKEN * 1000), timeout=60) as lab:
        settled(lab, ALL, 60)
        with open(lab.config_file, "a", encoding="utf-8") as handle:
            handle.write(SECOND.format(address=lab.net.vips[0]))
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        serve_more(lab)
        wait_for(lambda: all(served(lab, name, 20).keys() == set(ALL) for name in PORTS), "all serve all", 90)
        yield lab


SERVER = """
import http.server, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = b"x"
        self.send_response(200)
        self.send_header("X-Node", sys.argv[1])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    address_family = socket.AF_INET6
Server(("::", int(sys.argv[2])), Handler).serve_forever()
"""


def serve_more(lab):
    """The lab's nginx listens on port 80 only."""
    for node in lab.nodes:
        for name in ("second", "blind"):
            node.popen(["/usr/bin/python3", "-c", SERVER, node.name, str(PORTS[name])])


def ask(lab, name):
    with raw.connect(lab.client, (lab.net.vips[0], PORTS[name])) as sock:
        sock.sendall(raw.head("/node", Connection="close"))
        response = raw.receive(sock)
        assert response.status == 200
        return response.node


def served(lab, name, count):
    """How many each node served."""
    found = collections.Counter()
    for _ in range(count):
        try:
            found[ask(lab, name)] += 1
        except (OSError, AssertionError):
            found["failed"] += 1
    return found


class Load:
    """Asks all services again and again until the end."""

    def __init__(self, lab):
        self.lab, self.failed, self.count, self.is_over = lab, [], 0, False
        self.threads = [threading.Thread(target=self.run, args=(name,)) for name in PORTS]

    def run(self, name):
        while not self.is_over:
            try:
                ask(self.lab, name)
            except (OSError, AssertionError) as error:
                self.failed.append((name, repr(error)))
            self.count += 1
            time.sleep(0.03)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def drained(lab, asked="n1"):
    return {node["name"]: [drain["service"] for drain in node["drained_services"]] for node in lab.status(asked)["nodes"]}


def earshot(lab, *arguments, node="n1", check=True):
    return lab.node(node).exec(["earshot", *arguments], check=check)


@pytest.fixture(autouse=True)
def _undrained(lab):
    """Whatever a test has left, the next one finds no drain."""
    yield
    for node, services in drained(lab).items():
        for service in services:
            earshot(lab, "undrain", node, "--service", service)


@pytest.mark.parametrize("service", list(PORTS))
def test_drain_and_undrain(lab, service):
    """By another node than the one that is drained."""
    with Load(lab) as load:
        earshot(lab, "drain", "n2", "--service", service, "--reason", "new disk")
        wait_for(lambda: all(drained(lab, node.name)["n2"] == [service] for node in lab.nodes), "all know", 30)
        time.sleep(0.3)
        gone, others = served(lab, service, 60), {name: served(lab, name, 60) for name in PORTS if name != service}
        assert gone.keys() == {"n1", "n3"}, gone
        assert all(found.keys() == {"n1", "n2", "n3"} for found in others.values()), others
        text = earshot(lab, "nodes", node="n3").stdout
        assert f"service {service} is drained by " in text and "drained on n2" in text, text
        events = earshot(lab, "events", "--kind", "drain", node="n3").stdout
        assert f"n2 is drained of service {service} by " in events and "new disk" in events
        earshot(lab, "undrain", "n2", "--service", service)
        wait_for(lambda: all(drained(lab, node.name)["n2"] == [] for node in lab.nodes), "all know that it is over", 30)
        wait_for(lambda: "n2" in served(lab, service, 30), "n2 serves again", 30)
    assert load.count > 50 and not load.failed, load.failed[:5]


def test_connections_move(lab):
    """Where every request is inspected, an open connection moves with its next request; --wait waits for that."""
    connections = []
    while len(connections) < 6:
        sock = raw.connect(lab.client, (lab.net.vips[0], PORTS["second"]))
        sock.sendall(raw.head("/node"))
        connections.append((sock, raw.receive(sock).node))
    assert "n2" in {node for _, node in connections}
    waiting = lab.node("n1").popen(["earshot", "drain", "n2", "--service", "second", "--wait=30"])

    def next_nodes():
        for sock, _ in connections:
            sock.sendall(raw.head("/node"))
        return {raw.receive(sock).node for sock, _ in connections}
    wait_for(lambda: "n2" not in next_nodes(), "no connection is on n2", 20)
    assert waiting.wait(30) == 0
    for sock, _ in connections:
        sock.close()
    earshot(lab, "undrain", "n2", "--service", "second")


def test_restart_keeps_it(lab):
    earshot(lab, "drain", "n2", "--service", "second")
    lab.crash("n2", "earshotd")
    lab.start("n2", "earshotd")
    settled(lab, ALL, 60)
    wait_for(lambda: all(drained(lab, node.name)["n2"] == ["second"] for node in lab.nodes), "all know again", 15,
             lambda: [drained(lab, node.name) for node in lab.nodes])
    assert "n2" not in served(lab, "second", 40)
    earshot(lab, "undrain", "--service", "second", node="n2")
    wait_for(lambda: "n2" in served(lab, "second", 30), "n2 serves again", 15)


def test_for_a_while(lab):
    earshot(lab, "drain", "n2", "--service", "second", "--for", "3s")
    assert drained(lab)["n2"] == ["second"]
    wait_for(lambda: drained(lab)["n2"] == [], "it ends by itself", 15)


def test_refused(lab):
    """The last one that serves, an unknown service, a wish that a service cannot have."""
    for node in ("n2", "n3"):
        earshot(lab, "drain", node, "--service", "second")
    done = earshot(lab, "drain", "n1", "--service", "second", check=False)
    assert done.returncode == 1 and "no node but n1 is up and serves second" in done.stderr
    earshot(lab, "drain", "n1", "--service", "second", "--force")
    assert served(lab, "second", 10)["failed"] == 0, "those that are drained serve when nobody else does"
    for node in ("n1", "n2", "n3"):
        earshot(lab, "undrain", node, "--service", "second")
    done = earshot(lab, "drain", "n2", "--service", "third", check=False)
    assert done.returncode == 1 and 'no service "third" is configured' in done.stderr
    done = earshot(lab, "drain", "n1", "--service", "web", "--until-restart", check=False)
    assert done.returncode == 64 and "of a node as a whole only" in done.stderr
    assert json.loads(earshot(lab, "--json", "drain", "n2", "--service", "web").stdout) == {"node": "n2", "service": "web"}
    earshot(lab, "undrain", "n2", "--service", "web")
