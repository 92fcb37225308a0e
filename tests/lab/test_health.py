# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers that hang or answer wrongly while they listen: their nodes' daemons find it out, and others serve."""
import asyncio
import collections
import json
import os
import signal
import sys
import threading
import time

import pytest

from cluster.membership import settled
from earshotlab import Lab, topology, wait_for
from web import raw
from web.traffic import Connection, Request

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


Asked = collections.namedtuple("Asked", "began node error")


class Clients:
    """Ask all the time, each request on a connection of its own, whether or not those before have an answer."""

    def __init__(self, lab, pause=0.01):
        self.lab, self.pause, self.asked, self.waiting = lab, pause, [], set()
        self.is_over = False
        self.thread = threading.Thread(target=lambda: asyncio.run(self.run()), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join(40)
        assert not self.thread.is_alive()

    async def run(self):
        tasks = []
        while not self.is_over:
            tasks.append(asyncio.create_task(self.ask(time.monotonic())))
            await asyncio.sleep(self.pause)
        await asyncio.gather(*tasks)

    async def ask(self, began):
        connection, error = Connection(self.lab.client), None
        self.waiting.add(began)
        try:
            await connection.open()
            await asyncio.wait_for(connection.ask(Request("GET", "/1k", b""), close=True), 30)
        except (OSError, asyncio.TimeoutError) as failure:
            error = failure
        finally:
            connection.close()
        self.waiting.discard(began)
        self.asked.append(Asked(began, connection.node, error))

    def run_for(self, count, what):
        """Until so many requests that begin from now on are over."""
        since = time.monotonic()
        wait_for(lambda: sum(each.began > since for each in list(self.asked)) >= count, what, 60)


def changes(lab, at, of):
    """What that node has told of the other one's server, so far."""
    done = lab.node(at).exec(["earshot", "events", "--json", "--kind", "server_down,server_up"])
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event["kind"] for event in events if event.get("node") == of]


def test_server_hangs_under_load(lab):
    """What it was given before that was known waits, and nothing that comes later; nobody changes his mind twice."""
    before = {at: changes(lab, at, "n2") for at in ("n1", "n3", "n4")}
    with Clients(lab) as clients:
        clients.run_for(200, "answers while all is well")
        hung = time.monotonic()
        lab.node("n2").signal("nginx", signal.SIGSTOP)
        wait_for(lambda: is_known(lab, "n2", True), "n2 that is down", 30)
        known = time.monotonic()
        waited = [began for began in list(clients.waiting) if began < known]
        clients.run_for(600, "answers of three")
        wait_for(lambda: not [began for began in list(clients.waiting) if known < began < time.monotonic() - 2],
                 "no request that waits though it began when n2 was known as down", 30)
        assert is_known(lab, "n2", True)
        resumed = time.monotonic()
        lab.node("n2").signal("nginx", signal.SIGCONT)
        wait_for(lambda: is_known(lab, "n2", False), "n2 that is up", 30)
        up = time.monotonic()
        clients.run_for(200, "answers of all")
    asked = clients.asked
    assert waited and len(waited) <= sum(hung - 2 < each.began < known for each in asked) / 2, (waited, hung, known)
    # The clients were patient, so even these have their answers, if their connections lived so long.
    assert not [each for each in asked if each.error and not hung - 2 < each.began < known], (hung, known, asked)
    assert not [each for each in asked if known < each.began < resumed and each.node == "n2"], (known, resumed, asked)
    assert {each.node for each in asked if each.began > up} == set(ALL)
    for at, events in before.items():
        assert changes(lab, at, "n2")[len(events):] == ["server_down", "server_up"], changes(lab, at, "n2")


SERVER_OF_500 = """
import http.server, socket, sys, threading

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(500)

class Server6(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

servers = [(Server6 if ":" in address else http.server.ThreadingHTTPServer)((address, int(sys.argv[1])), Handler)
           for address in sys.argv[2:]]
print("listening", flush=True)
for server in servers:
    threading.Thread(target=server.serve_forever).start()
"""


