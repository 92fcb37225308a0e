# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules and settings of the nodes' machines that swallow connections: what is wrong with one node takes that node out, what is wrong
with one client takes nobody out, and what is wrong with all nodes takes out as many as may be, never the last."""
import contextlib
import time

import pytest

from cluster.membership import settled
from earshotlab import Lab, daemon, netns, wait_for
from web import raw
from web.askers import clients, failed, served

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
HONEST, BANNED = "10.77.1.1", "10.77.1.2"
RULES = {
    "drop": f"ip saddr {BANNED} tcp dport 80 drop",
    "connlimit": f"ip saddr {BANNED} tcp dport 80 ct count over 2 drop",
}
EVERYBODY = "ip saddr 10.77.1.0/24 tcp dport 80 drop"  # and not the node's own check


@pytest.fixture(name="lab", params=["static", pytest.param("corosync", marks=pytest.mark.corosync)])
def _lab(request):
    with Lab(nodes=3, policy="wrr", membership=request.param, client_addresses=2, family="4") as lab:
        if request.param == "corosync":
            settled(lab, ALL)
        yield lab


@contextlib.contextmanager
def ruled(lab, names, rule):
    """The nodes' own packet filters have that rule, where the service's packets pass."""
    for name in names:
        lab.node(name).exec(["nft", f"table inet banned {{ chain in {{ type filter hook input priority -1; iif != lo {rule}; }}; }}"])
        lab.node(name).exec(["nft", f"add rule inet banned in iif lo {rule}"])
    try:
        yield
    finally:
        for name in names:
            lab.node(name).exec(["nft", "delete", "table", "inet", "banned"])


def states(lab, at="n1"):
    return {node["name"]: node["state"] for node in lab.status(at)["nodes"]}


def troubles(lab):
    return {name: lab.status(name)["nodes"][ALL.index(name)].get("trouble") or "" for name in ALL}


def are_down(lab):
    return {name for name, trouble in troubles(lab).items() if "not heard of again" in trouble}


def watched(lab, seconds):
    """All nodes that were down, at whatever moment."""
    down, end = set(), time.monotonic() + seconds
    while time.monotonic() < end:
        down |= are_down(lab) | {name for name, state in states(lab).items() if state == "down"}
        time.sleep(0.3)
    return down


@pytest.mark.parametrize("rule", RULES)
def test_one_client_is_refused_by_all(lab, rule):
    """It is its own affair: no node is down, nobody else loses anything, and it costs no more handovers after a while."""
    with ruled(lab, ALL, RULES[rule]), clients(lab, HONEST, 3, 3) as honest, clients(lab, BANNED, 4, 8) as banned:
        assert watched(lab, 12) == set()
    assert served(honest) and not failed(honest), failed(honest)
    if rule == "drop":
        assert not served(banned)
        assert sum(lab.counters(name)["inspect_own_affair"] for name in ALL) > 0


def test_one_client_is_not_on_the_list(lab):
    """Nor does one that no node's packet filter lets in, though it asks one request at a time: whom the list has, loses nothing."""
    allowed = f"ip saddr != {{ {HONEST}, {lab.net.vip} }} tcp dport 80 drop"
    with ruled(lab, ALL, allowed), clients(lab, HONEST, 3, 1) as honest, clients(lab, BANNED, 8, 1) as banned:
        assert watched(lab, 15) == set()
    assert len(served(honest)) > 20 and not failed(honest), failed(honest)
    assert banned[0].results and not served(banned)


def test_one_client_is_refused_by_one_node(lab):
    """Others are heard there: the node stays in, and its other clients lose nothing."""
    with ruled(lab, ["n2"], RULES["drop"]), clients(lab, HONEST, 3, 3) as honest, clients(lab, BANNED, 8, 6) as banned:
        assert watched(lab, 15) == set()
    assert {result[1] for result in served(honest)} == set(ALL) and not failed(honest), failed(honest)
    assert {result[1] for result in served(banned)} <= {"n1", "n3"}


def test_one_node_hears_nobody(lab):
    """It goes, after a few seconds, and comes back by itself when the rule is gone."""
    with clients(lab, HONEST, 3, 3) as honest:
        with ruled(lab, ["n2"], EVERYBODY):
            wait_for(lambda: are_down(lab) == {"n2"} and states(lab)["n2"] == "down", "n2 is down", 30, seen=lambda: troubles(lab))
            wait_for(lambda: states(lab, "n3")["n2"] == "down", "n3 knows")
            since = time.monotonic()
            time.sleep(4)
            assert served(honest, since) and not failed(honest, since), failed(honest, since)
        wait_for(lambda: states(lab)["n2"] == "up", "n2 tries again", 30, seen=lambda: troubles(lab))
        since = time.monotonic()
        wait_for(lambda: "n2" in {result[1] for result in served(honest, since)}, "n2 serves", 20)
        assert watched(lab, 8) == set()


