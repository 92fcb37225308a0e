# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages say when they were sent, and have numbers: recorded ones are not taken, nor what comes from the clients' side."""
import fcntl
import os
import struct
import time
from contextlib import contextmanager

import pytest

from earshotlab import in_namespace, netns, wait_for
from packets import model, packet
from packets.families import CLUSTERS
from packets.loads import said
from packets.nack import refuse
from packets.node import CLUSTER, DEAD, HANDOVER_PORT, PEER_MAC, PUBLIC, PUBLIC6, WEB
from packets.packet import ACK, PSH

LATE_S = 120
BUILT = dict(handover_received=1, handover_rebuilt=1)
MS = 1000000


@pytest.fixture
def given(node, client):
    """(client, text, its request as a packet): a flow that n2 inspects, and gives to n1."""
    def make(at=node):
        c = client(owner=2, at=at)
        c.forge()
        text = c.get()
        return c, text, c.ip_packet(ACK | PSH, text)

    return make


def now_s():
    return time.time()


@contextmanager
def table(node):
    with node.tables() as found:
        yield found


@pytest.fixture
def old_node(node):
    """It has been there for long: whoever sends it something that is too old, its start is not the reason."""
    with table(node) as found:
        found.began(3600)
        yield node


def is_built(node, given, **fields):
    c, text, original = given()
    with node.counts(**BUILT):
        node.message(c.handover(original, **fields))
        c.sent(text)
        assert c.read(len(text)) == text


def is_refused(node, given, counter, **fields):
    c, _, original = given()
    with node.counts(**{counter: 1}):
        node.message(c.handover(original, **fields))
        c.silence()
    node.no_message()
    assert not node.sockets(c) and not node.pending(WEB)


class TestTime:
    @pytest.mark.parametrize("ago_s", [0, LATE_S - 5, -(LATE_S - 5)])
    def test_timely(self, old_node, given, ago_s):
        is_built(old_node, given, sent=now_s() - ago_s)

    @pytest.mark.parametrize("ago_s", [LATE_S + 5, -(LATE_S + 5), 3600, 86400, 1 << 23])
    def test_late(self, old_node, given, ago_s):
        is_refused(old_node, given, "handover_late", sent=now_s() - ago_s)

    def test_late_one_moves_no_window(self, node, given):
        """Or it would make those that follow seem old."""
        sequence = node.sequence + (1 << 20)
        is_refused(node, given, "handover_late", sent=now_s() - 3600, sequence=sequence)
        is_built(node, given)

    def test_after_a_new_start(self, own_node, given):
        """Its windows are empty; a request that was recorded is not executed once more."""
        node = own_node()
        c, text, original = given(node)
        recorded = c.handover(original, sent=now_s() - LATE_S - 5, sequence=node.sequence)
        node.earshot("stop")
        assert node.daemon.wait(10) == 0
        node.start()
        with node.counts(handover_late=1):
            node.message(recorded)
        assert not node.sockets(c) and not node.pending(WEB)

    def test_late_refusal(self, node, client):
        c = client(DEAD)
        c.shake()
        c.request(target=2)
        message = node.taken(2, model.REQUEST)
        with node.counts(handover_late=1):
            refuse(node, message, sent=now_s() - LATE_S - 5)
        node.no_message()

    def test_what_this_node_sends(self, node, client, given):
        """Its daemon's requests, its datapath's refusals, its loads."""
        c = client()
        c.shake()
        c.request(target=2)
        assert abs(node.taken(2, model.REQUEST).sent - now_s() % (1 << 24)) < 0.5
        c = client(DEAD, owner=2)
        c.forge()
        with node.counts(handover_received=1, handover_nacked=1):
            node.message(c.handover(c.ip_packet(ACK | PSH, c.get())))
        assert abs(node.taken(2, model.NACK).sent - now_s() % (1 << 24)) <= 2
        node.cluster.clear()
        wait_for(lambda: said(node, 0), "a datagram about loads")
        assert abs(said(node, 0)[-1].clock_ns - time.time_ns()) < 2000 * MS


