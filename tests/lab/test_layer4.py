# SPDX-License-Identifier: GPL-2.0-or-later
"""Services that nobody reads (inspect = never): what a node does not serve goes to the next one, whoever speaks first."""
import collections
import re
import signal
import subprocess
import time

import pytest

from cluster.membership import settled
from earshotlab import Lab, topology, wait_for
from tree import module
from web import raw

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
MAIL = 2525


class Greeters:
    """One on each node, to be stopped, continued and ended."""

    def __init__(self, lab):
        self.lab, self.running = lab, {}
        for node in ALL:
            self.start(node)

    def start(self, node):
        vip = self.lab.net.vip
        self.running[node] = self.lab.node(node).popen(
            [*module("web.greeter"), node, vip, str(MAIL)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def signal(self, node, number):
        self.running[node].send_signal(number)

    def end(self, node):
        self.running[node].kill()
        self.running[node].wait()

    def close(self):
        for node in ALL:
            self.signal(node, signal.SIGCONT)
            self.end(node)


def configure(lab, text):
    with open(lab.config_file, "a", encoding="utf-8") as handle:
        handle.write(text)
    for node in lab.nodes:
        node.exec(["earshot", "reload"])


@pytest.fixture(name="lab", params=["static", pytest.param("corosync", marks=pytest.mark.corosync)])
def _lab(request):
    with Lab(nodes=3, policy="wrr", membership=request.param) as lab:
        if request.param == "corosync":
            settled(lab, ALL)
        yield lab


@pytest.fixture(name="mail")
def _mail(lab):
    greeters = Greeters(lab)
    try:
        configure(lab, f"""
service mail {{ address = "{lab.net.vip}" port = {MAIL} inspect = never  check {{ interval_ms = 200  timeout_ms = 1000 }} }}
""")
        wait_for(lambda: {talk(lab, i % 2) for i in range(12)} == set(ALL), "all nodes' greetings", 20)
        yield greeters
    finally:
        greeters.close()


def line(sock):
    data = b""
    while not data.endswith(b"\n"):
        more = sock.recv(1)
        if not more:
            raise OSError(f"it ended after {data!r}")
        data += more
    return data.decode().split()


def talk(lab, first, timeout=5, **keywords):
    """The node that serves a connection; @first: the client does not wait for the greeting."""
    try:
        with raw.connect(lab.client, (lab.net.vip, MAIL), timeout=timeout, **keywords) as sock:
            if first:
                sock.sendall(b"EHLO client\r\n")
            greeting = line(sock)
            if not first:
                sock.sendall(b"EHLO client\r\n")
            answer, node = line(sock), greeting[1]
            assert (greeting[0], answer) == ("220", ["250", node, "EHLO", "client"])
            sock.sendall(b"QUIT\r\n")
            assert line(sock) == ["250", node, "QUIT"]
            return node
    except OSError as error:
        return repr(error)


def talks(lab, count=30):
    """Who has served so many connections, by each kind of client."""
    return collections.Counter(talk(lab, i % 2) for i in range(count))


def given(lab):
    return sum(lab.counters(node)["layer4_queued"] for node in ALL)


def servers_up(lab, node):
    """{service: is its server up?}: what the alert EarshotServerDown is made from."""
    url = f"http://{lab.node(node).cluster_address}:{topology.STATUS_PORT}/metrics"
    text = lab.node(node).exec(["curl", "-sSf", "--max-time", "5", url]).stdout
    return {name: int(up) for name, up in re.findall(r'^earshot_server_up\{service="(.*?)".*?\} (\S+)', text, re.M)}


def told_is(lab, node, state, at="n1"):
    return next(n for n in lab.status(at)["nodes"] if n["name"] == node)["state"] == state


def test_server_is_stopped(lab, mail):
    """At once, and before anybody has noticed: its own node finds nobody who listens."""
    mail.end("n2")
    served = talks(lab)
    assert set(served) == {"n1", "n3"}, served
    assert given(lab) > 0
    time.sleep(3)  # by now, all know
    served = talks(lab)
    assert set(served) == {"n1", "n3"}, served
    assert [servers_up(lab, node) for node in ALL] == [{"mail": up, "web": 1} for up in (1, 0, 1)]
    mail.start("n2")
    wait_for(lambda: talk(lab, 0) == "n2", "n2, which serves again", 30)


def test_two_servers_are_stopped(lab, mail):
    mail.end("n2")
    mail.end("n1")
    served = talks(lab)
    assert set(served) == {"n3"}, served
    mail.end("n3")
    served = talks(lab, 6)
    assert all("ConnectionReset" in who or "ConnectionRefused" in who for who in served), served


def test_server_hangs(lab, mail):
    """What came before its check has failed waits for it; what comes then goes to the others."""
    mail.signal("n2", signal.SIGSTOP)
    wait_for(lambda: "fails its check" in str(lab.status("n2")["nodes"]), "n2's own check that fails", 20)
    time.sleep(1)
    served = talks(lab)
    assert set(served) == {"n1", "n3"}, served
    mail.signal("n2", signal.SIGCONT)
    wait_for(lambda: talk(lab, 1) == "n2", "n2, which serves again", 30)


def troubles(lab):
    """What is wrong with each node, as each says."""
    return [node.get("trouble", "") for at in ALL for node in lab.status(at)["nodes"]]


@pytest.mark.corosync
def test_node_is_drained():
    """It gets nothing new, and keeps what it has; and everything again."""
    with Lab(nodes=3, policy="wrr", membership="corosync") as lab:
        settled(lab, ALL)
        greeters = Greeters(lab)
        try:
            configure(lab, f'\nservice mail {{ address = "{lab.net.vip}" port = {MAIL} inspect = never }}\n')
            wait_for(lambda: {talk(lab, i % 2) for i in range(12)} == set(ALL), "all nodes' greetings", 20)
            port = next(raw.ports(lab, "n2", service="mail"))
            with raw.connect(lab.client, (lab.net.vip, MAIL), port=port) as kept:
                assert line(kept) == ["220", "n2"]
                lab.node("n1").exec(["earshot", "drain", "n2"])
                wait_for(lambda: all(told_is(lab, "n2", "draining", at) for at in ALL), "n2 that drains")
                wait_for(lambda: "n2" not in talks(lab, 12), "its datapath, which has heard of it")
                served = talks(lab)
                assert set(served) == {"n1", "n3"}, served
                kept.sendall(b"NOOP\r\n")
                assert line(kept) == ["250", "n2", "NOOP"]
            done = lab.node("n1").exec(["earshot", "drain", "n2", "--wait"])
            assert done.returncode == 0
            lab.node("n1").exec(["earshot", "undrain", "n2"])
            wait_for(lambda: talk(lab, 0) == "n2", "n2, which serves again", 30)
        finally:
            greeters.close()


@pytest.mark.parametrize("stopped", [False, True], ids=["all-serve", "one-is-stopped"])
def test_affinity_source(lab, stopped):
    """A client's connections are one node's, by whichever node they are inspected; without it, all the next one's."""
    greeters = Greeters(lab)
    try:
        configure(lab, f"""
service mail {{ address = "{lab.net.vip}" port = {MAIL} inspect = never }}
rule sticky {{ service = mail  affinity = source }}
rule sticky-web {{ service = web  affinity = source }}
""")
        wait_for(lambda: not any(troubles(lab)), "servers on all nodes", 20, seen=lambda: troubles(lab))
        time.sleep(1.1)  # until none is left alone for what it has refused before
        wait_for(lambda: set(talks(lab, 10)) in ({node} for node in ALL), "one node's greetings", 20, seen=lambda: talks(lab, 10))
        home = talk(lab, 0)
        assert set(talks(lab)) == {home}
        pages = {raw.ask(lab.client, raw.head(f"/u/1k/{i}"))[0].node for i in range(12)}
        assert pages == {home}, pages  # of one address, on one ring
        if stopped:
            greeters.end(home)
            served = talks(lab)
            assert len(served) == 1 and set(served) < set(ALL) - {home}, served
            time.sleep(3)
            assert set(talks(lab)) == set(served)
    finally:
        greeters.close()
