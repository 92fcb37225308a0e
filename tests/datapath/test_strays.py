# SPDX-License-Identifier: GPL-2.0-or-later
"""What a client sends again and again, and nobody takes: all nodes are asked whose it is, and with everybody's "no" the
client is told that there is no such connection."""
import random

import pytest

from earshotlab import wait_for
from packets import model
from packets.client import LINUX, PLAIN
from packets.established import OWNERS, by_message, served
from packets.families import BOTH
from packets.leases import each_service, leased, moved_here, silent
from packets.nack import refuse
from packets.node import BLIND, DEAD, EACH, ESTABLISHED, FIN_WAIT2, MSS, SERVICE_INDEX, TIME_WAIT, WEB
from packets.packet import ACK, FIN, PSH, RST
from packets.strays import OTHERS, elsewhere, lets_pass, told

__all__ = ["leased", "silent"]  # fixtures
MASK = 0xFFFFFFFF
OWN_NO = dict(handover_received=1, stray_not_here=1, own_stray_answered=1)  # to its own worker, over lo
NO = dict(handover_received=1, stray_answered=1)


def sums(*counted):
    return {name: sum(c.get(name, 0) for c in counted) for name in {name for c in counted for name in c}}


def comes_again(c, *arguments, **keywords):
    """The client sends, and again when nobody has acknowledged it; returns the second packet."""
    with c.node.counts(cookie_invalid=2):
        c.send(*arguments, **keywords)
        c.send(*arguments, **keywords)  # a probe for lost segments, soon behind it
        c.silence()
    c.node.no_message()
    lets_pass(model.STRAY_AGAIN_S)
    return c.send(*arguments, **keywords)


def says_no(node, target):
    """The model node has no such connection; returns the question."""
    question = node.taken(target, model.STRAY)
    refuse(node, question, model.NACK_NOT_HERE)
    return question


ASKED = dict(stray_queued=1, inspect_strays=1)
TOLD = sums(ASKED, OWN_NO, OWN_NO, *[NO] * 4, dict(inspect_stray_resets=1))


@BOTH
@each_service
def test_nobodys(node, client, service):
    """A request on a connection whose node is no more; what follows it is answered at once."""
    c = elsewhere(client, service)
    text = c.get(extra=f"X: {'x' * 1000}\r\n")
    with node.counts(cookie_invalid=2, **TOLD):
        sent = comes_again(c, ACK | PSH, text)
        questions = [says_no(node, target) for target in OTHERS * 2]
        told(c)
    assert [q.attempt for q in questions] == [0, 0, 1, 1]
    for question in questions:
        # One byte tells whose it is.
        tcp = 40 if c.family == 6 else 20
        assert question.packet[tcp:tcp + 13] == sent[tcp:tcp + 13] and question.packet[tcp + 32:] == text[:1]
    with node.counts(reset_repeated=1):
        c.send(ACK | PSH, text)
        told(c)


@BOTH
def test_nobodys_by_ports_in_time_wait(node, client):
    """Its client had another connection with these ports before, and the socket of that is in nobody's way."""
    c = by_message(node, client())
    c.answer()
    c.time_wait()
    c.next, c.ack = random.getrandbits(32), c.no_cookie(random.getrandbits(32))
    with node.counts(cookie_invalid=2, **TOLD):
        comes_again(c, ACK | PSH, c.get())
        for target in OTHERS * 2:
            says_no(node, target)
        told(c)
    assert node.sockets(c) == [TIME_WAIT]


@BOTH
@each_service
def test_has_gone_on(node, client, service):
    """The client was answered, and has sent the next request, while all were asked: the RST means nothing to it, and is not
    said again. A connection that moves may be nowhere at the moment when somebody looks."""
    c = elsewhere(client, service)
    text = c.get()
    with node.counts(cookie_invalid=3, reset_repeated=0, **TOLD):
        comes_again(c, ACK | PSH, text)
        for target in OTHERS * 2:
            says_no(node, target)
        told(c)
        c.next, c.ack = c.next + len(text), c.no_cookie(c.ack + 1000)
        c.send(ACK | PSH, c.get())
        c.silence()


@BOTH
def test_fin(node, client):
    """A client that closes what has long been closed at the other end."""
    c = elsewhere(client)
    with node.counts(cookie_invalid=2, **TOLD):
        comes_again(c, ACK | FIN)
        for target in OTHERS * 2:
            says_no(node, target)
        told(c)


