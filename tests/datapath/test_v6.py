# SPDX-License-Identifier: GPL-2.0-or-later
"""What IPv6 alone has: neighbour discovery, extension headers, and what is no TCP."""
import struct

import pytest

from earshotlab import netns
from packets import model, packet
from packets.client import Client
from packets.families import dual_stack
from packets.leases import OK, goes_on
from packets.node import BLIND, EACH, GATEWAY_MAC, PUBLIC6, VIP6, WEB
from packets.packet import ACK, PSH, RST, SYN

ASKER_MAC = "02:00:00:00:00:aa"
LINK_LOCAL = "fe80::7777"
GROUP, GROUP_MAC = "ff02::1:ff00:100", "33:33:ff:00:01:00"
CLIENTS = [f"2001:db8:77::{i + 0x1000:x}" for i in range(0, 600, 10)]
SOLICITATION, ADVERTISEMENT, SOLICITED, OVERRIDE = 135, 136, 0x40000000, 0x20000000
PAD = b"\0" + b"\1\4\0\0\0\0"  # the rest of a header of options: 8 bytes with its kind


@pytest.fixture(name="family")
def _family():
    return 6


@pytest.fixture(name="dual")
def _dual(node):
    with dual_stack(node):
        yield node


def is_mine(node, address):
    return node.ring.sampled(model.address_hash(node.keys, address)) == 0


OWN_MAC = b"\1\1" + packet.mac(ASKER_MAC)  # the option that says who asks


def solicit(target, source, dst=GROUP, dst_mac=GROUP_MAC, hops=255, options=None, wrong=0, total=None):
    """`wrong`: what its checksum is changed by; `total`: a wrong length."""
    if options is None:
        options = b"" if source == "::" else OWN_MAC
    body = packet.icmp6(source, dst, SOLICITATION, 0, bytes(4), packet.address(target) + options)
    body = body[:2] + struct.pack(">H", struct.unpack_from(">H", body, 2)[0] ^ wrong) + body[4:]
    return packet.eth(dst_mac, ASKER_MAC, packet.ETH_IP6, packet.ip6(source, dst, packet.ICMP6, body, hops=hops, total=total))


def advertisement(node, dst, dst_mac, flags):
    body = packet.icmp6(VIP6, dst, ADVERTISEMENT, 0, struct.pack(">I", flags),
                        packet.address(VIP6) + b"\2\1" + packet.mac(node.cluster_mac))
    return packet.eth(dst_mac, node.mac, packet.ETH_IP6, packet.ip6(VIP6, dst, packet.ICMP6, body, hops=255))


def advertises(f):
    return f.icmp and f.kind == packet.ETH_IP6 and f.icmp.kind == ADVERTISEMENT


def test_solicitation_is_answered_by_the_rings_node(dual):
    mine = [address for address in CLIENTS if is_mine(dual, address)]
    assert 5 < len(mine) < len(CLIENTS) - 5
    with dual.counts(ndp_answered=len(mine), ndp_not_mine=len(CLIENTS) - len(mine)):
        for address in CLIENTS:
            dual.public.send(solicit(VIP6, address))
        answers = dual.public.all(advertises)
    assert [f.bytes for f in answers] == [advertisement(dual, address, ASKER_MAC, SOLICITED | OVERRIDE) for address in mine]


@pytest.mark.parametrize("dst", ["unicast", "cluster"])
def test_neighbour_asks_whether_it_is_still_there(dual, dst):
    mine = next(address for address in CLIENTS if is_mine(dual, address))
    with dual.counts(ndp_answered=1):
        dual.public.send(solicit(VIP6, mine, VIP6, dual.mac if dst == "unicast" else dual.cluster_mac))
        answer = dual.public.take(advertises, "the advertisement")
    assert answer.bytes == advertisement(dual, mine, ASKER_MAC, SOLICITED | OVERRIDE)


@pytest.mark.parametrize("options", [b"", b"\x0e\1" + bytes(6)], ids=["", "nonce"])
def test_address_is_defended(dual, options):
    """Who asks without an address may want this one: all hear that it is taken, from one node. RFC 7527's nonce, by which he
    knows his own question when it comes back, changes nothing."""
    with dual.counts(**{"ndp_answered" if is_mine(dual, "::") else "ndp_not_mine": 1}):
        dual.public.send(solicit(VIP6, "::", options=options))
        answers = dual.public.all(advertises)
    assert [f.bytes for f in answers] == ([advertisement(dual, "ff02::1", "33:33:00:00:00:01", OVERRIDE)]
                                          if is_mine(dual, "::") else [])


def mine_of(node):
    return next(address for address in CLIENTS if is_mine(node, address))


