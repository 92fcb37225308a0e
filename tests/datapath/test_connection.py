# SPDX-License-Identifier: GPL-2.0-or-later
"""A program's connection at its target: one socket for a handover, however often and late its messages come."""
import itertools
import time

import pytest

from packets import leases, model, tables
from packets.client import LINUX, PLAIN, WINDOWS
from packets.families import BOTH, CLUSTERS
from packets.model import (ANSWER, ASK, CANCEL, CANCELLED, CONNECTION, FOLLOW, FULL, HERE, NO_LISTENER, OCCUPIED,
                           READY, SERVED, UNSURE)
from packets.node import ESTABLISHED, LOOPBACKS, PROGRAM, SERVER, SERVICE_INDEX
from packets.packet import ACK, FIN, PSH, RST

MASK = 0xFFFFFFFF
_ids = itertools.count(1 << 40)


class Given:
    """A connection that a program of n2 hands over to n1: some bytes of it, from somewhere in its middle."""

    def __init__(self, node, client, offer=LINUX, size=700):
        self.node, self.id = node, next(_ids)
        self.client = client(PROGRAM, owner=2, offer=offer)
        self.client.forge()
        self.text = bytes(range(256)) * (size // 256 + 1)
        self.text = self.text[:size]

    def send(self, kind, text=b"", at=0, fin=0, **fields):
        c = self.client
        packet = c.ip_packet(ACK | PSH | fin, text, seq=(c.next + at) & MASK)
        return self.node.message(c.handover(packet, kind, content=fields.pop("id", self.id), stream=14, **fields))

    def build(self, **fields):
        return self.send(CONNECTION, self.text, **fields)

    def answered(self, what, expects=None, **fields):
        """The answer to all that was asked; nothing else is said."""
        message = self.node.taken(2, ANSWER)
        assert message.nack == what and message.content == fields.get("id", self.id)
        assert message.stream == model.STREAM_DATAPATH and message.ports == (7350, 40000)
        if expects is not None:
            assert message.next_request_seq == (self.client.next + expects) & MASK
        self.node.no_message()

    def ask(self, what, expects=None, **fields):
        self.send(ASK, **fields)
        self.answered(what, expects, **fields)

    def accept(self):
        server, (ip, port, *_) = self.node.listener(SERVER, self.client.family).accept()
        assert (ip, port) == (self.client.ip, self.client.port)
        assert server.getsockname()[:2] == self.node.server_name(PROGRAM, self.client.family)
        server.settimeout(5)
        self.client.server = server
        return server


@pytest.fixture
def given(node, client):
    return lambda *arguments, **keywords: Given(node, client, *arguments, **keywords)


def received(server, size):
    data = b""
    while len(data) < size:
        data += server.recv(size - len(data)) or pytest.fail(f"the end after {len(data)} bytes")
    return data


@BOTH
@CLUSTERS
@pytest.mark.parametrize("offer", [LINUX, WINDOWS, PLAIN], ids=lambda o: o.name)
def test_rebuilt(node, given, offer):
    """The server on the other port has it, with the options of the old socket; and the client goes on with it."""
    g = given(offer)
    with node.counts(handover_received=3, connection_rebuilt=1, connection_asked=2):
        g.ask(READY)
        g.build()
        g.ask(HERE, len(g.text))
        server = g.accept()
        assert received(server, len(g.text)) == g.text
    assert node.sockets(g.client) == [ESTABLISHED]
    g.client.sent(g.text)
    segments = g.client.answer(bytes(3000))
    assert all(s.ack == g.client.next for s in segments)
    g.client.send(ACK | PSH, b"more")
    assert received(server, 4) == b"more"


@BOTH
def test_without_bytes(node, given):
    """The program has read nothing and decided by the address."""
    g = given(size=0)
    g.build()
    g.ask(HERE, 0)
    server = g.accept()
    g.client.send(ACK | PSH, b"first")
    assert received(server, 5) == b"first"


@BOTH
@pytest.mark.parametrize("text", [b"", b"late"], ids=["bare", "bytes"])
def test_fin_follows(node, given, text):
    """The client had closed its side when its program's socket ended: the server here learns it."""
    g = given()
    g.build()
    g.ask(HERE, len(g.text))
    server = g.accept()
    g.send(FOLLOW, text, len(g.text), fin=FIN)
    g.ask(HERE, len(g.text) + len(text) + 1)
    assert received(server, len(g.text) + len(text)) == g.text + text
    assert server.recv(1) == b""


@BOTH
def test_again(node, given):
    """Messages that are repeated because their answers were lost make nothing new, also when all is over."""
    g = given()
    with node.counts(handover_received=5, connection_rebuilt=1, connection_asked=4):
        g.build()
        g.ask(HERE, len(g.text))
        g.build()
        g.answered(HERE, len(g.text))
        g.accept()
        g.client.abort()  # the server resets the connection
        g.ask(SERVED)
        g.build()
        g.answered(SERVED)
    assert node.pending(SERVER) == 0 and node.sockets(g.client) == []


@BOTH
@CLUSTERS
def test_cancelled(node, given):
    """What was called off is not made by a message that was overtaken; another handover of it is."""
    g = given()
    late = g.id
    with node.counts(handover_received=5, connection_cancelled=3, connection_rebuilt=1, connection_asked=1):
        g.send(CANCEL)
        g.answered(CANCELLED)
        g.build()
        g.answered(CANCELLED)
        g.send(CANCEL)
        g.answered(CANCELLED)
        g.id = next(_ids)
        g.build()
        g.ask(HERE, len(g.text))
    with node.counts(handover_received=2, connection_old=2):
        g.send(CONNECTION, g.text, id=late)
        g.send(CANCEL, id=late)
        node.no_message()
    assert node.pending(SERVER) == 1


@BOTH
def test_cancelled_again(node, given):
    """Each handover has a promise of its own, whatever was promised of the one before."""
    g = given()
    for _ in range(2):
        g.id = next(_ids)
        g.send(CANCEL)
        g.answered(CANCELLED)
    with node.counts(handover_received=1, connection_cancelled=1):
        g.build()
        g.answered(CANCELLED)
    assert node.pending(SERVER) == 0 and node.sockets(g.client) == []


@BOTH
def test_cancelled_too_late(node, given):
    """It is here: then that is the answer, and it stays."""
    g = given()
    g.build()
    with node.counts(handover_received=1, connection_asked=1):
        g.send(CANCEL)
        g.answered(HERE, len(g.text))
    assert received(g.accept(), len(g.text)) == g.text


@BOTH
def test_rest(node, given):
    """More bytes than one message has; each answer says what is still missing."""
    g = given(size=3800)
    g.send(CONNECTION, g.text[:1000])
    g.ask(HERE, 1000)
    g.send(FOLLOW, g.text[2000:3000], at=2000)
    g.ask(HERE, 1000)
    g.send(FOLLOW, g.text[1000:2000], at=1000)
    g.ask(HERE, 3000)
    g.send(FOLLOW, g.text[2500:], at=2500)
    g.ask(HERE, 3800)
    assert received(g.accept(), 3800) == g.text


def served(given, offer=LINUX):
    """The server has it, with all bytes, and has answered."""
    g = given(offer)
    g.build()
    g.ask(HERE, len(g.text))
    assert received(g.accept(), len(g.text)) == g.text
    g.client.sent(g.text)
    g.client.answer(bytes(3000))
    return g.client


@BOTH
@pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=lambda o: o.name)
def test_client_ends(node, given, offer):
    c = served(given, offer)
    c.closes()
    c.silence()


