# SPDX-License-Identifier: GPL-2.0-or-later
"""What has become of a request stays so: refused is refused, made is made, however late its copies come."""
import contextlib
import time

import pytest

from earshotlab import wait_for
from packets import model
from packets.client import LINUX, WINDOWS
from packets.nack import NACKED, handed_over, refuse
from packets.node import BLIND, CRAMPED, DEAD, WEB
from packets.packet import ACK, PSH

MADE_S = 4  # so long a socket may take to be made (kmod/core/settled.h): what is noted for no longer is forgotten by then
LAST_ATTEMPT = 255


@contextlib.contextmanager
def listening(node, port):
    """A server where there was none, for a while."""
    listener = node.listen(port)
    try:
        yield listener
    finally:
        node.listeners.pop(port).close()


@pytest.fixture
def given(node, client):
    """(client, text, its request as a packet): a flow that n2 inspects, and gives to n1."""
    def make(service=DEAD):
        c = client(service, owner=2)
        c.forge()
        text = c.get()
        return c, text, c.ip_packet(ACK | PSH, text)

    return make


def sent_back(node, message, reason, attempt, **counted):
    with node.counts(handover_received=1, **counted):
        node.message(message)
        nack = node.taken(2, model.NACK)
    assert (nack.nack, nack.attempt, nack.packet) == (reason, attempt, message.packet)


def built(node, c, text, message, **counted):
    with node.counts(handover_received=1, handover_rebuilt=1, **counted):
        node.message(message)
        c.sent(text)
        assert c.read(len(text)) == text


class TestRefused:
    """Its sender may have given it to another node: no copy of it makes a socket here."""

    def test_then_a_server_listens(self, node, given):
        c, text, original = given()
        sent_back(node, c.handover(original), model.NACK_NO_LISTENER, 0, handover_nacked=1)
        with listening(node, DEAD):
            for _ in range(2):
                sent_back(node, c.handover(original, flags=c.handover(original).flags | model.F_REPEAT), model.NACK_RETRY, 0,
                          handover_refused=1)
            assert not node.sockets(c) and not node.pending(DEAD)
            # Its sender has heard that, and says so.
            built(node, c, text, c.handover(original, attempt=1))
            # What was made is not refused, nor made again.
            for attempt in (0, 1, 2):
                with node.counts(handover_received=1, handover_duplicate=1):
                    node.message(c.handover(original, attempt=attempt))
            assert not node.pending(DEAD)
            c.abort()
            wait_for(lambda: not node.sockets(c), "the end of the connection")
            for attempt in (0, 1, 2, LAST_ATTEMPT):
                with node.counts(handover_received=1, handover_old=1):
                    node.message(c.handover(original, attempt=attempt))
        # Also when nobody listens any more.
        with node.counts(handover_received=1, handover_old=1):
            node.message(c.handover(original, attempt=3))
        assert not node.sockets(c)

    def test_up_to_an_attempt(self, node, given):
        """A copy of an earlier attempt is told of the latest one, which its sender may have forgotten."""
        c, text, original = given()
        sent_back(node, c.handover(original, attempt=7), model.NACK_NO_LISTENER, 7, handover_nacked=1)
        sent_back(node, c.handover(original, attempt=2), model.NACK_NO_LISTENER, 7, handover_nacked=1)
        with listening(node, DEAD):
            sent_back(node, c.handover(original, attempt=3), model.NACK_RETRY, 7, handover_refused=1)
            built(node, c, text, c.handover(original, attempt=8))

    def test_other_requests_are_served(self, node, given):
        """Of other flows, and of the next connection of the same ports."""
        c, _, original = given()
        sent_back(node, c.handover(original), model.NACK_NO_LISTENER, 0, handover_nacked=1)
        with listening(node, DEAD):
            other, text, packet = given()
            built(node, other, text, other.handover(packet))
            other.abort()
            c.renew()
            c.forge()
            text = c.get()
            built(node, c, text, c.handover(c.ip_packet(ACK | PSH, text)))
            c.abort()

    def test_while_silent(self, node, given):
        c, text, original = given(WEB)
        with node.leased() as tables:
            tables.lease(0)
            sent_back(node, c.handover(original), model.NACK_SILENT, 0, handover_silent=1)
            tables.lease(3600)
            sent_back(node, c.handover(original), model.NACK_RETRY, 0, handover_refused=1)
            built(node, c, text, c.handover(original, attempt=1))

    def test_and_no_room(self, node, given):
        """A full accept queue refuses nothing; nor does it make of a refusal something else."""
        held, held_text, held_packet = given(CRAMPED)
        c, text, original = given(CRAMPED)
        with node.leased() as tables:
            tables.lease(0)
            sent_back(node, c.handover(original), model.NACK_SILENT, 0, handover_silent=1)
        with node.counts(handover_received=1, handover_rebuilt=1):
            node.message(held.handover(held_packet))
            wait_for(lambda: node.sockets(held), "a connection that nobody accepts")
        sent_back(node, c.handover(original), model.NACK_RETRY, 0, handover_refused=1)
        with node.counts(handover_received=1, handover_accept_full=1):
            node.message(c.handover(original, attempt=1))
        held.sent(held_text)
        assert held.read(len(held_text)) == held_text
        built(node, c, text, c.handover(original, attempt=1))


