# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers that hang or answer wrongly while they listen: their nodes' daemons find it out, and others serve."""
import os
import signal
import sys
import time

import pytest

from cluster.membership import settled
from earshotlab import Lab, topology, wait_for
from web import raw

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3", "n4"]
HTTP = "when_all_down = %s\ncheck { type = http  path = /alive  interval_ms = 200 }"


def configure(lab, text):
    with open(lab.config_file, encoding="utf-8") as handle:
        before = handle.read()
    assert before.count("\nservice web {\n") == 1
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(before.replace("\nservice web {\n", f"\nservice web {{\n{text}\n"))
    for node in lab.nodes:
        node.exec(["earshot", "reload"])


@pytest.fixture(name="lab", params=["static", pytest.param("corosync", marks=pytest.mark.corosync)])
def _lab(request):
    with Lab(nodes=4, policy="wrr", membership=request.param) as lab:
        if request.param == "corosync":
            settled(lab)
        yield lab


def trouble(lab, of, at):
    return next(node for node in lab.status(at)["nodes"] if node["name"] == of).get("trouble", "")


def states(lab, of):
    return {next(node for node in lab.status(at)["nodes"] if node["name"] == of)["state"] for at in ALL}


def is_known(lab, of, down):
    """Do all nodes say so of it?"""
    return (states(lab, of) == {"down"}) == down and all(bool(trouble(lab, of, at)) == down for at in ALL)


def ask(lab, timeout=2):
    """The node that answers with a page, else the status, or None."""
    try:
        response, _ = raw.ask(lab.client, raw.head("/1k", Connection="close"), timeout=timeout)
    except OSError:
        return None
    return response.node if response.status == 200 else response.status


def test_server_hangs(lab):
    """One that is stopped gets nothing more once that is known, and gets its share again when it goes on."""
    wait_for(lambda: {ask(lab) for _ in range(8)} == set(ALL), "all nodes' answers")
    lab.node("n2").signal("nginx", signal.SIGSTOP)
    wait_for(lambda: is_known(lab, "n2", True), "n2 that is down", 30)
    assert "accepts no connection within" in trouble(lab, "n2", "n2"), trouble(lab, "n2", "n2")
    answers = {ask(lab) for _ in range(60)}
    assert answers == {"n1", "n3", "n4"}, answers
    time.sleep(2)
    assert is_known(lab, "n2", True)
    lab.node("n2").signal("nginx", signal.SIGCONT)
    wait_for(lambda: is_known(lab, "n2", False), "n2 that is up", 30)
    wait_for(lambda: {ask(lab) for _ in range(8)} == set(ALL), "all nodes' answers")


SERVER_OF_500 = """
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(500)

print("listening", flush=True)
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""


def alive(lab, there):
    """What the check asks for is there on all nodes, or on none: they have one document root."""
    path = os.path.join(lab.docroot, "alive")
    if not there:
        os.unlink(path)
        return
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("yes")


def test_wrong_answers():
    """A server that answers 500 listens and accepts, and yet is given nothing while its check asks for more."""
    with Lab(nodes=4, policy="wrr") as lab:
        alive(lab, True)
        configure(lab, HTTP % "serve")
        lab.node("n3").stop("nginx")
        child = lab.node("n3").popen([sys.executable, "-c", SERVER_OF_500, topology.VIP, str(topology.PORT)], stdout=-1)
        assert child.stdout.readline() == "listening\n"
        wait_for(lambda: is_known(lab, "n3", True), "n3 that is down", 30)
        assert trouble(lab, "n3", "n3").endswith("the answer to GET /alive is 500"), trouble(lab, "n3", "n3")
        answers = {ask(lab) for _ in range(60)}
        assert answers == {"n1", "n2", "n4"}, answers
        child.kill()
        child.wait()
        lab.node("n3").start("nginx")
        wait_for(lambda: is_known(lab, "n3", False), "n3 that is up", 30)
        wait_for(lambda: {ask(lab) for _ in range(8)} == set(ALL), "all nodes' answers")


@pytest.mark.parametrize("when", ["serve", "reject"])
def test_all_down(when):
    """With `serve` all have requests as if nothing failed, with `reject` the client is told."""
    with Lab(nodes=4, policy="wrr") as lab:
        alive(lab, True)
        configure(lab, HTTP % when)
        alive(lab, False)
        wait_for(lambda: all(trouble(lab, name, at) for name in ALL for at in ALL), "checks that fail", 30)
        expected = set(ALL) if when == "serve" else {503}
        wait_for(lambda: {ask(lab) for _ in range(8)} == expected, f"answers of {expected}", 30)
        for _ in range(3):
            assert {ask(lab) for _ in range(8)} <= expected
            time.sleep(0.5)
        alive(lab, True)
        wait_for(lambda: all(is_known(lab, name, False) for name in ALL), "nodes that are up", 30)
        wait_for(lambda: {ask(lab) for _ in range(8)} == set(ALL), "all nodes' answers")
