# SPDX-License-Identifier: GPL-2.0-or-later
"""Later requests on a connection that this node has: each stays here or moves the connection, or pins it."""
import random
import signal
import socket
import struct

import pytest

from earshotlab import wait_for
from packets import model
from packets.model import PINS
from packets.families import BOTH
from packets.node import EACH, SERVICE_INDEX, WEB
from packets.packet import ACK, FIN, NOP, PSH, RST, opt_sack

EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
KEPT = dict(request_queued=1, inspect_requests=1, inspect_kept=1, handover_received=1, handover_rebuilt=1)
STAYED = dict(owned_queued=1, inspect_owned=1, inspect_stayed=1, handover_received=1, stay_delivered=1)
ENDED = dict(handover_received=2, end_done=1, end_seen=1)  # the question to end its socket, and the one whether it is gone
MOVED = dict(owned_queued=1, inspect_owned=1, inspect_moved=1, inspect_moved_locality=1, **ENDED)


@pytest.fixture
def served(client):
    """A connection here whose first request is read; its answer is still to come."""
    return lambda *arguments, **keywords: client(EACH, *arguments, **keywords).serve()


@pytest.fixture
def idle(served):
    """A connection here that waits for its second request."""
    def make(*arguments, answer=EMPTY, **keywords):
        c = served(*arguments, **keywords)
        c.answer(answer)
        return c
    return make


def flow(node, c):
    """What `earshot flows` says of the client's connection."""
    node.settle()
    found = [f for f in node.ask("flows", limit=50000)["flows"] if (f["address"], f["port"]) == (c.ip, c.port)]
    return found[0] if found else None


def stays(node, c, delivered=0):
    """The next request is for here, and gets to the same socket. `delivered`: other packets that it needs."""
    text = c.get()
    with node.counts(**STAYED, **({"deliver_established": delivered} if delivered else {})):
        c.request(text=text)
        assert c.read(len(text)) == text


def pinned(node, c, name, text=None, **counted):
    """The next packet goes to the socket uninspected, and so does everything after it."""
    text = text or c.get(2)
    with node.counts(deliver_established=1, **{f"pin_{name}": 1}, **counted):
        c.request(text=text)
        assert c.read(len(text)) == text
    seen = flow(node, c)
    assert (seen["state"], seen["pin"]) == ("pinned", name)
    with node.counts(deliver_established=1):
        text = c.get(2)
        c.request(text=text)
        assert c.read(len(text)) == text