def alive(lab, there):
    """What the check asks for is there on all nodes, or on none: they have one document root."""
    path = os.path.join(lab.docroot, "alive")
    if not there:
        os.unlink(path)
        return
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("yes")


def answers_for(lab, seconds):
    """Who answers until then."""
    until, answers = time.monotonic() + seconds, collections.Counter()
    while time.monotonic() < until:
        answers[ask(lab, 1)] += 1
    return answers


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_daemon_starts_beside_hung_server(lab, how):
    """It does not know yet whether its server works, so it is given nothing until it does; the others serve."""
    lab.node("n2").signal("nginx", signal.SIGSTOP)
    wait_for(lambda: is_known(lab, "n2", True), "n2 that is down", 30)
    before = {at: changes(lab, at, "n2") for at in ("n1", "n3", "n4")}
    getattr(lab, how)("n2", "earshotd")
    lab.node("n2").start("earshotd")
    answers = answers_for(lab, 5)
    assert set(answers) == {"n1", "n3", "n4"}, answers
    wait_for(lambda: is_known(lab, "n2", True), "n2 that is down again", 30)
    after = {at: changes(lab, at, "n2")[len(before[at]):] for at in before}
    assert not any("server_up" in each for each in after.values()), after
    lab.node("n2").signal("nginx", signal.SIGCONT)
    wait_for(lambda: is_known(lab, "n2", False), "n2 that is up", 30)


def test_check_changes_beside_hung_server(lab):
    """What is known of a server outlives a change of how often it is asked, and of what, until that has an answer."""
    lab.node("n2").signal("nginx", signal.SIGSTOP)
    wait_for(lambda: is_known(lab, "n2", True), "n2 that is down", 30)
    configure(lab, "check { interval_ms = 700  rise = 3  fall = 4  timeout_ms = 1500  slow_start_s = 1 }")
    answers = answers_for(lab, 4)
    assert set(answers) == {"n1", "n3", "n4"}, answers
    assert is_known(lab, "n2", True)
    with open(lab.config_file, encoding="utf-8") as handle:
        before = handle.read()
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(before.replace("check { ", "check { type = http  path = /1k  "))
    for node in lab.nodes:
        node.exec(["earshot", "reload"])
    answers = answers_for(lab, 4)
    assert set(answers) == {"n1", "n3", "n4"}, answers


def test_daemon_starts_where_no_server_passes(lab):
    """Nobody else serves, so it does, before its server was asked as well as afterwards: no request fails."""
    assert not os.path.exists(os.path.join(lab.docroot, "alive"))
    configure(lab, HTTP % "serve")
    wait_for(lambda: all(trouble(lab, name, at) for name in ALL for at in ALL), "checks that fail", 30)
    with Clients(lab) as clients:
        clients.run_for(20, "requests before")
        lab.node("n2").stop("earshotd")
        lab.node("n2").start("earshotd")
        clients.run_for(200, "requests after")
    assert not [each for each in clients.asked if each.error or not each.node]


def test_wrong_answers():
    """A server that answers 500 listens and accepts, and yet is given nothing while its check asks for more."""
    with Lab(nodes=4, policy="wrr") as lab:
        alive(lab, True)
        configure(lab, HTTP % "serve")
        lab.node("n3").stop("nginx")
        child = lab.node("n3").popen([sys.executable, "-c", SERVER_OF_500, str(topology.PORT), *lab.net.vips], stdout=-1)
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


SERVER_UNTIL = """
import http.server, os, socket, sys, threading

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if os.path.exists(sys.argv[2]) else 200)
        self.send_header("X-Node", sys.argv[3])
        self.send_header("Content-Length", "0")
        self.end_headers()

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

class Server6(Server):
    address_family = socket.AF_INET6

servers = [(Server6 if ":" in address else Server)((address, int(sys.argv[1])), Handler) for address in sys.argv[4:]]
print("listening", flush=True)
for server in servers:
    threading.Thread(target=server.serve_forever).start()
"""
FAILING = ALL[:3]


