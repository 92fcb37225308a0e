# SPDX-License-Identifier: GPL-2.0-or-later
"""A target refuses: the daemon sends the request elsewhere, from what is in the NACK alone."""
import pytest

from earshotlab import wait_for
from packets import model
from packets.nack import NACKED, handed_over, refuse
from packets.node import CLUSTER, DEAD, SERVICE_INDEX
from packets.packet import ACK, PSH, RST


@pytest.fixture(autouse=True)
def everybody_up(node):
    """A node that refused is left alone for a second; the next test must not find it so."""
    node.all_up()
    yield
    node.all_up()


def next_on_the_ring(node, c, *without):
    return next(n for n in (i + 1 for i in node.ring.walk(c.hash)) if n not in without)


@pytest.mark.parametrize("reason", [model.NACK_NO_LISTENER, model.NACK_REFUSED, model.NACK_SILENT])
def test_goes_elsewhere(node, client, reason):
    """To the next node of the flow's ring, with the very same packet; and a repeated request goes there too."""
    c, message = handed_over(node, client)
    with node.counts(inspect_nacks=1, inspect_requests=1, inspect_kept=1, handover_rebuilt=1, handover_nack_received=1,
                     handover_received=2):
        refuse(node, message, reason)
        assert next_on_the_ring(node, c, 2) == 1  # n1 inspects the flow, so it is the first one of the walk
        text = message.packet[52:]
        assert c.read(len(text)) == text
    assert c.answer()


def test_goes_elsewhere_then_to_another_one(node, client):
    """Service without a server here either: n1 refuses itself, and n3 gets the request."""
    c = client(DEAD)
    c.shake()
    c.request(target=2)
    message = node.taken(2, model.REQUEST)
    with node.counts(inspect_nacks=2, inspect_requests=2, inspect_kept=1, inspect_handovers=1, handover_nacked=1,
                     handover_received=2, handover_nack_received=1, own_nack_received=1):
        refuse(node, message)
        second = node.taken(3, model.REQUEST)
        c.silence()
    assert second.packet == message.packet
    assert second.attempt == 2
    for name in ("mss", "snd_wscale", "rcv_wscale", "flags", "service"):
        assert getattr(second, name) == getattr(message, name), name
    repeated = c.send(ACK | PSH, message.packet[52:], seq=c.isn + 1)
    assert node.taken(3).packet == repeated


def test_nobody_serves(node, client):
    """The client is told, not left in silence."""
    c = client(DEAD)
    c.shake()
    c.request(target=2)
    refuse(node, node.taken(2))
    last = node.taken(3)  # n1 has refused as well
    with node.counts(inspect_nacks=1, inspect_no_target=1, handover_received=1, handover_nack_received=1):
        refuse(node, last)
        reset = c.take("the RST")
        assert reset.flags & RST and reset.seq == c.ack
    assert not node.sockets(c)


def test_own_node_has_no_server(node, client):
    """n1 refuses its own handover, over lo."""
    c = client(DEAD)
    c.shake()
    with node.counts(request_queued=1, inspect_requests=2, inspect_kept=1, inspect_handovers=1, inspect_nacks=1,
                     handover_received=1, handover_nacked=1, own_nack_received=1):
        sent = c.request(target=1)
        elsewhere = next_on_the_ring(node, c, 1)
        message = node.taken(elsewhere)
    assert (message.packet, message.attempt) == (sent, 1)
    assert message.service == SERVICE_INDEX[DEAD]


def test_retry(node, client):
    """An old socket was in the way there, and is gone now: the same node again, without a mark against it."""
    _, message = handed_over(node, client)
    with node.counts(inspect_requests={0, 1}, inspect_handovers={0, 1}, **NACKED):
        refuse(node, message, model.NACK_RETRY)
        second = node.taken(2, model.REQUEST)
    assert (second.packet, second.attempt) == (message.packet, 1)
    assert all(n["state"] == "up" for n in node.ask("status")["nodes"])


def once_more(node):
    """The request for n2 again, or None if n2 is left alone now; the worker reads a NACK in its own time."""
    def happened():
        if any(n["state"] == "down" for n in node.ask("status")["nodes"]):
            return [None]
        asked = node.cluster.all(lambda f: f.udp and f.ip.dst == CLUSTER[1] and f.udp.payload[5] == model.REQUEST)
        return [node.parsed(f, 2) for f in asked]

    return wait_for(happened, "the request again, or a node that is left alone")[0]


def test_retry_without_end(node, client):
    """A node that asks for it again and again is left alone: another one serves."""
    c, message = handed_over(node, client)
    for _ in range(100):
        refuse(node, message, model.NACK_RETRY, attempt=message.attempt)
        following = once_more(node)
        if not following:
            break
        message = following
    assert 8 < message.attempt < 64
    text = message.packet[52:]
    assert next_on_the_ring(node, c, 2) == 1
    assert c.read(len(text)) == text


def test_options_come_back(node, client):
    """The NACK is all that the daemon knows of the flow: it need not remember."""
    _, message = handed_over(node, client, 2, DEAD)
    refuse(node, message, mss=1300, snd_wscale=5, rcv_wscale=3, flags=0x0B)
    second = node.taken(3)
    assert (second.mss, second.snd_wscale, second.rcv_wscale, second.flags) == (1300, 5, 3, 0x0B)


class TestNotANack:
    """Nothing may come of these."""

    def nothing(self, node, client, counts, **fields):
        c, message = handed_over(node, client)
        with node.counts(**counts):
            refuse(node, message, **fields)
            c.silence()
        node.no_message()
        assert not node.sockets(c)

    def test_wrong_mac(self, node, client):
        self.nothing(node, client, dict(handover_bad_mac=1), mac=99)

    def test_for_another_node(self, node, client):
        self.nothing(node, client, dict(handover_wrong_target=1), target=2)

    def test_source_that_is_no_node(self, node, client):
        c, message = handed_over(node, client)
        sent = message.target + 1
        message.target = 77
        with node.counts(**NACKED, inspect_nack_bad=1):
            refuse(node, message, source=sent)
        node.no_message()
        assert not node.sockets(c)

    def test_replayed(self, node, client):
        c, message = handed_over(node, client, 2, DEAD)
        nack = refuse(node, message)
        node.taken(3)
        with node.counts(handover_replayed=1):
            refuse(node, message, sequence=nack.sequence)
        node.no_message()
        assert not node.sockets(c)

    @pytest.mark.parametrize("inner", [b"", b"\x45" + bytes(39), b"x" * 60])
    def test_packet_that_is_none(self, node, client, inner):
        self.nothing(node, client, dict(NACKED, inspect_nack_bad=1), packet=inner, packet_len=len(inner))
