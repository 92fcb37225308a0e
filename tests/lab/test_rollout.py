# SPDX-License-Identifier: GPL-2.0-or-later
"""`earshot rollout`: a configuration is in force on all nodes of a real cluster, or on none."""
import json
import os
import re
import signal

import pytest

from cluster.files import NODES, own_files, path_of, policies, read, ready, rollout, with_policy, write_new
from cluster.membership import TOKEN, settled
from earshotlab import Lab, daemon, wait_for

pytestmark = pytest.mark.earshot


COROSYNC = pytest.param("corosync", marks=pytest.mark.corosync)


@pytest.fixture(scope="module", name="lab", params=["static", COROSYNC])
def _lab(request):
    with Lab(nodes=3, membership=request.param, policy="wrr", token=int(TOKEN * 1000)) as lab:
        own_files(lab)
        if request.param == "corosync":
            settled(lab, NODES)
        ready(lab)
        yield lab


def test_all_switch(lab):
    new = with_policy(lab, "uri-hash")
    before = read(path_of(lab, "n2"))
    done, report, _ = rollout(lab, "--dry-run", new)
    assert done.returncode == 0 and report["result"] == "checked", done
    assert set(policies(lab).values()) == {"wrr"}
    assert all(read(path_of(lab, node)) == before for node in NODES)
    assert not [name for node in NODES for name in os.listdir(lab.node_directory(node)) if ".rollout-" in name]
    done, report, states = rollout(lab, new)
    assert done.returncode == 0 and report["result"] == "switched", done
    assert states == {node: ("switched", "") for node in NODES}
    assert set(policies(lab).values()) == {"uri-hash"}
    for node in NODES:
        told = lab.node(node).exec(["earshot", "events", "--kind", "rollout"]).stdout.splitlines()[-1]
        where = "on all nodes" if node == "n1" else "here"
        assert re.search(rf"{os.path.basename(new)}, rolled out by \S+@n1, is in force {where}$", told), (node, told)
        assert read(path_of(lab, node)) == read(new), node
        assert read(path_of(lab, node) + ".previous") == before, node
    assert lab.client.get("/1k", timeout=5)[0] == 200
    back = write_new(lab, before)
    done = lab.node("n3").exec(["earshot", "rollout", back])
    assert "it is in force on all of these nodes" in done.stdout and done.stdout.count("has it") == 3, done.stdout
    assert set(policies(lab).values()) == {"wrr"}


def test_all_refuse(lab):
    """The same file on all: nothing changes on any, and the line of each says why."""
    before = policies(lab)
    files = {node: read(path_of(lab, node)) for node in NODES}
    new = write_new(lab, files["n1"].replace("wrr", "no-such-policy"))
    done, report, states = rollout(lab, new)
    assert done.returncode == 1 and report["result"] == "refused", done
    assert all(state == "refused" and f"{new}:" in reason and "no-such-policy" in reason
               for state, reason in states.values()), states
    assert policies(lab) == before and all(read(path_of(lab, node)) == files[node] for node in NODES)


@pytest.mark.parametrize("lab", [COROSYNC], indirect=True)  # only these nodes have disks of their own
def test_one_lacks_a_plugin(lab):
    """The file is right where the plugin is: nothing changes, and the line of n2 names the file's line."""
    files = {node: read(path_of(lab, node)) for node in NODES}
    own = "/var/lib/earshot/only-here.so"
    for node in ("n1", "n3"):
        lab.node(node).exec(["cp", os.path.join(daemon.BUILD, "plugins", "header-hash.so"), own])
    new = write_new(lab, files["n1"].replace(
        "service web {", f'service web {{\n    plugin header-hash {{\n        file = "{own}"\n        config = "header X-User"\n    }}'))
    done, report, states = rollout(lab, new)
    assert done.returncode == 1 and report["result"] == "refused", done
    assert states["n1"] == states["n3"] == ("ready", ""), states
    assert states["n2"][0] == "refused" and re.match(re.escape(new) + r":\d+: .*only-here", states["n2"][1]), states
    assert all(read(path_of(lab, node)) == files[node] for node in NODES)
    text = lab.node("n1").exec(["earshot", "rollout", new], check=False).stdout
    assert "nothing was changed on any node" in text and "would take it" in text and "only-here" in text, text


