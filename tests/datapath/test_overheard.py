# SPDX-License-Identifier: GPL-2.0-or-later
"""Without timestamps, one in some thousand segments of an upload, or acknowledgments of a download, looks like a first one:
its acknowledgment is the cookie of the ISN that it would prove. A node that was there believes it only if it has heard that SYN.

A handshake that was forged, and not sent, is such a segment."""
import pytest

from earshotlab import wait_for
from packets import model, tables
from packets.client import LINUX, PLAIN, WINDOWS
from packets.node import BLIND, EACH, SLOT_S, WEB
from packets.packet import ACK, FIN, PSH, RST

without_timestamps = pytest.mark.parametrize("offer", [WINDOWS, PLAIN], ids=lambda offer: offer.name)
LIFE_S = SLOT_S * (model.SLOTS_VALID + 1)
WAYS = 4  # ES_DECISION_WAYS
# What the inspector does with a segment behind a first one that does not come.
GIVEN_UP = dict(request_later_queued=1, inspect_gather_forgotten=1)


@pytest.fixture
def ears(node):
    """The tables of a node that has listened for longer than a cookie lives."""
    with node.tables() as found:
        found.hears(LIFE_S + 1)
        yield found


def unheard(client, *arguments, **keywords):
    """A connection that another node has; what its client sends next looks like a first segment, by chance."""
    c = client(*arguments, **keywords)
    c.forge()
    return c


@without_timestamps
@pytest.mark.parametrize("service", [WEB, EACH])
def test_later_segment_is_no_first_one(node, client, ears, service, offer):
    c = unheard(client, service, offer=offer)
    with node.counts(**GIVEN_UP):
        c.request(target=2)
        c.silence()
    node.no_message()
    assert not node.sockets(c)


@without_timestamps
def test_later_segment_of_what_is_not_inspected(node, client, ears, offer):
    c = unheard(client, BLIND, offer=offer)
    with node.counts(drop_no_flow=1):
        c.request()
        c.silence()
    assert not node.sockets(c)


@without_timestamps
def test_fin_and_acknowledgment(node, client, ears, offer):
    """Neither a RST nor an acknowledgment: the one would end, the other confuse what another node has."""
    c = unheard(client, BLIND, offer=offer)
    with node.counts(drop_no_flow=1, drop_handshake_ack=1):
        c.send(ACK | FIN)
        c.send(ACK, seq=c.isn)
        c.silence()


@without_timestamps
@pytest.mark.parametrize("since_s", [1, LIFE_S + 1], ids=["hears-anew", "hears"])
def test_expired(node, client, ears, offer, since_s):
    """A connection as old as the cookies' lifetime: an upload on another node goes on, and so does a download."""
    ears.hears(since_s)
    c = client(offer=offer)
    c.forge(slot=node.slot() - 3)
    with node.counts(cookie_invalid=2, drop_no_flow=1):
        c.send(ACK, b"x" * 1000)
        c.send(ACK | FIN)
        c.send(ACK, seq=c.isn)
        c.silence()


@without_timestamps
def test_expired_and_heard(node, client, ears, offer):
    """Its client has waited too long, and is told so; not for a bare acknowledgment, though."""
    c = client(offer=offer)
    node.public.send(c.syn_frame())
    c.take_synack()
    c.forge(slot=node.slot() - 3)
    with node.counts(drop_no_flow=1, cookie_expired=1):
        c.send(ACK, seq=c.isn)
        c.silence()
        c.request()
        assert c.take("the RST").flags == RST


@without_timestamps
@pytest.mark.parametrize("service", [WEB, BLIND, EACH])
def test_first_request(node, client, ears, service, offer):
    client(service, offer=offer).serve().answer()


@without_timestamps
def test_probe_before_the_first_request(node, client, ears, offer):
    c = client(offer=offer).shake()
    node.hears_again()
    c.send(ACK, seq=c.isn)
    assert c.take("the answer to the probe").ack == c.next


@without_timestamps
def test_syn_that_another_node_answered(node, client, ears, offer):
    """The ring changes between SYN and request."""
    c = client(offer=offer)
    ears.give(c.hash, 2)
    with node.counts(drop_not_mine=1):
        node.public.send(c.syn_frame())
        c.silence()
    ears.give(c.hash, 1)
    c.forge()
    text = c.get()
    c.request(text=text)
    assert c.read(len(text)) == text


@without_timestamps
def test_another_connection_of_the_flow(node, client, ears, offer):
    """It is the ISN that must have been heard, not just the ports."""
    c = client(offer=offer).shake()
    c.renew()
    c.forge()
    with node.counts(**GIVEN_UP):
        c.request(target=2)
        c.silence()
    node.no_message()


def test_timestamps_prove_enough(node, client, ears):
    c = unheard(client, offer=LINUX)
    text = c.get()
    c.request(text=text)
    assert c.read(len(text)) == text


def test_a_node_says_since_when_it_hears(own_node):
    """It begins when it is attached; a daemon that starts again has not missed anything, but where it is the datapath."""
    node = own_node()
    with node.tables() as found:
        begun = found.state.hears_ns
        assert begun and found.state.heard_slot_s == SLOT_S
        node.kill()
        node.start()
        assert found.state.hears_ns > begun if node.netfilter else found.state.hears_ns == begun


