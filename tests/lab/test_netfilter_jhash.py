# SPDX-License-Identifier: GPL-2.0-or-later
"""A cluster whose ring_hash is jhash: its nodes with the netfilter datapath drop in the kernel what others are to take, beside a BPF node."""
import itertools
import random
import re

import pytest

from earshotlab import Lab, wait_for
from web import raw

pytestmark = pytest.mark.earshot

NETFILTER = ("n2", "n3")


@pytest.fixture(scope="module", name="lab", params=["4", "6"], ids=["v4", "v6"])
def _lab(request):
    kinds = {name: "netfilter" for name in NETFILTER}
    with Lab(nodes=3, policy="uri-hash", datapath="bpf", node_datapath=kinds, family=request.param,
             settings={"cluster.ring_hash": "jhash"}) as lab:
        yield lab


def ask(lab, port, uri):
    with raw.connect(lab.client, port=port, timeout=20) as sock:
        sock.sendall(raw.head(uri))
        response = raw.receive(sock)
    assert raw.right(response, "1k")
    return response.node


@pytest.fixture(scope="module", name="ports")
def _ports(lab):
    return {node.name: raw.ports(lab, node.name, first=20000) for node in lab.nodes}


@pytest.fixture(scope="module", name="homes")
def _homes(lab, ports):
    """A URI of each node: {node: URI}."""
    found = {}
    for number in range(12):
        uri = f"/u/1k/{number}"
        found.setdefault(ask(lab, next(ports["n1"]), uri), uri)
    assert set(found) == {"n1", "n2", "n3"}
    return found


def queued(lab, name):
    """How many packets the kernel has given to that node's daemon so far."""
    lines = lab.node(name).exec(["cat", "/proc/net/netfilter/nfnetlink_queue"]).stdout.splitlines()
    return sum(int(line.split()[7]) for line in lines)


def test_each_kind_hands_over_to_each(lab, homes, ports):
    for inspecting, serving in itertools.product(homes, homes):
        assert ask(lab, next(ports[inspecting]), homes[serving]) == serving


def test_large_bodies(lab):
    body = random.randbytes(2 << 20)
    for _ in range(6):
        with raw.connect(lab.client, timeout=20) as sock:
            assert raw.upload(sock, body)
            sock.sendall(raw.head("/u/1m/x"))
            assert raw.right(raw.receive(sock), "1m")


@pytest.mark.parametrize("name", NETFILTER)
def test_what_is_anothers_is_dropped_in_the_kernel(lab, homes, ports, name):
    """It is counted, and the daemon sees nothing of it."""
    before, dropped = queued(lab, name), lab.counters(name)["drop_not_mine"]
    for _ in range(20):
        assert ask(lab, next(ports["n1"]), homes["n1"]) == "n1"
    # Each connection has four packets at least, and the daemon's own business is little.
    wait_for(lambda: lab.counters(name)["drop_not_mine"] >= dropped + 80, "the packets are counted")
    assert queued(lab, name) - before < 40


def test_ring_that_changes(lab, homes, ports):
    """The slots of a node that is taken off the ring go to others, whose kernels then let their packets come; and back."""
    flows = [next(ports["n1"]) for _ in range(16)]

    def weigh(weight):
        for node in lab.nodes:
            path = lab.config_of(node.name)
            with open(path, encoding="utf-8") as handle:
                text = handle.read()
            text = re.sub(r"(node n1 \{)( weight = \d+)?", rf"\1 weight = {weight}", text)
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(text)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])

    weigh(0)
    assert {raw.inspector(lab, port) for port in flows} == {"n2", "n3"}
    for port in flows:
        assert ask(lab, port, homes["n2"]) == "n2"
    weigh(100)
    assert {raw.inspector(lab, port) for port in flows} == {"n1"}
    before = {name: lab.counters(name)["request_queued"] for name in NETFILTER}
    for port in flows:
        assert ask(lab, port, homes["n1"]) == "n1"
    assert {name: lab.counters(name)["request_queued"] for name in NETFILTER} == before


def table(lab, node):
    """What nf_tables tell of the table, but for its counter."""
    family = {"4": "ip", "6": "ip6"}[lab.options["family"]]
    return re.sub(r"packets \d+ bytes \d+", "", node.exec(["nft", "list", "table", family, "earshot-overheard"], check=False).stdout)


PIECES = ["chain {family} earshot-overheard overheard", "set {family} earshot-overheard slots", "set {family} earshot-overheard services",
          "table {family} earshot-overheard"]


@pytest.mark.parametrize("piece", PIECES)
def test_pieces_that_are_taken_away(lab, homes, ports, piece):
    """The table is there, and drops nothing: it is made whole."""
    node = lab.node("n2")
    before = table(lab, node)
    assert "slots" in before
    node.exec(["nft", "flush", *piece.format(family={"4": "ip", "6": "ip6"}[lab.options["family"]]).split()])
    wait_for(lambda: table(lab, node) == before, "the table is as it was", 10, lambda: table(lab, node))
    for inspecting, serving in itertools.product(homes, homes):
        assert ask(lab, next(ports[inspecting]), homes[serving]) == serving


def test_rules_that_are_flushed(lab, homes, ports):
    node = lab.node("n2")
    node.exec(["nft", "flush", "ruleset"])
    wait_for(lambda: "earshot-overheard" in node.exec(["nft", "list", "tables"]).stdout, "the table is there again")
    for inspecting, serving in itertools.product(homes, homes):
        assert ask(lab, next(ports[inspecting]), homes[serving]) == serving


def test_stop_leaves_nothing(lab):
    node = lab.node("n3")
    assert "earshot-overheard" in node.exec(["nft", "list", "tables"]).stdout
    node.exec(["earshot", "stop"])
    wait_for(lambda: "earshot" not in node.exec(["nft", "list", "tables"]).stdout, "the tables are gone")
