# SPDX-License-Identifier: GPL-2.0-or-later
"""A connection that the stack has ended with a RST, which the client has not got: it is told again, by this node alone."""
import subprocess

import pytest

from packets.established import OWNERS, served
from packets.model import RESET_UNDER_WAY
from packets.families import BOTH
from packets.node import BLIND, EACH, MSS, WEB
from packets.packet import ACK, FIN, PSH, RST, SYN

MASK = 0xFFFFFFFF


def reset(c):
    """The server ends the connection; the RST is lost."""
    c.abort()
    segment = c.take("the server's RST")
    while not segment.flags & RST:
        segment = c.take("the server's RST")
    assert not c.node.sockets(c)
    c.node.hears_again()
    return segment


def told(c, *arguments, **keywords):
    """The client's segment is answered as a stack without the connection does (RFC 9293 section 3.10.7.1)."""
    with c.node.counts(reset_repeated=1):
        c.send(*arguments, **keywords)
        again = c.take("another RST")
        assert (again.flags, again.seq, again.payload) == (RST, keywords.get("ack", c.ack), b"")
    c.silence("one RST")


@BOTH
@OWNERS
def test_told_again(node, client, owner):
    """Whatever the client says, and as often as it says it."""
    c = served(node, client, owner)
    c.answer()
    reset(c)
    for _ in range(3):
        told(c, ACK)
        told(c, ACK | PSH, c.get())
        told(c, ACK | FIN)


@BOTH
@OWNERS
def test_response_incomplete(node, client, owner):
    """The RST has overtaken what was sent before it: the client asks (RFC 5961 section 3.2) with what it has got."""
    c = served(node, client, owner)
    c.server.sendall(b"x" * 4 * MSS)
    last = reset(c)
    assert last.seq != c.ack
    told(c, ACK)
    told(c, ACK, ack=(c.ack + MSS) & MASK)


@BOTH
@pytest.mark.parametrize("service", [WEB, BLIND, EACH])
def test_first_request_again(node, client, service):
    """Ended without an answer: the server is not asked once more."""
    c = client(service).serve()
    reset(c)
    first = c.isn + 1
    told(c, ACK | PSH, b"GET / HTTP/1.1\r\n\r\n", seq=first & MASK)
    assert node.pending(service) == 0


@BOTH
def test_reset_by_the_stack(node, client):
    """The server has closed, and the client goes on to send: nobody can take that any more."""
    c = client().serve()
    c.answer()
    c.server.close()
    c.server = None
    c.take_fin()
    c.send(ACK)
    node.settle()
    text = c.get()
    c.send(ACK | PSH, text)
    assert c.take("the stack's RST").flags & RST
    node.hears_again()
    told(c, ACK | PSH, text)
    told(c, ACK, ack=(c.ack + RESET_UNDER_WAY) & MASK)
    c.send(ACK, ack=(c.ack + RESET_UNDER_WAY + 1) & MASK)
    c.send(ACK, ack=(c.ack - 1) & MASK)
    c.silence()


@pytest.mark.parametrize("family", [6])
@pytest.mark.no_netfilter("the rule refuses the handshake's own SYN, and its answer is translated")
@pytest.mark.bpf("the module is told for whom the stack sends a RST, and this is for nobody")
def test_reset_of_no_socket(node, client):
    """Before 6.13, Linux sends so all that answers a segment by IPv6; a rule does it with every kernel."""
    c = client(BLIND)
    c.forge()
    text = c.get()
    nft = ["ip", "netns", "exec", node.namespace, "nft"]
    subprocess.run([*nft, "-f", "-"], check=True, text=True, input="table inet t { chain in { type filter hook input priority 0;\n"
                   f"tcp dport {BLIND} reject with tcp reset\n }}\n }}")
    try:
        c.send(ACK | PSH, text)
        assert c.take("the RST").flags & RST
    finally:
        subprocess.run([*nft, "delete", "table", "inet", "t"], check=True)
    told(c, ACK | PSH, text)


def test_no_answer_to_a_reset(node, client):
    c = client().serve()
    c.answer()
    reset(c)
    with node.counts(drop_no_flow=1, drop_bad_flags=2):
        c.send(RST)
        c.send(0)
        c.send(SYN | ACK)
        c.silence()


@BOTH
@OWNERS
def test_the_next_connection(node, client, owner):
    """Once the client begins anew, nothing is said of the connection before."""
    c = served(node, client, owner)
    c.answer()
    reset(c)
    told(c, ACK)
    old = c.next, c.ack
    c.renew()
    with node.counts(**{"syn_answered" if owner == 1 else "drop_not_mine": 1}):
        node.public.send(c.syn_frame())
        if owner == 1:
            c.take_synack()
    c.send(ACK, seq=old[0], ack=old[1])
    c.silence()


@OWNERS
@pytest.mark.parametrize("sent", [0, 3 * MSS])
def test_the_next_connection_whose_syn_was_not_heard(node, client, owner, sent):
    """Nothing of it acknowledges what the ended one had under way."""
    c = served(node, client, owner)
    c.answer()
    c.server.sendall(b"x" * sent)
    reset(c)
    # How much was under way, netfilter does not know.
    before = sent - RESET_UNDER_WAY - 1 if node.netfilter else -1
    for away in (before, sent + 1, 1 << 24, 1 << 31):
        c.send(ACK, ack=(c.ack + away) & MASK)
        c.send(ACK | PSH, b"GET / HTTP/1.1\r\n\r\n", ack=(c.ack + away) & MASK)
    c.silence()
    for ack in (c.ack, c.ack + sent):
        node.hears_again()
        told(c, ACK, ack=ack & MASK)


@BOTH
def test_not_while_silent(node, client):
    """Without a lease another node may have the connection."""
    c = client().serve()
    c.answer()
    reset(c)
    with node.leased() as tables:
        tables.lease(-1)
        with node.counts(drop_silent=1):
            c.send(ACK)
            c.silence()
    told(c, ACK)


def test_where_responses_are_not_read(node, client):
    """No service inspects later requests, and there is no lease: of what leaves here, RSTs alone matter."""
    with node.tables() as found:
        found.configure(reads_replies=0)
        c = client().serve()
        c.answer()
        reset(c)
        told(c, ACK)


def test_other_connections_are_nobodys(node, client):
    """This node has ended one; of all others it knows as little as before."""
    c = client().serve()
    c.answer()
    reset(c)
    other = client()
    with node.counts(drop_no_flow=1):
        other.send(ACK, ack=other.no_cookie(12345))
        other.silence()
