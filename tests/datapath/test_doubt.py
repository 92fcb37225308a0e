# SPDX-License-Identifier: GPL-2.0-or-later
"""After a node was lost: what it may have executed comes again, to this node. What is not safe is not executed twice.

The lost node is n2: its share of the ring is given to this node by the test.
"""
import contextlib

import pytest

from earshotlab import netns, wait_for
from packets.client import LINUX, WINDOWS
from packets.leases import OK
from packets.node import BLIND, EACH, SERVICE_INDEX, WEB
from packets.packet import ACK, PSH, RST
from packets.tables import RING_ANSWER, RING_WAIT

ONCE, AGAIN, ALL = range(3)
DOUBT_S = 100
REFUSED = dict(request_doubtful=1, inspect_doubtful=1)

offers = pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda offer: offer.name)
inspected = pytest.mark.parametrize("service", [WEB, EACH])


@pytest.fixture
def world(node):
    """A member, where a node was lost a moment ago, which the ring still names for nothing."""
    with node.leased() as found:
        found.doubt(DOUBT_S)
        yield found


def post(c, target=1):
    """The text of a request that is not safe, for a node; always the same one of this client."""
    if not hasattr(c, "text"):
        c.text = b"POST" + c.get(target, extra="Content-Length: 4\r\n")[3:] + b"id=1"
    return c.text


def anothers(node, client, world, *arguments, make=post, cut=None, **keywords):
    """A connection with n2, which has had its request, for all that this node knows; n2 is gone, and its share is ours."""
    c = client(*arguments, **keywords)
    c.text = make(c)
    world.give(c.hash, 2)
    with node.counts(drop_not_mine=2):
        node.public.send(c.syn_frame())
        c.forge()
        c.send(ACK | PSH, c.text[:cut])
        c.silence()
    world.give(c.hash, 1)
    return c


def refused(node, c, text=None, **counted):
    with node.counts(**(counted or REFUSED)):
        c.send(ACK | PSH, text or post(c))
        reset = c.take("a RST")
        assert (reset.flags, reset.seq) == (RST, c.ack)
        c.silence()
    node.no_message()
    assert not node.sockets(c)


def served(c, text=None):
    text = text or post(c)
    c.send(ACK | PSH, text)
    c.sent(text)
    assert c.read(len(text)) == text
    c.answer(OK)


class TestOverheard:
    @offers
    @inspected
    def test_refused(self, node, client, world, service, offer):
        """Each time that it comes: the RST may be lost."""
        c = anothers(node, client, world, service, offer=offer)
        refused(node, c)
        refused(node, c, reset_repeated=1)

    @offers
    @inspected
    def test_safe(self, node, client, world, service, offer):
        c = anothers(node, client, world, service, offer=offer, make=lambda c: c.get())
        with node.counts(request_doubtful=1, inspect_requests=1, inspect_kept=1, handover_received=1, handover_rebuilt=1,
                         deliver_established=range(0, 3)):
            c.request(text=c.text)
            assert c.read(len(c.text)) == c.text

    @inspected
    def test_nobody_was_lost(self, node, client, world, service):
        """A node that joins, or leaves in order, costs nobody anything. And after some time, no client comes again."""
        world.doubt(-1)
        served(anothers(node, client, world, service))

    def test_without_membership(self, node, client, world):
        c = anothers(node, client, world)
        world.configure(leased=0)
        served(c)

    @offers
    def test_what_begins_now(self, node, client, world, offer):
        """Is executed, whoever was lost."""
        for service in (WEB, EACH):
            c = client(service, offer=offer).shake()
            served(c)

    def test_another_connection_of_the_flow(self, node, client, world):
        c = anothers(node, client, world)
        c.renew()
        c.shake()
        served(c)

    @pytest.mark.parametrize("slot", [(1, RING_WAIT), (2, RING_ANSWER)], ids=["gains", "loses"])
    def test_while_the_ring_changes(self, node, client, world, slot):
        c = client().shake()
        world.give(c.hash, *slot)
        with node.counts(drop_ring_change=1):
            c.send(ACK | PSH, post(c))
            c.silence()
        world.give(c.hash, 1)
        refused(node, c)

    def test_while_silent(self, node, client, world):
        """Another node had this node's share meanwhile."""
        c = client().shake()
        world.lease(0)
        with node.counts(drop_silent=1):
            c.send(ACK | PSH, post(c))
            c.silence()
        world.lease(3600)
        refused(node, c)

    def test_only_the_first_byte_counts(self, node, client, world):
        """What comes behind it is no request, and notes nothing."""
        c = client().shake()
        world.give(c.hash, 2)
        with node.counts(drop_not_mine=1):
            c.send(ACK | PSH, post(c)[10:], seq=c.next + 10)
            c.silence()
        world.give(c.hash, 1)
        served(c)

    def test_in_segments(self, node, client, world):
        """The head is not complete: it is gathered first."""
        c = anothers(node, client, world, cut=30)
        with node.counts(request_doubtful=1, request_later_queued=1, inspect_doubtful=1):
            c.send(ACK | PSH, c.text[:30])
            c.send(ACK | PSH, c.text[30:], seq=c.next + 30)
            assert c.take("a RST").flags == RST
            c.silence()
        node.no_message()

    def test_given_by_this_node(self, node, client, world):
        """It knows where the request is, and so repeats it there."""
        c = client().shake()
        text = post(c, target=2)
        c.request(text=text)
        node.taken(2)
        with node.counts(request_queued=1, inspect_repeated=1):
            c.send(ACK | PSH, text, seq=c.isn + 1)
            assert node.taken(2).packet