@BOTH
def test_begins_anew_at_once(node, client):
    c = elsewhere(client)
    comes_again(c, ACK | PSH, c.get())
    for target in OTHERS * 2:
        says_no(node, target)
    told(c)
    c.renew()
    c.serve().answer()


def given_away(node, client, service):
    """A long request, whose connection n1 has given to n3."""
    c = client(service)
    if service == EACH:
        c.serve().answer()
    else:
        c.shake()
    c.request(target=3)
    node.taken(3, model.REQUEST)
    return c


@BOTH
def test_the_rest_of_a_request(node, client):
    """Its node has crashed in the middle of it. Not before it is certain that the beginning has arrived."""
    clients = {"drop_decided": given_away(node, client, WEB), "drop_moved": given_away(node, client, EACH)}
    lets_pass(0.05)  # longer than the inspector sends all after it that comes
    for dropped, c in clients.items():
        with node.counts(**{dropped: 1}):
            c.send(ACK | PSH, b"x" * MSS)
            c.silence()
    lets_pass(model.STRAY_AGAIN_S)
    for c in clients.values():
        with node.counts(**ASKED, handover_received=1, stray_here=1, own_stray_answered=1):
            c.send(ACK | PSH, b"x" * MSS)
            c.silence()
    node.no_message()
    lets_pass(model.STRAY_ON_ITS_WAY_S - model.STRAY_AGAIN_S)
    for c in clients.values():
        with node.counts(**TOLD):
            c.send(ACK | PSH, b"x" * MSS)
            for target in OTHERS * 2:
                says_no(node, target)
            told(c)


def test_the_rest_of_a_request_inspected_elsewhere(node, client):
    """By the node that has crashed. It looks as if its beginning had been lost, but then that would come again."""
    clients = [client(service) for service in (WEB, BLIND)]
    with node.counts(request_later_queued=2, inspect_gather_forgotten={1, 2}, drop_no_flow=2):
        for c in clients:
            c.forge()
            c.next += 100000
            c.send(ACK | PSH, b"x" * MSS)
        lets_pass(model.STRAY_AGAIN_LATER_S / 2)  # no tail loss probe is later
        for c in clients:
            c.send(ACK | PSH, b"x" * MSS)
        lets_pass(model.STRAY_AGAIN_LATER_S / 2)
    node.no_message()
    for c in clients:
        with node.counts(**TOLD):
            c.send(ACK | PSH, b"x" * MSS)
            for target in OTHERS * 2:
                says_no(node, target)
            told(c)


@BOTH
@pytest.mark.parametrize("answers,says_so", [(0, True), (1, False), (2, False), (3, True)])
def test_another_node_has_it(node, client, answers, says_so):
    """In the first round or, when it has moved meanwhile, in the second. Who says nothing may have it, too."""
    c = elsewhere(client)
    own = 1 + (answers >= 2)
    with node.counts(cookie_invalid=2, **sums(ASKED, *[OWN_NO] * own, *[NO] * (answers + says_so))):
        comes_again(c, ACK | PSH, c.get())
        for target in (OTHERS * 2)[:answers]:
            says_no(node, target)
        question = node.taken((OTHERS * 2)[answers], model.STRAY)
        if says_so:
            refuse(node, question, model.NACK_HERE)
        node.no_message()
        c.silence()
    # The next time it may be another matter.
    lets_pass(model.STRAY_AGAIN_S)
    with node.counts(**TOLD):
        c.send(ACK | PSH, c.get())
        for target in OTHERS * 2:
            says_no(node, target)
        told(c)


def invented(client, node, count):
    """Segments of so many connections that never were, each sent again when nobody has acknowledged it."""
    clients = [elsewhere(client, at=node) for _ in range(count)]
    for c in clients:
        c.send(ACK | PSH, b"invented")
    lets_pass(model.STRAY_AGAIN_S)
    for c in clients:
        c.send(ACK | PSH, b"invented")
    node.settle()


def heard(client, node):
    """A connection of which this node has heard the SYN, and which is elsewhere now."""
    c = client(at=node)
    c.shake()
    c.next = random.getrandbits(32)
    c.ack = c.no_cookie(random.getrandbits(32))
    return c