@BOTH
def test_syn_for_it(node, given):
    """A client that has forgotten it is told so, and nothing happens to it (RFC 5961, 4.2)."""
    c = served(given)
    c.isn = (c.next + 100000) & MASK
    with node.counts(deliver_syn_established=1):
        node.public.send(c.syn_frame())
        challenge = c.take("the challenge")
    assert (challenge.flags, challenge.seq, challenge.ack) == (ACK, c.ack, c.next)
    c.request(text=b"more")
    assert received(c.server, 4) == b"more"


@BOTH
def test_client_goes_on_before_it_is_here(node, given):
    """What it sends meanwhile comes again, and once: nobody else answers that."""
    g = given()
    c = g.client
    behind = (c.next + len(g.text)) & MASK
    with node.counts(handover_received=1, connection_rebuilt=1, drop_not_mine=1, deliver_established=1):
        c.send(ACK | PSH, b"more", seq=behind)
        g.build()
        node.settle()
        c.send(ACK | PSH, b"more", seq=behind)
        assert received(g.accept(), len(g.text) + 4) == g.text + b"more"
    assert all(f.ack in (behind, (behind + 4) & MASK) for f in (each.tcp for each in node.public.all(c.mine)))


@BOTH
def test_server_ends(node, client, given):
    """And by the same ports comes the client's next connection, of which the program of n2 gives this node one once more."""
    c = served(given)
    c.time_wait()
    c.silence()
    c.renew()
    node.public.send(c.syn_frame())
    g = Given(node, lambda *arguments, **keywords: c)
    g.ask(READY)
    g.build()
    g.ask(HERE, len(g.text))
    assert received(g.accept(), len(g.text)) == g.text
    assert node.sockets(c).count(ESTABLISHED) == 1
    c.sent(g.text)
    c.answer(bytes(3000))


