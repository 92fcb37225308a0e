# SPDX-License-Identifier: GPL-2.0-or-later
"""What the node says that it has in hand: requests and their costs, counted at its sockets; lengths of responses."""
import signal
import socket
import struct
import time

import pytest

from earshotlab import probe, wait_for
from packets import model
from packets.families import BOTH
from packets.loads import UNDERSTANDS_IDLE, said_idle, tell, tell_idle
from packets.model import F_MOVED
from packets.node import BLIND, EACH, SERVICE_INDEX, VIP, WEB
from packets.packet import ACK, FIN, PSH, RST

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
# pylint: disable=redefined-outer-name


def service(node, port):
    return node.ask("status")["services"][SERVICE_INDEX[port]]


def in_hand(node, port=EACH):
    """(requests, their costs), as counted last."""
    seen = service(node, port)
    return seen["active"], seen["load"]


def settles(node, active, load=None, port=EACH):
    expected = (active, active if load is None else load)
    wait_for(lambda: in_hand(node, port) == expected, f"{expected} in hand, not {in_hand(node, port)}")


def recount(node, client):
    """Returns when all has been counted anew: a connection to another service has come and gone."""
    c = client(WEB, at=node).serve()
    settles(node, 1, port=WEB)
    c.abort()
    settles(node, 0, port=WEB)


@pytest.fixture
def quiet(node):
    """Nothing is in hand; sockets of other tests are gone."""
    for port in (EACH, WEB, BLIND):
        settles(node, 0, port=port)
    return node


@pytest.fixture
def costly(quiet, client):
    """A connection that another node gave us, with a request that costs so much."""
    def make(cost, **fields):
        c = client(EACH, owner=2)
        c.forge()
        text = c.get()
        packet = c.ip_packet(ACK | PSH, text)
        c.sent(text)
        fields.setdefault("next_request_seq", c.next)
        quiet.message(c.handover(packet, cost=cost, **fields))
        assert c.read(len(text)) == text
        return c
    return make


