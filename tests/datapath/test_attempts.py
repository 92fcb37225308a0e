# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections that are being made, and come to nothing since the node's packet filter refuses their clients: nobody waits for them."""
import signal
import subprocess

import pytest

from earshotlab import wait_for
from packets import model
from packets.node import BLIND, ESTABLISHED, VIPS, WEB

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
