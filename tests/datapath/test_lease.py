# SPDX-License-Identifier: GPL-2.0-or-later
"""A node whose lease is over, or that takes nothing new: what it still does, and what it must not."""
import signal
import socket
import time

import pytest

from earshotlab import netns, wait_for
from packets import model, packet
from packets.leases import (BUILT, OK, SOME, STAYED, each_service, from_another, goes_on, leased, moved_here, nacked,
                            silent, stands)
from packets.nack import refuse
from packets.node import BLIND, EACH, ESTABLISHED, PUBLIC, TIME_WAIT, VIP, WEB
from packets.other import mine_and_others, to_vip, who_has
from packets.packet import ACK, FIN, PSH, RST, SYN

__all__ = ["leased", "silent"]  # fixtures
FALLBACK_MS = 300


class TestNothingNew:
    """No lease: no answer to anybody about anything."""

    def test_syn(self, node, client, silent):
        c = client()
        with node.counts(drop_silent=1):
            node.public.send(c.syn_frame())
            c.silence()
        silent.lease(3600)
        c.shake()

    def test_arp(self, node, silent):
        mine, _ = mine_and_others(node)
        with node.counts(arp_not_mine=1):
            node.public.send(who_has(VIP, mine[0]))
            node.public.nothing(lambda f: f.arp, "no answer")
        silent.lease(3600)
        with node.counts(arp_answered=1):
            node.public.send(who_has(VIP, mine[0]))
            assert node.public.take(lambda f: f.arp)

    def test_echo(self, node, silent):
        mine, _ = mine_and_others(node)
        echo = packet.icmp(8, 0, b"\0\1\0\2", b"are you there")
        with node.counts(other_not_mine=1):
            to_vip(node, mine[0], packet.ICMP, echo)
            node.public.nothing(lambda f: f.icmp, "no answer")
        silent.lease(3600)
        with node.counts(icmp_echo_mine=1):
            to_vip(node, mine[0], packet.ICMP, echo)
            assert node.public.take(lambda f: f.icmp)

    @each_service
    def test_first_request(self, node, client, leased, service):
        """Neither inspected nor served; the retransmission is, if the lease begins again."""
        c = client(service).shake()
        text = c.get()
        leased.lease(0)
        with node.counts(drop_silent=2):
            c.send(ACK | PSH, text)
            c.send(ACK | PSH, text)
            c.silence()
        node.no_message()
        assert not node.sockets(c)
        leased.lease(3600)
        c.request(text=text)
        assert c.read(len(text)) == text
        c.answer()

    def test_before_any_request(self, node, client, leased):
        """A probe, a FIN, a request whose cookie is too old: other nodes answer these."""
        c = client().shake()
        old = client()
        old.forge(slot=node.slot() - 3)
        leased.lease(0)
        node.hears_again()
        with node.counts(drop_silent=3):
            c.send(ACK, seq=c.isn)
            c.send(ACK | FIN)
            old.send(ACK | PSH, old.get())
            c.silence()
            old.silence()
        leased.lease(3600)
        with node.counts(keepalive_answered=1):
            c.send(ACK, seq=c.isn)
            c.take("the answer to the probe")

    def test_it_runs_out(self, node, client):
        """By itself: a node whose daemon hangs falls silent, too."""
        c = client()
        with node.leased(left_s=0.3) as tables:
            over_ns = tables.state.lease_ns
            c.shake()

            def unanswered():
                before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                node.public.send(c.syn_frame())
                if node.public.all(c.mine):
                    assert before < over_ns + 20e6, "answered after the lease"  # the coarse clock lies behind
                    return None
                return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

            assert wait_for(unanswered, "the end of the lease") >= over_ns

    def test_syn_that_meets_time_wait(self, node, client, leased):
        """The old connection dies here as everywhere, but another node answers."""
        c = client().serve()
        c.answer()
        c.time_wait()
        leased.lease(0)
        with node.counts(deliver_time_wait=not node.netfilter):  # the kernel's own affair there
            c.send(ACK | FIN, seq=c.fin_seq)
            c.take("the ACK of the old connection")
        c.renew()
        with node.counts(syn_time_wait=1):
            node.public.send(c.syn_frame())
            c.silence()
        assert node.sockets(c) == []

    def test_what_was_being_gathered(self, node, client, leased):
        """The client may have sent all of it to another node by now: it is not served, and the client is not told."""
        c = client().shake()
        with node.counts(request_queued=1, inspect_gathered=1, inspect_gather_timeout=1, inspect_not_mine=1,
                         inspect_not_http={0, 1}):
            c.send(ACK | PSH, b"GET / HT")
            wait_for(lambda: node.ask("status")["workers"][0]["gathering"], "the beginning of a request")
            leased.lease(0)
            before = node.counters()["inspect_not_mine"]
            wait_for(lambda: node.counters()["inspect_not_mine"] > before, "the end of the patience")
            c.silence()
        node.no_message()

    def test_nack(self, node, client, leased):
        """The request was this node's when it was sent; now it is another's."""
        c = client().shake()
        c.request(target=2)
        message = node.taken(2, model.REQUEST)
        leased.lease(0)
        with node.counts(handover_received=1, handover_nack_received=1, inspect_not_mine=1):
            refuse(node, message, model.NACK_SILENT)
            c.silence()
        node.no_message()