class TestSender:
    """The inspecting node: an attempt is over when its node has refused it, and only then the next one begins."""

    @pytest.fixture(autouse=True)
    def everybody_up(self, node):
        node.all_up()
        yield
        node.all_up()

    def test_second_refusal(self, node, client):
        """The client has repeated its request meanwhile, and its node refuses that, too, late: the next node has it."""
        c, first = handed_over(node, client, 2, DEAD)
        c.send(ACK | PSH, first.packet[52:], seq=c.isn + 1)
        second = node.taken(2, model.REQUEST)
        assert second.attempt == first.attempt == 0
        refuse(node, first)
        elsewhere = node.taken(3, model.REQUEST)
        assert elsewhere.attempt > 0
        with node.counts(**NACKED, inspect_nack_late=1):
            refuse(node, second)
            c.silence()
        node.no_message()
        # And it stays there, by that number.
        c.send(ACK | PSH, first.packet[52:], seq=c.isn + 1)
        again = node.taken(3, model.REQUEST)
        assert (again.attempt, again.flags & model.F_REPEAT) == (elsewhere.attempt, model.F_REPEAT)

    def test_retry(self, node, client):
        """The same node again, behind all that it has refused."""
        c, first = handed_over(node, client)
        with node.counts(**NACKED, inspect_requests=1, inspect_handovers=1):
            refuse(node, first, model.NACK_RETRY, attempt=9)
            again = node.taken(2, model.REQUEST)
        assert (again.attempt, again.packet) == (10, first.packet)
        with node.counts(**NACKED, inspect_nack_late=1):
            refuse(node, first, attempt=9)
        node.no_message()
        c.send(ACK | PSH, first.packet[52:], seq=c.isn + 1)
        assert node.taken(2, model.REQUEST).attempt == 10

    def test_last_attempt(self, node, client):
        """It cannot be numbered any more: the client is told."""
        c, first = handed_over(node, client, 2, DEAD)
        with node.counts(**NACKED, inspect_nacks=1, inspect_no_target=1):
            refuse(node, first, attempt=LAST_ATTEMPT)
            assert c.take("the RST").seq == c.ack


class TestLateCopy:
    """Of a first request that was served, long ago as such copies go."""

    CASES = [(service, offer, how) for service in (WEB, BLIND) for offer in (LINUX, WINDOWS) for how in ("closed", "time-wait")]

    @staticmethod
    def served(node, client, service, offer, how):
        """(client, frame): the connection is over, and the frame was its request."""
        c = client(service, offer=offer)
        c.shake()
        text = c.get()
        frame = c.frame(ACK | PSH, text)
        node.public.send(frame)
        c.sent(text)
        assert c.read(len(text)) == text
        c.answer()
        if how == "time-wait":
            c.time_wait()
        else:
            c.closes()
        return c, frame

    def test_is_not_served_again(self, node, client):
        """Neither by the inspected service nor by the one that is not."""
        over = [self.served(node, client, *case) for case in self.CASES]
        time.sleep(MADE_S + 0.3)  # a note of a socket that nobody has seen would not be there any more
        node.public.clear()
        # As long as the connection tracking knows the connections, the stack gets it.
        # Of a request that comes again, its node is asked 1.2 s later what has become of it; only a busy machine is that late here.
        late = {} if node.netfilter else dict(request_queued=4, inspect_repeated=4, handover_received=range(4, 9), handover_old=8,
                                              inspect_fates_asked=range(5), fate_asked=range(5))
        with node.counts(**late):
            for _, frame in over:
                node.public.send(frame)
        assert not node.pending(WEB) and not node.pending(BLIND)

    def test_of_a_handover(self, node, given):
        c, text, original = given(WEB)
        built(node, c, text, c.handover(original))
        c.answer()
        c.abort()
        wait_for(lambda: not node.sockets(c), "the end of the connection")
        time.sleep(MADE_S + 0.3)
        with node.counts(handover_received=1, handover_old=1):
            node.message(c.handover(original))
        assert not node.sockets(c) and not node.pending(WEB)


def test_what_was_ended_unheard_is_served_anew(node, given):
    """The node had lost its lease, and nobody has heard of the connection: its client's request comes again."""
    c, text, original = given(WEB)
    with node.leased() as tables:
        tables.lease(3600, firm=False)
        built(node, c, text, c.handover(original), reply_unsure=1)
        tables.lease(-5)
        tables.end_unproven()
        wait_for(lambda: not node.sockets(c), "the end of the connection")
        c.abort()
        tables.lease(3600)
        c.next = (c.isn + 1) & 0xFFFFFFFF
        built(node, c, text, c.handover(original))
        assert c.answer()
