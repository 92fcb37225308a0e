# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that closes first leaves TIME_WAIT behind; the client's next connection must end it on every node."""
import pytest

from earshotlab import wait_for
from packets.client import LINUX, WINDOWS
from packets.established import served
from packets.families import BOTH
from packets.node import ESTABLISHED, TIME_WAIT, WEB
from packets.packet import ACK, FIN, PSH, RST

MASK = 0xFFFFFFFF


def ended(node, otherwise):
    """How a SYN is counted that ends the old socket. The netfilter datapath makes connections by a SYN of its own, which the kernel
    takes though that is there; and it leaves it alone until then."""
    return {otherwise if node.netfilter else "syn_time_wait": 1}


def grows(node, c, isn):
    """The next connection's number, as RFC 6528 has it: behind that of the one before, which was `isn`. Where its SYN ends the old
    socket, the kernel wants it so of clients without timestamps."""
    if node.netfilter and not c.offer.means.ts:
        c.isn = (isn + 100000) & MASK
        c.next = (c.isn + 1) & MASK


def old(node):
    """States of its socket behind such a SYN."""
    return [TIME_WAIT] if node.netfilter else []


def mine(client, offer=LINUX):
    """In TIME_WAIT, of a flow that n1 inspects."""
    c = client(offer=offer).serve()
    c.answer()
    c.time_wait()
    return c


def not_mine(node, client, offer=LINUX):
    """In TIME_WAIT here, while n2 inspects the flow."""
    c = served(node, client, 2, offer=offer)
    c.answer()
    c.time_wait()
    return c


@BOTH
@pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda o: o.name)
def test_syn_mine(node, client, offer):
    """The old socket is gone, the SYN is answered, and the next connection works."""
    c = mine(client, offer)
    isn = c.isn
    c.renew()
    grows(node, c, isn)
    node.slot()
    with node.counts(**ended(node, "syn_answered")):
        node.public.send(c.syn_frame())
        c.take_synack()
    c.silence("nothing but the SYN-ACK")
    assert node.sockets(c) == old(node)
    c.send(ACK)
    c.request()
    assert c.read(4) == b"GET "
    assert node.sockets(c) == [ESTABLISHED]
    assert c.answer()


@BOTH
@pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda o: o.name)
def test_syn_not_mine(node, client, offer):
    """Gone as well, and not a word: n2 answers."""
    c = not_mine(node, client, offer)
    c.renew()
    with node.counts(**ended(node, "drop_not_mine")):
        node.public.send(c.syn_frame())
        c.silence()
    assert node.sockets(c) == old(node)
    with node.counts(drop_not_mine=1):
        node.public.send(c.syn_frame())


def test_syn_with_an_older_isn(node, client):
    """What the kernel itself would not let reuse the port (RFC 6191)."""
    c = mine(client)
    isn = c.isn
    c.renew()
    c.isn = (isn - 100000) & MASK
    c.next = c.isn + 1
    with node.counts(**ended(node, "syn_answered")):
        node.public.send(c.syn_frame())
        c.take_synack()
    assert node.sockets(c) == old(node)
    if node.netfilter:  # where the socket must not be in the way
        c.request()
        assert c.read(4) == b"GET "


@BOTH
def test_syn_with_checksum_left_to_hardware(node, client):
    """One packet becomes an answer and a RST for our own stack; both must be whole."""
    c = mine(client)
    c.renew()
    with node.counts(**ended(node, "syn_answered")):
        node.public.send_partial(c.syn_frame(check="partial"))
        c.take_synack()
    assert node.sockets(c) == old(node)


@BOTH
@pytest.mark.parametrize("owner", [1, 2], ids=["mine", "not-mine"])
def test_retransmitted_fin(node, client, owner):
    """The last ACK was lost."""
    c = mine(client) if owner == 1 else not_mine(node, client)
    with node.counts(deliver_time_wait=not node.netfilter):  # which does not see it
        c.send(ACK | FIN, seq=c.fin_seq)
        again = c.take("the ACK again")
        assert (again.flags, again.seq, again.ack) == (ACK, c.ack, c.next)
    assert node.sockets(c) == [TIME_WAIT]


