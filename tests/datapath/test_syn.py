# SPDX-License-Identifier: GPL-2.0-or-later
"""SYNs are answered without state: byte by byte, by exactly the ring's node."""
import pytest

from packets import model
from packets.client import LINUX, PLAIN, WINDOWS, Client, Offer
from packets.families import BOTH
from packets.node import CLUSTER, DEAD, VIP, VIP6, VIPS, WEB
from packets.packet import ACK, CWR, ECE, FIN, NOP, OPT_SACK, SYN, opt_mss, opt_ts, opt_wscale

OFFERS = [
    PLAIN,
    LINUX,
    WINDOWS,
    Offer("mss-only", lambda ts: opt_mss(1460), model.Options(mss=1460)),
    Offer("mss-small", lambda ts: opt_mss(100), model.Options(mss=100)),
    Offer("mss-1300", lambda ts: opt_mss(1300), model.Options(mss=1300)),
    Offer("mss-1440", lambda ts: opt_mss(1459), model.Options(mss=1459)),
    Offer("mss-jumbo", lambda ts: opt_mss(8960), model.Options(mss=8960)),
    Offer("mss-zero", lambda ts: opt_mss(0), model.Options(mss=536)),
    Offer("wscale-0", lambda ts: opt_mss(1460) + NOP + opt_wscale(0), model.Options(mss=1460, wscale=0)),
    Offer("wscale-14", lambda ts: opt_mss(1460) + NOP + opt_wscale(14), model.Options(mss=1460, wscale=14)),
    Offer("wscale-15", lambda ts: opt_mss(1460) + NOP + opt_wscale(15), model.Options(mss=1460, wscale=14)),
    Offer("ts-only", lambda ts: NOP * 2 + opt_ts(ts, 0), model.Options(ts=True)),
    Offer("ecn", LINUX.block, model.Options(mss=1460, wscale=7, sack=True, ts=True, ecn=True), ECE | CWR),
    Offer("ece-without-cwr", LINUX.block, LINUX.means, ECE),
    Offer("40-bytes-of-nops", lambda ts: NOP * 40),
    Offer("end-before-more", lambda ts: opt_mss(1460) + b"\0" + OPT_SACK + b"\0", model.Options(mss=1460)),
    Offer("option-too-long", lambda ts: opt_mss(1460) + b"\x03\x09\x07\x01", model.Options(mss=1460)),
    Offer("option-length-0", lambda ts: opt_mss(1460) + b"\x03\x00\x07\x01", model.Options(mss=1460)),
    Offer("unknown-options", lambda ts: b"\xfd\x06abcd" + opt_mss(1460) + b"\xfe\x02", model.Options(mss=1460)),
    Offer("fast-open-cookie", lambda ts: opt_mss(1460) + b"\x22\x0a" + b"c" * 8 + NOP * 2, model.Options(mss=1460)),
]


@BOTH
@pytest.mark.parametrize("offer", OFFERS, ids=lambda o: o.name)
def test_options(node, client, offer):
    c = client(offer=offer)
    with node.counts(syn_answered=1):
        node.public.send(c.syn_frame())
        c.take_synack()
    c.silence("one answer")
    assert not node.sockets(c)


@BOTH
def test_same_syn_same_answer(node, client):
    """Idempotent, so that two nodes that both think it theirs do no harm."""
    c = client()
    frame = c.syn_frame()
    node.slot()
    with node.counts(syn_answered=2):
        node.public.send(frame)
        node.public.send(frame)
        answers = [f.bytes for f in node.public.all(c.mine)]
    assert answers == [c.synack_bytes()] * 2


@BOTH
def test_another_isn_another_answer(node, client):
    c = client()
    node.public.send(c.syn_frame())
    first = c.take_synack().seq
    c.isn += 1
    node.public.send(c.syn_frame())
    assert c.take_synack().seq != first


@BOTH
@pytest.mark.parametrize("owner", [2, 3])
def test_not_mine(node, client, owner):
    c = client(owner=owner)
    with node.counts(drop_not_mine=1):
        node.public.send(c.syn_frame())
        c.silence()