class TestGoesOn:
    """What the client knows to be here, no other node can be asked for."""

    @each_service
    def test_proven(self, node, client, leased, service):
        c = client(service).serve()
        c.answer(OK)
        leased.lease(0)
        goes_on(node, c)

    def test_later_requests(self, node, client, leased):
        """The daemon goes on inspecting them."""
        c = client(EACH).serve()
        c.answer(OK)
        leased.lease(0)
        for _ in range(2):
            text = c.get()
            with node.counts(**STAYED):
                c.request(text=text)
                assert c.read(len(text)) == text
            c.answer(OK)
        with node.counts(owned_queued=1, inspect_owned=1, inspect_moved=1, inspect_moved_locality=1, handover_received=2, end_done=1,
                         end_seen=1):
            sent = c.request(2)
            assert node.taken(2, model.REQUEST).packet == sent
        # And repeats, for no other node knows where it went.
        with node.counts(moved_queued=1, inspect_repeated=1):
            c.send(ACK | PSH, sent[52:], seq=c.next - len(sent[52:]))
            assert node.taken(2, model.REQUEST).packet[52:] == sent[52:]

    def test_one_byte_is_proof(self, node, client, leased):
        """Of the response, however much of it is still under way."""
        c = client().serve()
        first = c.answer(b"HTTP/1.1 200 OK\r\n")
        assert first
        c.server.sendall(b"x" * 20000)
        leased.lease(0)
        with node.counts(deliver_established=SOME):
            c.take_data(b"x" * 20000)
        goes_on(node, c)

    def test_moved_here_and_acknowledged(self, node, client, leased):
        c = moved_here(node, client)
        c.answer(OK)
        leased.lease(0)
        goes_on(node, c)

    def test_the_servers_reset(self, node, client, leased):
        c = client().serve()
        c.answer(OK)
        leased.lease(0)
        with node.counts():
            c.abort()
            assert c.take("the RST").flags & RST

    def test_the_nodes_own_connections(self, node, silent):
        """What is of no service is none of membership's business."""
        def connect(source):
            s = socket.socket()
            s.setblocking(False)
            s.bind((source, 0))
            s.connect_ex(("203.0.113.9", 80))
            return s

        with node.counts():
            for source in (PUBLIC, VIP):
                with netns.in_namespace(node.namespace, connect, source):
                    assert node.public.take(lambda f: f.tcp and f.ip.dst == "203.0.113.9").tcp.flags & SYN


