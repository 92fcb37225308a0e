# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections that are being made, some of which come to nothing since the node's packet filter refuses their clients: nobody waits for them."""
import contextlib
import shutil
import signal
import subprocess

import pytest

import tree
from earshotlab import wait_for
from packets import model
from packets.families import BOTH
from packets.node import BLIND, EACH, ESTABLISHED, VIPS, WEB
from packets.packet import ACK, FIN, PSH

pytestmark = pytest.mark.netfilter("the others make a socket at once, or none")
CROWD = 24  # of which each was waited for, 10 ms at least and 100 at most


def nft(node, text):
    subprocess.run(["ip", "netns", "exec", node.namespace, "nft", text], check=True)


class Banned:
    """Clients whom the node's packet filter bans when they have shaken hands, as that is done without it."""

    def __init__(self, node, clients):
        self.node, self.clients = node, clients
        for c in clients:
            c.shake()

    def __enter__(self):
        addresses = ", ".join(sorted({c.ip for c in self.clients}))
        nft(self.node, f"table ip ban {{ chain in {{ type filter hook input priority -1; ip saddr {{ {addresses} }} drop; }}; }}")
        return self

    def __exit__(self, *exc):
        nft(self.node, "delete table ip ban")


def elsewhere(node, client, service=WEB):
    """A client of a network that no other is of."""
    return client(service, place=node.place(service, 1, network="203.0.113"))


def refused(node):
    return node.counters()["rebuild_refused"]


@pytest.mark.parametrize("service", (WEB, BLIND), ids=("inspected", "blind"))
def test_an_admitted_client_waits_for_no_refused_one(node, client, service):
    """All of their requests are there before its own."""
    for _ in range(5):
        before = refused(node)
        admitted = elsewhere(node, client, service)
        admitted.shake()
        with Banned(node, [client(service) for _ in range(CROWD)]) as banned:
            for c in banned.clients:
                c.request()
            admitted.request(text=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert admitted.read(4) == b"GET "
            behind = refused(node) - before
            wait_for(lambda n=before: refused(node) - n >= CROWD, "each is given up", 10, lambda n=before: refused(node) - n)
            assert all(not node.sockets(c) for c in banned.clients)
            if behind < CROWD:
                return
    raise AssertionError("it has waited until all were given up")


def test_a_client_that_was_refused_comes_again(node, client):
    """With the same request, when it is admitted."""
    c = client()
    before = refused(node)
    with Banned(node, [c]):
        c.request()
        wait_for(lambda: refused(node) > before, "it is given up", 10)
    c.next -= len(c.get())
    c.request()
    assert c.read(4) == b"GET "
    assert node.sockets(c) == [ESTABLISHED]


def beside(node, client, other):
    """A client with the other's address, whose connection this node inspects, too."""
    for port in range(20000, 30000):
        number = model.flow_hash(node.keys, other.ip, port, VIPS[4], other.service)
        if node.ring.sampled(number) == 0:
            return client(place=(other.ip, port, number))
    raise AssertionError("no port")


def test_a_client_that_is_refused_again(node, client):
    """At once, without a moment's patience, for a second: it is over before the next client is served."""
    for _ in range(5):
        c, admitted = client(), elsewhere(node, client)
        again = beside(node, client, c)
        admitted.shake()
        before = refused(node)
        with Banned(node, [c, again]):
            c.request()
            wait_for(lambda n=before: refused(node) == n + 1, "it is given up", 10)
            again.request()
            admitted.request()
            assert admitted.read(4) == b"GET "
            behind = refused(node)
        wait_for(lambda n=before: refused(node) == n + 2, "it is given up", 10)
        assert not node.sockets(c) and not node.sockets(again)
        if behind == before + 2:
            return
    raise AssertionError("it was waited for")


def test_a_daemon_that_stops_meanwhile(node, client):
    """What it was about to make, it gives up, so that the next one makes it."""
    c = client()
    with Banned(node, [c]):
        c.request()
        wait_for(lambda: node.counters()["handover_received"], "its request comes to be made", 10)
        node.signal(signal.SIGTERM)
        wait_for(node.is_gone, "the daemon's end", 10)
    node.start()
    c.next -= len(c.get())
    c.request()
    assert c.read(4) == b"GET "


@contextlib.contextmanager
def late(node, seconds, family):
    """What the daemon gives to the stack comes there so much later, in order."""
    rule = ["PREROUTING", "-i", "earshot-nf", "-p", "tcp", "-j", "NFQUEUE", "--queue-num", "7"]
    inside = ["ip", "netns", "exec", node.namespace]
    tables = [shutil.which("ip6tables" if family == 6 else "iptables", path="/usr/sbin:/sbin:/usr/bin"), "-t", "raw"]
    with contextlib.ExitStack() as stack:
        holds = stack.enter_context(subprocess.Popen([*inside, *tree.module("cluster.late"), "7", str(seconds)], stdout=subprocess.PIPE, text=True))
        stack.callback(holds.kill)
        assert holds.stdout.readline() == "ready\n"
        subprocess.run([*inside, *tables, "-A", *rule], check=True)
        stack.callback(subprocess.run, [*inside, *tables, "-D", *rule], check=True)
        yield


def sends_all(node, c):
    """A client that sends its request, and, while its connection is being made, what comes behind it; and repeats nothing. False: it is too late
    for that, on a busy machine: given up; or made, and its request on its way to the socket."""
    pieces = [bytes([48 + i]) * 1000 for i in range(8)]
    head = b"POST %b HTTP/1.1\r\nHost: test\r\nContent-Length: 8000\r\n\r\n" % node.uri(1).encode()
    made = "request_blind" if c.service == BLIND else "handover_rebuilt"
    c.shake()
    before = node.counters()
    c.request(text=head)
    if c.service != BLIND:
        wait_for(lambda: node.counters()["handover_received"] > before["handover_received"], "it comes to be made", 10)
    for piece in pieces:
        c.send(ACK | PSH, piece)
        c.sent(piece)
    c.send(ACK | FIN)
    c.sent(b"", FIN)
    is_late = node.counters()[made] > before[made]
    wait_for(lambda: node.counters()[made] > before[made] or refused(node) > before["rebuild_refused"], "it is made, or given up", 10)
    if refused(node) > before["rebuild_refused"]:
        return False
    if is_late:
        c.accept()
        return False
    text = head + b"".join(pieces)
    assert c.read(len(text)) == text
    assert c.server.recv(1) == b""
    return True


@BOTH
@pytest.mark.parametrize("lease", [False, True], ids=["static", "leased"])
@pytest.mark.parametrize("service", [WEB, BLIND, EACH], ids=["inspected", "blind", "every"])
def test_what_comes_behind_the_request(node, client, service, lease, family):
    with contextlib.ExitStack() as stack:
        if lease:
            stack.enter_context(node.leased())
        stack.enter_context(late(node, 0.05, family))
        assert any(sends_all(node, client(service)) for _ in range(20))