class TestNotHeard:
    """A connection that is older than this node's hearing. Without timestamps, it is asked about first: test_earlier.py."""

    @inspected
    def test_refused(self, node, client, world, service):
        c = client(service)
        c.forge()
        refused(node, c)

    @inspected
    def test_safe(self, node, client, world, service):
        c = client(service)
        c.forge()
        served(c, c.get())

    @inspected
    def test_nobody_was_lost(self, node, client, world, service):
        world.doubt(-1)
        c = client(service)
        c.forge()
        served(c)

    def test_deaf_for_a_while(self, node, client, world):
        """Its request may have come while this node did not hear."""
        c = client().shake()
        world.hears(0)
        refused(node, c)


class TestNotRead:
    """Layer 4: nobody knows what is a request, so each is safe, or none."""

    REFUSED = dict(reset_doubtful=1)

    @pytest.fixture
    def all_unsafe(self, world):
        world.service(SERVICE_INDEX[BLIND], unsafe=ALL)

    def test_refused(self, node, client, world, all_unsafe):
        c = anothers(node, client, world, BLIND)
        for _ in range(2):
            refused(node, c, **self.REFUSED)

    def test_not_heard(self, node, client, world, all_unsafe):
        c = client(BLIND)
        c.forge()
        refused(node, c, c.get(), **self.REFUSED)

    def test_what_begins_now(self, client, world, all_unsafe):
        served(client(BLIND).shake())

    def test_nobody_was_lost(self, node, client, world, all_unsafe):
        world.doubt(-1)
        served(anothers(node, client, world, BLIND))

    @pytest.mark.parametrize("unsafe", [ONCE, AGAIN])
    def test_safe(self, node, client, world, unsafe):
        world.service(SERVICE_INDEX[BLIND], unsafe=unsafe)
        served(anothers(node, client, world, BLIND))

    @pytest.mark.bpf("the module's sockets do not depend on sysctls")
    @pytest.mark.no_netfilter("its connections do not depend on sysctls")
    def test_not_made(self, node, client, world, all_unsafe):
        """The kernel would not make its socket, so nothing was executed, and it is no request that was heard before."""
        c = client(BLIND).shake(ack=False)
        netns.set_sysctls(node.namespace, {"net.ipv4.tcp_window_scaling": 0})
        try:
            with node.counts(rebuild_refused=1):
                c.send(ACK | PSH, post(c))
                c.silence()
        finally:
            netns.set_sysctls(node.namespace, {"net.ipv4.tcp_window_scaling": 1})
        served(c)

    def test_executed_here(self, node, client, world, all_unsafe):
        """This node was lost itself, and has ended what it had."""
        world.lease(3600, firm=False)
        c = client(BLIND).shake()
        with node.counts(request_blind=1, reply_unsure=range(0, 3)):
            c.send(ACK | PSH, post(c))
            assert c.read(len(c.text)) == c.text
        world.lease(0)
        assert [e.flow_hash for e in world.end_unproven()] == [c.hash]
        with contextlib.suppress(ConnectionError):
            c.server.recv(1)
        wait_for(lambda: not node.sockets(c), "the end of the connection")
        node.public.clear()
        world.lease(3600)
        refused(node, c, **self.REFUSED)


def test_a_node_that_starts_has_no_doubts(own_node):
    """They come with the news that a node was lost. A daemon that starts again keeps them."""
    node = own_node()
    with node.tables() as found:
        assert not found.state.doubt_ns
        found.doubt(DOUBT_S)
        before = found.state.doubt_ns
        node.kill()
        node.start()
        assert found.state.doubt_ns == before