@pytest.mark.parametrize("how", ["silent", "detached"])
class TestTarget:
    """A node that takes nothing new takes nothing from the others either, and says so."""

    @pytest.fixture
    def takes_nothing(self, leased, how):
        return lambda: leased.lease(0) if how == "silent" else leased.lease(3600, attached=0)

    @pytest.mark.parametrize("moved", [0, 1])
    def test_request(self, node, client, takes_nothing, moved):
        c, _, message = from_another(node, client, moves=moved)
        message.flags |= model.F_MOVED * moved
        takes_nothing()
        with node.counts(handover_received=1, handover_silent=1):
            nacked(node, c, node.message(message), model.NACK_SILENT)

    def test_duplicate(self, node, client, takes_nothing):
        """It is here: to send it back would have it made twice."""
        c, text, message = from_another(node, client, WEB)
        node.message(message)
        assert c.read(len(text)) == text
        c.sent(text)
        gone, _, over = from_another(node, client, WEB)
        node.message(over)
        gone.read(4)
        gone.abort()
        wait_for(lambda: not node.sockets(gone), "the end of the connection")
        takes_nothing()
        for kind, counter in ((model.REQUEST, "handover_duplicate"), (model.FOLLOW, "handover_follow_heard")):
            with node.counts(handover_received=1, reply_silent={0, 1}, **{counter: 1}):
                node.message(c.handover(message.packet, kind))
                node.no_message()
        with node.counts(handover_received=1, handover_old=1):
            node.message(gone.handover(over.packet))
            node.no_message()
        assert node.sockets(c) == [ESTABLISHED] and not node.pending(WEB)

    def test_old_socket_in_the_way(self, node, client, leased, takes_nothing):
        c, text, message = from_another(node, client, WEB)
        node.message(message)
        c.read(len(text))
        c.sent(text)
        c.answer(OK)
        c.time_wait()
        c.renew()
        c.forge()
        takes_nothing()
        with node.counts(handover_received=1, handover_silent=1):
            node.message(c.handover(c.ip_packet(ACK | PSH, c.get())))
            assert node.taken(2, model.NACK).nack == model.NACK_SILENT
        assert node.sockets(c) == [TIME_WAIT]


class TestDetached:
    """The lease holds, but this node takes nothing new: it leaves, or was told to be silent."""

    def test_nothing_new(self, node, client, leased):
        c, waiting = client(), client().shake()
        mine, _ = mine_and_others(node)
        leased.lease(3600, attached=0)
        node.hears_again()
        with node.counts(drop_not_mine=3, arp_not_mine=1, other_not_mine=1):
            node.public.send(c.syn_frame())
            waiting.send(ACK | PSH, waiting.get())
            waiting.send(ACK, seq=waiting.isn)
            c.silence()
            waiting.silence()
            node.public.send(who_has(VIP, mine[0]))
            to_vip(node, mine[0], packet.ICMP, packet.icmp(8, 0, b"\0\1\0\2", b"are you there"))
            node.public.nothing(lambda f: f.icmp or f.arp, "no answer")

    def test_without_membership_it_is_a_target_still(self, node, client, leased):
        c, text, message = from_another(node, client, WEB)
        leased.lease(0, attached=0)
        leased.state.lease_ns = 0
        with node.counts(**BUILT):
            node.message(message)
            assert c.read(len(text)) == text

    def test_own_request_comes_back(self, node, client, leased):
        """A request that was refused elsewhere is refused here, over lo, and goes on to the third node."""
        node.all_up()
        c = client().shake()
        c.request(target=2)
        message = node.taken(2, model.REQUEST)
        leased.lease(3600, attached=0)
        with node.counts(handover_received=2, handover_nack_received=1, inspect_nacks=2, inspect_requests=2,
                         inspect_kept=1, inspect_handovers=1, handover_silent=1, own_nack_received=1):
            refuse(node, message, model.NACK_SILENT)
            third = node.taken(3, model.REQUEST)
            c.silence()
        assert (third.packet, third.attempt) == (message.packet, 2)
        leased.lease(3600)
        node.all_up()