@BOTH
@pytest.mark.netfilter("the other datapaths refuse it: TIME_WAIT is a socket like others")
@pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=lambda o: o.name)
def test_server_ends_and_nobody_knows(node, given, offer):
    """Nor has this node heard the SYN, and its kernel knows nothing of the connection before but the socket, whose numbers are higher."""
    c = served(given, offer)
    c.time_wait()
    c.silence()
    isn = c.isn
    c.renew()
    c.isn = (isn - 100000) & MASK
    c.next = (c.isn + 1) & MASK
    c.forge()
    node.forgets()
    g = Given(node, lambda *arguments, **keywords: c)
    g.ask(READY)
    g.build()
    g.ask(HERE, len(g.text))
    assert received(g.accept(), len(g.text)) == g.text


@BOTH
@pytest.mark.parametrize("heard", [True, False])
def test_server_ends_and_none_is_left(node, given, family, heard):
    """Likewise, but by then nothing listens: refused before anything is made. What is left of the connection before listens for nothing."""
    c = served(given)
    c.time_wait()
    c.silence()
    c.renew()
    node.unlisten(SERVER, family)
    try:
        if heard:
            node.public.send(c.syn_frame())
        g = Given(node, lambda *arguments, **keywords: c)
        for kind in (ASK, CONNECTION):
            with node.counts(handover_received=1, connection_refused=1):
                g.send(kind, g.text)
                g.answered(NO_LISTENER if heard or node.netfilter else OCCUPIED)
    finally:
        node.listen(SERVER, family=family)


@BOTH
@pytest.mark.parametrize("kind", [ASK, CANCEL])
@pytest.mark.parametrize("ends", ["closes", "time_wait"])
def test_server_is_done_before_it_is_asked(node, given, ends, kind):
    """It has served the request and closed the connection: nothing is left of that, or a socket in TIME_WAIT. The sender, whose
    first question was lost, hears that all is well."""
    g = given()
    c, first = g.client, g.client.next
    g.build()
    assert received(g.accept(), len(g.text)) == g.text
    c.sent(g.text)
    c.answer(bytes(3000))
    getattr(c, ends)()
    with node.counts(handover_received=1, connection_asked=1):
        g.send(kind, at=first - c.next)
        g.answered(SERVED)


@BOTH
def test_server_resets(node, given):
    """With the number that the client expects, and whenever it says something."""
    c = served(given)
    node.public.clear()
    c.abort()
    reset = c.take("the server's RST")
    assert reset.flags & RST and reset.seq == c.ack
    assert node.sockets(c) == []
    node.hears_again()
    for _ in range(2):
        with node.counts(reset_repeated=1):
            c.send(ACK)
            again = c.take("another RST")
            assert again.flags & RST and again.seq == c.ack
    c.silence()


