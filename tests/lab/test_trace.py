# SPDX-License-Identifier: GPL-2.0-or-later
"""`earshot trace`: decisions as they happen, with the node that serves, and nothing of it when nobody watches."""
import http.client
import json
import os
import signal
import socket
import time

import pytest

from earshotlab import Lab, topology, wait_for

pytestmark = pytest.mark.earshot

PAGES = [f"/u/1k/{number}" for number in range(12)]


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="lard", settings={"service.inspect": "every"}) as lab:
        yield lab


class Trace:
    """`earshot trace` on all nodes at a time, since each shows what it inspects; what it prints is in a file."""

    def __init__(self, lab, directory, *arguments):
        self.lab = lab
        self.files = {node.name: os.path.join(directory, f"{node.name}.trace") for node in lab.nodes}
        self.children = []
        for node in lab.nodes:
            with open(self.files[node.name], "w", encoding="utf-8") as output:
                self.children.append(node.popen(["earshot", *arguments], stdout=output))

    def text(self, name):
        with open(self.files[name], encoding="utf-8") as handle:
            return handle.read()

    def decisions(self):
        """Of all nodes, whole lines only."""
        lines = [line for name in self.files for line in self.text(name).splitlines(True) if line.endswith("\n")]
        return [json.loads(line) for line in lines]

    def of(self, request):
        return [each for each in self.decisions() if each.get("request") == request]

    def begin(self):
        """Until each node shows something."""
        def all_show():
            self.lab.client.get("/u/1k/0?begin")
            return all(self.text(name) for name in self.files)
        wait_for(all_show, "each node shows decisions", 30)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.send_signal(signal.SIGINT)
            child.wait(10)


def traced(lab):
    """Of all nodes; the counter is not there while it is 0."""
    counters = [node.ask({"command": "counters"})["counters"] for node in lab.nodes]
    return sum(each["value"] for of_node in counters for each in of_node if each["name"] == "inspect_traced")


def test_shows_the_node_that_serves(lab, tmp_path):
    with Trace(lab, tmp_path, "--json", "trace") as trace:
        trace.begin()
        served = {}
        for page in PAGES:
            _, headers, _ = lab.client.get(f"{page}?one")
            served[f"GET {page}?one"] = headers["X-Node"]
        wait_for(lambda: all(trace.of(request) for request in served), "each request is shown", 20, trace.decisions)
        for request, node in served.items():
            shown = trace.of(request)
            assert [(each["decision"], each["why"], each["target"], each["service"]) for each in shown] \
                == [("first", "policy", node, "web")], shown
            assert shown[0]["took_us"] > 0 and not shown[0]["cut"]
        assert all(abs(each["time_us"] / 1e6 - time.time()) < 600 for each in trace.decisions())


def test_later_requests_stay_or_move(lab, tmp_path):
    with Trace(lab, tmp_path, "--json", "trace", "--filter", "decision=first,stay,move") as trace:
        trace.begin()
        sock = lab.client.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.settimeout(10)
        sock.connect((topology.VIP, topology.PORT))
        connection = http.client.HTTPConnection(topology.VIP, topology.PORT)
        connection.sock = sock
        nodes = []
        for page in PAGES:
            connection.request("GET", f"{page}?kept")
            response = connection.getresponse()
            response.read()
            nodes.append(response.headers["X-Node"])
        port = sock.getsockname()[1]
        connection.close()

        def of_connection():
            return sorted((each for each in trace.decisions() if each["port"] == port and each["request"].endswith("?kept")),
                          key=lambda each: PAGES.index(each["request"][4:-5]))
        wait_for(lambda: len(of_connection()) == len(PAGES), "each request is shown", 20, of_connection)
        expected = ["first"] + ["stay" if node == before else "move" for before, node in zip(nodes, nodes[1:])]
        assert [each["target"] for each in of_connection()] == nodes
        assert [each["decision"] for each in of_connection()] == expected


def test_filters(lab, tmp_path):
    address = lab.client.exec(["ip", "-4", "-br", "address", "show", "dev", "eth0"]).stdout.split()[2].split("/")[0]
    with Trace(lab, tmp_path, "--json", "trace", "--filter", "path=/u/1k/0", "--filter", f"client={address}/32") as trace:
        trace.begin()
        for page in PAGES:
            lab.client.get(f"{page}?filter")
        wait_for(lambda: trace.of("GET /u/1k/0?filter"), "the one is shown", 20)
        assert {each["request"] for each in trace.decisions()} == {"GET /u/1k/0?begin", "GET /u/1k/0?filter"}
    bad = lab.node("n1").exec(["earshot", "trace", "--filter", "node=n9"], check=False)
    assert bad.returncode == 1 and "filter node=n9: expected one or several" in bad.stderr and "n1, n2, n3" in bad.stderr
    bad = lab.node("n1").exec(["earshot", "trace", "--filter", "who=n1"], check=False)
    assert bad.returncode == 1 and "expected node=NAME" in bad.stderr


def test_text_steers_no_terminal(lab, tmp_path):
    with Trace(lab, tmp_path, "trace") as trace:
        trace.begin()

        def is_shown():
            sock = lab.client.socket(socket.AF_INET, socket.SOCK_STREAM)
            with sock:
                sock.settimeout(10)
                sock.connect((topology.VIP, topology.PORT))
                sock.sendall(b"GET /\x1b[2J\xff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                sock.recv(65536)
            return any("\\x1b[2J" in trace.text(name) for name in trace.files)
        wait_for(is_shown, "a request with an escape is shown", 20)
        assert all("\x1b" not in trace.text(name) for name in trace.files)
        assert any("  first   policy" in trace.text(name) for name in trace.files), trace.text("n1")


def test_limit_ends_it(lab, tmp_path):
    with Trace(lab, tmp_path, "--json", "trace", "--limit", "1") as trace:
        trace.begin()
        assert [child.wait(20) for child in trace.children] == [0, 0, 0]
        assert all(len(trace.text(name).splitlines()) == 1 for name in trace.files)


def test_nothing_when_nobody_watches(lab, tmp_path):
    with Trace(lab, tmp_path, "--json", "trace") as trace:
        trace.begin()
        assert traced(lab) > 0
        for child in trace.children:
            child.kill()  # it says no goodbye

    def is_off():
        before = traced(lab)
        for page in PAGES:
            lab.client.get(page)
        return traced(lab) == before
    wait_for(is_off, "no decisions are noted any more", 20)
    gone = lab.node("n1").exec(["earshot", "trace", "--limit", "0"], check=False)
    assert gone.returncode == 64