def test_ring_share(node):
    """Over many flows: n1 answers exactly those that the ring gives it."""
    flows = [Client(node, place=(f"203.0.113.{i}", 5000 + i, None)) for i in range(96)]
    mine = {c.port for c in flows
            if node.ring.sampled(model.flow_hash(node.keys, c.ip, c.port, VIP, c.service)) == 0}
    assert 10 < len(mine) < 70
    with node.counts(syn_answered=len(mine), drop_not_mine=len(flows) - len(mine)):
        for c in flows:
            node.public.send(c.syn_frame())
        answered = {f.tcp.dport for f in node.public.all(lambda f: f.tcp)}
    assert answered == mine


def comes_from(node, client, family, ip, **keywords):
    """A client with that address, of a flow that n1 inspects."""
    found = next((port, hash_) for port in range(1024, 60000)
                 for hash_ in [model.flow_hash(node.keys, ip, port, VIPS[family], WEB)] if node.ring.sampled(hash_) == 0)
    return client(place=(ip, *found), **keywords)


@pytest.mark.parametrize("offer", [LINUX, WINDOWS], ids=lambda o: o.name)
@pytest.mark.parametrize("family, ip", [
    *((4, ip) for ip in ("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "224.0.0.1", "239.255.255.250", "255.255.255.255")),
    (4, VIP), (4, CLUSTER[0]), (6, VIP6)])
def test_address_that_no_client_has(node, client, family, ip, offer):
    """Neither its SYN is answered, nor a request that has guessed a cookie believed: the stack would make nothing of it."""
    c = comes_from(node, client, family, ip, offer=offer)
    with node.counts(drop_martian=3):
        node.public.send(c.syn_frame())
        c.forge()
        c.request()
        c.send(ACK | FIN)
        node.public.nothing(lambda f: f.tcp, "no answer")
    node.no_message()


@pytest.mark.parametrize("ip", ["1.0.0.1", "126.255.255.254", "128.0.0.1", "169.254.7.7", "223.255.255.254", "240.0.0.1",
                                "255.255.255.254", CLUSTER[1]])
def test_address_that_a_client_may_have(node, client, ip):
    c = comes_from(node, client, 4, ip)
    with node.counts(syn_answered=1):
        node.public.send(c.syn_frame())
        c.take_synack()


@BOTH
def test_frame_to_the_nodes_own_mac(node, client):
    """A router that was told otherwise; the answer is the same."""
    c = client()
    with node.counts(syn_answered=1):
        node.public.send(c.syn_frame(dst=node.mac))
        c.take_synack()


@BOTH
def test_payload_is_not_acknowledged(node, client):
    c = client()
    with node.counts(syn_answered=1):
        node.public.send(c.frame(SYN, b"early data", seq=c.isn, options=LINUX.block(c.tsval)))
        c.take_synack()


@BOTH
def test_ethernet_padding(node, client):
    c = client(offer=PLAIN)
    with node.counts(syn_answered=1):
        node.public.send(c.syn_frame() + bytes(6))
        c.take_synack()


@BOTH
def test_checksum_left_to_hardware(node, client):
    """As virtual links carry it; the answer's checksum must be whole on the wire."""
    for offer in (LINUX, PLAIN):
        c = client(offer=offer)
        with node.counts(syn_answered=1):
            node.public.send_partial(c.syn_frame(check="partial"))
            c.take_synack()


@BOTH
def test_answered_without_a_server(node, client):
    """Whether this node's server runs is no matter: another one may serve."""
    c = client(DEAD)
    with node.counts(syn_answered=1):
        node.public.send(c.syn_frame())
        c.take_synack()


OFF = {"tcp_window_scaling": "wscale", "tcp_sack": "sack", "tcp_timestamps": "ts", "tcp_ecn": "ecn"}


@pytest.mark.parametrize("sysctl", OFF)
def test_nothing_that_a_sysctl_forbids(node, client, sysctl):
    """The socket could not keep what the SYN-ACK promised."""
    key = f"net.ipv4.{sysctl}"
    means = dict(mss=1460, wscale=7, sack=True, ts=True, ecn=True)
    means[OFF[sysctl]] = None if sysctl == "tcp_window_scaling" else False
    before = {"tcp_ecn": 2}.get(sysctl, 1)
    node.reload(**{key: 0})
    try:
        c = client(offer=Offer("all", LINUX.block, model.Options(**means), ECE | CWR))
        node.public.send(c.syn_frame())
        c.take_synack()
    finally:
        node.reload(**{key: before})
