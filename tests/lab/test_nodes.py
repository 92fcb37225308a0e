# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes that are drained, and taken away: docs/nodes.md, with real corosyncs."""
import re

import pytest

from cluster.membership import ALL, TOKEN, settled
from earshotlab import Lab, wait_for

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]


def restart(lab, *nodes):
    for node in nodes:
        lab.stop(node, "earshotd")
    for node in nodes:
        lab.start(node, "earshotd")


def state(lab, node, asked="n1"):
    return {n["name"]: n["state"] for n in lab.status(asked)["nodes"]}.get(node)


def becomes(lab, node, expected):
    wait_for(lambda: state(lab, node) == expected, f"{node} {expected}", 15, lambda: state(lab, node))


def served_by(lab):
    return {lab.client.get("/1k", timeout=5)[1]["X-Node"] for _ in range(20)}


def test_drained():
    """Over restarts of its daemon, and of all, until somebody ends it; what a stop began, the next start ends."""
    nodes = ["n1", "n2", "n3"]
    with Lab(nodes=3, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:
        settled(lab, nodes)
        lab.node("n1").exec(["earshot", "drain", "n3"])
        becomes(lab, "n3", "draining")
        for restarted in (["n3"], nodes):
            restart(lab, *restarted)
            settled(lab, nodes)
            assert state(lab, "n3") == "draining"
            assert "n3" not in served_by(lab)
        lab.node("n2").exec(["earshot", "undrain", "n3"])
        becomes(lab, "n3", "up")
        restart(lab, "n3")
        settled(lab, nodes)
        becomes(lab, "n3", "up")
        wait_for(lambda: "n3" in served_by(lab), "requests for n3")
        refused = lab.node("n1").exec(["earshot", "drain", "n3", "--until-restart"], check=False)
        assert refused.returncode and "expected of the node that is asked" in refused.stderr, refused
        lab.node("n3").exec(["earshot", "drain", "--until-restart"])
        becomes(lab, "n3", "draining")
        restart(lab, "n3")
        settled(lab, nodes)
        becomes(lab, "n3", "up")


def test_removed_from_the_middle():
    """The others keep their ids: whichever corosync is restarted finds the others again, and the daemons know each other."""
    left = [node for node in ALL if node != "n2"]
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:
        settled(lab)
        lab.kill("n2")
        settled(lab, left)
        with open(lab.config_file, encoding="utf-8") as file:
            text = file.read()
        with open(lab.config_file, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^node n2 \{[^}]*\}\n", "", text, flags=re.M))
        printed = lab.node("n1").exec(["earshot", "corosync-conf", lab.config_file])
        assert "warning" not in printed.stderr
        ids = dict(re.findall(r"nodeid: (\d+)\n\s*name: (\w+)", printed.stdout))
        assert ids == {"1": "n1", "3": "n3", "4": "n4"}
        # The lab's corosyncs have timings and addresses of their own: of the printed file, the list of nodes.
        for node in left:
            lab.node(node).exec(["python3", "-c", (
                "import re; path = '/etc/corosync/corosync.conf'; text = open(path).read(); "
                r"open(path, 'w').write(re.sub(r'\n *node *\{[^}]*name: n2\n[^}]*\}', '', text))")])
            restart(lab, node)
        lab.node("n1").exec(["corosync-cfgtool", "-R"])
        settled(lab, left)
        for node in ("n3", "n1"):
            lab.stop(node, "corosync")
            lab.start(node, "corosync")
            settled(lab, left)
            assert set(lab.status(node)["nodes"][i]["name"] for i in range(3)) == set(left)
        wait_for(lambda: served_by(lab) == set(left), "requests for all")
