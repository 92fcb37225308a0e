# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes with the netfilter datapath, beside a BPF node, where the cluster MAC is a station's: no interface's own, so the kernel drops frames for it."""
import itertools
import pathlib
import random

import pytest

from cluster.interfaces import make, remove
from earshotlab import Lab, wait_for
from web import raw

pytestmark = pytest.mark.earshot

NETFILTER = ("n2", "n3")


@pytest.fixture(scope="module", name="lab")
def _lab():
    kinds = {name: "netfilter" for name in NETFILTER}
    with Lab(nodes=3, policy="uri-hash", datapath="bpf", node_datapath=kinds, settings={"datapath.mac_mode": "unicast"}) as lab:
        yield lab


@pytest.fixture(scope="module", name="homes")
def _homes(lab):
    """A URI of each node: {node: URI}."""
    found = {}
    for number in range(12):
        uri = f"/u/1k/{number}"
        found.setdefault(lab.client.get(uri)[1]["X-Node"], uri)
    assert set(found) == {"n1", "n2", "n3"}
    return found


@pytest.fixture(scope="module", name="from_to")
def _from_to(lab, homes):
    """Asks from a port that one node inspects; the other serves it."""
    ports = {node.name: raw.ports(lab, node.name, first=20000) for node in lab.nodes}

    def ask(inspecting, serving):
        with raw.connect(lab.client, port=next(ports[inspecting]), timeout=20) as sock:
            sock.sendall(raw.head(homes[serving]))
            response = raw.receive(sock)
        assert raw.right(response, "1k") and response.node == serving

    return ask


def tables(node):
    """What of nf_tables a node has: {(family, name), …}."""
    return {tuple(line.split()[1:]) for line in node.exec(["nft", "list", "tables"]).stdout.splitlines()}


ALL = {("ip", "earshot-capture"), ("netdev", "earshot-ingress"), ("ip", "earshot-rebuild"), ("ip6", "earshot-rebuild")}


def test_each_kind_hands_over_to_each(lab, homes, from_to):
    for inspecting, serving in itertools.product(homes, homes):
        from_to(inspecting, serving)
    assert "02:bf:0a:4d:00:64" in lab.client.exec(["ip", "neigh", "show", "to", lab.net.vip]).stdout


def test_large_bodies(lab):
    body = random.randbytes(2 << 20)
    for _ in range(6):
        with raw.connect(lab.client, timeout=20) as sock:
            assert raw.upload(sock, body)
            sock.sendall(raw.head("/u/1m/x"))
            assert raw.right(raw.receive(sock), "1m")


def test_arp(lab, homes):
    """Each node answers some of several clients; questions to the cluster MAC itself are heard, too."""
    for number in range(2, 26):
        source = f"10.77.3.{number}"
        lab.client.exec(["ip", "address", "add", f"{source}/16", "dev", "eth0"])
        lab.client.exec(["ip", "neigh", "flush", "dev", "eth0"])
        done = lab.client.exec(["curl", "-sS", "--max-time", "5", "--interface", source, lab.url("/node")])
        assert done.stdout.strip() in homes
    assert all(lab.counters(node.name)["arp_answered"] for node in lab.nodes)


def test_rules_that_are_flushed(lab, from_to):
    node = lab.node("n2")
    assert tables(node) == ALL
    node.exec(["nft", "flush", "ruleset"])
    wait_for(lambda: tables(node) == ALL, "the tables are there again")
    from_to("n2", "n3")
    from_to("n1", "n2")


@pytest.mark.parametrize("piece", ["table", "chain"])
def test_rules_that_are_taken_away(lab, from_to, piece):
    """The table is there, and lets nothing in: it is made whole."""
    node = lab.node("n2")
    listing = ["nft", "list", "table", "netdev", "earshot-ingress"]
    before = node.exec(listing).stdout
    assert "pkttype set" in before
    node.exec(["nft", "flush", piece, "netdev", "earshot-ingress", *(["host"] if piece == "chain" else [])])
    wait_for(lambda: node.exec(listing).stdout == before, "the table is as it was")
    from_to("n2", "n3")
    from_to("n1", "n2")


def test_interface_made_anew(lab, from_to):
    """With it, the kernel (before Linux 6.16) has removed the chain."""
    log = pathlib.Path(lab.node_directory("n2"), "earshotd.log")
    for words, change in (("the public interface eth0 is gone", remove), ("attached again to eth0", make)):
        change(lab, "n2", "pub")
        wait_for(lambda words=words: words in log.read_text(encoding="utf-8"), f"the daemon says: {words}")
    from_to("n2", "n3")
    from_to("n1", "n2")


def test_other_frames_stay_other_stations(lab):
    """The interface hears all; what is for another MAC or another address is still none of this host's."""
    rules = lab.node("n3").exec(["nft", "list", "table", "netdev", "earshot-ingress"]).stdout
    assert rules.count("pkttype set") == 1
    assert "ether daddr 02:bf:0a:4d:00:64" in rules or "@ll,0,48 0x2bf0a4d0064" in rules  # as nft's version has it
    assert f"ip daddr {lab.net.vip}" in rules


def test_stop_leaves_nothing(lab):
    node = lab.node("n3")
    node.exec(["earshot", "stop"])
    wait_for(lambda: not tables(node), "the tables are gone")


def test_detach_where_an_interface_took_its_chain(lab):
    """As kernels before 6.16 do. The rules of a daemon that was killed still drop what is for the service."""
    node = lab.node("n2")
    node.signal("earshotd")
    node.exec(["nft", "flush chain netdev earshot-ingress host; delete chain netdev earshot-ingress host"])
    # As on a machine of its own, where no other node's daemon answers.
    node.exec(["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /run/earshot && exec earshot detach"])
    assert not tables(node)