def test_one_cannot_write(lab):
    """Its disk, and nothing else, is in the way: the file of one node is gone."""
    new = with_policy(lab, "uri-hash")
    path = path_of(lab, "n2")
    os.rename(path, path + ".away")
    try:
        done, report, states = rollout(lab, new)
        assert done.returncode == 1 and report["result"] == "refused", done
        assert states["n2"][0] == "refused" and path in states["n2"][1], states
        assert states["n1"] == states["n3"] == ("ready", ""), states
        assert set(policies(lab).values()) == {"wrr"}
    finally:
        os.rename(path + ".away", path)
    assert lab.node("n1").exec(["earshot", "rollout", path_of(lab, "n1")], check=False).returncode == 1


def test_a_file_that_is_not_in_force(lab):
    """What was changed by hand, and never put in force, would be what a node goes back to: it refuses until that is settled."""
    new = with_policy(lab, "uri-hash")
    for node in ("n1", "n2"):
        path = path_of(lab, node)
        before = read(path)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(before.replace("wrr", "uri-hash"))
        try:
            for rolled in (new, write_new(lab, read(path))):
                done, report, states = rollout(lab, rolled)
                assert done.returncode == 1 and report["result"] == "refused", done
                assert states[node][0] == "refused" and f"{path} was changed and is not in force" in states[node][1], states
            assert set(policies(lab).values()) == {"wrr"}
        finally:
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(before)
    assert rollout(lab, "--dry-run", new)[1]["result"] == "checked"


def test_another_key(lab):
    """Nodes that have switched, and nodes that have not, must accept each other's words: a fresh key is refused, a staged one not."""
    new = with_policy(lab, "wrr")
    key = os.path.join(lab.directory, "cluster.key")
    with open(key, "rb") as handle:
        before = handle.read()
    try:
        lab.node("n1").exec(["earshot", "keygen", "--rotate", key])
        done, report, states = rollout(lab, new)
        assert done.returncode == 1 and report["result"] == "refused", done
        assert all(state == "refused" and f"{key}: its key is not in force yet" in reason for state, reason in states.values()), states
    finally:
        with open(key, "wb") as handle:
            handle.write(before)
    lab.node("n1").exec(["earshot", "keygen", "--stage", key])
    for node in NODES:
        lab.node(node).exec(["earshot", "reload"])
    lab.node("n1").exec(["earshot", "keygen", "--rotate", key])
    done, report, _ = rollout(lab, new)
    assert done.returncode == 0 and report["result"] == "switched", done


def test_a_node_that_is_away(lab):
    new = with_policy(lab, "uri-hash")
    frozen = lab.running_record("earshotd", "n3")["pid"]
    os.kill(frozen, signal.SIGSTOP)
    try:
        done, report, states = rollout(lab, new)
        assert done.returncode == 1 and report["result"] == "refused", done
        assert states["n3"] == ("lost", "it does not answer") and states["n2"][0] == "ready", states
        assert {lab.status(node)["services"][0]["policy"] for node in ("n1", "n2")} == {"wrr"}
    finally:
        os.kill(frozen, signal.SIGCONT)
    if lab.options["membership"] == "corosync":
        settled(lab, NODES)