class TestBegin:
    """A node whose windows are empty takes nothing that was sent before, by the sender's clock."""

    @pytest.fixture
    def begin(self, own_node, given, client):
        """begin(): a node that begins anew, and a request that it has had before, recorded a moment ago."""
        def make(**settings):
            node = own_node(**settings)
            c, text, original = given(node)
            recorded = c.handover(original)
            node.message(recorded)
            c.sent(text)
            assert c.read(len(text)) == text
            c.abort()
            wait_for(lambda: not node.sockets(c), "its end")
            return node, c, recorded
        return make

    @staticmethod
    def anew(node):
        node.earshot("stop")
        assert node.daemon.wait(10) == 0
        node.start(tells=False)

    @staticmethod
    def is_refused(node, c, recorded, counter="handover_early"):
        with node.counts(**{counter: 1}):
            node.message(recorded)
        node.no_message()
        assert not node.sockets(c) and not node.pending(WEB)

    def test_recorded(self, begin, given):
        """A moment ago."""
        node, c, recorded = begin()
        self.anew(node)
        node.hear(2, time.time_ns())
        self.is_refused(node, c, recorded)
        is_built(node, lambda: given(node))

    @pytest.mark.parametrize("ahead_s", [50, -50])
    def test_other_clock(self, begin, given, ahead_s):
        node, c, recorded = begin()
        self.anew(node)
        with table(node) as found:
            found.began(2)  # what seems to be behind is believed when the node itself must have been heard
            node.hear(2, time.time_ns() + ahead_s * 1000 * MS)
            recorded.sent = now_s() + ahead_s - 5
            self.is_refused(node, c, recorded)
            is_built(node, lambda: given(node), sent=now_s() + ahead_s - 1)
            is_built(node, lambda: given(node), sent=now_s() + ahead_s)

    def test_before_it_is_known(self, begin, given):
        """What time the sender has: nothing is taken; and if it never tells, it has this node's."""
        node, c, recorded = begin()
        self.anew(node)
        with table(node) as found:
            found.began(1)
            self.is_refused(node, c, recorded)
            c2, _, original = given(node)
            with node.counts(handover_early=1):
                node.message(c2.handover(original))
            found.began(3)
            recorded.sent = now_s() - 10
            self.is_refused(node, c, recorded)
            is_built(node, lambda: given(node))

    def test_recorded_clock(self, begin, given):
        """Its sequence number is as good as any after a start; but it is behind, and the node's own is not."""
        node, c, recorded = begin()
        self.anew(node)
        node.hear(2, time.time_ns() - 20000 * MS)
        recorded.sent = now_s() - 10
        self.is_refused(node, c, recorded)
        node.hear(2, time.time_ns())
        self.is_refused(node, c, recorded)
        is_built(node, lambda: given(node))

    def test_taken_over(self, begin, given):
        """The windows are kept with the datapath: nothing begins."""
        node, c, recorded = begin()
        sent = now_s()
        node.kill()
        node.start(tells=False)
        assert "took over" in node.log()
        self.is_refused(node, c, recorded, "handover_replayed")
        is_built(node, lambda: given(node), sent=sent)

    def test_tells_a_newcomer_at_once(self, own_node):
        """Who has not been heard lately may have begun just now."""
        node = own_node(tells=False)
        wait_for(lambda: said(node, 0), "a datagram about loads")
        wait_for(lambda: time.time_ns() - said(node, 0)[-1].clock_ns > 100 * MS, "none for a while")
        last = said(node, 0)[-1].sequence
        node.hear(2, time.time_ns())
        wait_for(lambda: said(node, last), "its answer")


class TestUntimed:
    """Of a version before the time was told: taken until all nodes tell it."""

    def test_until_all_tell(self, own_node, client):
        node = own_node(tells=False)
        with table(node) as found:
            found.began(3600)

        def given():
            c = client(owner=2, at=node)
            c.forge()
            text = c.get()
            return c, text, c.ip_packet(ACK | PSH, text)

        is_built(node, given, sent=0)
        node.hear(2, time.time_ns())
        is_built(node, given, sent=0)  # n3 has said nothing yet
        node.hear(3, 0)
        is_built(node, given, sent=0)
        node.hear(3, time.time_ns())
        is_refused(node, given, "handover_untimed", sent=0)
        is_built(node, given)
        # n2 goes back to the version before.
        node.hear(2, 0)
        is_built(node, given, sent=0)


