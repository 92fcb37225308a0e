# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes that are drained, and taken away: docs/nodes.md, with real corosyncs."""
import contextlib
import json
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


def becomes(lab, node, expected, asked="n1"):
    wait_for(lambda: state(lab, node, asked) == expected, f"{node} {expected}", 15, lambda: state(lab, node, asked))


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


def by_hand(lab, node, asked="n1"):
    return next(n for n in lab.status(asked)["nodes"] if n["name"] == node).get("by_hand", {})


@contextlib.contextmanager
def read_only(node):
    """A node whose state directory cannot be written."""
    node.exec(["bash", "-c", "mount --bind /run/earshot /run/earshot && mount -o remount,ro,bind /run/earshot"])
    try:
        yield
    finally:
        node.exec(["umount", "/run/earshot"])


def test_what_cannot_be_kept_is_said():
    """To whoever gives the command, on any node, and in what all nodes tell; until it can be kept after all."""
    def unkept(asked):
        return {n["name"] for n in lab.status(asked)["nodes"] if n.get("unkept")}
    with Lab(nodes=3, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:
        settled(lab, ["n1", "n2", "n3"])
        with read_only(lab.node("n3")):
            for asked, command in (("n1", ["drain", "n3"]), ("n3", ["undrain"]), ("n3", ["drain"]), ("n2", ["weight", "n3", "50"])):
                done = lab.node(asked).exec(["earshot", *command], check=False)
                if command == ["undrain"]:  # there is no file yet
                    assert done.returncode == 0 and not done.stderr, done
                else:
                    assert done.returncode == 1 and "n3: done, but it cannot keep that" in done.stderr, (command, done)
            becomes(lab, "n3", "draining")
            for asked in ("n1", "n2", "n3"):
                wait_for(lambda asked=asked: unkept(asked) == {"n3"}, f"{asked} tells it", seen=lambda asked=asked: unkept(asked))
            assert "n3: cannot keep over a restart what is set by hand" in lab.node("n1").exec(["earshot", "nodes"]).stdout
        for asked in ("n1", "n2", "n3"):
            wait_for(lambda asked=asked: not unkept(asked), f"{asked} knows that it is kept now", 15, seen=lambda asked=asked: unkept(asked))
        restart(lab, "n3")
        settled(lab, ["n1", "n2", "n3"])
        becomes(lab, "n3", "draining")
        assert {n["name"]: n["weight"] for n in lab.status("n1")["nodes"]}["n3"] == 50
        done = lab.node("n1").exec(["earshot", "undrain", "n3"])
        assert not done.stderr
        with read_only(lab.node("n3")):  # what goes cannot be removed either
            done = lab.node("n1").exec(["earshot", "weight", "n3", "100"], check=False)
            assert done.returncode == 1 and "cannot keep that" in done.stderr, done


def test_by_hand():
    """Who, until when and why: all nodes tell it, also one that has just come, and over restarts of all; a time ends by itself."""
    nodes = ["n1", "n2", "n3"]
    with Lab(nodes=3, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:
        settled(lab, nodes)
        lab.node("n1").exec(["earshot", "drain", "n3", "--for", "2h", "--reason", "new disk"])
        lab.node("n2").exec(["earshot", "weight", "n2", "50"])
        becomes(lab, "n3", "draining")
        for restarted in (["n1"], nodes):
            restart(lab, *restarted)
            settled(lab, nodes)
            for asked in nodes:
                drain = wait_for(lambda asked=asked: by_hand(lab, "n3", asked).get("drain"), f"{asked} tells it")
                assert drain["reason"] == "new disk" and drain["by"].endswith("@n1"), drain
                assert drain["until_ms"] - drain["set_ms"] == 7200 * 1000, drain
                weight = wait_for(lambda asked=asked: by_hand(lab, "n2", asked).get("weight"), f"{asked} tells it")
                assert weight["weight"] == 50 and weight["by"].endswith("@n2"), weight
                assert {n["name"]: n["weight"] for n in lab.status(asked)["nodes"]}["n2"] == 50
        shown = lab.node("n2").exec(["earshot", "nodes"]).stdout
        assert re.search(r"^n3: drained by hand since \S+ \S+ by \S+@n1, until \S+ \S+: new disk$", shown, re.M), shown
        assert re.search(r"^n2: weight 50 by hand since \S+ \S+ by \S+@n2$", shown, re.M), shown
        lab.node("n1").exec(["earshot", "weight", "n2", "100"])
        wait_for(lambda: not by_hand(lab, "n2") and not by_hand(lab, "n2", "n3"), "the configuration's weight")
        # Another word takes the place of the one before; its time is over soon.
        lab.node("n2").exec(["earshot", "drain", "n3", "--for", "3s"])
        becomes(lab, "n3", "up")
        texts = lab.node("n1").exec(["earshot", "events", "--kind", "undrain"]).stdout
        assert "n3 is not drained any more: its time is over" in texts, texts
        assert not by_hand(lab, "n3") and "n3" in {n["name"] for n in lab.status("n2")["nodes"] if n["state"] == "up"}
        # One that was up: it was not drained when it heard for how long.
        lab.node("n1").exec(["earshot", "drain", "n2", "--for", "2s"])
        wait_for(lambda: "n2 is not drained any more: its time is over" in
                 lab.node("n1").exec(["earshot", "events", "--kind", "undrain"]).stdout, "the end of n2's time")
        becomes(lab, "n2", "up")
        # The only one that is up.
        for node in ("n1", "n2"):
            lab.node("n3").exec(["earshot", "drain", node])
            becomes(lab, node, "draining")
        refused = lab.node("n1").exec(["earshot", "drain", "n3"], check=False)
        assert refused.returncode == 1 and "n3 is the only node that is up" in refused.stderr, refused
        lab.node("n1").exec(["earshot", "drain", "n3", "--force"])
        becomes(lab, "n3", "draining")
        assert served_by(lab) <= set(nodes)
        wrong = lab.node("n1").exec(["earshot", "drain", "n3", "--for", "2 weeks"], check=False)
        assert wrong.returncode == 64 and "expected e.g. 90s, 30m, 2h or 7d" in wrong.stderr, wrong


def test_weight_0_of_the_last():
    """The last node that serves is given weight 0 with --force only, and requests are served all the same, as with a drain."""
    nodes = ["n1", "n2", "n3"]
    with Lab(nodes=3, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:

        def weight(node, value, *options, check=True):
            done = lab.node("n2").exec(["earshot", "weight", node, str(value), *options], check=check)
            if not done.returncode:
                wait_for(lambda: all(next(n for n in lab.status(asked)["nodes"] if n["name"] == node)["weight"] == value
                                     for asked in nodes), f"weight {value} of {node}")
            return done

        def refused():
            done = weight("n3", 0, check=False)
            assert done.returncode == 1 and "n3 is the only node that is up" in done.stderr, done
            assert '"earshot weight n3 0 --force"' in done.stderr, done

        settled(lab, nodes)
        weight("n1", 0)
        weight("n2", 0)
        wait_for(lambda: served_by(lab) == {"n3"}, "the requests of all at n3")
        refused()
        drain = lab.node("n1").exec(["earshot", "drain", "n3"], check=False)
        assert drain.returncode == 1 and "n3 is the only node that is up" in drain.stderr, drain
        weight("n3", 0, "--force")
        wait_for(lambda: served_by(lab) == set(nodes), "equal shares of all")
        # Servers that are gone instead: who has weight 0 is better than nobody.
        for node in ("n3", "n1", "n2"):
            weight(node, 100)
        for node in ("n1", "n2"):
            lab.stop(node, "nginx")
            becomes(lab, node, "down", asked="n3")
        wait_for(lambda: served_by(lab) == {"n3"}, "the requests of all at n3")
        refused()
        weight("n3", 0, "--force")
        for _ in range(5):
            assert served_by(lab) == {"n3"}


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


def printed(lab, node):
    """{first word: the line} of what `earshot nodes` prints there."""
    output = lab.node(node).exec(["earshot", "nodes"]).stdout
    print(output)
    return {line.split()[0]: line for line in output.splitlines() if line.strip()}


def test_shown():
    """What each node says of itself, added up; a node that is alone says that it is silent, and the others that they lost it."""
    nodes = ["n1", "n2", "n3"]
    with Lab(nodes=3, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:
        settled(lab, nodes)
        def words():
            return [node["snapshot"] or {} for node in json.loads(lab.node("n2").exec(["earshot", "--json", "nodes"]).stdout)["nodes"]]

        def requests():
            return sum(word.get("requests", 0) for word in words())

        wait_for(lambda: all(words()), "all nodes' words", 15, words)
        before = requests()
        for _ in range(60):
            assert lab.client.get("/1k", timeout=5)[0] == 200
        wait_for(lambda: requests() == before + 60, "all requests", 15, words)
        lines = printed(lab, "n2")
        heading, total = lines["NODE"].split(), lines["all"].split()
        assert "REQ/S" in heading and "ERR/S" in heading
        assert float(total[1]) > 0 and float(total[2]) == 0, lines["all"]
        assert lines["web"].split()[:3] == ["web", str(before + 60), "0"] and lines["web"].split()[-1] == "up"
        lab.node("n3").cut("cluster")
        wait_for(lambda: lab.status("n3")["membership"]["silent"], "n3 silent", 15)
        wait_for(lambda: state(lab, "n3", "n3") == "silent", "n3 says so", 15, lambda: state(lab, "n3", "n3"))
        assert " silent " in printed(lab, "n3")["n3"] and " absent " in printed(lab, "n3")["n1"]
        becomes(lab, "n3", "absent")
        lab.node("n3").mend("cluster")
        settled(lab, nodes)
        becomes(lab, "n3", "up")
        # Nothing comes: what a request took once is not what one takes now.
        wait_for(lambda: all(node["snapshot"] and node["snapshot"]["mean_now_us"] == 0 for node in json.loads(
            lab.node("n1").exec(["earshot", "--json", "nodes"]).stdout)["nodes"]), "no mean while nothing comes", 60)
