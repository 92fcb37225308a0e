# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections with which another node may go on, of a service that survives, on a node whose lease is over: they stand still."""
import contextlib
import socket

import pytest

from earshotlab import wait_for
from packets import model
from packets.families import BOTH
from packets.leases import OK, SOME, STAYED, goes_on, leased, stands
from packets.node import EACH, ESTABLISHED, GATEWAY, SERVICE_INDEX
from packets.packet import ACK, FIN, PSH

__all__ = ["leased"]  # a fixture
pytestmark = pytest.mark.no_netfilter("it tells nobody of its connections")


@pytest.fixture(name="survives")
def _survives(leased):
    leased.service(SERVICE_INDEX[EACH], survives=1)
    yield leased
    leased.service(SERVICE_INDEX[EACH], survives=0)


def idle(client, *arguments):
    c = client(EACH, *arguments).serve()
    c.answer(OK)
    return c


def stays(node, c):
    text = c.get()
    with node.counts(**STAYED):
        c.request(text=text)
        assert c.read(len(text)) == text


@BOTH
def test_idle(node, client, survives):
    """Another node may be given the next request: this one takes nothing, and its server says nothing."""
    c = idle(client)
    survives.lease(0)
    with node.counts(drop_silent=3, reply_silent=SOME):
        c.send(ACK | PSH, c.get())
        c.send(ACK)
        c.send(ACK | FIN)
        c.server.sendall(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        stands(node, c)


def test_idle_until_the_lease_is_back(node, client, survives):
    c = idle(client)
    survives.lease(0)
    text = c.get()
    with node.counts(drop_silent=1):
        c.send(ACK | PSH, text)
        stands(node, c)
    survives.lease(3600)
    goes_on(node, c)


def test_without_the_key(node, client, leased):
    """Nobody else has it, so it goes on."""
    c = idle(client)
    leased.lease(0)
    goes_on(node, c)


@BOTH
def test_the_server_ends_it(node, client, survives):
    """The client, which another node may be serving, hears of neither FIN nor RST."""
    closed, aborted = idle(client), idle(client)
    survives.lease(0)
    with node.counts(reply_silent=SOME):
        closed.server.shutdown(socket.SHUT_WR)
        aborted.abort()
        wait_for(lambda: not node.sockets(aborted), "the end of the connection")
        closed.silence()
        aborted.silence()


@BOTH
def test_not_a_byte_of_the_answer_is_acknowledged(node, client, survives):
    """The client may repeat its request, and another node be given it."""
    c = idle(client)
    stays(node, c)
    before = c.ack
    c.answer(OK, acknowledge=False)
    survives.lease(0)
    with node.counts(drop_silent=1, reply_silent=range(0, 100)):
        node.public.clear()
        c.send(ACK)
        stands(node, c)
    survives.lease(3600)
    with node.counts(deliver_established=SOME):
        again = c.take("the retransmission")
        assert (again.seq, again.payload) == (before, OK)
        c.send(ACK)
    goes_on(node, c)


def test_a_byte_is_acknowledged(node, client, survives):
    """The client knows that its request arrived here: no other node gets it."""
    c = idle(client)
    stays(node, c)
    with node.counts(deliver_established=SOME):
        c.answer(OK[:10])
    survives.lease(0)
    with node.counts(deliver_established=SOME):
        c.answer(OK[10:])


def test_answer_that_waits_for_a_mac(node, client, survives):
    """The kernel keeps packets until it knows the MAC of who gets them, for seconds: behind what looks at the lease, perhaps."""
    c = idle(client)
    stays(node, c)
    c.take("the acknowledgement of the request")
    with node.gateway_unknown():
        c.server.sendall(OK)
        node.public.take(lambda f: f.arp and f.arp.target_ip == GATEWAY, "the question for the gateway's MAC")
        survives.lease(0)
    c.silence()
    stands(node, c)


TELL = 8  # ES_REQUEST_F_TELL


@pytest.mark.parametrize("flags,length,ceded", [(TELL, 1 << 20, True), (0, 1 << 20, False), (TELL, 100000, False)],
                         ids=["long", "not to be told", "short"])
def test_in_the_middle_of_a_response(node, client, survives, flags, length, ceded):
    """Another node goes on with a long one, once it was told of it."""
    c = client(EACH, owner=2)
    c.forge()
    text = c.get()
    packet = c.ip_packet(ACK | PSH, text)
    c.sent(text)
    with node.counts(handover_received=1, handover_rebuilt=1, deliver_established=SOME):
        node.message(c.handover(packet, next_request_seq=c.next, request_flags=flags))
        assert c.read(len(text)) == text
        c.answer(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + bytes(100))
    survives.lease(0)
    if not ceded:
        with node.counts(deliver_established=SOME):
            c.answer(bytes(100))
        return
    with node.counts(drop_silent=1, reply_silent=SOME):
        c.server.sendall(bytes(100))
        c.send(ACK)
        stands(node, c)


def asked(node, c, reason, counter):
    with node.counts(handover_received=1, **{counter: 1}):
        node.message(c.handover(c.ip_packet(ACK | PSH, b"x"), kind=model.STRAY), sport=40001)
        assert node.taken(2, model.NACK).nack == reason


class TestAsked:
    """Another node asks whose the segment is that its client repeats."""

    def test_idle(self, node, client, survives):
        """That node's, from now on: whatever becomes of the lease, this one does not go on."""
        c = idle(client)
        survives.lease(0)
        for _ in range(2):
            asked(node, c, model.NACK_NOT_HERE, "stray_not_here")
        survives.lease(3600)
        # The daemon may have ended it by now, since there is a lease again.
        with node.counts(reply_leaving=range(0, 100), end_late=range(0, 2)), contextlib.suppress(ConnectionAbortedError):
            c.server.sendall(OK)
        c.silence()

    def test_with_a_lease(self, node, client, survives):
        c = idle(client)
        asked(node, c, model.NACK_HERE, "stray_here")
        goes_on(node, c)

    def test_in_the_middle(self, node, client, survives):
        c = idle(client)
        stays(node, c)
        survives.lease(0)
        asked(node, c, model.NACK_HERE, "stray_here")


@pytest.mark.parametrize("driver", [None, pytest.param("asked", marks=pytest.mark.bpf("the module has no iterators"))],
                         ids=["walked", "asked"])
def test_end(node, client, driver):
    """When it comes back, others may have them: the idle ones end, and their clients hear nothing of it."""
    with node.leased(driver=driver) as tables:
        tables.leave_out()
        tables.service(SERVICE_INDEX[EACH], survives=1)
        try:
            ends, goes = idle(client), idle(client)
            stays(node, goes)
            with node.counts(deliver_established=SOME):
                goes.answer(OK[:10])
            tables.lease(0)
            with node.counts(reply_silent=SOME):
                assert [e.flow_hash for e in tables.end_unproven()] == [ends.hash]
                ends.silence()
            assert not node.sockets(ends)
            assert node.sockets(goes) == [ESTABLISHED]
        finally:
            tables.service(SERVICE_INDEX[EACH], survives=0)