class TestClocks:
    def test_wrong_one_is_found_and_avoided(self, own_node, client):
        """People are told, and nothing is given to the node, which would not take it."""
        node = own_node(tells=False)

        def clock(number):
            return node.ask("status")["nodes"][number - 1]["clock_ahead_ms"]

        assert (clock(1), clock(2), clock(3)) == (0, None, None)
        node.hear(2, time.time_ns() + 30000 * MS)
        node.hear(3, time.time_ns() - 500 * MS)
        assert abs(clock(2) - 30000) < 3000 and -4000 < clock(3) < 0
        assert "clock" not in node.log()
        node.hear(2, time.time_ns() - 90000 * MS)
        assert "node n2: its clock is -" in node.log()
        node.all_up()
        node.hear(2, time.time_ns() + 130000 * MS)
        assert [n["state"] for n in node.ask("status")["nodes"]] == ["up", "down", "up"]
        c = client(at=node)
        c.shake()
        text = c.get(target=2)
        c.request(text=text)
        assert c.read(len(text)) == text  # n1 inspects the flow, so it is the next one on the ring
        node.hear(2, time.time_ns())
        assert "node n2: its clock is right again" in node.log()


class TestAnotherInterface:
    """A machine may have more networks than those that the datapath is attached to. Its kernel takes what comes by any of them
    for any of its addresses."""

    TAP, TAP_MAC = "estap", "02:00:00:00:07:01"

    @pytest.fixture(name="tap")
    def _tap(self, node):
        fd = in_namespace(node.namespace, os.open, "/dev/net/tun", os.O_RDWR)
        try:
            in_namespace(node.namespace, fcntl.ioctl, fd, 0x400454CA, struct.pack("16sH22x", self.TAP.encode(), 0x1002))  # TUNSETIFF
            netns.ip_batch(node.namespace, [f"link set {self.TAP} address {self.TAP_MAC} up"])
            yield lambda frame: os.write(fd, frame)
        finally:
            os.close(fd)

    def test_loads(self, node, tap):
        """Authentic, fresh and the last one that was sent: as if somebody had kept it back."""
        node.hear(2, time.time_ns())
        loads = node.ask("status")["loads"]
        data = model.Loads(sequence=time.time_ns(), source=1, clock_ns=time.time_ns()).bytes(node.keys.handover[0])
        frame = packet.datagram(self.TAP_MAC, PEER_MAC[1], CLUSTER[1], CLUSTER[0], HANDOVER_PORT, HANDOVER_PORT, data)
        tap(frame)
        wait_for(lambda: node.ask("status")["loads"]["refused"] == loads["refused"] + 1, "a datagram that is refused")
        assert node.ask("status")["loads"]["received"] == loads["received"]
        node.loads(data, 2)  # it has not been heard yet
        wait_for(lambda: node.ask("status")["loads"]["received"] > loads["received"], "a datagram that is taken")