@BOTH
class TestStay:
    def test_stays(self, node, idle):
        c = idle()
        for number in range(2, 5):
            stays(node, c)
            assert flow(node, c)["requests"] == number
            c.answer()

    def test_the_client_hears_nothing_of_it(self, node, idle):
        c = idle()
        text = c.get()
        c.request(text=text)
        assert c.read(len(text)) == text
        segment = c.take("the ACK of its socket")
        assert (segment.flags, segment.ack, segment.payload) == (ACK, c.next, b"")

    def test_a_retransmission_meets_the_socket(self, node, idle):
        c = idle()
        text = c.get()
        sent = c.next
        c.request(text=text)
        assert c.read(len(text)) == text
        with node.counts(deliver_established=1):
            c.send(ACK | PSH, text, seq=sent)

    def test_other_services_are_inspected_once(self, node, client):
        c = client(WEB).serve()
        c.answer()
        with node.counts(deliver_established=1):
            text = c.get(2)
            c.request(text=text)
            assert c.read(len(text)) == text
        assert flow(node, c) is None

    def test_first_request_elsewhere_leaves_nothing(self, node, client):
        c = client(EACH).shake()
        c.request(target=2)
        message = node.taken(2)
        assert (message.requests, message.moves, message.pin, message.flags & model.F_MOVED) == (0, 0, 0, 0)
        assert message.next_request_seq == c.next
        assert flow(node, c) is None

    @pytest.mark.parametrize("size", [1, 1000, 5000])
    def test_body(self, node, idle, size):
        """Bytes of a body are no request; the next request starts behind them."""
        c = idle()
        head = f"POST {node.uri(1)} HTTP/1.1\r\nHost: test\r\nContent-Length: {size}\r\n\r\n".encode()
        with node.counts(**STAYED):
            c.request(text=head)
            assert c.read(len(head)) == head
        body = b"GET / HTTP/1.1\r\n\r\n" * (size // 18 + 1)
        body = body[:size]
        for at in range(0, size, 1000):
            piece = body[at:at + 1000]
            with node.counts(deliver_established=1):
                c.request(text=piece)
                assert c.read(len(piece)) == piece
        c.answer()
        stays(node, c)

    def test_keepalive_probe(self, node, idle):
        c = idle()
        for garbage in (b"", b"x"):
            with node.counts(deliver_established=1):
                c.send(ACK, garbage, seq=c.next - 1)
                assert c.take("the answer to the probe").ack == c.next
        stays(node, c)

    def test_head_in_pieces(self, node, idle):
        c = idle()
        text = c.get()
        with node.counts(owned_queued=1, owned_later_queued=2, inspect_gathered=1, inspect_followed=2, inspect_owned=1,
                         inspect_stayed=1, handover_received=3, stay_delivered=1, handover_follow=2):
            for at, end in ((0, 5), (5, 20), (20, len(text))):
                c.request(text=text[at:end])
            assert c.read(len(text)) == text
        c.answer()
        stays(node, c)

    @pytest.mark.no_netfilter("while its daemon stands still, so does what it would queue")
    def test_repeated_before_it_is_decided(self, node, idle):
        """Both copies are queued: the first one is decided, and the second one goes where that went, without another decision."""
        c = idle()
        text = c.get()
        with node.counts(owned_queued=2, inspect_owned=1, inspect_stayed=1, inspect_repeated=1, handover_received=2,
                         stay_delivered=2):
            node.freeze()
            try:
                for _ in range(2):
                    c.send(ACK | PSH, text)
                node.public.fence()
            finally:
                node.signal(signal.SIGCONT)
            c.sent(text, 0)
            assert c.read(len(text)) == text
        c.answer()
        stays(node, c)

    def test_pieces_in_the_wrong_order(self, node, idle):
        c = idle()
        text = c.get()
        c.send(ACK | PSH, text[10:], seq=c.next + 10)
        c.send(ACK | PSH, text[:10])
        c.sent(text, 0)
        assert c.read(len(text)) == text
        c.answer()
        stays(node, c)


class TestMove:
    def moved(self, node, c, target=2, text=None, **counted):
        """The next request leaves. Returns its message."""
        with node.counts(**{**MOVED, **counted}):
            sent = c.request(target, text)
            message = node.taken(target)
        assert message.kind == model.REQUEST and message.packet == sent
        assert message.service == SERVICE_INDEX[EACH] and message.flags & model.F_MOVED
        assert node.sockets(c) == [] and flow(node, c) is None
        return message

    @BOTH
    def test_moves(self, node, idle):
        """The server sees a connection that broke while it was idle; the client hears nothing."""
        c = idle()
        message = self.moved(node, c)
        with pytest.raises(ConnectionResetError):
            c.server.recv(1)
        c.silence()
        expected = c.handover(message.packet)
        for name in ("mss", "snd_wscale", "rcv_wscale"):
            assert getattr(message, name) == getattr(expected, name), name
        assert message.flags == expected.flags | model.F_MOVED
        assert (message.requests, message.moves, message.pin) == (1, 1, 0)
        assert message.next_request_seq == c.next

    @BOTH
    def test_other_resets_reach_the_client(self, node, idle):
        """Of connections that ended by themselves, and of those that came back."""
        c = idle()
        c.server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.server.close()
        assert c.take("the server's RST").flags & RST
        c = idle()
        self.moved(node, c)
        text = c.get()
        packet = c.ip_packet(ACK | PSH, text)
        c.sent(text)
        back = c.handover(packet, moves=2, requests=2, next_request_seq=c.next)
        back.flags |= model.F_MOVED
        node.message(back)
        c.accept()
        assert c.read(len(text)) == text
        c.server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.server.close()
        while not c.take("the server's RST").flags & RST:
            pass

    def test_after_more_requests(self, node, idle):
        c = idle()
        for _ in range(3):
            stays(node, c)
            c.answer()
        message = self.moved(node, c, 3)
        assert (message.requests, message.moves) == (4, 1)

    @BOTH
    def test_comes_again(self, node, idle):
        """The message was lost: the client's retransmission goes to the same node, over and over."""
        c = idle()
        text = c.get(2)
        message = self.moved(node, c, text=text)
        for _ in range(3):
            with node.counts(moved_queued=1, inspect_repeated=1):
                c.send(ACK | PSH, text, seq=c.next - len(text))
                again = node.taken(2)
            assert again.sequence > message.sequence
            assert again.flags == message.flags | model.F_REPEAT
            for name in ("requests", "moves", "next_request_seq", "mss", "snd_wscale", "rcv_wscale"):
                assert getattr(again, name) == getattr(message, name), name

    def test_also_where_the_ring_names_another_node(self, node, idle):
        """Only the node that moved the connection knows about it."""
        c = idle()
        message = self.moved(node, c)
        c2 = idle(owner=1)
        assert self.moved(node, c2, 3).target == 2
        assert message.target == 1

    def test_its_body_follows(self, own_node, idle):
        """Within the race window, which is as long as a slow machine may take for this."""
        node = own_node(race_window_ms=1000)
        c = idle(at=node)
        head = f"POST {node.uri(2)} HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n".encode()
        message = self.moved(node, c, text=head)
        assert message.next_request_seq == c.next + 10
        with node.counts(moved_queued=1, inspect_followed=1):
            sent = c.request(text=b"0123456789")
            follow = node.taken(2)
        assert follow.kind == model.FOLLOW and follow.packet == sent

    def test_its_body_behind_what_the_client_has_heard(self, own_node, idle):
        """The new socket has acknowledged something: it hears the rest itself."""
        node = own_node(race_window_ms=2000)
        c = idle(at=node)
        self.moved(node, c, text=f"POST {node.uri(2)} HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n".encode())
        c.ts_recent = (c.ts_recent + (1 << 22)) & 0xFFFFFFFF
        with node.counts(moved_queued=1):
            c.request(text=b"0123456789")
        node.no_message()

    @BOTH
    def test_gathered(self, node, idle):
        c = idle()
        text = c.get(2)
        with node.counts(owned_queued=1, owned_later_queued=1, inspect_gathered=1, inspect_followed=1, inspect_owned=1,
                         inspect_moved=1, inspect_moved_locality=1, **ENDED):
            first = c.request(text=text[:10])
            second = c.request(text=text[10:])
            message, follow = node.taken(2), node.taken(2)
        assert (message.kind, message.packet) == (model.REQUEST, first)
        assert (follow.kind, follow.packet) == (model.FOLLOW, second)
        assert message.next_request_seq == c.next

    @BOTH
    def test_nack(self, node, idle):
        """The target cannot: another node gets it, with all that was known of the connection."""
        c = idle()
        message = self.moved(node, c)
        before = node.counters()["inspect_nacks"]
        with node.counts(handover_received={1, 2}, handover_nack_received=1, inspect_nacks=1, handover_rebuilt={0, 1}):
            nack = c.handover(message.packet, model.NACK, nack=model.NACK_NO_LISTENER)
            for name in ("flags", "requests", "moves", "next_request_seq", "mss", "snd_wscale", "rcv_wscale"):
                setattr(nack, name, getattr(message, name))
            node.message(nack, sport=7350, dport=message.ports[0])
            wait_for(lambda: node.counters()["inspect_nacks"] > before, "the decision")
        # The flow's place on the ring decides, and n2 is suspended: here or n3.
        if next(n for n in node.ring.walk(c.hash) if n != 1) == 0:
            wait_for(lambda: node.sockets(c) == [1], "the connection here again")
        else:
            again = node.taken(3)
            assert (again.attempt, again.moves, again.requests) == (1, 1, 1)
        node.all_up()

    def test_a_body_that_the_server_did_not_read_keeps_it(self, node, served):
        """It answered early and may still want to read: nothing is taken from it."""
        c = served()
        c.answer()
        head = f"POST {node.uri(1)} HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n".encode()
        c.request(text=head)
        assert c.read(len(head)) == head
        c.answer(EMPTY)
        c.request(text=b"0123456789")
        text = c.get(2)
        before = node.counters()["inspect_move_refused"]
        with node.counts(owned_queued=1, inspect_owned=1, inspect_move_refused=1, inspect_stayed=1, handover_received=2,
                         end_refused=1, stay_delivered=1):
            c.request(text=text)
            wait_for(lambda: node.counters()["inspect_move_refused"] > before, "the refusal")
            assert c.read(10 + len(text)) == b"0123456789" + text
        c.answer()
        self.moved(node, c)

    @BOTH
    @pytest.mark.parametrize("flags", [0, model.F_MOVED])
    def test_arrives(self, node, client, flags):
        """A connection that comes from another node goes on with its count."""
        c = client(EACH)
        c.forge()
        text = c.get()
        original = c.ip_packet(ACK | PSH, text)
        c.sent(text, 0)
        with node.counts(handover_received=1, handover_rebuilt=1):
            message = c.handover(original, requests=41, moves=7, next_request_seq=c.next)
            message.flags |= flags
            node.message(message)
            assert c.read(len(text)) == text
        c.answer()
        seen = flow(node, c)
        assert (seen["requests"], seen["moves"], seen["pin"], seen["state"]) == (42, 7, "none", "idle")
        stays(node, c)
        c.answer()
        again = self.moved(node, c)
        assert (again.requests, again.moves) == (43, 8)

    @pytest.mark.parametrize("kind", [model.STAY, model.END, model.GONE])
    def test_nobody_else_may_say_so(self, node, idle, kind):
        c = idle()
        text = c.get()
        with node.counts(handover_received=1, handover_malformed=1):
            node.message(c.handover(c.ip_packet(ACK | PSH, text), kind))
            c.silence()
        assert node.sockets(c) == [1]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = [
    EMPTY,
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length:  5 \r\n\r\nhello",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\n" + EMPTY,
    CHUNKED + b"5\r\nhello\r\n0\r\n\r\n",
    CHUNKED + b"5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000,
    CHUNKED + b"".join(b"1\r\n%c\r\n" % (65 + i % 26) for i in range(3000)) + b"0\r\n\r\n",
]


class TestResponse:
    """The response before must be complete, and all of it acknowledged."""

    @BOTH
    @pytest.mark.parametrize("response", WHOLE, ids=range(len(WHOLE)))
    def test_complete(self, node, served, response):
        c = served()
        for at in range(0, len(response), 20000):
            c.answer(response[at:at + 20000])
        stays(node, c)

    @BOTH
    @pytest.mark.parametrize("response", WHOLE[:7], ids=range(7))
    def test_byte_by_byte(self, node, served, response):
        c = served()
        for at in range(len(response)):
            c.answer(response[at:at + 1])
        stays(node, c)

    @pytest.mark.parametrize("response,name", [
        (b"", "pipelined"), (b"HTTP/1.1 200 OK\r\n", "pipelined"), (b"HTTP/1.1 100 Continue\r\n\r\n", "pipelined"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "pipelined"),
        (CHUNKED + b"5\r\nhello\r\n", "pipelined"), (CHUNKED + b"5\r\nhello\r\n0\r\n", "pipelined"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "upgrade"),
        (b"HTTP/1.1 200 OK\r\n\r\nbytes", "until_close"),
        (EMPTY + EMPTY, "response_unclear"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", "response_unclear"),
        (b"hello", "response_unclear")])
    def test_incomplete_or_unclear(self, node, served, response, name):
        c = served()
        if response:
            c.answer(response)
        pinned(node, c, name)

    def test_not_acknowledged(self, node, served):
        c = served()
        c.answer(EMPTY, acknowledge=False)
        c.ack -= 1
        pinned(node, c, "pipelined")

    def test_acknowledged_by_the_request_itself(self, node, served):
        c = served()
        c.answer(EMPTY, acknowledge=False)
        stays(node, c)

    def test_head(self, node, served):
        """The answer to HEAD has no body, whatever it says."""
        c = served()
        c.answer()
        text = f"HEAD {node.uri(1)} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
        with node.counts(**STAYED):
            c.request(text=text)
            assert c.read(len(text)) == text
        c.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        stays(node, c)

    @BOTH
    def test_the_servers_retransmissions_count_once(self, node, served):
        c = served()
        c.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", acknowledge=False)
        again = c.take("the retransmission")
        assert again.payload
        stays(node, c)

    def lost_inside(self, node, c, response):
        """The node loses all but the response's last packet, in a queue that waits for the gateway's address."""
        c.take("the acknowledgement of the request")
        c.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with node.gateway_unknown():
            for at in range(0, len(response), 1000):
                c.server.sendall(response[at:at + 1000])
        start = c.ack
        got = {}  # offset: bytes
        while sum(map(len, got.values())) < len(response):
            segment = c.take("a segment of the response")
            got[(segment.seq - start) & 0xFFFFFFFF] = segment.payload
            assert len(got) > 1 or 0 not in got, "nothing was lost"
            while (piece := got.get((c.ack - start) & 0xFFFFFFFF)):  # what was lost is in order again
                c.ack = (c.ack + len(piece)) & 0xFFFFFFFF
            c.send(ACK, options=c.options() + NOP * 2 + opt_sack(segment.seq, segment.seq + len(segment.payload)))
        assert b"".join(piece for at, piece in sorted(got.items())) == response
        node.settle()

    def test_its_beginning_is_lost_inside_the_node(self, node, served):
        """What is behind it was not to be read, and does not come again: but a body's bytes only count."""
        c = served()
        body = random.randbytes(5 * c.offer.means.mss)
        self.lost_inside(node, c, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        stays(node, c)

    def test_its_beginning_is_lost_and_its_end_must_be_read(self, node, served):
        """The module reads what leaves before that queue, the others behind it."""
        c = served()
        self.lost_inside(node, c, CHUNKED + b"1\r\na\r\n" * 1000 + b"0\r\n\r\n")
        if node.settings["datapath"] != "module":
            pinned(node, c, "pipelined")
        else:
            stays(node, c)


class TestPin:
    """Where the next request starts is not known: the connection stays, for good."""

    @pytest.mark.parametrize("text,name", [
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "connect"),
        (b"\x16\x03\x01\x00\x05hello", "tls"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http2"),
        (b"\xff\xfe\xfd garbage\r\n\r\n", "not_http"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "ambiguous"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "ambiguous"),
        (b"GET / HTTP/1.1\r\nHost: x\rY: z\r\n\r\n", "ambiguous"),
        (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", "ambiguous"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", "ambiguous"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "ambiguous"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000000\r\n\r\n", "length"),
    ])
    @pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
    def test_request(self, node, client, text, name, first):
        c = client(EACH).shake()
        if not first:
            before = c.get()
            c.request(text=before)
            assert c.read(len(before)) == before
            c.answer()
        before = node.counters()
        c.request(text=text)
        wait_for(lambda: node.counters()["inspect_requests"] + node.counters()["inspect_owned"] >
                 before["inspect_requests"] + before["inspect_owned"], "the decision")
        after = node.counters()
        if after["inspect_handovers"] + after["inspect_moved"] > before["inspect_handovers"] + before["inspect_moved"]:
            # The policy gave it to another node, which is told.
            f = node.cluster.take(lambda f: f.udp, "the message")
            assert model.Handover.parse(f.udp.payload).pin == PINS.index(name) + 1
            return
        assert c.read(len(text)) == text
        c.answer(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        assert flow(node, c)["pin"] == name

    def test_chunked_body_that_is_not_all_there(self, node, idle):
        c = idle()
        text = f"POST {node.uri(1)} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe".encode()
        with node.counts(pin_chunked=1, **STAYED):
            c.request(text=text)
            assert c.read(len(text)) == text
        assert flow(node, c)["pin"] == "chunked"

    def test_whole_chunked_body(self, node, idle):
        c = idle()
        text = f"POST {node.uri(1)} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" \
               "5;a=b\r\nhello\r\n0\r\nT: u\r\n\r\n".encode()
        with node.counts(**STAYED):
            c.request(text=text)
            assert c.read(len(text)) == text
        c.answer()
        stays(node, c)

    @BOTH
    def test_two_requests_in_one_segment(self, node, idle):
        c = idle()
        text = c.get(2) + c.get(3)
        with node.counts(pin_pipelined=1, **STAYED):
            c.request(text=text)
            assert c.read(len(text)) == text
        assert flow(node, c)["pin"] == "pipelined"

    def test_end_of_a_body_with_a_request_behind(self, node, idle):
        c = idle()
        head = f"POST {node.uri(1)} HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\n".encode()
        c.request(text=head)
        assert c.read(len(head)) == head
        pinned(node, c, "overlap", b"hello" + c.get(2))

    def test_request_with_fin(self, node, idle):
        c = idle()
        text = c.get(2)
        with node.counts(deliver_established=1, pin_half_closed=1):
            c.request(text=text, flags=FIN)
            assert c.read(len(text)) == text
            assert c.server.recv(1) == b""

    @pytest.mark.no_netfilter("what comes waits for a daemon that hangs; it passes where there is none: test_daemon.py")
    def test_no_inspector(self, own_node, client):
        node = own_node(fallback_after_ms=300)
        c = client(EACH, at=node).serve()
        c.answer()
        node.freeze()
        text = c.get(2)
        for _ in range(20):  # until the datapath notices; then the retransmission gets through
            c.send(ACK | PSH, text)
            c.server.settimeout(0.1)
            try:
                assert c.server.recv(len(text)) == text
                break
            except socket.timeout:
                continue
        else:
            pytest.fail("never served")

    @BOTH
    def test_reset_ends_it(self, node, idle):
        c = idle()
        c.send(RST | ACK)
        assert flow(node, c) is None
