# SPDX-License-Identifier: GPL-2.0-or-later
"""Beside programs of others on the same interface: these see what is not ours, what is delivered and what makes a
socket, whoever came first."""
import pytest

from packets import foreign, packet
from packets.client import Client
from packets.node import BLIND, GATEWAY_MAC, PUBLIC, WEB
from packets.packet import ACK, PSH

pytestmark = pytest.mark.bpf
PINGER, OTHER = "198.51.100.77", "198.51.100.78"


@pytest.fixture(params=["before", "behind"])
def order(request):
    return request.param


@pytest.fixture(params=["tcx", "clsact"])
def kind(request):
    return request.param


def ping(node, source, dst=PUBLIC):
    """An echo to the node's own address, which is none of Earshot's business."""
    node.public.send(packet.eth(node.mac, GATEWAY_MAC, packet.ETH_IP, packet.ip(
        source, dst, packet.ICMP, packet.icmp(8, 0, b"\0\1\0\1", b"ping"))))


def answered(node):
    return {f.ip.dst for f in node.public.all(lambda f: f.icmp)}


@pytest.mark.parametrize("way", ["ingress", "egress"])
def test_what_is_not_ours(make_node, order, kind, way):
    with make_node() as node:
        if order == "behind":
            node.start()
        with foreign.drops(node, PINGER, way, kind):
            if order == "before":
                node.start()
            ping(node, PINGER)
            ping(node, OTHER)
            assert answered(node) == {OTHER}
        ping(node, PINGER)
        assert answered(node) == {PINGER}


def test_an_answer_without_a_socket(node, client, kind):
    """It leaves through the egress filters."""
    c = client()
    failed = node.netfilter  # whose packet socket is told
    with node.counts(syn_answered=1, answer_failed=failed), foreign.drops(node, c.ip, "egress", kind):
        node.public.send(c.syn_frame())
        c.silence()
    c.shake()


def test_what_makes_a_socket(node, client, kind):
    """No socket comes of a request that another program drops, and none of the note about it."""
    c = client(BLIND)
    c.shake()
    counted = {} if node.netfilter else dict(request_blind=1)  # which stands behind such programs
    with node.counts(**counted), foreign.drops(node, c.ip, kind=kind):
        c.request()
        assert not node.sockets(c) and not node.pending(BLIND)


def test_what_is_delivered(node, client, kind):
    c = client(BLIND)
    c.serve()
    c.answer()
    with foreign.drops(node, c.ip, kind=kind):
        with node.counts(deliver_established=1):
            c.request(text=b"more")
        c.silence("what another program drops is not acknowledged")
    c.next -= 4
    with node.counts(deliver_established={1, 2}):
        c.request(text=b"more")
        assert c.read(4) == b"more"


@pytest.mark.parametrize("was_cluster", [False, True], ids=["at-once", "it-was-the-cluster's"])
def test_one_interface_for_both(make_node, was_cluster):
    """Clients and handovers on one network: each program sees what is its own, in the right order."""
    with make_node() as node:
        if was_cluster:
            node.configure(interface="eth1", cluster_interface="eth0")
            node.start(tells=False)
            node.kill()
        node.one_interface()
        node.start()
        node.listen(WEB)
        c = Client(node)
        c.shake()
        sent = c.request(target=2)
        assert node.taken(2).packet == sent
        c = Client(node, owner=2)
        c.forge()
        text = c.get()
        with node.counts(handover_received=1, handover_rebuilt=1):
            node.message(c.handover(c.ip_packet(ACK | PSH, text)))
            c.sent(text)
            assert c.read(len(text)) == text
        with node.counts(deliver_established={1, 2}):
            c.request(text=b"more")
            assert c.read(4) == b"more"
        c.abort()
