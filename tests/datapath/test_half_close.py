# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that close their side: before a request, with it, behind it, wherever the request is by then. And those that
give up altogether."""
import shutil
import signal
import subprocess

import pytest

from earshotlab import wait_for
from packets import model
from packets.client import LINUX, WINDOWS
from packets.families import BOTH
from packets.node import BLIND, DEAD, EACH, WEB
from packets.packet import ACK, FIN, PSH, RST
from packets.tables_asked import ITERATORS, refusing

EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
CLOSED = dict(handover_received=1, handover_rebuilt=1)


@pytest.fixture
def idle(client):
    """A connection here that waits for its second request."""
    def make():
        c = client(EACH).serve()
        c.answer(EMPTY)
        return c
    return make


def nft(node, script):
    subprocess.run(["ip", "netns", "exec", node.namespace, shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin"), script], check=True)


def ends(c):
    """The server has read the end of the client's side, and ends its own."""
    assert c.server.recv(1) == b""
    c.server.close()
    fin = c.take_fin()
    assert (fin.payload, fin.ack) == (b"", c.next)
    c.send(ACK)


class TestBeforeAnyRequest:
    """What comes of it is for the server to say, as if it were alone."""

    @pytest.mark.parametrize("service", [WEB, BLIND, EACH])
    def test_closes(self, node, client, service):
        c = client(service).shake()
        with node.counts(fin_before_request=1, deliver_established=1):
            c.send(ACK | FIN)
            c.sent(b"", FIN)
            c.accept()
            ends(c)
        wait_for(lambda: not node.sockets(c), "no socket")

    @pytest.mark.parametrize("service", [WEB, BLIND])
    def test_says_something(self, node, client, service):
        c = client(service).shake()
        c.send(ACK | FIN)
        c.sent(b"", FIN)
        c.accept()
        c.answer(b"a farewell")
        ends(c)

    def test_comes_again(self, node, client):
        """Its acknowledgement was lost: it meets the socket; and when that is gone, there is no second one."""
        c = client().shake()
        fin = c.frame(ACK | FIN)
        node.public.send(fin)
        c.accept()
        with node.counts(deliver_established=1):
            node.public.send(fin)
        c.sent(b"", FIN)
        ends(c)
        wait_for(lambda: not node.sockets(c), "no socket")
        # As long as the connection tracking knows the connection, the stack gets it.
        with node.counts(handover_old=not node.netfilter):
            node.public.send(fin)
            c.silence()
        assert not node.pending(WEB)

    def test_no_server(self, node, client):
        c = client(DEAD).shake()
        with node.counts(rebuild_no_listener=1):
            c.send(ACK | FIN)
            reset = c.take("the RST")
            assert (reset.flags, reset.seq, reset.ack, reset.block, reset.payload) == (RST, c.ack, 0, b"", b"")
        c.silence("one answer")

    def test_without_timestamps(self, node, client):
        """It could be one behind a request that the worker has; that knows."""
        c = client(offer=WINDOWS).shake()
        with node.counts(request_later_queued=1, inspect_fin_before_request=1, **CLOSED, deliver_established=1):
            c.send(ACK | FIN)
            c.sent(b"", FIN)
            c.accept()
            ends(c)


