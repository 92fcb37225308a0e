# SPDX-License-Identifier: GPL-2.0-or-later
"""A node that has not listened for as long as cookies live. Of a client without timestamps, a segment that would be a first
request, had this node heard its SYN, may as well be a later one of a connection that another node has. All are asked whose
it is, as about any that nobody takes, before it is believed."""
import pytest

from earshotlab import wait_for
from packets import model
from packets.client import LINUX, PLAIN, WINDOWS
from packets.families import BOTH
from packets.leases import OK
from packets.nack import refuse
from packets.node import BLIND, EACH, SLOT_S, WEB
from packets.packet import ACK, FIN, PSH, RST
from packets.strays import OTHERS, lets_pass, told

LIFE_S = SLOT_S * (model.SLOTS_VALID + 1)
FORGOTTEN = dict(inspect_gather_forgotten={0, 1})
without_timestamps = pytest.mark.parametrize("offer", [WINDOWS, PLAIN], ids=lambda offer: offer.name)
each_service = pytest.mark.parametrize("service", [WEB, EACH, BLIND])


@pytest.fixture(autouse=True)
def world(node):
    """It began to listen a second ago."""
    with node.tables() as found:
        found.hears(1)
        yield found


def earlier(client, *arguments, **keywords):
    """A connection whose SYN only others have heard."""
    c = client(*arguments, **keywords)
    c.forge()
    return c


def comes_again(c, flags, text):
    """The client sends, and again when nobody has acknowledged it."""
    with c.node.counts(request_unheard=2, **FORGOTTEN):
        c.send(flags, text)
        c.send(flags, text)
        c.silence()
        c.node.no_message()
        lets_pass(model.STRAY_AGAIN_S)
    c.send(flags, text)


def says_no(node, target):
    refuse(node, node.taken(target, model.STRAY), model.NACK_NOT_HERE)


def is_nobodys(c, flags, text):
    """All have said that they do not have it."""
    node = c.node
    comes_again(c, flags, text)
    before = node.counters()
    answers = 6 if node.netfilter else 4  # its own among them, or not
    for target in OTHERS * 2:
        says_no(node, target)
    wait_for(lambda: node.counters()["stray_answered"] >= before["stray_answered"] + answers, "the last answer",
             seen=node.counters)
    c.silence()
    assert node.counters()["inspect_stray_resets"] == before["inspect_stray_resets"]
    lets_pass(model.STRAY_AGAIN_S)


def post(c):
    return b"POST" + c.get(2, extra="Content-Length: 4\r\n")[3:] + b"id=1"


@BOTH
@without_timestamps
@each_service
def test_what_another_node_has(node, client, service, offer):
    """The next request on its connection, by whose number chance makes a first one of it. Its node has executed it."""
    c = earlier(client, service, offer=offer)
    comes_again(c, ACK | PSH, post(c))
    refuse(node, node.taken(2, model.STRAY), model.NACK_HERE)
    node.no_message()
    lets_pass(model.STRAY_AGAIN_S)
    c.send(ACK | PSH, post(c))
    refuse(node, node.taken(2, model.STRAY), model.NACK_HERE)
    node.no_message()
    c.silence()
    assert not node.sockets(c)


@BOTH
@without_timestamps
@pytest.mark.parametrize("service", [WEB, EACH])
def test_what_nobody_has(node, client, service, offer):
    c = earlier(client, service, offer=offer)
    text = post(c)
    is_nobodys(c, ACK | PSH, text)
    with node.counts(stray_queued=1, inspect_earlier=1, inspect_requests=1, inspect_handovers=1):
        sent = c.send(ACK | PSH, text)
        assert node.taken(2, model.REQUEST).packet == sent
    with node.counts(request_queued=1, inspect_repeated=1):
        c.send(ACK | PSH, text)
        assert node.taken(2, model.REQUEST).packet == sent


@BOTH
@without_timestamps
@each_service
def test_the_server_here_gets_it(node, client, service, offer):
    c = earlier(client, service, offer=offer)
    text = c.get()
    is_nobodys(c, ACK | PSH, text)
    c.request(text=text)
    assert c.read(len(text)) == text
    c.answer(OK)
    c.request(text=text)
    assert c.read(len(text)) == text


def test_head_in_two_segments(node, client):
    c = earlier(client, offer=WINDOWS)
    text = c.get()
    is_nobodys(c, ACK, text[:20])
    c.send(ACK, text[:20])
    c.send(ACK | PSH, text[20:], seq=c.next + 20)
    c.sent(text)
    assert c.read(len(text)) == text


@each_service
def test_one_byte(node, client, service):
    """It may be a probe of what another node has; or somebody types."""
    c = earlier(client, service, offer=WINDOWS)
    is_nobodys(c, ACK | PSH, b"G")
    c.request(text=b"G")
    assert c.read(1) == b"G"