def served_by(lab):
    """Who answers, with whatever status; None: nobody."""
    try:
        return raw.ask(lab.client, raw.head("/1k", Connection="close"), timeout=2)[0].node
    except OSError:
        return None


def answer_503(lab, flag):
    """On three of four nodes the server answers 503 as soon as @flag is there."""
    children = []
    for name in FAILING:
        lab.node(name).stop("nginx")
        children.append(lab.node(name).popen([sys.executable, "-c", SERVER_UNTIL, str(topology.PORT), flag, name,
                                              *lab.net.vips], stdout=-1))
        assert children[-1].stdout.readline() == "listening\n"
    wait_for(lambda: all(is_known(lab, name, False) for name in ALL), "nodes that are up", 30)
    return children


def out(lab, at):
    return {node["name"] for node in lab.status(at)["nodes"] if node["state"] == "down"}


def test_many_fail(lab):
    """503 on three of four: one is out, the others serve and say why. Three that do not listen are out, and the last serves."""
    alive(lab, True)
    flag = os.path.join(lab.docroot, "failing")
    configure(lab, HTTP % "serve")
    children = answer_503(lab, flag)
    with open(flag, "w", encoding="utf-8"):
        pass
    try:
        wait_for(lambda: all(trouble(lab, name, at) for name in FAILING for at in ALL), "checks that fail", 30)
        wait_for(lambda: all(len(out(lab, at)) == 1 for at in ALL), "one that is out", 30, lambda: [out(lab, at) for at in ALL])
        gone = out(lab, "n4")
        until = time.monotonic() + 8
        while time.monotonic() < until:
            seen = [out(lab, at) for at in ALL]
            assert all(each == gone for each in seen), seen
            assert served_by(lab) in set(ALL) - gone
        wait_for(lambda: {served_by(lab) for _ in range(16)} == set(ALL) - gone, "answers of all but the one")
        for name in FAILING:
            text, seen = trouble(lab, name, name), trouble(lab, name, "n4")
            assert "the answer to GET /alive is 503" in text, text
            assert ("this node serves all the same: max_out = 1, and others are out" in text) == (name not in gone), text
            assert ("serves all the same" in seen) == (name not in gone), seen
            told = lab.node(name).exec(["earshot", "events", "--kind", "server_down"]).stdout
            assert ("this node serves all the same" in told) == (name not in gone), told
    finally:
        os.unlink(flag)
    wait_for(lambda: all(is_known(lab, name, False) for name in ALL), "nodes that are up", 30)
    for child in children:
        child.kill()
        child.wait()
    wait_for(lambda: all("nothing listens" in trouble(lab, name, at) for name in FAILING for at in ALL), "three that are out", 30)
    answers = answers_for(lab, 3)
    assert set(answers) == {"n4"}, answers


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


def test_slow_start():
    """A server that is up again gets little at first, and its share in the end."""
    def asked(count=80):
        return collections.Counter(ask(lab) for _ in range(count))["n2"]

    with Lab(nodes=4, policy="wrr") as lab:
        configure(lab, "check { slow_start_s = 10 }")
        wait_for(lambda: asked() >= 14, "the share of n2, whose daemon has just started", 20)
        lab.node("n2").stop("nginx")
        wait_for(lambda: all(trouble(lab, "n2", at) for at in ALL), "n2 without a server", 10)
        lab.node("n2").start("nginx")
        wait_for(lambda: not any(trouble(lab, "n2", at) for at in ALL), "n2 with one", 10)
        began = time.monotonic()
        few = asked()
        assert few <= 10, (few, time.monotonic() - began)
        wait_for(lambda: asked() >= 14, "the whole share of n2", 30)