def test_invented_segments(own_node, client):
    """A flood of them finds a small budget, and leaves that of the others alone.

    A question costs 1.2 kB on the cluster network, so it lasts for less than 200; the flood itself is for some 30 more."""
    node, count = own_node(), 500
    before = node.counters()
    invented(client, node, count)

    def counted(name):
        return node.counters()[name] - before[name]

    wait_for(lambda: counted("inspect_strays") + counted("inspect_stray_limited") >= count - 50, "all are decided on")
    assert 100 < counted("inspect_strays") < 300
    lets_pass(model.STRAY_GATHER_S)
    assert counted("stray_queued") > count - 50
    for _ in range(5):
        c = heard(client, node)
        node.cluster.clear()
        comes_again(c, ACK | PSH, c.get())
        for target in OTHERS * 2:
            says_no(node, target)
        told(c)


def twice(c, payload):
    """The client sends it again, and nothing comes of that."""
    c.send(ACK, payload)
    lets_pass(model.STRAY_AGAIN_S)
    c.send(ACK, payload)
    c.silence()
    c.node.no_message()


class TestNotAsked:
    """Nobody is asked about what somebody has, or may have."""

    def test_goes_on(self, node, client):
        """Data that another node acknowledges."""
        c = elsewhere(client)
        with node.counts(cookie_invalid=3):
            for _ in range(3):
                c.request(text=b"x" * MSS)
                lets_pass(model.STRAY_AGAIN_S)
            c.silence()
        node.no_message()

    @pytest.mark.parametrize("payload", [b"", b"x"])
    def test_probe(self, node, client, payload):
        """Has a closed window opened? Is the connection alive? Its node answers, but does not take the byte."""
        with node.counts(**{"cookie_invalid" if payload else "drop_no_flow": 2}):
            twice(elsewhere(client), payload)

    def test_not_mine(self, node, client):
        with node.counts(drop_not_mine=2):
            twice(elsewhere(client, owner=2), b"more")

    def test_silent(self, node, client, silent):
        """Without a lease others ask."""
        with node.counts(drop_silent=2):
            twice(elsewhere(client), b"more")

    def test_here(self, node, client):
        """Its acknowledgment was lost: the stack says it again."""
        c = client().serve()
        c.answer()
        text = c.get()
        c.request(text=text)
        assert c.take("the acknowledgment").ack == c.next
        lets_pass(model.STRAY_AGAIN_S)
        with node.counts(deliver_established=1):
            c.send(ACK | PSH, text, seq=c.next - len(text))
            assert c.take("the duplicate ACK").ack == c.next
        node.no_message()


def ask(node, c, *arguments, **keywords):
    """n2 asks about a segment of the client's."""
    packet_ = c.ip_packet(*(arguments or (ACK | PSH, b"x")), **keywords)
    return node.message(c.handover(packet_, kind=model.STRAY), sport=40001)


def answered(node, c, reason, *arguments, **keywords):
    with node.counts(**{"handover_received": 1, "stray_here" if reason == model.NACK_HERE else "stray_not_here": 1}):
        question = ask(node, c, *arguments, **keywords)
        back = node.taken(2, model.NACK)
        assert (back.nack, back.packet, back.attempt) == (reason, question.packet, question.attempt)
        assert back.ports[1] == 40001
    node.no_message()


def not_here(node, c, *arguments, **keywords):
    answered(node, c, model.NACK_NOT_HERE, *arguments, **keywords)
    c.silence()


def may_be_here(node, c, *arguments, **keywords):
    answered(node, c, model.NACK_HERE, *arguments, **keywords)
    c.silence()