class TestPublicSide:
    """Messages come over the nodes' own network; on the clients' side, whoever sends one is no node."""

    @staticmethod
    def send(node, data, dport, sport=HANDOVER_PORT, **header):
        node.public.send(packet.datagram(node.mac, PEER_MAC[1], node.at[1], node.at[0], sport, dport, data, **header))

    @CLUSTERS
    def test_request(self, node, given, cluster_family):
        c, _, original = given()
        data = c.handover(original, source=1, sequence=node.sequence + 1).pack(node.keys.handover[0])
        # A fragment of IPv4 waits in the connection tracking for the rest.
        with node.counts(handover_public=1 if node.netfilter and cluster_family == 4 else 2):
            self.send(node, data, HANDOVER_PORT, 40000)
            self.send(node, data, HANDOVER_PORT, 40000, **packet.first_part(cluster_family))
        node.public.nothing(lambda f: f.icmp, "no answer")
        assert not node.sockets(c)

    @pytest.mark.parametrize("cluster_family", [6])
    @pytest.mark.parametrize("kind", [packet.HOP_BY_HOP, packet.OPTIONS, packet.ROUTING])
    def test_behind_headers(self, node, given, cluster_family, kind):
        """Of IPv6, behind one header that is walked over, and behind more than anybody walks over."""
        c, _, original = given()
        data = c.handover(original, source=1, sequence=node.sequence + 1).pack(node.keys.handover[0])
        with node.counts(handover_public=2):
            for count in (1, 5):
                self.send(node, data, HANDOVER_PORT, 40000, headers=[(kind, bytes(7))] * count)
        assert not node.sockets(c)

    def test_refusal(self, node, client):
        """Recorded, and sent again from where no window is."""
        node.all_up()
        c = client(DEAD)
        c.shake()
        c.request(target=2)
        message = node.taken(2, model.REQUEST)
        nack = refuse(node, message)
        node.taken(3)
        with node.counts(handover_public=1):
            self.send(node, nack.pack(node.keys.handover[0]), message.ports[0])
        node.no_message()
        node.all_up()

    @CLUSTERS
    def test_errors(self, node, cluster_family):
        """ICMP errors about messages, be they real ones: the nodes' own network tells the nodes of those."""
        kinds = [(3, 3), (3, 4), (4, 0), (5, 1), (11, 0), (12, 0)] if cluster_family == 4 else [(1, 4), (2, 0), (3, 0), (4, 0), (99, 0)]
        ways = [{}] if cluster_family == 4 else [{}, {"hops": 255}, {"headers": [(packet.OPTIONS, bytes(7))]}]
        messages = [(HANDOVER_PORT, HANDOVER_PORT), (40000, HANDOVER_PORT), (HANDOVER_PORT, 40000)]
        quoted = [self.quote(node, *ports) for ports in messages]
        if cluster_family == 4:
            quoted.append(self.quote(node, 40000, HANDOVER_PORT, options=bytes(4)))
        else:
            quoted.append(self.quote(node, 40000, HANDOVER_PORT, headers=[(packet.FRAGMENT, bytes(7))]))
        with node.counts(handover_public=len(kinds) * len(ways) * len(quoted)):
            for kind in kinds:
                for way in ways:
                    for packed in quoted:
                        self.error(node, *kind, packed, **way)
        if cluster_family == 4 and not node.netfilter:  # there, a part waits in the connection tracking for the rest
            with node.counts(handover_public=1):
                self.error(node, 3, 4, quoted[0][:8], frag=0x2000)

    @CLUSTERS
    def test_other_errors_pass(self, node, cluster_family):
        """About what else the node sends; and what is no error."""
        with node.counts():
            for quoted in (self.quote(node, 40000, 5405), self.quote(node, 53, 53), b"\xff" * 48, b""):
                for kind in ((3, 4), (11, 0)) if cluster_family == 4 else ((1, 4), (3, 0), (4, 0)):
                    self.error(node, *kind, quoted)
            self.error(node, 8 if cluster_family == 4 else 128, 0, self.quote(node, HANDOVER_PORT, HANDOVER_PORT),
                       "198.51.100.7" if cluster_family == 4 else "2001:db8:5133::7")
            assert node.public.take(lambda f: f.icmp and f.icmp.kind in (0, 129))

    @pytest.mark.parametrize("cluster_family", [4])
    def test_errors_where_one_network_is_for_all(self, make_node, cluster_family):
        """They may be a router's; whoever reads them does not believe them without a message."""
        with make_node() as node:
            node.one_interface()
            node.start()
            with node.counts():
                self.error(node, 3, 3, self.quote(node, 40000, HANDOVER_PORT))

    @staticmethod
    def quote(node, sport, dport, **header):
        """The begin of a datagram that the node has sent to n2."""
        return packet.datagram(PEER_MAC[1], node.mac, *node.at[:2], sport, dport, bytes(24), **header)[14:]

    @staticmethod
    def error(node, kind, code, quoted, src=None, **header):
        src, dst = src or node.at[1], node.at[0]
        if ":" in dst:
            frame = packet.eth(node.mac, PEER_MAC[1], packet.ETH_IP6, packet.ip6(
                src, dst, packet.ICMP6, packet.icmp6(src, dst, kind, code, bytes(4), quoted), **header))
        else:
            frame = packet.eth(node.mac, PEER_MAC[1], packet.ETH_IP, packet.ip(
                src, dst, packet.ICMP, packet.icmp(kind, code, bytes(4), quoted), **header))
        node.public.send(frame)

    @CLUSTERS
    def test_other_datagrams_pass(self, node, cluster_family):
        """To other ports, and to the node's public address, whatever the client's port is: the stack answers them."""
        public, src = (PUBLIC, "198.51.100.7") if cluster_family == 4 else (PUBLIC6, "2001:db8:5133::7")
        with node.counts():
            for dport, sport, dst in ((5000, 4000, node.at[0]), (5000, HANDOVER_PORT, public), (HANDOVER_PORT, 4000, public)):
                node.public.send(packet.datagram(node.mac, PEER_MAC[1], src, dst, sport, dport, b"hello"))
                assert node.public.take(lambda f: f.icmp).icmp.code == (3 if cluster_family == 4 else 4)