def test_a_node_dies_between(lab):
    """n3 would take it and dies while n2 is still asked: nobody switches, and its next start has what the others have."""
    new = with_policy(lab, "uri-hash")
    slow = lab.running_record("earshotd", "n2")["pid"]
    os.kill(slow, signal.SIGSTOP)
    try:
        request = {"command": "rollout", "name": "new.conf", "text": read(new), "by": "test"}
        number = daemon.ask(lab.net.namespace("n1"), request)["number"]

        def states():
            report = daemon.ask(lab.net.namespace("n1"), {"command": "rollout", "number": number})
            return {node["name"]: node["state"] for node in report["nodes"]}, report
        wait_for(lambda: states()[0]["n3"] == "ready", "n3 would take it", 3, states)
        busy = lab.node("n1").exec(["earshot", "rollout", new], check=False)
        assert busy.returncode == 1 and "is being rolled out" in busy.stderr, busy
        busy = lab.node("n3").exec(["earshot", "rollout", new], check=False)
        assert busy.returncode == 1 and "node n1 leads a rollout" in busy.stderr, busy
        lab.crash("n3", "earshotd")
        wait_for(lambda: states()[1]["phase"] == "done", "its end", 10, states)
        found, report = states()
        assert report["result"] == "refused" and found["n3"] == found["n2"] == "lost", report
    finally:
        os.kill(slow, signal.SIGCONT)
    lab.start("n3", "earshotd")
    if lab.options["membership"] == "corosync":
        settled(lab, NODES)
    ready(lab)
    assert set(policies(lab).values()) == {"wrr"}
    wait_for(lambda: rollout(lab, "--dry-run", new)[1].get("result") == "checked", "n2 has given the old one up", 15)


def control_of(lab, node):
    """`check` looks for the daemon where nodes with disks of their own have it."""
    return [] if lab.options["membership"] == "corosync" else ["--control", daemon.control_path(lab.net.namespace(node))]


def drifts(lab, asked):
    """{node: {setting: whether it would cost the node its place}}, as that node says."""
    return {n["name"]: {d["setting"]: d["must"] for d in n["drift"]} for n in lab.status(asked)["nodes"] if n.get("drift")}


def test_drift(lab):
    """A reload on one node only: all say which node it is and in what, whatever the membership; a rollout mends it."""
    wait_for(lambda: not any(drifts(lab, node) for node in NODES), "no drift", 15, lambda: drifts(lab, "n1"))
    path = path_of(lab, "n2")
    before = read(path)
    changed = before.replace("service web {", "service web {\n    document_root = /srv\n    when_all_down = reject\n"
                             "    check { type = http path = /health }") + 'rule extra { path = "/x" cost = 2 }\n'
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(changed)
    lab.node("n2").exec(["earshot", "reload"])
    expected = {"service.web.check": False, "service.web.document_root": False, "service.web.serving": False,
                "rule.0.extra": True, "rules": True}
    for asked in NODES:
        wait_for(lambda node=asked: drifts(lab, node) == {"n2": expected}, f"{asked} tells it", 15,
                 lambda node=asked: drifts(lab, node))
        for command in ("nodes", "status"):
            said = lab.node(asked).exec(["earshot", command]).stdout
            assert "n2: setting service.web.document_root differs: /srv here, none on n1, none on n3" in said, said
        found = json.loads(lab.node(asked).exec(
            ["earshot", "--json", *control_of(lab, asked), "check"], check=False).stdout)["findings"]
        assert any(f["id"] == "members.drift" and f["severity"] == "error" and "service.web.check: n2 http" in f["found"]
                   for f in found), [f for f in found if f["id"].startswith("members")]
    done, report, _ = rollout(lab, write_new(lab, before))
    assert done.returncode == 0 and report["result"] == "switched", done
    wait_for(lambda: not any(drifts(lab, node) for node in NODES), "no drift", 15, lambda: drifts(lab, "n1"))
    assert "differs" not in lab.node("n1").exec(["earshot", "nodes"]).stdout


def test_without(lab):
    new = with_policy(lab, "uri-hash")
    lab.stop("n3", "earshotd")
    done, report, states = rollout(lab, "--without", "n3", new)
    assert done.returncode == 0 and report["result"] == "switched" and states["n3"] == ("left_out", ""), done
    wrong = lab.node("n1").exec(["earshot", "rollout", "--without", "n7", new], check=False)
    assert wrong.returncode == 1 and 'no node "n7" is configured' in wrong.stderr, wrong