@BOTH
class TestPacketFilter:
    """One that drops what connection tracking takes for invalid, as most rulesets do. So that takes the first packet that it sees
    of a connection, if it has a FIN."""

    RULES = "table inet held { chain input { type filter hook input priority 0; ct state invalid drop; }; }"

    @pytest.fixture(autouse=True)
    def _rules(self, node):
        nft(node, self.RULES)
        yield
        nft(node, "delete table inet held")

    @pytest.mark.parametrize("service", [WEB, BLIND, EACH])
    def test_closes_before_any_request(self, node, client, service):
        c = client(service).shake(ack=False)
        with node.counts(fin_before_request=1, deliver_established=1):
            c.send(ACK | FIN)
            c.sent(b"", FIN)
            c.accept()
            ends(c)

    @pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda offer: offer.name)
    @pytest.mark.parametrize("service", [WEB, BLIND, EACH])
    def test_closes_with_its_request(self, node, client, service, offer):
        c = client(service, offer=offer).shake(ack=False)
        text = c.get()
        c.request(text=text, flags=FIN)
        assert c.read(len(text)) == text
        segments = c.answer(bytes(5000))
        ends(c)
        assert not any(5 in segment.options for segment in segments), "its data came twice, says the server (RFC 2883)"

    def test_closes_with_a_request_that_another_node_gives(self, node, client):
        c = client(owner=2)
        c.forge()
        text = c.get()
        with node.counts(handover_received=1, handover_rebuilt=1):
            node.message(c.handover(c.ip_packet(ACK | PSH | FIN, text)))
            c.sent(text, FIN)
            assert c.read(len(text)) == text
            assert c.server.recv(1) == b""
        c.answer()


class TestBehindALaterRequest:
    """The request is with the inspector: the FIN is not for the socket that may lose the connection."""

    def test_it_stays(self, node, idle):
        c = idle()
        text = c.get()
        with node.counts(owned_queued=1, owned_later_queued=1, inspect_gathered=1, inspect_owned=1, inspect_stayed=1,
                         inspect_followed=1, handover_received=2, stay_delivered=1, handover_follow=1):
            c.request(text=text[:10])
            c.request(text=text[10:], flags=FIN)
            assert c.read(len(text)) == text
            assert c.server.recv(1) == b""

    @pytest.mark.parametrize("glued", [True, False])
    def test_it_moves(self, node, idle, glued):
        c = idle()
        text = c.get(2)
        with node.counts(owned_queued=1, owned_later_queued=1 if glued else 2, inspect_gathered=1, inspect_owned=1,
                         inspect_moved=1, inspect_moved_locality=1, inspect_followed=1 if glued else 2, handover_received=2, end_done=1, end_seen=1):
            first = c.request(text=text[:10])
            fin = c.send(ACK | FIN, text[10:] if glued else b"", seq=(c.next + (0 if glued else len(text) - 10)) % 2**32)
            second = fin if glued else c.request(text=text[10:])
            messages = [node.taken(2) for _ in range(2 if glued else 3)]
        assert [message.packet for message in messages] == [first, second, fin][:len(messages)]
        assert [message.kind for message in messages] == [model.REQUEST, model.FOLLOW, model.FOLLOW][:len(messages)]
        assert not node.sockets(c)

    def test_it_has_moved(self, own_node, client):
        """Within the race window, which is as long as a slow machine may take for this."""
        node = own_node(race_window_ms=2000)
        c = client(EACH, at=node).serve()
        c.answer(EMPTY)
        c.request(target=2)
        assert node.taken(2).kind == model.REQUEST
        with node.counts(moved_queued=1, inspect_followed=1):
            fin = c.send(ACK | FIN)
            follow = node.taken(2)
        assert (follow.kind, follow.packet) == (model.FOLLOW, fin)

    def test_between_two_requests(self, node, idle):
        c = idle()
        with node.counts(deliver_established=2):
            c.send(ACK | FIN)
            c.sent(b"", FIN)
            ends(c)


