# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster whose ring_hash is jhash: whose a flow is, nf_tables could tell; all else about it is as with SipHash."""
import contextlib

import pytest

from packets import families, model
from packets.families import BOTH
from packets.node import BLIND, VIP, WEB

pytestmark = BOTH


@pytest.fixture(scope="module", name="own")
def _own(make_node):
    with make_node(ring_hash="jhash") as node:
        node.start()
        node.listen(WEB)
        node.listen(BLIND)
        yield node


@pytest.fixture(autouse=True)
def _clean(own, family):
    own.settle()
    own.public.clear()
    own.cluster.clear()
    with families.dual_stack(own) if family == 6 else contextlib.nullcontext():
        yield


def test_own_flow(own, client):
    for service in (WEB, BLIND):
        for _ in range(8):
            client(service, at=own).serve()


@pytest.mark.parametrize("owner", [2, 3])
def test_flow_of_another_node(own, client, owner):
    c = client(at=own, owner=owner)
    with own.counts(drop_not_mine=1):
        own.public.send(c.syn_frame())
        c.silence()


def test_other_positions_than_siphash(own, client):
    """Of a flow that only one of the two gives to this node."""
    siphash = model.Keys.load(own.key_file)
    c = client(at=own)
    while own.ring.sampled(model.flow_hash(siphash, c.ip, c.port, c.vip, c.service)) == 0:
        c = client(at=own)
    with own.counts(syn_answered=1):
        own.public.send(c.syn_frame())
        c.take_synack()


def test_handed_over(own, client):
    """A request that another node is to serve."""
    c = client(at=own)
    c.shake()
    with own.counts(request_queued=1, inspect_requests=1, inspect_handovers=1):
        c.request(target=2)
        assert own.taken(2).kind == model.REQUEST


def test_look_up_of_the_daemon(own):
    for port in range(4000, 4020):
        found = own.ask("ring", lookup={"address": "198.51.100.1", "port": port, "service": f"s{WEB}"})["lookup"]
        hash_ = model.flow_hash(own.keys, "198.51.100.1", port, VIP, WEB)
        assert found["node"] == f"n{own.ring.sampled(hash_) + 1}"


def test_reload_keeps_it(own):
    """Another would move every connection."""
    own.configure(ring_hash="siphash")
    try:
        assert "cluster: ring_hash cannot change while the daemon runs" in own.earshot("reload", check=False).stderr
    finally:
        own.configure(ring_hash="jhash")