class TestReplay:
    """The window of sequence numbers, told by what is done with FOLLOWs of no connection."""
    FRESH = dict(handover_received=1, handover_follow_lost=1)
    STALE = dict(handover_replayed=1)

    @pytest.fixture
    def send(self, node, client):
        c = client(owner=2)
        c.forge()
        follow = c.ip_packet(ACK | PSH, b"more")
        node.sequence += 1 << 20

        def send(offset, counts, base=node.sequence, **fields):
            with node.counts(**counts):
                node.message(c.handover(follow, model.FOLLOW, sequence=base + offset, **fields))

        yield send
        node.sequence += 1 << 20

    def test_replayed(self, send):
        send(0, self.FRESH)
        send(0, self.STALE)
        send(1, self.FRESH)
        send(0, self.STALE)
        send(1, self.STALE)

    def test_reordered_within_the_window(self, send):
        for offset in (100, 50, 99, 0, 101, 63, 64):
            send(offset, self.FRESH)
        for offset in (100, 50, 99, 0, 101, 63, 64):
            send(offset, self.STALE)
        send(51, self.FRESH)

    def test_edge_of_the_window(self, send):
        send(5000, self.FRESH)
        send(5000 - model.REPLAY_WINDOW - 1, self.STALE)
        send(5000 - model.REPLAY_WINDOW, self.FRESH)
        send(5000 - model.REPLAY_WINDOW, self.STALE)
        send(0, self.STALE)

    def test_leap_forgets_nothing_that_is_still_in_the_window(self, send):
        send(0, self.FRESH)
        send(model.REPLAY_WINDOW, self.FRESH)
        send(0, self.STALE)
        send(1 << 18, self.FRESH)
        send(model.REPLAY_WINDOW, self.STALE)
        send((1 << 18) - 1, self.FRESH)

    def test_streams_and_sources_have_their_own(self, send):
        send(0, self.FRESH)
        send(0, self.FRESH, stream=3)
        send(0, self.STALE, stream=3)
        send(0, self.FRESH, source=2)
        send(0, self.STALE, source=2)

    def test_a_wrong_mac_does_not_move_the_window(self, send):
        send(1 << 19, dict(handover_bad_mac=1), mac=1)
        send(0, self.FRESH)

    @CLUSTERS
    def test_replayed_request(self, node, given):
        """Recorded on the wire and sent again: not one socket more."""
        c, text, original = given()
        message = node.message(c.handover(original))
        c.sent(text)
        assert c.read(len(text)) == text and node.sockets(c)
        c.abort()
        c.take("the RST")
        with node.counts(handover_replayed=1):
            node.message(message)
        assert not node.sockets(c)
