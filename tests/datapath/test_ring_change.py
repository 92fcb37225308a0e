# SPDX-License-Identifier: GPL-2.0-or-later
"""While the ring changes: slots that this node gains or loses, and messages of the ring before."""
import pytest

from packets import model, packet
from packets.node import BLIND, EACH, ESTABLISHED, VIP, WEB
from packets.other import mine_and_others, to_vip, who_has
from packets.packet import ACK, FIN, PSH
from packets.tables import RING_ANSWER, RING_WAIT

EPOCH = 7
BUILT = dict(handover_received=1, handover_rebuilt=1)
STALE = dict(handover_received=1, handover_stale=1)
each_service = pytest.mark.parametrize("service", [WEB, BLIND, EACH])


@pytest.fixture
def tables(node):
    with node.leased(epoch=EPOCH) as found:
        yield found


@pytest.mark.parametrize("slot", [(1, RING_WAIT), (2, RING_ANSWER)], ids=["gains", "loses"])
class TestSlot:
    """One that this node gains but may not inspect yet, and one that it loses to a node that may not know yet."""

    @each_service
    def test_request(self, node, client, tables, service, slot):
        """Handshakes go on; requests wait for their retransmission."""
        c = client(service)
        tables.give(c.hash, *slot)
        with node.counts(syn_answered=1, **({} if service == BLIND else {"drop_handshake_ack": 1})):
            c.shake()
        text = c.get()
        with node.counts(drop_ring_change=2):
            c.send(ACK | PSH, text)
            c.send(ACK | PSH, text)
            c.silence()
        node.no_message()
        assert not node.sockets(c)
        tables.give(c.hash, 2)
        with node.counts(drop_not_mine=1):
            c.send(ACK | PSH, text)
            c.silence()
        tables.give(c.hash, 1)
        c.request(text=text)
        assert c.read(len(text)) == text
        c.answer()

    def test_before_any_request(self, node, client, tables, slot):
        c, old = client().shake(), client()
        old.forge(slot=node.slot() - 3)
        tables.give(c.hash, *slot)
        tables.give(old.hash, *slot)
        with node.counts(keepalive_answered=1):
            c.send(ACK, seq=c.isn)
            assert c.take("the answer to the probe").ack == c.next
        with node.counts(drop_ring_change=2):
            c.send(ACK | FIN)
            old.send(ACK | PSH, old.get())
            c.silence("no RST")
            old.silence("no RST")

    def test_later_segment(self, node, client, tables, slot):
        c = client().shake()
        tables.give(c.hash, *slot)
        with node.counts(drop_ring_change=1):
            c.send(ACK | PSH, b"x" * 100, seq=c.next + 1000)

    def test_connection(self, node, client, tables, slot):
        """What is here is here, proven or not."""
        c = client().serve()
        tables.give(c.hash, *slot)
        with node.counts(deliver_established=range(1, 10)):
            c.answer()
            c.request(text=b"more")
            assert c.read(4) == b"more"

    def test_other_traffic(self, node, tables, slot):
        """Somebody must answer."""
        mine, _ = mine_and_others(node)
        tables.give(model.address_hash(node.keys, mine[0]), *slot)
        with node.counts(arp_answered=1, icmp_echo_mine=1):
            node.public.send(who_has(VIP, mine[0]))
            assert node.public.take(lambda f: f.arp)
            to_vip(node, mine[0], packet.ICMP, packet.icmp(8, 0, b"\0\1\0\2", b"are you there"))
            assert node.public.take(lambda f: f.icmp)

    def test_silent(self, node, client, tables, slot):
        c = client()
        tables.give(c.hash, *slot)
        tables.lease(0)
        with node.counts(drop_silent=1):
            node.public.send(c.syn_frame())
            c.silence()


class TestStale:
    """A first request of another epoch, from a node that the ring here does not name for it."""

    @pytest.fixture
    def given(self, node, client):
        """(client, text, message) from n2, about a flow that the ring gives to `owner`."""
        def make(owner, epoch, **fields):
            c = client(owner=owner)
            c.forge()
            text = c.get()
            return c, text, c.handover(c.ip_packet(ACK | PSH, text), epoch=epoch, **fields)

        return make

    def built(self, node, c, text, message):
        with node.counts(**BUILT):
            node.message(message)
            c.sent(text)
            assert c.read(len(text)) == text
        assert c.answer()

    def dropped(self, node, c, message, sockets=()):
        with node.counts(**STALE):
            node.message(message)
            c.silence()
        node.no_message()
        assert node.sockets(c) == list(sockets)

    @pytest.mark.parametrize("owner", [1, 3])
    @pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1, 0])
    def test_another_epoch(self, node, given, tables, owner, epoch):
        c, _, message = given(owner, epoch)
        self.dropped(node, c, message)

    def test_this_epoch(self, node, given, tables):
        """The rings are the same: what differs is the sender's good reason."""
        self.built(node, *given(3, EPOCH))

    @pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
    def test_from_the_rings_node(self, node, given, tables, epoch):
        self.built(node, *given(2, epoch))

    def test_from_the_node_that_gains_the_slot(self, node, given, tables):
        c, text, message = given(1, EPOCH - 1)
        tables.give(c.hash, 2, RING_ANSWER)
        self.built(node, c, text, message)

    def test_slot_that_this_node_gains(self, node, given, tables):
        c, _, message = given(2, EPOCH - 1)
        tables.give(c.hash, 1, RING_WAIT)
        self.dropped(node, c, message)

    def test_moved(self, node, given, tables):
        """Only the node that moved it knows of it, whatever the ring."""
        c, text, message = given(3, EPOCH - 1, moves=1)
        message.flags |= model.F_MOVED
        self.built(node, c, text, message)

    def test_without_membership(self, node, given, tables):
        tables.configure(leased=0)
        self.built(node, *given(3, EPOCH - 1))

    def test_socket_is_here(self, node, given, tables):
        """Then, too: it says nothing that the client could not say itself. What follows a request is no request."""
        c, text, message = given(3, EPOCH)
        self.built(node, c, text, message)
        self.dropped(node, c, c.handover(message.packet, epoch=EPOCH - 1), [ESTABLISHED])
        with node.counts(handover_received=1, handover_follow=1):
            node.message(c.handover(c.ip_packet(ACK | PSH, b"more"), model.FOLLOW, epoch=EPOCH - 1))
            c.sent(b"more")
            assert c.read(4) == b"more"

    def test_while_silent(self, node, given, tables):
        """No NACK: the sender would give it to another node, which may be wrong as well."""
        c, _, message = given(3, EPOCH - 1)
        tables.lease(0)
        self.dropped(node, c, message)
