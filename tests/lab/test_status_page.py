# SPDX-License-Identifier: GPL-2.0-or-later
"""The cluster as any node shows it: what each says of itself, and who does not answer."""
import json

import pytest

from earshotlab import Lab, topology, wait_for

pytestmark = pytest.mark.earshot

PAGES = [f"/u/1k/{number}" for number in range(12)]
CONTENTS = {f"//{topology.VIP}{page}" for page in PAGES}
REQUESTS = 60


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="lard", settings={"service.inspect": "every"}) as lab:
        yield lab


def url(lab, node, path):
    return f"http://{lab.node(node).cluster_address}:{topology.STATUS_PORT}{path}"


def fetch(lab, node, path, *options):
    return lab.node(node).exec(["curl", "-sSf", "--max-time", "5", *options, url(lab, node, path)]).stdout


def cluster(lab, node):
    return json.loads(fetch(lab, node, "/page.json"))


def nodes(view):
    return {node["name"]: node for node in view["nodes"]}


def all_answer(lab, node):
    return all(each["answers"] for each in cluster(lab, node)["nodes"])


def requests(view):
    return sum(node["snapshot"]["requests"] for node in view["nodes"])


def test_any_node_shows_the_whole_cluster(lab):
    wait_for(lambda: all(all_answer(lab, node.name) for node in lab.nodes), "each node hears from all")
    before = requests(cluster(lab, "n1"))
    for number in range(REQUESTS):
        lab.client.get(PAGES[number % len(PAGES)])
    for node in lab.nodes:
        wait_for(lambda name=node.name: requests(cluster(lab, name)) == before + REQUESTS, f"{node.name} shows all requests")
        view = cluster(lab, node.name)
        assert [each["name"] for each in view["nodes"] if each["self"]] == [node.name]
        assert {each["snapshot"]["services"][0]["name"] for each in view["nodes"]} == {"web"}
        assert sum(each["ring_share"] for each in view["nodes"]) == pytest.approx(1, abs=1e-5)
        assert set(view["ring_places"]) == {0, 1, 2}
        wait_for(lambda name=node.name: CONTENTS & hot(cluster(lab, name)), f"{node.name} shows the hottest content")


def hot(view):
    return {target["uri"] for node in view["nodes"] for service in node["snapshot"]["hot"] for target in service["targets"]}


def test_history(lab):
    """Ten minutes of five seconds each, by the node that serves."""
    for page in PAGES:
        lab.client.get(page)

    def served():
        counts = [node["snapshot"]["history"]["targets"] for node in cluster(lab, "n2")["nodes"]]
        return sum(sum(samples) for targets in counts for samples in targets.values())
    wait_for(lambda: served() >= len(PAGES), "the requests are in the history", 20)
    assert cluster(lab, "n2")["nodes"][0]["snapshot"]["history"]["step_s"] == 5


def test_a_command_has_the_same(lab):
    wait_for(lambda: all_answer(lab, "n1"), "all answer")
    view = lab.node("n1").ask({"command": "cluster"})
    assert set(nodes(view)) == {"n1", "n2", "n3"} and all(node["answers"] for node in view["nodes"])


def test_a_dead_node_is_not_shown_as_fresh(lab):
    wait_for(lambda: all_answer(lab, "n1"), "all answer")
    lab.kill("n3")
    wait_for(lambda: not nodes(cluster(lab, "n1"))["n3"]["answers"], "n3 is shown as not answering", 15)
    dead = nodes(cluster(lab, "n1"))["n3"]
    assert dead["age_s"] >= 3 and dead["snapshot"]["requests"] >= 0  # what it said last is still known
    assert nodes(cluster(lab, "n1"))["n2"]["answers"]
    wait_for(lambda: nodes(cluster(lab, "n1"))["n3"]["age_s"] > dead["age_s"], "its words grow old")