class TestGivesUp:
    """With a RST, while the inspector has a part of the first request."""

    PART = b"GET / HTTP/1.1\r\nHost:"

    @pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda offer: offer.name)
    @pytest.mark.parametrize("service", [WEB, EACH])
    def test_no_server_gets_the_part(self, node, client, service, offer):
        c = client(service, offer=offer).shake()
        with node.counts(request_queued=1, request_later_queued=2, inspect_client_reset=1):
            c.request(text=self.PART[:10])
            c.request(text=self.PART[10:])
            c.send(ACK | RST)
            wait_for(lambda: node.counters()["inspect_client_reset"], "the RST, read")
        c.silence()
        node.no_message()
        assert not node.sockets(c)

    @pytest.mark.parametrize("off", [-1, 1])
    def test_who_knows_no_sequence_numbers_ends_nothing(self, node, client, off):
        """Nor does who has not seen the cookie."""
        c = client().shake()
        text = c.get()
        with node.counts(request_queued=1, request_later_queued=2, drop_no_flow=1, inspect_gathered=1, inspect_requests=1,
                         inspect_kept=1, inspect_followed=1, handover_received=2, handover_rebuilt=1, handover_follow=1):
            c.request(text=text[:10])
            c.send(ACK | RST, seq=(c.next + off) % 2**32)
            c.send(ACK | RST, ack=c.no_cookie(c.ack + 1))
            c.request(text=text[10:])
            assert c.read(len(text)) == text


class TestServerThatGoesOn:
    """It says more, or closes, behind a complete answer. Once its socket is being ended, that does not leave the node:
    the client would take it for the beginning of the next node's answer, or for the end."""

    @pytest.fixture(params=[(), pytest.param(refusing(*ITERATORS), marks=[
        pytest.mark.bpf("the module has no iterators"), pytest.mark.no_netfilter("netfilter neither")])], ids=["walked", "asked"])
    def node(self, own_node, request):
        """What ends sockets does not reach them: a firewall drops it, or the server is in the middle of a system call. The
        daemon finds them, by iterators or where the kernel refuses those."""
        node = own_node(before=request.param)

        nft(node, "table ip held { chain input { type filter hook input priority 0; iifname { lo, eth0, earshot-nf } tcp flags & rst == rst drop; }; }")
        return node

    @pytest.fixture
    def leaving(self, node, client):
        """A connection in the middle of its move: the daemon, which ends what no RST has reached, was stopped in time."""
        def attempt():
            c = client(EACH, at=node).serve()
            c.answer(EMPTY)
            before = node.counters()
            c.request(target=2)
            wait_for(lambda: node.counters()["end_done"] > before["end_done"], "its socket is to be ended")
            node.freeze()
            if node.sockets(c):
                return c
            node.signal(signal.SIGCONT)
            node.taken(2)
            return None

        found = None
        for _ in range(20):
            found = found or attempt()
        assert found, "each of 20 was ended before the daemon could be stopped"
        yield found
        node.signal(signal.SIGCONT)

    def test_nobody_else_gets_the_request_before_the_socket_is_gone(self, node, client):
        c = client(EACH, at=node).serve()
        c.answer(EMPTY)
        with node.counts(owned_queued=1, inspect_owned=1, inspect_moved=1, inspect_moved_locality=1, handover_received=range(2, 100), end_done=1,
                         end_again=range(100), end_late=1, end_seen=1, reply_leaving=range(2)):
            sent = c.request(target=2)
            message = node.taken(2)
            assert not node.sockets(c)
        assert (message.kind, message.packet) == (model.REQUEST, sent)
        c.silence("the stack says nothing of it")

    def test_goes_when_it_is_gone(self, node, leaving):
        """Whatever the server and the client do meanwhile."""
        c = leaving
        node.cluster.nothing(lambda f: f.udp and f.udp.payload[5] == model.REQUEST, "no request for another node")
        c.send(ACK | FIN)
        c.server.sendall(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        node.signal(signal.SIGCONT)
        assert node.taken(2).kind == model.REQUEST
        assert not node.sockets(c)
        c.silence("the server was not heard")

    @pytest.mark.parametrize("end", ["says", "closes", "resets"])
    def test_is_not_heard(self, node, leaving, end):
        c = leaving
        if end == "says":
            c.server.sendall(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
        elif end == "closes":
            c.server.close()
        else:
            c.abort()
        c.silence("nothing of it")
        node.signal(signal.SIGCONT)
        wait_for(lambda: node.counters()["reply_leaving"], "what the server said, kept back")
        assert node.taken(2).kind == model.REQUEST