def test_one_node_redirects(lab):
    """As that: no client is reset by it. The netfilter datapath's connections are none of such a rule's."""
    nat = "table inet astray { chain in { type nat hook prerouting priority -100; tcp dport 80 redirect to :81; }; }"
    with clients(lab, HONEST, 8, 3) as honest:
        lab.node("n2").exec(["nft", nat])
        if daemon.DATAPATH == "netfilter":
            assert watched(lab, 8) == set()
        else:
            wait_for(lambda: are_down(lab) == {"n2"} and states(lab)["n2"] == "down", "n2 is down", 30, seen=lambda: troubles(lab))
        since = time.monotonic()
        time.sleep(4)
        assert served(honest, since) and not failed(honest), failed(honest)
        lab.node("n2").exec(["nft", "delete", "table", "inet", "astray"])
        wait_for(lambda: states(lab)["n2"] == "up", "n2 tries again", 30, seen=lambda: troubles(lab))
        since = time.monotonic()
        wait_for(lambda: "n2" in {result[1] for result in served(honest, since)}, "n2 serves", 20)
    assert not failed(honest), failed(honest)


def test_all_nodes_redirect(lab):
    """None of them goes but as many as may be, and all is well when the rule is gone; nothing is answered meanwhile."""
    nat = "table inet astray { chain in { type nat hook prerouting priority -100; tcp dport 80 redirect to :81; }; }"
    with clients(lab, HONEST, 2, 4) as honest:
        for name in ALL:
            lab.node(name).exec(["nft", nat])
        assert len(watched(lab, 12)) <= 1
        assert daemon.DATAPATH != "netfilter" or not failed(honest)
        for name in ALL:
            lab.node(name).exec(["nft", "delete", "table", "inet", "astray"])
        since = time.monotonic() + 3
        time.sleep(6)
        assert served(honest, since) and not failed(honest, since), failed(honest, since)


def test_all_nodes_hear_nobody(lab):
    """As long as the rule is there, nothing can be done, and nobody makes it worse; then all is well at once."""
    with clients(lab, HONEST, 2, 4) as honest:
        with ruled(lab, ALL, EVERYBODY):
            assert len(watched(lab, 15)) <= 1
        since = time.monotonic() + 3
        time.sleep(6)
        assert served(honest, since) and not failed(honest, since), failed(honest, since)


@pytest.mark.parametrize("membership", ["static", pytest.param("corosync", marks=pytest.mark.corosync)])
def test_ipv6_is_off(membership):
    """Clients of IPv4 are served on, by all; those of IPv6 by who has their address."""
    with Lab(nodes=3, policy="wrr", membership=membership, family="46") as lab:
        if membership == "corosync":
            settled(lab, ALL)
        asked = raw.services(lab)

        def results(address):
            got = set()
            for _ in range(9):
                try:
                    response, _ = raw.ask(lab.client, raw.head("/node", Connection="close"), timeout=3, address=address)
                    got.add(response.node)
                except OSError as error:
                    got.add(type(error).__name__)
            return got
        v4, v6 = next(asked), next(asked)
        assert results(v4) | results(v6) <= set(ALL)
        netns.set_sysctls(lab.node("n2").namespace, {"net.ipv6.conf.all.disable_ipv6": 1})
        wait_for(lambda: "is not an address of this node" in troubles(lab)["n2"], "n2 has found it", 10, seen=lambda: troubles(lab))
        assert states(lab)["n2"] == "up"
        wait_for(lambda: results(v4) == set(ALL), "all serve IPv4", 10)
        # The netfilter datapath hears nothing of that family there, so nobody answers what is n2's to inspect.
        assert daemon.DATAPATH == "netfilter" or results(v6) <= {"n1", "n3"}
        for name in ("n1", "n3"):
            netns.set_sysctls(lab.node(name).namespace, {"net.ipv6.conf.all.disable_ipv6": 1})
        wait_for(lambda: all("is not an address of this node" in trouble for trouble in troubles(lab).values()), "all have found it", 10,
                 seen=lambda: troubles(lab))
        time.sleep(2)
        assert results(v4) <= set(ALL)