@each_service
def test_fin(node, client, service):
    """A connection that ends without a request. If another node has it, this one must not acknowledge what that has not got."""
    c = earlier(client, service, offer=WINDOWS)
    is_nobodys(c, ACK | FIN, b"")
    c.send(ACK | FIN)
    assert c.take("the acknowledgement of the FIN").ack == c.next + 1


def test_handshake_of_what_is_not_inspected(node, client):
    """Its bare acknowledgment may be one that another node is sent; the client's first bytes are asked about."""
    c = earlier(client, BLIND, offer=WINDOWS)
    with node.counts(request_unheard=1):
        c.send(ACK)
        c.silence()
    assert not node.sockets(c)


def test_other_segment_than_asked_about(node, client):
    """It is one segment that is nobody's. Another that looks like a first one is not that one."""
    c = earlier(client, offer=WINDOWS)
    text = c.get()
    is_nobodys(c, ACK | PSH, text)
    slot = model.named_slot(node.slot(), c.cookie)  # the one now may be the next one
    c.next = next(s for s in range(c.next + 1000, c.next + (1 << 26), 1000)
                  if model.cookie(node.keys.cookie[0], c.hash, slot, s - 1 & 0xFFFFFFFF, c.offer.means)[0] == c.cookie)
    comes_again(c, ACK | PSH, text)
    refuse(node, node.taken(2, model.STRAY), model.NACK_HERE)
    assert not node.sockets(c)


def test_ring_that_changes_meanwhile(node, client):
    """Another node has inspected its slot since: what all have said is no news."""
    c = earlier(client, offer=WINDOWS)
    text = c.get(2)
    is_nobodys(c, ACK | PSH, text)
    node.reload()
    c.send(ACK | PSH, text)
    node.taken(2, model.STRAY)


class TestDoubts:
    """A node was lost, which may have executed it."""

    @pytest.fixture
    def lost(self, node):
        with node.leased() as found:
            found.hears(1)
            found.doubt(100)
            yield found

    @pytest.mark.parametrize("service", [WEB, EACH])
    def test_what_another_node_has(self, node, client, lost, service):
        """No RST for what goes on there."""
        c = earlier(client, service, offer=WINDOWS)
        comes_again(c, ACK | PSH, post(c))
        refuse(node, node.taken(2, model.STRAY), model.NACK_HERE)
        node.no_message()
        c.silence()

    @pytest.mark.parametrize("service", [WEB, EACH])
    def test_what_nobody_has(self, node, client, lost, service):
        c = earlier(client, service, offer=WINDOWS)
        is_nobodys(c, ACK | PSH, post(c))
        with node.counts(stray_queued=1, inspect_earlier=1, inspect_doubtful=1):
            c.send(ACK | PSH, post(c))
            told(c)
        assert not node.sockets(c)

    def test_what_is_safe(self, node, client, lost):
        c = earlier(client, offer=WINDOWS)
        text = c.get()
        is_nobodys(c, ACK | PSH, text)
        c.request(text=text)
        assert c.read(len(text)) == text


@pytest.mark.parametrize("offer", [LINUX, WINDOWS, PLAIN], ids=lambda offer: offer.name)
@each_service
def test_new_connections_do_not_wait(node, client, service, offer):
    """This node hears their SYNs."""
    before = node.counters()
    client(service, offer=offer).serve().answer()
    after = node.counters()
    assert [after[name] - before[name] for name in ("stray_queued", "request_unheard")] == [0, 0]


def test_timestamps_prove_enough(node, client):
    c = earlier(client, offer=LINUX)
    text = c.get()
    c.request(text=text)
    assert c.read(len(text)) == text


def test_who_has_listened_for_long_asks_later(node, client, world):
    """All SYNs were heard, so it is no first request. There may have been one before it, which is on its way."""
    world.hears(LIFE_S + 1)
    c = earlier(client, offer=WINDOWS)
    with node.counts(request_later_queued=3, inspect_gather_forgotten={0, 1, 2}):
        c.send(ACK | PSH, post(c))
        lets_pass(model.STRAY_AGAIN_S)
        c.send(ACK | PSH, post(c))
        c.send(ACK | PSH, post(c))
    node.no_message()


def test_too_many_guess(node, client, world):
    """Then no cookie alone is believed, whatever the others say."""
    c = earlier(client, offer=WINDOWS)
    c.send(ACK | PSH, post(c))
    for _ in range(6):
        lets_pass(model.STRAY_AGAIN_LATER_S / 6)
        world.guess()
    node.no_message()
    c.send(ACK | PSH, post(c))
    for target in OTHERS * 2:
        says_no(node, target)
    assert c.take("a RST").flags == RST
    world.guess(0)
