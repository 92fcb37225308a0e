# SPDX-License-Identifier: GPL-2.0-or-later
"""A node that joins with a wrong cluster interface, or whose cluster network a firewall closes: it takes no share of the
ring while others serve."""
import json
import re

import pytest

from cluster.membership import ALL, settled
from earshotlab import Lab, wait_for
from web.traffic import Traffic

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

OTHERS = ["n1", "n2", "n3"]
CLOSED = "table inet closed { chain input { type filter hook input priority 0; iifname eth1 udp dport 7350 drop; }; }"


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=500, settings={"node.n4.cluster_interface": "eth0"}) as lab:
        yield lab


def membership(lab, name):
    return lab.status(name)["membership"]


def shares(lab, name):
    return {node["name"] for node in lab.status(name)["nodes"] if node["ring_share"] > 0}


def wait_shares(lab, names, on):
    """The ring of these is in force, on each of @on."""
    wait_for(lambda: all(membership(lab, name)["phase"] == "stable" and shares(lab, name) == set(names) for name in on),
             f"a ring of {names}", 20, lambda: {name: (sorted(shares(lab, name)), membership(lab, name)) for name in on})


def wait_told(lab, name, pattern):
    wait_for(lambda: re.fullmatch(pattern, membership(lab, name)["why"]), f"{name}: {pattern}", 15,
             lambda: membership(lab, name))


def restart_with(lab, name, interface):
    with open(lab.config_file, encoding="utf-8") as handle:
        text = handle.read()
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(re.sub(r"(node n4 \{[^}]*cluster_interface = )\w+", rf"\g<1>{interface}", text))
    lab.stop(name, "earshotd")
    lab.start(name, "earshotd")


def test_wrong_interface(lab):
    """It swallows nothing, says so wherever people look, and takes its share when the file is right."""
    wait_shares(lab, OTHERS, ALL)
    wait_told(lab, "n4", r"n4 hears none of n1, n2, n3 on eth0: cluster_interface is wrong, what they send comes by eth1")
    assert membership(lab, "n4")["silent"]
    with Traffic(lab) as traffic:
        traffic.run(1)
        assert not traffic.broken, traffic.broken[-3:]
    assert "n4 hears none of" in lab.node("n4").exec(["earshot", "nodes"]).stdout
    wait_for(lambda: "n4: it hears no other node on its cluster interface" in lab.node("n1").exec(["earshot", "nodes"]).stdout,
             "a node that is told of it", 10, lambda: lab.node("n1").exec(["earshot", "nodes"]).stdout)
    events = lab.node("n4").exec(["earshot", "events", "--kind", "silent"]).stdout
    assert events.count("hears none of") == 1, events
    done = lab.node("n4").exec(["earshot", "--json", "check", "--config", lab.config_file], check=False)
    finding = {finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}["members.membership"]
    assert done.returncode == 1 and finding["severity"] == "error" and "n4 hears none of" in finding["found"]
    # Nor does a weight that somebody gives it make it take a share.
    lab.node("n1").exec(["earshot", "weight", "n4", "50"])
    wait_for(lambda: "has weight 50" in lab.node("n1").exec(["earshot", "events", "--kind", "weight"]).stdout, "the weight")
    wait_shares(lab, OTHERS, ALL)
    assert membership(lab, "n4")["silent"]
    restart_with(lab, "n4", "eth1")
    settled(lab)
    wait_shares(lab, ALL, ALL)
    assert lab.status("n1")["nodes"][3]["weight"] == 50
    lab.node("n1").exec(["earshot", "weight", "n4", "100"])


def test_alone(lab):
    """The first machine after a power cut hears nobody, and serves; the others join it."""
    for name in ALL:
        lab.stop(name, "earshotd")
    lab.start("n1", "earshotd")
    wait_shares(lab, ["n1"], ["n1"])
    wait_for(lambda: not membership(lab, "n1")["silent"], "a node that serves")
    for name in ALL[1:]:
        lab.start(name, "earshotd")
    settled(lab)
    wait_shares(lab, ALL, ALL)


def test_network_of_all_is_closed(lab):
    """All start, and none hears another: one serves at least, and all do when the firewall is right again."""
    for name in ALL:
        lab.stop(name, "earshotd")
        lab.node(name).exec(["nft", CLOSED])
    try:
        for name in ALL:
            lab.start(name, "earshotd")
        wait_for(lambda: any(not membership(lab, name)["silent"] for name in ALL), "one that serves", 20,
                 lambda: {name: membership(lab, name) for name in ALL})
        # One that comes later finds one that serves.
        first = next(name for name in ALL if not membership(lab, name)["silent"])
        late = next(name for name in ALL if name != first)
        lab.stop(late, "earshotd")
        lab.start(late, "earshotd")
        wait_told(lab, late, rf"{late} hears none of .* on eth1: cluster_interface is wrong, or a cable or firewall is")
        assert not membership(lab, first)["silent"]
    finally:
        for name in ALL:
            lab.node(name).exec(["nft", "delete table inet closed"])
    settled(lab)
    wait_shares(lab, ALL, ALL)