@BOTH
def test_client_resets(node, given):
    g = given()
    g.build()
    g.ask(HERE, len(g.text))
    server = g.accept()
    assert received(server, len(g.text)) == g.text
    g.client.send(RST, seq=(g.client.next + len(g.text)) & MASK)
    with pytest.raises(ConnectionResetError):
        server.recv(1)
    assert node.sockets(g.client) == []
    g.ask(SERVED)


@BOTH
@pytest.mark.parametrize("is_loopback", [True, False], ids=["loopback", "its own"])
def test_where_the_server_listens(node, given, family, is_loopback):
    """The configuration says a loopback address, to which nothing comes with netfilter. There, the server's socket has another one;
    elsewhere it has the service's, but nobody looks for it by that."""
    g = given()
    node.unlisten(SERVER, family)
    node.listen(SERVER, address=LOOPBACKS[family] if is_loopback else node.server_name(PROGRAM, family)[0], family=family)
    try:
        if is_loopback == node.netfilter:
            g.ask(NO_LISTENER)
            return
        g.build()
        g.ask(HERE, len(g.text))
        assert received(g.accept(), len(g.text)) == g.text
    finally:
        node.unlisten(SERVER, family)
        node.listen(SERVER, family=family)


def test_another_daemon(own_node, client):
    """What this one has made and promised, the next one knows; and the connection needs neither."""
    node = own_node()
    one, two = (Given(node, lambda *arguments, **keywords: client(*arguments, at=node, **keywords)) for _ in range(2))
    one.build()
    one.ask(HERE, len(one.text))
    server = one.accept()
    two.send(CANCEL)
    two.answered(CANCELLED)
    node.kill()
    assert received(server, len(one.text)) == one.text
    server.sendall(bytes(3000))
    one.client.take_data(bytes(3000))
    node.start()
    node.cluster.clear()
    for again in (one.build, lambda: one.send(ASK)):
        again()
        one.answered(HERE, len(one.text))
    two.build()
    two.answered(CANCELLED)
    one.client.sent(one.text)
    one.client.request(text=b"more")
    assert received(server, 4) == b"more"
    one.client.answer(bytes(3000))


@BOTH
@pytest.mark.parametrize("kind", [ASK, CONNECTION])
def test_no_server(node, given, kind, family):
    g = given()
    node.unlisten(SERVER, family)
    try:
        with node.counts(handover_received=1, connection_refused=1):
            g.send(kind, g.text)
            g.answered(NO_LISTENER)
    finally:
        node.listen(SERVER, family=family)
    assert node.sockets(g.client) == []


@BOTH
def test_full(node, given, family):
    """A server that does not accept: refused before anything is made, and not swallowed by its kernel."""
    one, two = given(), given()
    node.unlisten(SERVER, family)
    node.listen(SERVER, backlog=0, family=family)
    try:
        one.build()
        one.ask(HERE)
        with node.counts(handover_received=2, connection_refused=2):
            two.ask(FULL)
            two.build()
            two.answered(FULL)
        one.accept()
        two.build()
        two.ask(HERE)
    finally:
        node.pending(SERVER)
        node.unlisten(SERVER, family)
        node.listen(SERVER, family=family)


@BOTH
def test_other_connection_of_these_ports(node, given):
    """It is not touched, not even by what names its bytes."""
    g = given()
    g.build()
    server = g.accept()
    g.id = next(_ids)
    for kind in (ASK, CONNECTION):
        g.send(kind, g.text)
        g.answered(OCCUPIED)
    assert received(server, len(g.text)) == g.text


@BOTH
@pytest.mark.parametrize("lease,epoch", [(3600, 2), (-1, 1)])
def test_membership(node, given, lease, epoch):
    """A node with another ring, or without a lease, takes nothing."""
    g = given()
    with node.leased(lease, epoch=epoch), node.counts(handover_received=2, connection_refused=2):
        g.ask(UNSURE)
        g.build()
        g.answered(UNSURE)
    assert node.sockets(g.client) == []