@pytest.mark.parametrize("wrong", [
    dict(wrong=1), dict(options=OWN_MAC, wrong=0x8000), dict(options=b"\1\0" + bytes(6)), dict(options=OWN_MAC + b"\1\2" + bytes(6)),
    dict(options=OWN_MAC[:6]), dict(total=16), dict(total=40), dict(options=b"\x0e\x7e" + bytes(1006))],
    ids=["checksum", "checksum-high", "option-of-no-length", "option-cut-off", "half-an-option", "short", "longer-than-it-is",
         "too-long"])
def test_solicitation_that_is_damaged(dual, wrong):
    """Nothing of it is believed (RFC 4861, 7.1.1): neither is it answered, nor does the stack see it."""
    dropped_before = dual.netfilter and "total" in wrong  # by the kernel
    with dual.counts(drop_malformed=not dropped_before):
        dual.public.send(solicit(VIP6, mine_of(dual), **wrong))
        dual.public.nothing(advertises, "no advertisement")


@pytest.mark.parametrize("wrong", [dict(options=OWN_MAC), dict(dst=VIP6), dict(dst="ff02::1")],
                         ids=["with-a-mac", "unicast", "to-all"])
def test_nobody_asks_like_that(dual, wrong):
    """Who has no address has nothing to be remembered, and asks the group."""
    with dual.counts(drop_malformed=1):
        dual.public.send(solicit(VIP6, "::", **wrong))
        dual.public.nothing(advertises, "no advertisement")


@pytest.mark.parametrize("options", [b"", OWN_MAC + b"\x0e\1" + bytes(6), OWN_MAC + b"\x0c\x40" + bytes(510)],
                         ids=["none", "two", "long"])
def test_options_of_solicitations(dual, options):
    """Its own MAC may be missing, and others may be there; the answer goes to where it came from."""
    mine = mine_of(dual)
    with dual.counts(ndp_answered=1):
        dual.public.send(solicit(VIP6, mine, options=options))
        answer = dual.public.take(advertises, "the advertisement")
    assert answer.bytes == advertisement(dual, mine, ASKER_MAC, SOLICITED | OVERRIDE)


@pytest.mark.parametrize("frame", [
    solicit("2001:db8:77::101", CLIENTS[0]), solicit(VIP6, CLIENTS[0], hops=254)], ids=["another-address", "behind-a-router"])
def test_no_answer(dual, frame):
    with dual.counts():
        dual.public.send(frame)
        dual.public.nothing(advertises, "no advertisement")


def test_the_nodes_own_address(dual):
    """The stack's, with the node's own MAC."""
    with dual.counts():
        dual.public.send(solicit(PUBLIC6, CLIENTS[0], "ff02::1:ff00:1", "33:33:ff:00:00:01"))


def test_headers_before_tcp(client):
    """Those that only carry options do not matter, and the answers have none."""
    for headers in ([(packet.HOP_BY_HOP, PAD)], [(packet.HOP_BY_HOP, PAD)] + [(packet.OPTIONS, PAD)] * 2):
        c = client(BLIND)
        c.node.public.send(c.syn_frame(headers=headers))
        c.take_synack()
        text = c.get()
        c.node.public.send(c.frame(ACK | PSH, text, headers=headers))
        c.sent(text)
        assert c.read(len(text)) == text
        c.answer()


@pytest.mark.parametrize("counter, headers", [
    pytest.param("drop_v6_fragment", [(packet.FRAGMENT, b"\0" + bytes(6))],
                 marks=pytest.mark.no_netfilter("connection tracking makes it whole before")),
    ("drop_v6_routing", [(packet.ROUTING, b"\0\4\0" + bytes(4))]),
    ("drop_v6_routing", [(packet.HOP_BY_HOP, PAD), (packet.ROUTING, b"\0\4\0" + bytes(4))]),
    ("drop_v6_headers", [(packet.OPTIONS, PAD)] * 5),
    ("drop_malformed", [(packet.OPTIONS, b"\xff" + PAD[1:])])])
def test_dropped(client, counter, headers):
    c = client()
    with c.node.counts(**{counter: 1}):
        c.node.public.send(c.frame(SYN, headers=headers))
        c.silence()


@pytest.mark.parametrize("total", [0xFFFF, 19, 0])
def test_wrong_length(client, total):
    c = client()
    dropped_before = c.node.netfilter and total == 0xFFFF  # by the kernel, as too short
    with c.node.counts(drop_malformed=not dropped_before):
        c.node.public.send(c.frame(SYN, total=total))
        c.silence()


def test_jumbogram(client):
    """It says its length in an option (RFC 2675), which nobody needs to say so little."""
    c = client()
    # The kernel drops it as one that is shorter than it says, before netfilter sees it.
    with c.node.counts(drop_malformed=not c.node.netfilter):
        c.node.public.send(c.frame(SYN, total=0, headers=[(packet.HOP_BY_HOP, b"\0" + struct.pack(">BBI", 0xC2, 4, 28))]))
        c.silence()