class TestActive:
    @BOTH
    def test_in_progress(self, quiet, client):
        """Ten clients wait for a slow server; each answer makes it one less, and keep-alive costs nothing."""
        clients = [client(EACH).serve() for _ in range(10)]
        settles(quiet, 10)
        for left in range(9, -1, -1):
            clients[left].answer(OK)
            settles(quiet, left)
        assert service(quiet, EACH)["connections"] >= 10

    def test_not_accepted_yet(self, quiet, client):
        """A server that does not even look has it in hand all the same."""
        c = client(EACH).shake()
        c.request()
        settles(quiet, 1)
        c.accept()
        settles(quiet, 1)

    def test_later_request(self, quiet, client):
        c = client(EACH).serve()
        for _ in range(3):
            c.answer(OK)
            settles(quiet, 0)
            text = c.get()
            c.request(text=text)
            assert c.read(len(text)) == text
            settles(quiet, 1)

    def test_of_the_node_itself(self, quiet, client):
        """Whether its server answers is asked by the service's address; that is no client's request, nor a connection of one."""
        of_others = service(quiet, EACH)["connections"]  # of which some may end now
        with probe.sockets_in(quiet.namespace, socket.AF_INET, socket.SOCK_STREAM) as own:
            own.connect((VIP, EACH))
            own.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            recount(quiet, client)
            assert in_hand(quiet) == (0, 0) and service(quiet, EACH)["connections"] <= of_others
        assert quiet.pending(EACH) == 1

    def test_part_of_a_response(self, quiet, client):
        c = client(EACH).serve()
        for piece in (OK[:20], OK[20:-1]):
            c.answer(piece)
            recount(quiet, client)
            assert in_hand(quiet) == (1, 1)
        c.answer(OK[-1:])
        settles(quiet, 0)

    def test_sent_but_not_acknowledged(self, quiet, client):
        """The client's way is no load of this node's."""
        c = client(EACH).serve()
        c.answer(OK, acknowledge=False)
        settles(quiet, 0)

    def test_reset_in_the_middle(self, quiet, client):
        c = client(EACH).serve()
        c.answer(OK[:20])
        settles(quiet, 1)
        c.send(ACK | RST)
        settles(quiet, 0)

    def test_client_closes_in_the_middle(self, quiet, client, costly):
        """It may want its answer all the same (a half-closed connection); the server decides."""
        c = costly(20)
        c.send(ACK | FIN)
        wait_for(lambda: 8 in quiet.sockets(c), "CLOSE_WAIT")
        recount(quiet, client)
        assert in_hand(quiet) == (1, 20)
        c.server.close()
        c.server = None
        settles(quiet, 0)
        c.take_fin()
        c.send(ACK, seq=c.next + 1)  # else the node repeats it for minutes, with an unproven connection that later tests see

    def test_server_closes_in_the_middle(self, quiet, client):
        c = client(EACH).serve()
        c.answer(OK[:20])
        settles(quiet, 1)
        c.server.close()
        c.server = None
        c.take_fin()
        settles(quiet, 0)

    @BOTH
    def test_written_and_closed_behind_a_small_window(self, quiet, client):
        """What the server has written and the client does not take yet is in hand, although the server has gone."""
        c = client(EACH).serve()
        c.send(ACK, window=10)
        body = b"x" * 10000
        c.server.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + body)
        c.server.close()
        c.server = None
        recount(quiet, client)
        assert in_hand(quiet) == (1, 1)
        c.send(ACK | RST)
        settles(quiet, 0)

    def test_until_close(self, quiet, client):
        c = client(EACH).serve()
        c.answer(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100)
        recount(quiet, client)
        assert in_hand(quiet) == (1, 1)
        c.server.close()
        c.server = None
        c.take_fin()
        settles(quiet, 0)

    def test_pinned_counts_as_a_connection(self, quiet, client):
        c = client(EACH).serve()
        c.answer(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
        c.request(text=b"anything")
        assert c.read(8) == b"anything"
        assert [f["pin"] for f in quiet.ask("flows", limit=50000)["flows"] if f["port"] == c.port] == ["upgrade"]
        settles(quiet, 1)
        c.abort()
        settles(quiet, 0)

    @pytest.mark.parametrize("port", [WEB, BLIND], ids=["first", "never"])
    def test_other_services_count_connections(self, quiet, client, port):
        clients = [client(port).serve() for _ in range(3)]
        for c in clients:
            c.answer(OK)
        settles(quiet, 3, port=port)
        for left in (2, 1, 0):
            clients[left].server.close()
            clients[left].server = None
            settles(quiet, left, port=port)


class TestCost:
    def test_sum(self, quiet, costly):
        clients = [costly(cost) for cost in (1, 20, 65535, 300)]
        settles(quiet, 4, 65856)
        clients[2].answer(OK)
        settles(quiet, 3, 321)
        clients[1].abort()
        settles(quiet, 2, 301)

    def test_unknown_is_one(self, quiet, costly):
        costly(0)
        settles(quiet, 1, 1)

    def test_of_a_moved_connection(self, quiet, costly):
        c = costly(77, moves=1, requests=3, flags=F_MOVED)
        settles(quiet, 1, 77)
        c.answer(OK)
        settles(quiet, 0)

    def test_stay_has_its_own(self, quiet, costly):
        """The next request's cost is that of its own message."""
        c = costly(500)
        c.answer(OK)
        settles(quiet, 0)
        text = c.get()
        c.request(text=text)
        assert c.read(len(text)) == text
        settles(quiet, 1, 1)

    def test_is_sent_along(self, quiet, client):
        """With the hash of what is asked for, which is the same for the same."""
        path = quiet.uri(2)
        contents = []
        for _ in range(2):
            c = client(EACH).shake()
            c.request(text=c.get(path=path))
            message = quiet.taken(2)
            assert message.cost == 1
            contents.append(message.content)
        assert contents[0] == contents[1] != 0

    def test_of_other_services_is_a_connection(self, quiet, client):
        c = client(WEB).shake()
        c.request(2)
        assert quiet.taken(2).cost == 1


def idle(node, port):
    seen = service(node, port)
    return seen["active"], seen["idle"]


@pytest.fixture
def admitting(own_node):
    """A node whose services admit requests by what is in hand."""
    def make(**settings):
        node = own_node(**settings)
        with open(node.config_path, encoding="ascii") as handle:
            text = handle.read()
        with open(node.config_path, "w", encoding="ascii") as handle:
            handle.write(text.replace("check { type = none }", "check { type = none } admit_normal = 1000"))
        node.reload()
        return node
    return make


class TestIdle:
    """Connections on which nothing goes on count for policies, and not for admission."""

    def test_between_two_requests(self, admitting, client):
        node = admitting()
        kept = client(WEB, at=node).serve()
        kept.answer(OK)
        wait_for(lambda: idle(node, WEB) == (1, 1), "a connection on which nothing goes on", 5)
        text = kept.get()
        kept.request(text=text)  # its server does not read yet
        wait_for(lambda: idle(node, WEB) == (1, 0), "a request", 5)
        assert kept.read(len(text)) == text
        first = client(WEB, at=node).serve()
        behind = client(WEB, at=node).serve()
        behind.answer(OK, acknowledge=False)
        wait_for(lambda: idle(node, WEB) == (3, 0), "three requests", 5)
        # However long servers work on them, and clients acknowledge nothing.
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            assert idle(node, WEB) == (3, 0)
            time.sleep(0.1)
        kept.answer(OK)
        first.answer(OK)
        wait_for(lambda: idle(node, WEB) == (3, 2), "two on which nothing goes on", 5)
        behind.send(ACK)
        wait_for(lambda: idle(node, WEB) == (3, 3), "three", 5)

    def test_where_each_request_is_known(self, admitting, client):
        """One that is worked on is in hand, whatever its socket says; a connection that is pinned is like those above."""
        node = admitting()
        slow = client(EACH, at=node).serve()
        pinned = client(EACH, at=node).serve()
        pinned.answer(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
        pinned.request(text=b"anything")  # and the client has the last word
        assert pinned.read(8) == b"anything"
        wait_for(lambda: idle(node, EACH) == (2, 1), "the one that is pinned", 5)
        slow.answer(OK)
        wait_for(lambda: idle(node, EACH) == (1, 1), "that alone", 5)

    def test_is_told(self, admitting, client):
        """To the nodes that understand it; what these say counts for admission here."""
        node = admitting(tells=False)

        def others_say(active, said=None):
            for source, understands in ((1, UNDERSTANDS_IDLE), (2, 0)):
                tell(node, model.Loads(sequence=time.time_ns(), source=source, understands=understands, active=active,
                                       clock_ns=time.time_ns()), source=source + 1)
                if said is not None:
                    tell_idle(node, source, said)

        def admits():
            others_say(2000)
            return any("admitted" in step for step in node.ask("explain", service=f"s{WEB}", request="GET / HTTP/1.1\r\n\r\n")["steps"])

        def is_told(what):
            others_say(0)
            return what in said_idle(node, 2)

        kept = client(WEB, at=node)
        others_say(0)
        kept.serve()
        kept.answer(OK)
        wait_for(lambda: is_told(1), "n1's word to n2", 5)
        assert not said_idle(node, 3)
        kept.server.close()
        kept.server = None
        kept.take_fin()
        wait_for(lambda: is_told(0), "that there is none any more", 5)
        wait_for(lambda: not admits(), "too many in hand", 5)
        wait_for(lambda: others_say(2000, 1900) or admits(), "that most of them are none", 5)
        wait_for(lambda: others_say(2000) or not admits(), "that nothing more is said of that", 5)


class TestDrift:
    def test_churn(self, quiet, client):
        """A thousand connections that end in every way there is: then nothing is in hand."""
        accepted = quiet.counters()["handover_rebuilt"]
        for i in range(1000):
            c = client(EACH).serve()
            ending = i % 5
            if ending == 0:
                c.answer(OK)
            elif ending == 1:
                c.server.sendall(OK[:20])
            elif ending == 2:
                c.send(ACK | RST)
            elif ending == 3:
                c.send(ACK | FIN)
                c.server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
            c.abort()
            quiet.public.clear()
        assert quiet.counters()["handover_rebuilt"] == accepted + 1000
        settles(quiet, 0)


class TestMeasured:
    def measured(self, node, count):
        wait_for(lambda: service(node, EACH)["measured"] >= count, f"{count} measured responses")
        return service(node, EACH)

    def test_length(self, own_node, client):
        node = own_node()
        c = client(EACH, at=node).serve()
        c.answer(OK)
        assert self.measured(node, 1)["mean_bytes"] == len(OK)
        # In pieces, chunked, on the same connection.
        text = c.get()
        c.request(text=text)
        assert c.read(len(text)) == text
        answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" + b"y" * 1000 + b"\r\n0\r\n\r\n"
        for piece in (answer[:30], answer[30:500], answer[500:]):
            c.answer(piece)
        seen = self.measured(node, 2)
        assert (seen["measured"], seen["mean_bytes"]) == (2, (len(OK) + len(answer)) // 2)
        assert node.counters()["response_unmeasured"] == 0
        # The same target again is not asked for, nor is what says nothing of a content's length.
        text = c.get()
        c.request(text=text)
        assert c.read(len(text)) == text
        c.answer(EMPTY)
        c.request(text=text)
        assert c.read(len(text)) == text
        c.answer(OK)
        head = c.get().replace(b"GET", b"HEAD", 1)
        c.request(text=head)
        assert c.read(len(head)) == head
        c.answer(OK[:-10])
        recount(node, client)
        assert service(node, EACH)["measured"] == 2

    def test_as_the_inspecting_node_asks(self, quiet, costly):
        """Only if its message says so."""
        before = service(quiet, EACH)["measured"]
        for flags, content in ((2, 0x1234), (0, 0x1235), (2, 0), (2, 0x1236)):
            costly(1, request_flags=flags, content=content).answer(OK)
        # The third has no content: it is measured, and belongs to nothing.
        assert self.measured(quiet, before + 2)["measured"] == before + 2


    @pytest.mark.no_netfilter("without its daemon nothing is served that could be measured")
    def test_more_than_the_ring_holds(self, quiet, costly):
        """The daemon hangs: nothing waits for it, and what it misses is counted."""
        before, count = service(quiet, EACH)["measured"], 2300
        lost = quiet.counters()["response_unmeasured"]
        quiet.freeze()
        try:
            for number in range(count):
                c = costly(1, request_flags=2, content=number + 1)
                c.answer(OK)
                c.abort()
                quiet.public.clear()
        finally:
            quiet.signal(signal.SIGCONT)
        wait_for(lambda: service(quiet, EACH)["measured"] > before, "measured responses")
        lost = quiet.counters()["response_unmeasured"] - lost
        assert 0 < lost < 1000
        assert service(quiet, EACH)["measured"] - before == count - lost


class TestDuration:
    def test_until_the_last_byte(self, own_node, client):
        """Of a first request and of one that stays: neither the client's pause is in it, nor does an interim response end it."""
        node = own_node()

        def took():
            text = node.ask("metrics")["text"]
            return [float(text.partition(f'\nearshot_response_duration_seconds_{what}{{service="s{EACH}"}} ')[2].split()[0])
                    for what in ("count", "sum")]
        c = client(EACH, at=node)
        began = time.monotonic()
        c.serve()
        time.sleep(0.1)
        for piece in (OK[:20], OK[20:-1]):
            c.answer(piece)
        time.sleep(0.1)
        c.answer(OK[-1:])
        first = time.monotonic() - began
        wait_for(lambda: took()[0] == 1, "the first one is counted", seen=took)
        assert 0.2 <= took()[1] < first + 0.001, (took(), first)
        before, _ = took()[1], time.sleep(0.7)
        text, began = c.get(), time.monotonic()
        c.request(text=text)
        assert c.read(len(text)) == text
        c.answer(b"HTTP/1.1 103 Early Hints\r\n\r\n")
        time.sleep(0.1)
        c.answer(OK)
        second = time.monotonic() - began
        wait_for(lambda: took()[0] == 2, "the second one is counted", seen=took)
        assert 0.1 <= took()[1] - before < second + 0.001, (took(), before, second)
        wait_for(lambda: node.ask("cluster")["nodes"][0]["snapshot"], "the node tells of itself")
        told = [each["snapshot"]["p99_us"] for each in node.ask("cluster")["nodes"] if each["self"]]
        assert 180000 < told[0] < 1070000 * max(first, second)  # the longer one, to 6%


class TestMean:
    def test_time_in_hand(self, own_node, client):
        """Requests of 100 ms, one after the other: that is what a request takes."""
        node = own_node()
        c = client(EACH, at=node).serve()
        node.ask("status")  # who looks has it counted often for a while
        for _ in range(15):
            time.sleep(0.1)
            c.answer(OK)
            text = c.get()
            c.request(text=text)
            assert c.read(len(text)) == text
        seen = [n for n in node.ask("status")["nodes"] if n["self"]][0]
        assert 60000 < seen["mean_us"] < 160000, seen
        others = [n for n in node.ask("status")["nodes"] if not n["self"]]
        assert not any("active" in n for n in others)  # nobody says so without a bus
