# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that closes first leaves TIME_WAIT behind; the client's next connection must end it on every node."""
import signal

import pytest

from earshotlab import wait_for
from packets.client import LINUX, WINDOWS
from packets.established import served
from packets.families import BOTH
from packets.node import ESTABLISHED, FIN_WAIT2, TIME_WAIT, WEB
from packets.packet import ACK, FIN, PSH, RST

MASK = 0xFFFFFFFF


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
    c.renew()
    node.slot()
    with node.counts(syn_time_wait=1):
        node.public.send(c.syn_frame())
        c.take_synack()
    c.silence("nothing but the SYN-ACK")
    assert node.sockets(c) == []
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
    with node.counts(syn_time_wait=1):
        node.public.send(c.syn_frame())
        c.silence()
    assert node.sockets(c) == []
    with node.counts(drop_not_mine=1):
        node.public.send(c.syn_frame())


def renew_earlier(c):
    """The next connection of these ports has numbers before those of the one before, as of another client behind the same address."""
    isn = c.isn
    c.renew()
    c.isn = (isn - 100000) & MASK
    c.next = (c.isn + 1) & MASK


@BOTH
@pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda o: o.name)
def test_syn_with_an_older_isn(node, client, offer):
    """What the kernel itself would not let reuse the port (RFC 6191)."""
    c = mine(client, offer)
    renew_earlier(c)
    node.slot()
    with node.counts(syn_time_wait=1):
        node.public.send(c.syn_frame())
        c.take_synack()
    assert node.sockets(c) == []
    c.request()
    assert c.read(4) == b"GET "


@BOTH
def test_syn_of_a_client_that_has_not_closed(node, client):
    """The server has, and nobody has its socket any more: it waits for the client's FIN in FIN_WAIT2, and does not answer the SYN."""
    c = client().serve()
    c.answer()
    c.server.close()
    c.server = None
    c.take_fin()
    c.send(ACK)
    wait_for(lambda: node.sockets(c) == [FIN_WAIT2], "the client's FIN is waited for", seen=lambda: node.sockets(c))
    renew_earlier(c)
    with node.counts(syn_time_wait=1):
        node.public.send(c.syn_frame())
        c.take_synack()
    c.silence("nothing but the SYN-ACK")
    assert node.sockets(c) == []
    c.request()
    assert c.read(4) == b"GET "


@BOTH
def test_syn_with_checksum_left_to_hardware(node, client):
    """One packet becomes an answer and a RST for our own stack; both must be whole."""
    c = mine(client)
    c.renew()
    with node.counts(syn_time_wait=1):
        node.public.send_partial(c.syn_frame(check="partial"))
        c.take_synack()
    assert node.sockets(c) == []


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
def test_last_acknowledgement_with_options(node, client):
    """It says that the server's FIN has come twice. With no daemon to look at it, it is heard at once: behind the client's FIN it would be
    answered once more, and the client's RST would end TIME_WAIT."""
    c = client().serve()
    c.answer()
    c.server.close()
    c.server = None
    fin = c.take_fin()
    node.freeze()
    try:
        c.send(ACK, options=c.options() + b"\1\1\5\x0a" + fin.seq.to_bytes(4, "big") + c.ack.to_bytes(4, "big"))
        c.fin_seq = c.next
        c.send(ACK | FIN)
        c.next = (c.next + 1) & MASK
        assert c.take("the ACK of the FIN").ack == c.next
    finally:
        node.signal(signal.SIGCONT)
    c.silence("no other answer")
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
@pytest.mark.parametrize("renew", [lambda c: c.renew(), renew_earlier], ids=["later", "earlier"])
def test_request_of_the_next_connection(node, client, renew):
    """Nobody here heard its SYN. The daemon's handover to this node ends the old socket and is tried again."""
    c = mine(client)
    renew(c)
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