@pytest.mark.parametrize("headers", [(), [(packet.OPTIONS, PAD)]], ids=["", "headers"])
@pytest.mark.parametrize("source", ["::", "::1", "::ffff:198.51.100.7", "ff02::1"])
def test_address_that_no_client_has(client, source, headers):
    c = client()
    segment = packet.tcp(source, VIP6, c.port, c.service, seq=c.isn, flags=SYN)
    dropped_before = c.node.netfilter and source in ("::1", "ff02::1")  # by the kernel
    with c.node.counts(drop_martian=not dropped_before):
        c.node.public.send(packet.eth(c.node.cluster_mac, GATEWAY_MAC, packet.ETH_IP6,
                                      packet.ip6(source, VIP6, packet.TCP, segment, headers=headers)))
        c.node.public.nothing(lambda f: f.tcp, "no answer")


@pytest.mark.parametrize("service", [WEB, EACH])
@pytest.mark.no_netfilter("there it is refused: test_link_local_client_is_refused")
def test_link_local_client(client, node, service):
    """Its address means nothing without the interface, and what is handed over comes in by another one: so its connection is
    made of the very packet that it sent, uninspected, and its later requests are the server's."""
    netns.ip_batch(node.namespace, [f"neigh replace {LINK_LOCAL} lladdr {GATEWAY_MAC} dev eth0 nud permanent"])
    place = next((LINK_LOCAL, port, hash_) for port in range(20000, 21000)
                 for hash_ in [model.flow_hash(node.keys, LINK_LOCAL, port, VIP6, service)] if node.ring.sampled(hash_) == 0)
    c = client(service, place=place)
    with node.counts(syn_answered=1, handshake_blind=1, request_queued=0, handover_rebuilt=0):
        c.shake(ack=True)
        c.accept()
    for _ in range(3):
        text = c.get()
        c.request(text=text)
        assert c.read(len(text)) == text
        c.answer()


@pytest.mark.netfilter("the others serve it")
@pytest.mark.parametrize("service", [WEB, EACH])
def test_link_local_client_is_refused(client, node, service):
    """A connection would belong to the tun device, by which it comes in; so it is told at once, and tries another address."""
    netns.ip_batch(node.namespace, [f"neigh replace {LINK_LOCAL} lladdr {GATEWAY_MAC} dev eth0 nud permanent"])
    place = next((LINK_LOCAL, port, hash_) for port in range(20000, 21000)
                 for hash_ in [model.flow_hash(node.keys, LINK_LOCAL, port, VIP6, service)] if node.ring.sampled(hash_) == 0)
    c = client(service, place=place)
    with node.counts(rebuild_refused=1):
        node.public.send(c.syn_frame())
        reset = c.take("a RST")
    assert (reset.flags, reset.seq, reset.ack) == (RST | ACK, 0, c.isn + 1)


def test_walk_over_sockets(node, client):
    """What the daemon is told of connections, and what it ends while the node is silent; and what `earshot flows` shows."""
    with node.leased() as leased:
        leased.leave_out()
        proven, unproven = client(EACH).serve(), client(BLIND).serve()
        proven.answer(OK)
        found = {entry.flow_hash: entry for entry in leased.connections()}
        known = {} if node.netfilter else {proven.hash: 0}  # where those must be known that are proven
        assert {**known, unproven.hash: 1} == {hash_: entry.unproven for hash_, entry in found.items()}
        assert found[unproven.hash].first_seq == unproven.isn + 1
        assert [proven.ip, str(proven.port)] in [line.split()[:2] for line in node.earshot("flows").stdout.splitlines()]
        leased.lease(0)
        assert [entry.flow_hash for entry in leased.end_unproven()] == [unproven.hash]
        assert not node.sockets(unproven)
        goes_on(node, proven)


def test_server_of_both_families(own_node):
    """One socket listens for clients of both."""
    node = own_node()
    with dual_stack(node):
        for key in (WEB, (WEB, 6)):
            node.listeners.pop(key).close()
        server = node.listen(WEB, address="::", v6only=0)
        for family in (4, 6):
            c = Client(node, family=family)
            text = c.shake().get()
            c.request(text=text)
            c.server, (ip, port, *_) = server.accept()
            assert (ip, port) == ("::ffff:" * (family == 4) + c.ip, c.port)
            assert c.read(len(text)) == text
            c.answer()
            c.abort()


def test_without_address(node):
    """A service that has none of IPv6 is not heard of there: what comes is the stack's."""
    mine = next(address for address in CLIENTS if is_mine(node, address))
    with node.counts():
        node.public.send(solicit("::", mine))
        node.public.nothing(advertises, "no advertisement")
