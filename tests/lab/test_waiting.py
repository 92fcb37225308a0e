# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that wait for an answer, or for the rest of one, when their node is lost (config key survive): nobody can go on with it, and
they have nothing to send by which they would learn that, so they are told."""
import select
import socket
import threading
import time

import pytest

from cluster.membership import DETECTED, TOKEN, serving, settled
from earshotlab import Lab, wait_for
from web import raw

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

SURVIVORS = ["n1", "n3", "n4"]
COUNT = 8  # of each kind

# The length is not known; a head, and nothing after it; not safe; all of it is with the node's kernel, and the client does not read.
ASKED = {
    "chunked": raw.head("/drip/200"),
    "unanswered": raw.head("/slow/20000", Cookie="a=b"),
    "post": raw.head("/slow/20000", method="POST", Content_Length=2) + b"ab",
    "unread": raw.head("/100k"),
}


@pytest.fixture(scope="module", name="module_lab")
def _module_lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), datapath="bpf",
             settings={"service.inspect": "every", "service.survive": 1}) as lab:
        yield lab


@pytest.fixture(name="lab")
def _lab(module_lab):
    settled(module_lab)
    serving(module_lab)
    yield module_lab
    module_lab.heal("n2")
    settled(module_lab)


class Waiter(threading.Thread):
    """A client that sends one request, and nothing more whatever happens; one of "unread" reads nothing either."""

    def __init__(self, lab, kind):
        super().__init__(daemon=True)
        self.kind = kind
        small = 4096 if kind == "unread" else 65536
        self.sock = raw.connect(lab.client, timeout=60, before=lambda sock: sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, small))
        self.port = self.sock.getsockname()[1]
        self.sock.sendall(ASKED[kind])
        self.error = None
        self.ended = None
        self.text = b""
        self.start()

    def run(self):
        try:
            if self.kind == "unread":
                poll = select.poll()
                poll.register(self.sock, 0)  # what has gone wrong alone
                poll.poll(60000)
                self.error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            while self.kind != "unread" and not self.text.endswith(b"\r\n0\r\n\r\n"):
                piece = self.sock.recv(65536)
                if not piece:
                    raise EOFError
                self.text += piece
                if b"Content-Length" in self.text:
                    break
        except ConnectionResetError as error:
            self.error = error.errno
        except EOFError:
            pass
        self.ended = time.monotonic()


def holders(lab):
    """{client port: the node that has its connection}"""
    return {int(line.split()[4].rpartition(":")[2]): node.name for node in lab.nodes if node.name not in lab.dead for line in raw.sockets(node)}


def waiting(lab):
    """What the nodes that are there know of each other's clients."""
    return [node.ask({"command": "flows"})["waiting"]["total"] for node in lab.nodes if node.name not in lab.dead]


def waiters(lab, *kinds):
    """Clients that all have waited for so long that their keepers know it, of each kind some of n2."""
    found = [Waiter(lab, kind) for kind in kinds for _ in range(COUNT)]
    wait_for(lambda: sum(waiting(lab)) == len(found), "all told", seen=lambda: waiting(lab))
    where = holders(lab)
    lost = [waiter for waiter in found if where[waiter.port] == "n2"]
    assert {waiter.kind for waiter in lost} == set(kinds)
    return found, lost


def resets(lab):
    return sum(lab.counters(node)["inspect_waiting_resets"] for node in SURVIVORS)


def close(found):
    for waiter in found:
        if not waiter.error:
            waiter.sock.shutdown(socket.SHUT_RDWR)
        waiter.join(5)
        waiter.sock.close()


def test_told(lab):
    """A node loses its power: each of its clients that wait gets a RST, soon after the others know, and sends nothing for that. Others'
    clients wait on."""
    found, lost = waiters(lab, *ASKED)
    before = resets(lab)
    began = time.monotonic()
    lab.kill("n2")
    for waiter in lost:
        waiter.join(DETECTED + 2)
        assert waiter.error == 104, (waiter.kind, waiter.error, waiting(lab), lab.counters("n1"))
    print(f"{len(lost)} of {len(found)} were of n2; they were told after {max(w.ended for w in lost) - began:.2f} s")
    assert resets(lab) == before + len(lost)
    assert all(waiter.is_alive() for waiter in found if waiter not in lost)
    close(found)
    wait_for(lambda: sum(waiting(lab)) == 0, "nothing kept", seen=lambda: waiting(lab))


def test_answered(lab):
    """Whoever has his answer is known no more, and keeps his connection when his node is lost."""
    socks = [raw.connect(lab.client) for _ in range(COUNT)]
    for sock in socks:
        sock.sendall(raw.head("/slow/2500"))
    wait_for(lambda: sum(waiting(lab)) == COUNT, "all told", seen=lambda: waiting(lab))
    nodes = [raw.receive(sock).node for sock in socks]
    assert "n2" in nodes
    wait_for(lambda: sum(waiting(lab)) == 0, "all taken back", seen=lambda: waiting(lab))
    wait_for(lambda: sum(node.ask({"command": "flows"})["kept"]["total"] for node in lab.nodes) == COUNT, "all idle")
    before = resets(lab)
    lab.kill("n2")
    settled(lab, SURVIVORS)
    for sock in socks:
        sock.sendall(raw.head("/1k"))
        assert raw.receive(sock).node in SURVIVORS
        sock.close()
    assert resets(lab) == before


@pytest.mark.parametrize("what", ["daemon", "cluster"])
def test_a_node_that_goes_on(lab, what):
    """The node is lost for the others alone, be it without its daemon or without the cluster network: its kernel and its server go on
    with what its clients have got a part of, and nobody tells these anything."""
    found, lost = waiters(lab, "chunked")
    before = resets(lab)
    if what == "daemon":
        lab.node("n2").signal("earshotd")
    else:
        lab.node("n2").cut("cluster")
    settled(lab, SURVIVORS)
    for waiter in found:
        waiter.join(60)
        assert waiter.error is None and waiter.text.endswith(b"\r\n0000000199\r\n0\r\n\r\n"), (waiter in lost, waiter.error)
        waiter.sock.close()
    assert resets(lab) == before
    if what == "daemon":
        lab.start("n2", "earshotd")
    else:
        lab.node("n2").mend("cluster")