@pytest.mark.parametrize("how", ["hangs", "dies"])
class TestWithoutDaemon:
    """A lease that nobody renews: no service, not even a blind one, for nobody hears when another node takes over."""

    @pytest.fixture
    def own(self, own_node):
        return own_node(fallback_after_ms=FALLBACK_MS)

    @pytest.fixture
    def stop(self, own, how):
        def stop(tables):
            own.freeze() if how == "hangs" else own.kill()
            wait_for(lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC) - tables.state.worker[0][0] >
                     (FALLBACK_MS + 20) * 1000000, "a stale heartbeat")

        return stop

    @staticmethod
    def again(own, how):
        """It is back, with static membership if it is a new one."""
        own.signal(signal.SIGCONT) if how == "hangs" else own.start()

    @pytest.mark.no_netfilter("without its daemon nothing unproven moves, and no SYN is answered: test_only_what_is_proven")
    def test_no_blind_service(self, own, client, stop, how):
        services = (WEB, BLIND, EACH)
        kept = [client(service, at=own).serve() for service in services]
        for c in kept:
            c.answer(OK)
        began = [client(service, at=own).serve() for service in services]
        waiting = [client(service, at=own).shake() for service in services]
        before = own.counters()
        with own.leased() as tables:
            stop(tables)
            for c in waiting:
                c.send(ACK | PSH, c.get())
                c.silence()
                assert not own.sockets(c)
            own.no_message()
            # What is here goes on, proven or not; and the rest of the lease is this node's.
            for c in (*kept, *began):
                c.request(text=b"still here")
                assert c.read(10) == b"still here"
                c.answer(OK)
            fresh = client(at=own)
            fresh.shake()
            # When it is over, only what is proven.
            last = client(BLIND, at=own)
            tables.lease(0)
            own.public.send(last.syn_frame())
            last.silence()
            for c in kept:
                c.request(text=b"and now")
                assert c.read(7) == b"and now"
                c.answer(OK)
            tables.lease(3600)
            if how == "hangs":
                self.again(own, how)
                assert own.ask("status")
                wait_for(lambda: self.served(own, waiting), "service")
        if how == "dies":
            self.again(own, how)
            assert "took over" in own.log()
            wait_for(lambda: self.served(own, waiting), "service")
        after = own.counters()
        assert after["drop_silent"] >= before["drop_silent"] + 4
        assert (after["request_fallback"], after["request_blind"]) == (
            before["request_fallback"], before["request_blind"] + 1)

    @pytest.mark.netfilter("what the others do is above")
    def test_only_what_is_proven(self, own, client, stop, how):
        """Here the datapath goes with the daemon: no SYN is answered, and what no client has acknowledged stands still."""
        kept, began = [], []
        waiting = client(at=own).shake()
        with own.leased() as tables:
            for service in (WEB, BLIND):
                kept.append(client(service, at=own).serve())
                kept[-1].answer(OK)
                began.append(client(service, at=own).serve())
            own.settle()
            own.public.clear()
            stop(tables)
            waiting.send(ACK | PSH, waiting.get())
            fresh = client(at=own)
            own.public.send(fresh.syn_frame())
            for c in (waiting, fresh):
                c.silence()
                assert not own.sockets(c)
            for c in began:
                c.server.sendall(OK)
                c.send(ACK | PSH, b"more")
                stands(own, c)
            own.no_message()
            for c in kept:
                c.request(text=b"still here")
                assert c.read(10) == b"still here"
                c.answer(OK)
            self.again(own, how)
            assert own.ask("status")
            wait_for(lambda: self.served(own, [waiting]), "service")

    @staticmethod
    def served(own, clients):
        for c in clients:
            if not own.sockets(c):
                c.send(ACK | PSH, c.get(), seq=c.isn + 1)
        own.settle()
        return all(own.sockets(c) for c in clients)

    @pytest.mark.no_netfilter("without its daemon a node answers nothing: test_daemon.py")
    def test_without_membership(self, own, client, stop, how):
        """There it is the other way round."""
        with own.leased() as tables:
            tables.configure(leased=0)
            tables.state.lease_ns = 0
            stop(tables)
            for service in (WEB, BLIND, EACH):
                client(service, at=own).serve()
