# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections of which the client does not know that its request arrived, on a node whose lease is over: what stands
still, whom it is told, and what ends when the node comes back."""
import dataclasses
import socket

import pytest

from earshotlab import netns, wait_for
from packets import model
from packets.families import BOTH
from packets.leases import (BUILT, OK, SOME, begins, each_service, from_another, goes_on, leased, moved_here, nacked, stands,
                            told, unheard)
from packets.node import BLIND, EACH, ESTABLISHED, GATEWAY, WEB
from packets.packet import ACK, PSH, RST
from packets.strays import lets_pass

__all__ = ["leased"]  # a fixture
REACHED_S = 1  # so long netfilter takes for granted that a client is reached (netfilter/rebuild/reach.c)


class TestUnproven:
    """Another node may have been asked for what the client does not know to be here: it stands still."""

    def test_answer_that_waits_for_a_mac(self, node, client, leased):
        """The kernel keeps packets until it knows the MAC of who gets them, for seconds: behind what looks at the lease, perhaps."""
        c = unheard(node, client, leased, WEB)
        if node.netfilter:  # which has just found that it knows it
            lets_pass(REACHED_S)
        with node.gateway_unknown():
            c.server.sendall(OK)
            node.public.take(lambda f: f.arp and f.arp.target_ip == GATEWAY, "the question for the gateway's MAC")
            leased.lease(0)
        c.silence()
        stands(node, c)

    @BOTH
    @each_service
    def test_stands_still(self, node, client, leased, service):
        c = begins(node, client, service)
        leased.lease(0)
        with node.counts(drop_silent=3, reply_silent=SOME):
            c.server.sendall(OK[:20])
            c.send(ACK | PSH, b"more")
            c.send(ACK | PSH, c.get(), seq=c.isn + 1)
            c.send(ACK)
            stands(node, c)
        leased.lease(3600)
        c.server.sendall(OK[20:])
        assert c.take_data(OK)
        goes_on(node, c)

    def test_the_stack_tries_again(self, node, client, leased):
        """In vain, until the lease begins anew."""
        c = unheard(node, client, leased)
        leased.lease(0)
        before = node.counters()["reply_silent"]
        with node.counts(reply_silent=SOME):
            c.server.sendall(OK)
            wait_for(lambda: node.counters()["reply_silent"] >= before + 2, "a retransmission")
            stands(node, c)
        leased.lease(3600)
        assert c.take_data(OK)
        goes_on(node, c)

    def test_the_clients_acknowledgement_is_too_late(self, node, client, leased):
        """What was sent before the lease ended is sent again after it began anew, and arrives once."""
        c = client().serve()
        c.answer(OK, acknowledge=False)
        leased.lease(0)
        with node.counts(drop_silent=1, reply_silent=range(0, 100)):
            node.public.clear()
            c.send(ACK)
            stands(node, c)
        leased.lease(3600)
        with node.counts(deliver_established=SOME):
            again = c.take("the retransmission")
            assert (again.seq + len(again.payload), again.payload) == (c.ack, OK)
            c.send(ACK)
        goes_on(node, c)

    @each_service
    def test_acknowledged_and_not_answered(self, node, client, leased, service):
        """The client knows that its request arrived and will not repeat it: it is told, when nobody can help any more."""
        c = begins(node, client, service)
        leased.lease(0)
        with node.counts(reply_silent=SOME, reply_told=SOME):
            c.server.sendall(OK)
            c.silence()
            leased.lease(-2)
            for _ in range(2):  # one may be lost
                told(c)
                if node.netfilter:  # which does not know that what its stack has sent has not left
                    assert c.take("a RST behind that").seq == c.ack + len(OK)
        assert node.sockets(c) == [ESTABLISHED]
        leased.lease(3600)

    @BOTH
    def test_acknowledged_and_the_server_resets(self, node, client, leased):
        """It is told at once: there is nothing left that could be answered."""
        c = begins(node, client)
        leased.lease(0)
        with node.counts(reply_told=1):
            c.abort()
            told(c)
        leased.lease(3600)
        node.hears_again()
        with node.counts(drop_handshake_ack=1):  # the client's connection may go on at another node
            c.send(ACK)
            c.silence()

    def test_never_acknowledged(self, node, client, leased):
        """It repeats its request, and another node answers that."""
        c = unheard(node, client, leased)
        leased.lease(-2)
        with node.counts(reply_silent=SOME):
            c.server.sendall(OK)
            stands(node, c)
        leased.lease(3600)
        assert c.take_data(OK)

    def test_acknowledged_and_the_answer_is_lost(self, node, client, leased):
        """Or its acknowledgement is: one of two RSTs fits. A client that has a part of it takes neither."""
        c = begins(node, client)
        start = c.ack
        c.answer(OK, acknowledge=False)
        leased.lease(0)
        with node.counts(reply_silent=range(0, 100), reply_told=SOME):
            c.silence()
            leased.lease(-2)
            resets = [c.take("a RST") for _ in range(4)]
        assert all(reset.flags & RST and not reset.payload for reset in resets)
        assert [reset.seq for reset in resets] == 2 * [start, c.ack]
        assert node.sockets(c) == [ESTABLISHED]
        leased.lease(3600)

    def test_no_acknowledgement_while_the_lease_runs_out(self, node, client, leased):
        """So that the client repeats its request, should the answer come too late; and hears it, if it does not."""
        c = unheard(node, client, leased)
        leased.lease(3600, firm=False)
        with node.counts(deliver_established=1, reply_unsure=1):
            c.send(ACK | PSH, b"G", seq=c.isn + 1)
            c.silence()
        with node.counts(deliver_established=SOME):
            c.answer(OK)
        goes_on(node, c)

    @pytest.mark.parametrize("moved", [0, 1])
    def test_by_handover(self, node, client, leased, moved):
        """Its inspecting node may change; the node that moved it gives it to another one when this one is lost."""
        if moved:
            c = moved_here(node, client)
        else:
            c, text, message = from_another(node, client)
            with node.counts(**BUILT):
                node.message(message)
                c.sent(text)
                assert c.read(len(text)) == text
        node.public.clear()
        leased.lease(0)
        with node.counts(drop_silent=1, reply_silent=SOME):
            c.server.sendall(OK[:20])
            c.send(ACK | PSH, b"more")
            stands(node, c)
        leased.lease(3600)
        c.server.sendall(OK[20:])
        assert c.take_data(OK)

    @pytest.mark.parametrize("how", ["fin", "reset"])
    def test_the_servers_end(self, node, client, leased, how):
        c = unheard(node, client, leased)
        leased.lease(0)
        with node.counts(reply_silent=SOME):
            if how == "fin":
                c.server.shutdown(socket.SHUT_WR)
            else:
                c.abort()
                wait_for(lambda: not node.sockets(c), "the end of the connection")
            c.silence()

    def test_a_syn_for_it(self, node, client, leased):
        """Not even a challenge."""
        c = begins(node, client)
        leased.lease(0)
        with node.counts(drop_silent=1, reply_silent={0, 1}):
            node.public.send(c.syn_frame())
            stands(node, c)

    def test_everything_goes_on_while_the_lease_holds(self, node, client, leased):
        for attached in (1, 0):
            c = client().serve()
            leased.lease(3600, attached)
            with node.counts(deliver_established=SOME):
                c.answer(OK)
            goes_on(node, c)
            leased.lease(3600)


class TestEnd:
    """What the daemon is told of the connections, and what it ends."""

    @pytest.fixture(params=[None, pytest.param("asked", marks=[
        pytest.mark.bpf("the module has no iterators"), pytest.mark.no_netfilter("netfilter neither")])], ids=["walked", "asked"])
    def leased(self, request, node):
        """Walked by the kernel's iterators, and each asked for by itself, where the kernel refuses those."""
        with node.leased(driver=request.param) as found:
            found.leave_out()
            yield found

    def test_list(self, node, client, leased):
        proven, unproven, moved = client().serve(), client(BLIND).serve(), moved_here(node, client)
        proven.answer(OK)
        over = client().serve()
        over.answer(OK)
        over.time_wait()
        found = {entry.flow_hash: entry for entry in leased.connections()}
        if node.netfilter:  # which need not know of those that are proven
            assert proven.hash not in found
        else:
            assert (found[proven.hash].unproven, found[proven.hash].is_moved, found.pop(proven.hash).source) == (0, 0, 0)
        assert set(found) == {unproven.hash, moved.hash}
        assert [found[c.hash].unproven for c in (unproven, moved)] == [1, 1]
        assert [found[c.hash].is_moved for c in (unproven, moved)] == [0, 1]
        assert [found[c.hash].source for c in (unproven, moved)] == [0, 1]
        assert (found[unproven.hash].cookie, found[unproven.hash].first_seq) == (unproven.cookie, unproven.isn + 1)
        assert all(e.tcp_state == ESTABLISHED and e.made_ns for e in found.values())

    def test_end(self, node, client, leased):
        """The unproven ones, accepted or not: the server sees that they broke, and the client nothing."""
        proven, moved = client().serve(), moved_here(node, client)
        for c in (proven, moved):
            c.answer(OK)
        leased.lease(3600, firm=False)
        accepted = [client(service).serve() for service in (WEB, BLIND, EACH)]
        accepted[0].server.sendall(OK)
        accepted[0].take_data(OK, acknowledge=False)
        accepted[1].server.shutdown(socket.SHUT_WR)
        accepted[1].take_fin()
        closed = client(WEB).serve()
        closed.server.close()
        closed.server = None
        closed.take_fin()
        waiting = client().shake()
        waiting.request()
        wait_for(lambda: node.sockets(waiting), "a connection that nobody accepts")
        unproven = [*accepted, waiting, closed, moved_here(node, client, reply_unsure=1)]
        # Of no service.
        listener = netns.in_namespace(node.namespace, socket.create_server, ("127.0.0.1", 0))
        own = netns.in_namespace(node.namespace, socket.create_connection, listener.getsockname())
        with node.counts(drop_silent=0):
            for attached in (1, 0):
                leased.lease(3600, attached, firm=False)
                assert leased.end_unproven() == []
        leased.lease(0)
        node.public.clear()
        # The stack says nothing of what a RST ends that comes in, as with netfilter.
        with node.counts(reply_silent=range(0 if node.netfilter else len(unproven), 100)):
            assert {e.flow_hash for e in leased.end_unproven()} == {c.hash for c in unproven}
            for c in unproven:
                c.silence()
                assert not node.sockets(c)
        for c in accepted:
            with pytest.raises(ConnectionError):
                c.server.recv(1)
        assert leased.end_unproven() == []
        assert len(leased.connections()) == (0 if node.netfilter else 2)
        for c in (proven, moved):
            goes_on(node, c)
        with own, listener:
            own.sendall(b"still here")
            assert listener.accept()[0].recv(10) == b"still here"
        node.pending(WEB)

    @each_service
    def test_end_tells_who_would_wait(self, node, client, leased, service):
        """A client whose request was acknowledged and not answered."""
        c = begins(node, client, service)
        leased.lease(0)
        with node.counts(reply_told=1):
            assert [e.flow_hash for e in leased.end_unproven()] == [c.hash]
            told(c)
        assert not node.sockets(c)

    def test_end_tells_who_has_lost_the_answer(self, node, client, leased):
        """The stack's own RST stands behind the answer: a client that waits for its beginning would not take it."""
        c = begins(node, client)
        start = c.ack
        c.answer(OK, acknowledge=False)
        leased.lease(0)
        # Both are told again whenever the stack tries again meanwhile.
        with node.counts(reply_silent=range(0, 100), reply_told=range(2, 100, 2)):
            assert [e.flow_hash for e in leased.end_unproven()] == [c.hash]
            assert [c.take("a RST").seq for _ in range(2)] == [start, c.ack]
        assert not node.sockets(c)

    @BOTH
    @pytest.mark.parametrize("how", ["unsafe", "safe", "not said"])
    def test_ended_comes_again(self, node, client, leased, how):
        """By a node that knows nothing of the end: what must not be executed twice, the server may have executed. It goes back,
        with a lease or without, and no other node is to have it. Anything else is served."""
        flags = model.F_UNSAFE if how == "unsafe" else 0
        c, text, first = from_another(node, client)
        first.flags |= flags
        leased.lease(3600, firm=False)
        with node.counts(reply_unsure=SOME, **BUILT):
            node.message(first)
            c.sent(text)
            assert c.read(len(text)) == text
        leased.lease(0)
        with node.counts(reply_silent=range(0, 100)):
            assert [e.flow_hash for e in leased.end_unproven()] == [c.hash]
        c.server.close()
        c.server = None

        def again(**fields):
            return dataclasses.replace(first, sequence=0, sent=None, flags=first.flags | model.F_REPEAT, **fields)

        if how == "unsafe":
            for lease, attempt in ((0, 0), (0, 1), (3600, 0), (3600, 1), (3600, 2)):
                leased.lease(lease)
                message = again(attempt=attempt)
                with node.counts(handover_received=1, handover_doubtful=1):
                    node.message(message)
                    nacked(node, c, message, model.NACK_DOUBTFUL)
            # Who does not say so, as a node of the version before, is served.
            message = again()
            message.flags &= ~model.F_UNSAFE
        else:
            leased.lease(3600)
            message = again()
        with node.counts(**BUILT):
            node.message(message)
            assert c.read(len(text)) == text
        c.answer(OK)
        goes_on(node, c)