class TestLease:
    """A program's client may not have heard that its request arrived: its node asks another one when this one is lost."""

    @pytest.fixture
    def leased(self, node):
        with node.leased() as found:
            yield found

    def begins(self, given):
        """Handed over, and read; the client knows that it arrived, and no more."""
        g = given()
        g.build(epoch=1)
        g.ask(HERE, len(g.text), epoch=1)
        assert received(g.accept(), len(g.text)) == g.text
        g.client.sent(g.text)
        acknowledged = g.client.take("the acknowledgement")
        assert not acknowledged.payload and acknowledged.ack == g.client.next
        return g.client

    @BOTH
    def test_stands_still(self, node, given, leased):
        """Until it is proven, and then no more."""
        c = self.begins(given)
        listed = {entry.flow_hash: entry for entry in leased.connections()}[c.hash]
        assert (listed.unproven, listed.is_moved, listed.source) == (1, 0, 1)
        assert (listed.cookie, listed.first_seq) == (c.cookie, c.isn + 1)
        leased.lease(0)
        with node.counts(drop_silent=2, reply_silent=leases.SOME):
            c.server.sendall(leases.OK[:20])
            c.send(ACK | PSH, b"more")
            c.send(ACK)
            leases.stands(node, c)
        leased.lease(3600)
        c.server.sendall(leases.OK[20:])
        assert c.take_data(leases.OK)
        node.settle()
        leased.lease(0)
        assert not [entry for entry in leased.connections() if entry.flow_hash == c.hash and entry.unproven]
        leases.goes_on(node, c)

    @BOTH
    def test_end(self, node, given, leased):
        """Another node may be asked for what it began with; but not by a client that has heard that it arrived here."""
        c = self.begins(given)
        leased.lease(0)
        with node.counts(reply_told=1):
            assert [entry.flow_hash for entry in leased.end_unproven()] == [c.hash]
            leases.told(c)
        assert not node.sockets(c)

    @BOTH
    def test_the_server_resets(self, node, given, leased):
        c = self.begins(given)
        leased.lease(0)
        with node.counts(reply_told=1):
            c.abort()
            leases.told(c)

    @BOTH
    def test_no_acknowledgement_while_the_lease_runs_out(self, node, given, leased):
        leased.lease(3600, firm=False)
        g = given()
        c = g.client
        with node.counts(handover_received=2, connection_rebuilt=1, connection_asked=1, reply_unsure=leases.SOME):
            g.build(epoch=1)
            g.ask(HERE, len(g.text), epoch=1)
            assert received(g.accept(), len(g.text)) == g.text
            time.sleep(0.05)  # it is delayed, if anything
            c.silence()
        c.sent(g.text)
        c.answer(leases.OK)
        leases.goes_on(node, c)


@BOTH
def test_no_server_of_its_family(node, given, family):
    """A service whose server listens by the other family only has none for this connection."""
    g = given()
    nothing = tables.Address()
    with node.tables() as found:
        found.service(SERVICE_INDEX[PROGRAM], **{"server6" if family == 6 else "server": nothing})
        with node.counts(handover_received=2, connection_refused=2):
            g.ask(NO_LISTENER)
            g.build()
            g.answered(NO_LISTENER)
    assert node.sockets(g.client) == []
    g.id = next(_ids)
    g.build()
    g.ask(HERE, len(g.text))


@BOTH
def test_malformed(node, given):
    """No packet of a connection, or none of a service."""
    g = given()
    with node.counts(handover_received=2, handover_malformed=2):
        for flags in (ACK | 2, ACK | 4):  # SYN, RST
            packet = g.client.ip_packet(flags, g.text)
            node.message(g.client.handover(packet, CONNECTION, content=g.id))
    g.client.service = 99
    with node.counts(handover_received=1, handover_wrong_target=1):
        g.build()
    node.no_message()