def test_decision_that_is_forgotten_early(make_node, client):
    """An upload whose request's decision had to make room: none of its segments makes a second connection."""
    with make_node() as node:
        with open(node.config_path, encoding="ascii") as handle:
            text = handle.read()
        with open(node.config_path, "w", encoding="ascii") as handle:
            handle.write(text.replace("workers = 1", "workers = 1 decision_entries = 1024"))
        node.start()
        c = client(at=node, offer=WINDOWS).shake()
        head = f"POST {node.uri(2)} HTTP/1.1\r\nHost: test\r\nContent-Length: 100000000\r\n\r\n".encode()
        c.request(text=head)
        node.taken(2, model.REQUEST)
        others = 0
        while others < WAYS:
            place = node.place(WEB, 1)
            if place[2] >> 20 & (1024 // WAYS - 1) == c.hash >> 20 & (1024 // WAYS - 1):
                client(at=node, place=place).shake().request(target=2)
                node.taken(2, model.REQUEST)
                others += 1
        assert node.counters()["inspect_decisions_early"] == 1
        # One of about 2,048 segments has an ISN tag like the first one's.
        cookie, mac = c.cookie, model.cookie
        seq = next(s for s in range(c.next, c.next + (1 << 26), 1000)
                   if mac(node.keys.cookie[0], c.hash, node.slot(), s - 1 & 0xFFFFFFFF, c.offer.means)[0] == cookie)
        with node.tables() as found:
            found.hears(LIFE_S + 1)
            with node.counts(**GIVEN_UP):
                c.send(ACK, b"x" * 1000, seq=seq)
                c.silence()
        assert not node.sockets(c)


class TestManyGuesses:
    """While many segments come that would be first requests, had they a cookie of ours, a node that has not listened for
    long believes no cookie alone."""
    NEITHER = dict(request_unheard=1, inspect_gather_forgotten=1)

    @pytest.fixture(autouse=True)
    def _hears_anew(self, ears):
        ears.hears(1)
        ears.guess(0)
        yield
        ears.guess(0)

    @staticmethod
    def flood(node, client):
        """More than a second may have, though they fall into two; from one flow."""
        c = client(offer=PLAIN)
        c.forge()
        frames = [c.frame(ACK, b"x", ack=c.no_cookie(c.ack + 4 * n)) for n in range(1, 2 * tables.GUESSES_MAX + 3)]
        for first in range(0, len(frames), 200):
            for frame in frames[first:first + 200]:
                node.public.send(frame)
            node.settle()
        return len(frames)

    def test_flood(self, node, client, ears):
        """Beyond the rate, and until it is over."""
        c = unheard(client, offer=WINDOWS)
        before = node.counters()["cookie_invalid"]
        count = self.flood(node, client)
        assert ears.many_guesses()
        text = c.get()
        c.send(ACK | PSH, text)
        node.settle()
        assert node.counters()["cookie_invalid"] == before + count
        assert not node.sockets(c)
        wait_for(lambda: not ears.many_guesses(), "the end of the flood")

    def test_what_is_a_guess(self, node, client, ears):
        """Timestamps, a request that was decided, a bare acknowledgment: not these."""
        with node.counts(cookie_invalid=1):
            c = client(offer=LINUX)
            c.forge()
            c.send(ACK, b"x", ack=c.no_cookie(c.ack + 4))
        assert not ears.guesses()
        c = client(offer=WINDOWS)
        c.forge()
        with node.counts(cookie_invalid=1, drop_no_flow=1):
            c.send(ACK, ack=c.no_cookie(c.ack + 4))
            node.settle()
            assert not ears.guesses()
            c.send(ACK, b"x", ack=c.no_cookie(c.ack + 4))
        assert ears.guesses() == 1

    @without_timestamps
    @pytest.mark.parametrize("service", [WEB, EACH])
    def test_unheard(self, node, client, ears, service, offer):
        c = unheard(client, service, offer=offer)
        ears.guess()
        with node.counts(**self.NEITHER):
            c.request(target=2)
            c.silence()
        node.no_message()
        assert not node.sockets(c)

    @without_timestamps
    def test_what_is_not_inspected(self, node, client, ears, offer):
        c = unheard(client, BLIND, offer=offer)
        ears.guess()
        with node.counts(request_unheard=1):
            c.request()
            c.silence()
        assert not node.sockets(c)

    @without_timestamps
    @pytest.mark.parametrize("service", [WEB, BLIND, EACH])
    def test_heard(self, node, client, ears, service, offer):
        """Who has shaken hands since this node listens is served as ever."""
        ears.guess()
        client(service, offer=offer).serve().answer()

    def test_timestamps(self, node, client, ears):
        c = unheard(client, offer=LINUX)
        ears.guess()
        text = c.get()
        c.request(text=text)
        assert c.read(len(text)) == text

    def test_believed_before(self, node, client, ears):
        """A request that was taken for one comes again, since its target has not got it."""
        c = client(offer=WINDOWS).shake()
        text = c.get(target=2)
        sent = c.send(ACK | PSH, text)
        node.taken(2, model.REQUEST)
        ears.hears(1)  # its SYN is not found any more
        ears.guess()
        c.send(ACK | PSH, text)
        assert node.taken(2, model.REQUEST).packet == sent
