# SPDX-License-Identifier: GPL-2.0-or-later
"""A node that hears the clients' network and is not heard there: the switch loses all frames that it sends. And one that
hears broadcasts only."""
import json
import threading

import pytest

from cluster.membership import ALL, settled
from earshotlab import Lab, wait_for
from earshotlab.netns import ip
from earshotlab.switch import link_name
from web.traffic import Traffic, distribution

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

FOUND = 1.0  # so soon it has left
ASKED = 0.5  # until a busy machine has told us so


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=500) as lab:
        settled(lab)
        yield lab


def knows(lab, name):
    """The node's view of the others on the public network: {name: (heard, hears)}."""
    return {node["name"]: (node.get("heard"), node.get("hears")) for node in lab.status(name)["nodes"] if node["name"] != name}


def all_hear_all(lab):
    wait_for(lambda: all(set(knows(lab, name).values()) == {(True, True)} for name in ALL), "nodes that hear each other")


def findings(lab, name):
    done = lab.node(name).exec(["earshot", "--json", "check", "--config", lab.config_file], check=False)
    assert done.stdout, done.stderr
    return {finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_leaves_by_itself(lab):
    """Others take over its share, and it comes back when it is heard."""
    all_hear_all(lab)
    assert findings(lab, "n1")["members.heard"]["severity"] == "ok"
    with Traffic(lab) as traffic:
        traffic.run(1)
        traffic.wait_nodes(ALL)
        cut = traffic.now()
        lab.node("n4").cut("public", silent="out")
        wait_for(lambda: lab.status("n4")["membership"]["silent"], "silence", FOUND + ASKED)
        print(f"left after {traffic.now() - cut:.2f} s")
        why = lab.status("n4")["membership"]["why"]
        assert "is mute: " in why and "hear each other there, and nobody hears this node" in why, why
        settled(lab, ["n1", "n2", "n3"])
        works = traffic.now()
        traffic.run(2)
        assert lab.status("n4")["membership"]["silent"]
        lab.node("n4").mend("public")
        settled(lab)
        traffic.wait_nodes(ALL, traffic.now())
    print(f"fresh connections took {distribution(traffic.slow(cut))}")
    assert not traffic.failures("kept", set(ALL) - {"n4"})
    assert not [failure for failure in traffic.broken if failure.began > works], traffic.broken[-3:]
    all_hear_all(lab)


def test_deaf_to_the_others_alone(lab):
    """Who is not heard by some, but by one, stays: its frames do leave."""
    all_hear_all(lab)
    epoch = lab.status("n1")["membership"]["epoch"]
    lab.partition([["n1", "n2"], ["n3", "n4"]], networks=["public"])
    wait_for(lambda: set(knows(lab, "n1").values()) == {(True, True), (False, None)}, "a divided public network")
    settled(lab)
    assert "not heard on the public network" in lab.node("n1").exec(["earshot", "nodes"]).stdout
    lab.heal_partition()
    all_hear_all(lab)
    settled(lab)
    assert lab.status("n1")["membership"]["epoch"] == epoch


def test_mute_from_the_start(lab):
    """Its switch port may be an isolated one: it stays, and `earshot check` says so."""
    lab.stop("n4", "earshotd")
    lab.node("n4").cut("public", silent="out")
    # Until then they say that they hear it, and the new daemon would leave when they do not any more.
    wait_for(lambda: all(knows(lab, name)["n4"][0] is False for name in ("n1", "n2", "n3")), "a node that is missed")
    lab.start("n4", "earshotd")
    settled(lab)
    wait_for(lambda: set(knows(lab, "n4").values()) == {(True, False)}, "a node that hears the others")
    finding = findings(lab, "n4")["members.heard"]
    assert finding["severity"] == "warning" and "none of them hears it" in finding["found"]
    finding = findings(lab, "n1")["members.heard"]
    assert finding["severity"] == "warning" and "node n4" in finding["found"]
    settled(lab)
    lab.node("n4").mend("public")
    all_hear_all(lab)


class Broadcasts:
    """Somebody on the clients' network goes on asking for addresses, as on any network."""
    def __init__(self, lab):
        self.lab = lab
        self.end = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.end.wait(0.2):
            self.lab.client.exec(["ip", "neighbour", "flush", "dev", "eth0"], check=False)
            self.lab.client.exec(["ping", "-c1", "-W0.1", "10.77.0.250"], check=False)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()


def forget_cluster_mac(lab, node, forgets=True):
    """A switch with IGMP snooping, which nobody told of this port: group addresses end there, broadcasts do not."""
    router, flood = ("0", "off") if forgets else ("2", "on")
    ip("-n", lab.net.switch, "link", "set", link_name(node, "public"), "type", "bridge_slave", "mcast_router", router,
       "mcast_flood", flood)


def test_hears_broadcasts_only(lab):
    """It leaves, also while something arrives; another daemon does not come back before it is heard again."""
    all_hear_all(lab)
    with Broadcasts(lab):
        forget_cluster_mac(lab, "n4")
        wait_for(lambda: lab.status("n4")["membership"]["silent"], "silence", 1.5 + FOUND + ASKED)
        why = lab.status("n4")["membership"]["why"]
        assert "receives nothing that is sent to the cluster MAC" in why, why
        assert "cluster MAC" in findings(lab, "n4")["members.membership"]["found"]
        settled(lab, ["n1", "n2", "n3"])
        assert {lab.client.get(f"/{i}")[0] for i in range(12)} <= {200, 404}
        lab.stop("n4", "earshotd")
        epoch = lab.status("n1")["membership"]["epoch"]
        lab.start("n4", "earshotd")
        wait_for(lambda: "cluster MAC" in lab.status("n4")["membership"]["why"], "the next daemon's silence")
        assert lab.status("n1")["membership"]["epoch"] == epoch
        forget_cluster_mac(lab, "n4", False)
        settled(lab)
    all_hear_all(lab)
