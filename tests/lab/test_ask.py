# SPDX-License-Identifier: GPL-2.0-or-later
"""The socket NODE.ask: where requests are served that a process reads itself, which the datapath cannot."""
import os
import stat
import struct
import sys

import pytest

from cluster import asking
from cluster.asking import Asker
from earshotlab import Lab, tls, wait_for

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
PORTS = {"pages": 8443, "busy": 8444, "frail": 8445}
SERVICES = """\
service {name} {{
    address = "{vip}"
    port = {port}
    policy = {policy}
    inspect = every
    tls {{
        certificate = {files}/www.pem
        key = {files}/www.key
        server = "127.0.0.1:8080"
    }}
    {more}
}}
"""
# No client connects, but the daemon's checks do.
LISTENER = """\
import select, socket, sys
sockets = [socket.create_server((sys.argv[1], int(port))) for port in sys.argv[2:]]
while True:
    for each in select.select(sockets, [], [])[0]:
        each.accept()[0].close()
"""
RULES = """\
rule private {
    path = "/private/"
    deny = yes
}
"""


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="uri-hash") as lab:
        tls.make_files(lab.directory, lab.net.vips)
        text = "".join(SERVICES.format(name=name, vip=lab.net.vip, files=tls.directory(lab.directory), port=PORTS[name], policy=policy, more=more)
                       for name, policy, more in (("pages", "uri-hash", "load_bound = 0"), ("busy", "wlc", ""),
                                                  ("frail", "wlc", "outlier { max_errors = 50 min_responses = 10 out_s = 60 }")))
        for path in {lab.config_of(name) for name in ALL}:
            with open(path, "a", encoding="utf-8") as handle:
                handle.write(text + RULES)
        ports = [str(port) for port in PORTS.values()]
        children = [node.popen([sys.executable, "-I", "-c", LISTENER, lab.net.vip, *ports]) for node in lab.nodes]
        for node in lab.nodes:
            wait_for(lambda node=node: all(f":{port} " in node.exec(["ss", "-ltn"]).stdout for port in ports), "the listeners")
            node.exec(["earshot", "reload"])
        for name in ALL:
            wait_for(lambda name=name: all(each["state"] == "up" for each in lab.status(name)["nodes"]), "all can serve", 20,
                     lambda name=name: lab.status(name)["nodes"])
        yield lab
        for child in children:
            child.kill()
            child.wait()


def asker(lab, node, name="pages"):
    return Asker(lab.node(node), (lab.net.vip, PORTS[name]))


def service_of(lab, node, name):
    return next(each for each in lab.status(node)["services"] if each["name"] == name)


def counter(lab, node, name):
    """One that is 0 is not told."""
    return lab.counters(node).get(name, 0)


def test_all_nodes_agree(lab):
    """The policy decides, on whichever node, and as `earshot explain` says."""
    places = {}
    for name in ALL:
        with asker(lab, name) as process:
            for number in range(24):
                answer = process.ask(f"/page/{number}", first=number == 0)
                assert answer.word == ("move" if answer.node else "stay") and answer.node != name
                places.setdefault(number, set()).add(answer.node or name)
                process.say(asking.MOVED if answer.node else asking.DONE, answer.id)
    assert all(len(nodes) == 1 for nodes in places.values())
    assert set.union(*places.values()) == set(ALL)
    told = lab.node("n1").exec(["earshot", "explain", "--service", "pages", "/page/3"]).stdout
    assert places[3].pop() in told, told


def test_refused(lab):
    with asker(lab, "n1") as process:
        answer = process.ask("/private/x")
        assert answer.word == "reject" and not answer.node
        assert answer.page.startswith(b"HTTP/1.1 403 Forbidden\r\n") and answer.page.endswith(b"403 Forbidden\n")
        answer = process.ask("/public/x")
        assert answer.word in ("stay", "move") and not answer.page