@BOTH
def test_anything_else(node, client):
    """As if there were no socket."""
    c = mine(client)
    c.ack = c.no_cookie(c.ack)
    # The old socket gets it, and has nothing to say, until the RST ends it; what has data then shows that nothing is here. What has no
    # flags, the kernel may drop as it drops bare acknowledgements (hears_again()).
    unseen = node.netfilter
    counted = dict(drop_no_flow=2, cookie_invalid=2, drop_bad_flags=1)
    if unseen:
        counted = dict(drop_no_flow={0, 1}, cookie_invalid={1, 2}, drop_bad_flags={0, 1})
    with node.counts(**counted):
        c.send(ACK)
        c.send(RST)
        c.send(ACK | PSH, b"old")
        c.send(ACK | FIN)  # not the old connection's
        c.send(0)
        c.silence()
    kept = [] if node.netfilter else [TIME_WAIT]  # the RST has ended it, as in any stack
    assert node.sockets(c) == kept
    c = not_mine(node, client)
    with node.counts(drop_not_mine=1 if unseen else 3):
        c.send(ACK)
        c.send(RST)
        c.send(ACK | PSH, b"old")
        c.silence()
    assert node.sockets(c) == kept


@BOTH
def test_keepalive_of_the_next_connection(node, client):
    """Its SYN was answered by a node that held no TIME_WAIT socket."""
    c = mine(client)
    before = c.next
    c.renew()
    c.forge()
    if node.netfilter:  # to the kernel, what has no data is the old connection's, whose answer says nothing to the client
        c.send(ACK, seq=c.isn)
        assert c.take("the old socket's ACK").ack == before
        return
    with node.counts(keepalive_answered=1, drop_handshake_ack=1):
        c.send(ACK)
        c.send(ACK, seq=c.isn)
        assert c.take("the keep-alive's ACK").ack == c.next


def requested(node, **counted):
    """How its first request is counted where the SYN was not heard."""
    return node.counts(request_queued=1, inspect_requests={1, 2}, inspect_kept={1, 2}, handover_rebuilt=1, **counted)


@BOTH
def test_request_of_the_next_connection(node, client):
    """Nobody here heard its SYN. The daemon's handover to this node ends the old socket and is tried again."""
    c = mine(client)
    c.renew()
    c.forge()
    text = c.get()
    again = dict(handover_received=1) if node.netfilter else dict(handover_received=3, handover_time_wait=1, handover_nack_received=1)
    with requested(node, **again):
        c.request(text=text)
        assert c.read(len(text)) == text
    assert node.sockets(c) == [ESTABLISHED]
    assert not node.pending(WEB)
    assert c.answer()


@BOTH
def test_request_of_the_next_connection_where_no_socket_is_left(node, client):
    """The connection tracking knows the one before for longer than its socket is there."""
    c = mine(client)
    c.send(RST)
    wait_for(lambda: not node.sockets(c) or not node.netfilter, "the end of the socket")  # BPF keeps it (test_anything_else())
    c.renew()
    c.forge()
    text = c.get()
    with requested(node, handover_received={1, 3}, handover_time_wait={0, 1}, handover_nack_received={0, 1}, drop_no_flow={0, 1}):
        c.request(text=text)
        assert c.read(len(text)) == text
    assert c.answer()


@BOTH
def test_anothers_next_connection(node, client):
    """The old socket, which would say what is nobody's business, hears nothing of it."""
    c = not_mine(node, client)
    c.renew()
    c.forge()
    with node.counts(drop_not_mine=1):
        c.send(ACK | PSH, b"GET /")
    with node.counts(drop_not_mine=1):
        c.send(ACK)  # the connection tracking has forgotten the old one
    c.silence()
    assert node.sockets(c) == [TIME_WAIT]
