# SPDX-License-Identifier: GPL-2.0-or-later
"""Packet filters on the nodes decide who may use the service, as with one server, by rules that say nothing of what nodes tell each
other: lo and the private network are open."""
import contextlib

import pytest

from earshotlab import Lab, daemon
from web import raw

pytestmark = pytest.mark.earshot

NODES = {"n1", "n2", "n3"}
# docs/install.md, "Firewalls"
RULES = """table inet filter {{
    set chosen {{ type {family}_addr; {elements} }}
    set counted {{ type {family}_addr; size 1000; flags dynamic; }}
    chain input {{
        type filter hook input priority 0; policy drop;
        {first}
        ct state established,related accept
        iif lo accept
        iifname eth1 accept
        meta l4proto {{ icmp, icmpv6 }} accept
        iifname {door} tcp dport 80 {rule}
    }}
}}"""
DOOR = '{ "eth0", "earshot-nf" }' if daemon.DATAPATH == "netfilter" else '"eth0"'
FAMILIES = {"4": ("ip", "ipv4"), "6": ("ip6", "ipv6")}


class Filtered:
    """A cluster whose nodes can be given rules, and a client with two addresses."""

    def __init__(self, lab):
        self.lab, self.ip = lab, FAMILIES[lab.options["family"]][0]
        self.one, self.other = lab.net.client_addresses if self.ip == "ip" else lab.net.client_addresses6

    @contextlib.contextmanager
    def rules(self, rule, first="", elements=()):
        """SADDR in a rule is the client's address."""
        text = RULES.format(family=FAMILIES[self.lab.options["family"]][1], door=DOOR, rule=rule, first=first,
                            elements=f"elements = {{ {', '.join(elements)} }}" if elements else "").replace("SADDR", f"{self.ip} saddr")
        for node in self.lab.nodes:
            node.exec(["nft", "-f", "-"], input=text)
        try:
            yield
        finally:
            for node in self.lab.nodes:
                node.exec(["nft", "delete", "table", "inet", "filter"])

    def choose(self, verb, address):
        for node in self.lab.nodes:
            node.exec(["nft", verb, "element", "inet", "filter", "chosen", "{", address, "}"])

    def connect(self, source, timeout=1.0, address=None):
        return raw.connect(self.lab.client, address, timeout=timeout, before=lambda sock: sock.bind((source, 0)))

    def asks(self, source, sock=None, **keywords):
        """Who answers; None: nobody."""
        with contextlib.ExitStack() as stack:
            try:
                sock = sock or stack.enter_context(self.connect(source, **keywords))
                sock.sendall(raw.head("/node"))
                return raw.receive(sock).node
            except (TimeoutError, ConnectionError):
                return None

    def served_by(self, source):
        """All nodes, unless one refuses."""
        found = set()
        for _ in range(60):
            found.add(self.asks(source))
            if None in found or found == NODES:
                break
        return found

    def alone(self, source):
        """The same, of one server's own address: what its packet filter says without Earshot."""
        address = self.lab.nodes[0].public_address if self.ip == "ip" else self.lab.nodes[0].public_address6
        return self.asks(source, address=(address, 80))


@pytest.fixture(name="filtered", scope="module", params=FAMILIES, ids=["v4", "v6"])
def _filtered(request):
    with Lab(nodes=3, policy="wrr", family=request.param, client_addresses=2) as lab:
        yield Filtered(lab)


def test_an_allow_list(filtered):
    """Whoever is on it is served by all; nobody else is by any."""
    with filtered.rules(f"SADDR {filtered.one} accept"):
        assert filtered.served_by(filtered.one) == NODES
        assert {filtered.asks(filtered.other) for _ in range(9)} == {None} == {filtered.alone(filtered.other)}


def test_a_set(filtered):
    """Whoever comes on it is served, and is not any more when he is taken off it."""
    with filtered.rules("SADDR @chosen accept"):
        assert {filtered.asks(filtered.one) for _ in range(3)} == {None}
        filtered.choose("add", filtered.one)
        assert filtered.served_by(filtered.one) == NODES
        filtered.choose("delete", filtered.one)
        assert {filtered.asks(filtered.one) for _ in range(3)} == {None}


def test_banned_in_the_middle(filtered):
    """By a rule that comes before the one about connection state: the next request has no answer."""
    with filtered.rules("accept", first=f"iifname {DOOR} SADDR @chosen drop"), filtered.connect(filtered.one) as sock:
        assert filtered.asks(filtered.one, sock) in NODES
        filtered.choose("add", filtered.one)
        assert filtered.asks(filtered.one, sock) is None and filtered.asks(filtered.one) is None
        assert filtered.asks(filtered.other) in NODES


def test_limit(filtered):
    """Each node admits so many new connections."""
    with filtered.rules("ct state new limit rate 1/hour burst 3 packets accept"):
        served = [node for node in (filtered.asks(filtered.one) for _ in range(15)) if node]
        assert served and max(map(served.count, NODES)) <= 3, served


def test_connlimit(filtered):
    """Each node admits so many open ones of an address, and those of others all the same."""
    with filtered.rules("ct state new add @counted { SADDR ct count over 2 } drop; tcp dport 80 accept"), contextlib.ExitStack() as stack:
        socks = [stack.enter_context(filtered.connect(filtered.one)) for _ in range(12)]
        served = [node for node in (filtered.asks(filtered.one, sock) for sock in socks) if node]
        assert served and max(map(served.count, NODES)) <= 2, served
        assert filtered.asks(filtered.other) in NODES