def test_counted_and_shown(lab):
    """In counters and metrics as other requests are."""
    node = lab.node("n1")
    before = [counter(lab, "n1", f"inspect_{name}") for name in ("asked", "ask_moved", "ask_stayed", "ask_refused", "moved")]
    moved = stayed = 0
    with asker(lab, "n1") as process:
        for number in range(20):
            answer = process.ask(f"/shown/{number}")
            if answer.word == "stay":
                stayed += 1
            elif moved < 3:
                process.say(asking.MOVED, answer.id)
                moved += 1
            else:
                process.say(asking.STAYED, answer.id)
        wait_for(lambda: counter(lab, "n1", "inspect_ask_moved") == before[1] + 3, "what moved is counted")
        refused = 20 - moved - stayed
        wait_for(lambda: counter(lab, "n1", "inspect_ask_refused") == before[3] + refused, "what did not move is counted")
    after = [counter(lab, "n1", f"inspect_{name}") for name in ("asked", "ask_moved", "ask_stayed", "ask_refused", "moved")]
    assert [x - y for x, y in zip(after, before)] == [20, moved, stayed + refused, refused, moved]
    text = node.exec(["earshot", "metrics"]).stdout
    assert 'requests_total{service="pages",target="n1",decision="stay"}' in text, text


def active(lab, node, name="busy"):
    return service_of(lab, node, name)["active"]


def where(process):
    """Where another request would be served, that is then not sent there."""
    answer = process.ask("/")
    process.say(asking.DONE, answer.id)
    return answer.node


def test_load_is_what_is_in_hand(lab):
    """A node with much in hand gives requests to those with less; when its process ends, nothing is in hand."""
    with asker(lab, "n1", "busy") as n1, asker(lab, "n2", "busy") as n2, asker(lab, "n3", "busy") as n3:
        taken = [n2.take() for _ in range(30)]
        for _ in range(35):
            n1.take()
        wait_for(lambda: [active(lab, name) for name in ALL] == [35, 30, 0], "all is counted")
        wait_for(lambda: where(n1) == "n3", "the node without work gets some")
        for _ in range(40):
            n3.take()
        for number in taken:
            n2.say(asking.DONE, number, status=200, size=1000, took_us=500)
        wait_for(lambda: [active(lab, name) for name in ALL] == [35, 0, 40], "what is done is over")
        wait_for(lambda: where(n1) == "n2", "now another one is without work")
        assert where(n2) == ""
    wait_for(lambda: not any(active(lab, name) for name in ALL), "with its process, a request is over")


def test_responses_are_observed(lab):
    """Their lengths come to be known on all nodes, and a server that fails is an outlier."""
    with asker(lab, "n1", "frail") as process:
        for number in range(12):
            process.say(asking.DONE, process.take(f"/{number}"), status=200, size=5000, took_us=500)
        wait_for(lambda: service_of(lab, "n1", "frail")["measured"] == 12, "lengths are observed")
        assert service_of(lab, "n1", "frail")["mean_bytes"] == 5000

        def is_out():
            for _ in range(10):
                process.say(asking.DONE, process.take(), status=502, took_us=500)
            with asker(lab, "n2", "frail") as other:
                return {other.ask("/").node for _ in range(8)} <= {"", "n3"} and \
                    "frail" in lab.node("n2").exec(["earshot", "nodes"]).stdout
        wait_for(is_out, "the server that answers 502 is out", 30)


def test_wrong_messages(lab):
    """Nobody is harmed by them but their sender."""
    bad = counter(lab, "n1", "inspect_ask_bad")
    with asker(lab, "n1") as good:
        for data in (b"x", struct.pack(asking.ASK, 1, 1, 0, 1, bytes(36), 0, 0, 0, 0, 0, 0, 0) + b"x", bytes(100)):
            with asker(lab, "n1") as process:
                process.sock.send(data)
                assert process.sock.recv(1) == b""
        assert good.ask("/").word in ("stay", "move")
    assert counter(lab, "n1", "inspect_ask_bad") == bad + 3
    with asker(lab, "n1") as process:
        process.say(asking.REQUEST, 1, b"GET / HTTP/1.1\r\n")  # which a client can have sent
        assert process.hear().word == "stay"


def test_reload(lab):
    """A process that has asked goes on asking, and who may ask is as before."""
    with asker(lab, "n1") as process:
        answer = process.ask("/page/3")
        lab.node("n1").exec(["earshot", "reload"])
        process.say(asking.DONE, answer.id, status=200, size=1000)
        assert process.ask("/page/3")[2:] == answer[2:]
    assert stat.S_IMODE(os.stat(asking.path_of(lab.node("n1"))).st_mode) == 0o660