@BOTH
@OWNERS
class TestAsked:
    """What this node says of itself."""

    def test_nothing_of_it(self, node, client, owner):
        c = elsewhere(client, owner=owner)
        not_here(node, c)
        not_here(node, c, ACK | FIN)

    def test_no_server(self, node, client, owner):
        """Whether one listens is not the question."""
        not_here(node, elsewhere(client, DEAD, owner=owner))

    def test_connection(self, node, client, owner):
        c = served(node, client, owner)
        assert c.take("the acknowledgement").ack == c.next
        may_be_here(node, c)
        c.answer()
        may_be_here(node, c)
        may_be_here(node, c, ACK | FIN)
        c.server.settimeout(0)
        with pytest.raises(BlockingIOError):
            c.server.recv(1)  # nothing came of the questions
        assert node.sockets(c) == [ESTABLISHED]

    def test_half_closed(self, node, client, owner):
        c = served(node, client, owner)
        c.answer()
        c.server.close()
        c.server = None
        c.take_fin()
        answered(node, c, model.NACK_HERE)  # the FIN may come again
        c.send(ACK)
        wait_for(lambda: node.sockets(c) == [FIN_WAIT2], "FIN_WAIT2")
        node.public.clear()
        may_be_here(node, c)

    def test_time_wait(self, node, client, owner):
        """It answers its client's FIN; all else is of no connection."""
        c = served(node, client, owner)
        c.answer()
        c.time_wait()
        may_be_here(node, c, ACK | FIN, seq=c.fin_seq)
        not_here(node, c)
        assert node.sockets(c) == [TIME_WAIT]

    def test_silent(self, node, client, owner, silent):
        """What it has, it knows."""
        not_here(node, elsewhere(client, owner=owner))
        silent.lease(3600)
        c = served(node, client, owner)
        c.answer()
        silent.lease(0)
        may_be_here(node, c)

    def test_on_its_way_from_here(self, node, client, owner):
        """The request was given to another node, which may not have got it."""
        if owner == 1:
            c = client()
            c.shake()
            c.request(target=3)
        else:
            c = moved_here(node, client)
            c.answer()
            c.request(target=3)
        sent = node.taken(3, model.REQUEST)
        request = sent.packet[72 if c.family == 6 else 52:]
        may_be_here(node, c, ACK | PSH, request, seq=c.next - len(request))
        may_be_here(node, c)
        # The client has sent this long ago, and the request since.
        may_be_here(node, c, ACK | PSH, b"GET", seq=(c.next - 10000) & MASK, ack=(c.ack - 1000) & MASK)
        not_here(node, c, ack=(c.ack + 1000) & MASK)  # it was answered by n3, which had this then

    def test_rebuilt_a_moment_ago(self, node, client, owner):
        """The request's socket was here and is gone: its repetition comes to nothing by itself."""
        c = served(node, client, owner)
        c.abort()
        while not c.take("the server's RST").flags & RST:
            pass
        may_be_here(node, c, ACK | PSH, b"GET", seq=c.isn + 1)

    @pytest.mark.parametrize("flags", [ACK, ACK | PSH | RST, PSH])
    def test_malformed(self, node, client, owner, flags):
        c = elsewhere(client, owner=owner)
        with node.counts(handover_received=1, handover_malformed=1):
            ask(node, c, flags, b"" if flags == ACK else b"x")
            node.no_message()
        c.silence()


@pytest.fixture(name="survives")
def _survives(leased):
    leased.service(SERVICE_INDEX[EACH], survives=1)
    yield leased
    leased.service(SERVICE_INDEX[EACH], survives=0)


@pytest.mark.no_netfilter("it knows nothing of other nodes' idle connections")
class TestKept:
    """A connection of which another node has told that it is idle (kmod/core/kept.h)."""

    @BOTH
    def test_orphan(self, node, client, survives):
        """Its node is lost: nobody waits until the client repeats what it says."""
        c = elsewhere(client, EACH)
        survives.keep(c.hash, c.next, is_orphan=1)
        with node.counts(**TOLD):
            c.send(ACK | PSH, c.get())
            for target in OTHERS * 2:
                says_no(node, target)
            told(c)
        assert not survives.kept(c.hash).is_heard

    def test_rest(self, node, client, survives):
        """What follows in the request comes, too."""
        c = elsewhere(client, EACH)
        survives.keep(c.hash, c.next - 1400 & MASK, is_orphan=1)
        with node.counts(**TOLD):
            c.send(ACK | PSH, b"rest")
            for target in OTHERS * 2:
                says_no(node, target)
            told(c)

    @pytest.mark.parametrize("by", [1, -65536])
    def test_another_request(self, node, client, survives, by):
        c = elsewhere(client, EACH)
        survives.keep(c.hash, c.next + by & MASK, is_orphan=1)
        with node.counts(cookie_invalid=1):
            c.send(ACK | PSH, c.get())
            c.silence()

    def test_another_flow(self, node, client, survives):
        c = elsewhere(client, EACH)
        survives.keep(c.hash ^ 1, c.next, is_orphan=1)
        with node.counts(cookie_invalid=1):
            c.send(ACK | PSH, c.get())
            c.silence()

    @BOTH
    def test_heard(self, node, client, survives):
        """Its node lives: that its request was heard is noted, that of its next one, and of no other."""
        c = elsewhere(client, EACH)
        survives.keep(c.hash, c.next)
        with node.counts(cookie_invalid=2):
            c.next += 1
            c.send(ACK | PSH, c.get())
            c.silence()
            assert not survives.kept(c.hash).is_heard
            c.next -= 1
            c.send(ACK | PSH, c.get())
            c.silence()
        assert survives.kept(c.hash).is_heard

    @pytest.mark.parametrize("is_orphan", [0, 1])
    def test_overheard(self, node, client, survives, is_orphan):
        """It is another node's to inspect: that may have been given it, so this one does not go on with it as the first."""
        c = elsewhere(client, EACH)
        survives.give(c.hash, 2)
        survives.keep(c.hash, c.next, is_orphan)
        with node.counts(drop_not_mine=1):
            c.send(ACK | PSH, c.get())
            c.silence()
        assert survives.kept(c.hash).is_heard

    @BOTH
    @pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=["timestamps", "plain"])
    @pytest.mark.parametrize("owner", [1, 2])
    def test_repeated(self, node, client, survives, offer, owner):
        """Its node may be lost, but nobody knows yet: the inspector gets what the client repeats, and nobody answers that."""
        c = elsewhere(client, EACH, owner=owner, offer=offer)
        survives.keep(c.hash, c.next)
        text = c.get()
        with node.counts(kept_queued=2, **{"drop_not_mine" if owner == 2 else "cookie_invalid": 1}):
            for _ in range(3):
                c.send(ACK | PSH, text)
            c.silence()
        node.no_message()
        assert survives.kept(c.hash).is_heard

    def test_repeated_without_a_lease(self, node, client, survives):
        c = elsewhere(client, EACH)
        survives.keep(c.hash, c.next, is_orphan=1)
        survives.lease(0)
        with node.counts(kept_queued=1, drop_silent=1):
            for _ in range(2):
                c.send(ACK | PSH, c.get())
            c.silence()

    def test_another_one_repeated(self, node, client, survives):
        """Only the very request that is awaited is told of."""
        c = elsewhere(client, EACH)
        survives.keep(c.hash, c.next)
        with node.counts(cookie_invalid=3):
            c.send(ACK | PSH, c.get())
            c.next += 1
            for _ in range(2):
                c.send(ACK | PSH, c.get())
            c.silence()

    @BOTH
    @pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=["timestamps", "plain"])
    def test_answer(self, node, client, survives, offer):
        """The client of an orphan was asked, and says what it has: once to each question."""
        c = elsewhere(client, EACH, offer=offer)
        survives.keep(c.hash, c.next, is_orphan=1, is_asked=1)
        survives.asks(60)
        c.next += len(c.get())
        with node.counts(kept_queued=1, drop_no_flow=1):
            for _ in range(2):
                c.send(ACK)
            c.silence()
        node.no_message()

    @pytest.mark.parametrize("is_asked, left_s, by", [(0, 60, 20), (1, 0, 20), (1, 60, 0), (1, 60, 70000)])
    def test_no_answer(self, node, client, survives, is_asked, left_s, by):
        """Nobody was asked, or not so late, or this is none."""
        c = elsewhere(client, EACH)
        survives.keep(c.hash, c.next, is_orphan=1, is_asked=is_asked)
        survives.asks(left_s)
        c.next = c.next + by & MASK
        with node.counts(drop_no_flow=1):
            c.send(ACK)
            c.silence()

    def test_answer_to_another_node(self, node, client, survives):
        """The flow is another node's by now, which has asked itself, or will."""
        c = elsewhere(client, EACH)
        survives.give(c.hash, 2)
        survives.keep(c.hash, c.next, is_orphan=1, is_asked=1)
        survives.asks(60)
        c.next += 20
        with node.counts(drop_not_mine=1):
            c.send(ACK)
            c.silence()
        assert survives.kept(c.hash).is_asked

    def test_without_the_key(self, node, client, leased):
        c = elsewhere(client, EACH)
        leased.keep(c.hash, c.next, is_orphan=1)
        with node.counts(cookie_invalid=1):
            c.send(ACK | PSH, c.get())
            c.silence()
