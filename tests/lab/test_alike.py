# SPDX-License-Identifier: GPL-2.0-or-later
"""Whoever is alike is in: a node that was refused joins when it is made alike, whoever does that; one that comes back with an
older file takes the members'. No client notices."""
import contextlib
import json
import os
import re

import pytest

from cluster.files import NODES, own_files, path_of, read, ready, rollout, write_new
from cluster.membership import TOKEN, serving, settled
from earshotlab import Lab, LabError, daemon, wait_for
from web.traffic import Traffic

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:
        own_files(lab)
        settled(lab, NODES)
        ready(lab)
        yield lab


@contextlib.contextmanager
def unharmed(lab):
    """Clients all the while, none of whom notices anything."""
    with Traffic(lab, kept=8, fresh=4) as traffic:
        traffic.run(1)
        yield traffic
        traffic.run(1)
    assert not traffic.wrong and not traffic.broken, (traffic.wrong[-3:], traffic.broken[-3:])
    assert len(traffic.answers) > 100


def write(lab, node, text):
    with open(path_of(lab, node), "w", encoding="utf-8") as handle:
        handle.write(text)


def restart(lab, node, text):
    """The daemon comes back with another file."""
    lab.stop(node, "earshotd")
    write(lab, node, text)
    lab.start(node, "earshotd")


def seen(lab, node="n1", asked="n1"):
    return {n["name"]: n for n in lab.status(asked)["nodes"]}[node]


def refused(lab, node):
    for asked in NODES:
        wait_for(lambda asked=asked: seen(lab, node, asked).get("refused"), f"{node} is refused, says {asked}", 15,
                 lambda asked=asked: seen(lab, node, asked))


def pid_of(lab, node):
    return lab.running_record("earshotd", node)["pid"]


def history(lab, node):
    return lab.node(node).exec(["sh", "-c", "cat /run/earshot/*.rollout"]).stdout


def events(lab, node, kind="rollout,rollout_refused"):
    return lab.node(node).exec(["earshot", "events", "--kind", kind]).stdout


def with_rule(text, name="admin"):
    return text + f'rule {name} {{ path = "/{name}/" deny = yes }}\n'


def test_made_alike_by_reload(lab):
    """Its own file is mended; nothing is started anew, and whoever is a member stays one."""
    text = read(path_of(lab, "n3"))
    restart(lab, "n3", with_rule(text))
    refused(lab, "n3")
    began = pid_of(lab, "n3")
    write(lab, "n3", text)
    with unharmed(lab) as traffic:
        lab.node("n3").exec(["earshot", "reload"])
        settled(lab, NODES)
        serving(lab)
        traffic.run(2)
    assert pid_of(lab, "n3") == began and not seen(lab, "n3")["refused"]
    assert {answer.node for answer in traffic.answers} == set(NODES)
    assert "it was refused, is like the members now, and joins again" in events(lab, "n3", "silent")
    assert "joined" in events(lab, "n1", "join").splitlines()[-1]


def test_the_members_are_made_alike(lab):
    """The refused node has the right file: it waits until the last member has it, since the view would judge these, too."""
    text = read(path_of(lab, "n3"))
    new = with_rule(text, "later")
    restart(lab, "n3", new)
    refused(lab, "n3")
    with unharmed(lab):
        write(lab, "n1", new)
        lab.node("n1").exec(["earshot", "reload"])
        wait_for(lambda: seen(lab, "n1", "n3").get("drift") or seen(lab, "n2", "n3").get("drift"), "the members differ", 10)
        epoch = lab.status("n1")["membership"]["epoch"]
        assert seen(lab, "n3")["refused"] and not seen(lab, "n1")["refused"] and not seen(lab, "n2")["refused"]
        write(lab, "n2", new)
        assert lab.status("n1")["membership"]["epoch"] == epoch
        lab.node("n2").exec(["earshot", "reload"])
        settled(lab, NODES)
    for node in NODES:
        write(lab, node, text)
        lab.node(node).exec(["earshot", "reload"])
    wait_for(lambda: not re.search("differs|refused", lab.node("n1").exec(["earshot", "nodes"]).stdout), "all are alike again", 5)


def test_rollout_makes_alike(lab):
    """n3 was changed by hand and is refused: the rollout ends when it is a member, and not before."""
    text = read(path_of(lab, "n3"))
    restart(lab, "n3", with_rule(text, "own"))
    refused(lab, "n3")
    began = pid_of(lab, "n3")
    with unharmed(lab):
        done, report, states = rollout(lab, write_new(lab, with_rule(text, "all")))
        assert done.returncode == 0 and states == {node: ("switched", "") for node in NODES}, done
        assert [node["member"] for node in report["nodes"]] == [True, True, True]
        assert not seen(lab, "n3")["refused"] and seen(lab, "n3")["member"]
    assert pid_of(lab, "n3") == began
    settled(lab, NODES)


def test_rollout_to_one_that_stays_out(lab):
    """Its daemon has the file and cannot join without its corosync: the rollout says so, and ends with 1."""
    text = read(path_of(lab, "n3"))
    lab.node("n3").corosync.stop()
    wait_for(lambda: not seen(lab, "n3")["member"], "n3 is out", 15)
    try:
        new = write_new(lab, with_rule(text, "corosync"))
        said = lab.node("n1").exec(["earshot", "rollout", new], check=False)
        reason = seen(lab, "n3")["reason"]
        assert said.returncode == 1 and re.search(rf"^n3 +has it, and is not a member +{reason}$", said.stdout, re.M), said
        assert said.stdout.count("not a member") == 1 and read(path_of(lab, "n3")) == read(new), said
        assert "in force on all of these nodes, but not all of them are members" in said.stdout, said
    finally:
        lab.node("n3").corosync.start()
        settled(lab, NODES)


def test_machine_is_made_alike(lab):
    """What differs is a sysctl: no rollout helps, and says so; when that is put right, a reload does."""
    lab.stop("n3", "earshotd")
    lab.node("n3").exec(["sysctl", "-qw", "net.ipv4.tcp_sack=0"])
    lab.start("n3", "earshotd")
    try:
        refused(lab, "n3")
        done, report, states = rollout(lab, write_new(lab, with_rule(read(path_of(lab, "n3")), "sack")))
        assert done.returncode == 1 and report["result"] == "refused" and "handshake" in states["n3"][1], done
    finally:
        lab.node("n3").exec(["sysctl", "-qw", "net.ipv4.tcp_sack=1"])
        lab.node("n3").exec(["earshot", "reload"])
        settled(lab, NODES)
        wait_for(lambda: not seen(lab, "n3")["refused"], "n3 is in", 15, lambda: seen(lab, "n3"))


def rolled_out(lab):
    """All have a file by rollout; returns its text."""
    text = read(path_of(lab, "n1")) + "# by rollout\n"
    done, _, _ = rollout(lab, write_new(lab, text))
    assert done.returncode == 0, done
    return text


def back_with(lab, node, change=None):
    """The node is off while a file is rolled out to the others, and back; returns the two files."""
    text = rolled_out(lab)
    new = with_rule(text, f"rolled{len(text)}")
    lab.stop(node, "earshotd")
    settled(lab, [other for other in NODES if other != node])
    done, report, states = rollout(lab, "--without", node, write_new(lab, new))
    assert done.returncode == 0 and states[node] == ("left_out", ""), done
    if change:
        change(read(path_of(lab, node)))
    lab.start(node, "earshotd")
    return text, new


def test_comes_back_with_an_older_file(lab):
    """It takes the members' file, keeps its own, says so, and is in; nobody does anything."""
    with unharmed(lab) as traffic:
        old, new = back_with(lab, "n3")
        settled(lab, NODES)
        wait_for(lambda: not seen(lab, "n3")["refused"], "n3 is in", 15, lambda: seen(lab, "n3"))
        traffic.run(2)
    assert read(path_of(lab, "n3")) == new and read(path_of(lab, "n3") + ".previous") == old
    told = events(lab, "n3").splitlines()[-1]
    assert re.search(r"new\.conf, rolled out by \S+@n1 while this node was away, was taken from n[12] and is in force here; "
                     rf"the older file is {re.escape(path_of(lab, 'n3'))}\.previous", told), told
    assert any("n3 had an older file, and was given" in events(lab, node) for node in ("n1", "n2"))
    assert history(lab, "n3") == history(lab, "n1") != ""
    assert {answer.node for answer in traffic.answers} == set(NODES)
    lab.stop("n3", "earshotd")
    lab.start("n3", "earshotd")
    settled(lab, NODES)
    assert events(lab, "n3").splitlines()[-1] == told, "the file is the members', and nothing was to be taken"


def test_was_cut_off(lab):
    """Its daemon runs all the while, and asks when it is back on the bus."""
    text = rolled_out(lab)
    new = with_rule(text, "while_cut_off")
    lab.partition([["n1", "n2"], ["n3"]], networks=["cluster", "public"])
    try:
        settled(lab, ["n1", "n2"])
        assert rollout(lab, "--without", "n3", write_new(lab, new))[0].returncode == 0
    finally:
        lab.heal_partition()
    wait_for(lambda: read(path_of(lab, "n3")) == new, "n3 has the file", 30, lambda: events(lab, "n3"))
    settled(lab, NODES)


def test_all_start_at_once(lab):
    """n1, whose word counts where nobody served before, has the oldest file: it takes that of those whom it refuses."""
    text = rolled_out(lab)
    new = with_rule(text, "all_at_once")
    lab.stop("n1", "earshotd")
    settled(lab, ["n2", "n3"])
    assert rollout(lab, "--without", "n1", write_new(lab, new), node="n2")[0].returncode == 0
    for node in ("n2", "n3"):
        lab.stop(node, "earshotd")
    for node in NODES:
        lab.start(node, "earshotd")
    wait_for(lambda: read(path_of(lab, "n1")) == new, "n1 has the file", 30, lambda: events(lab, "n1"))
    settled(lab, NODES)
    for node in NODES:
        wait_for(lambda node=node: not seen(lab, node)["refused"], f"{node} is in", 15, lambda node=node: seen(lab, node))


def test_cannot_take_it(lab):
    """The file names a plugin that n3 has not: it keeps its own, and says what is missing; with the plugin it catches up."""
    own = "/var/lib/earshot/only-there.so"
    text = rolled_out(lab)
    new = text.replace("service web {", f'service web {{\n    plugin header-hash {{\n        file = "{own}"\n'
                                        '        config = "header X-User"\n    }', 1)
    plugin = os.path.join(daemon.BUILD, "plugins", "header-hash.so")
    for node in ("n1", "n2"):
        lab.node(node).exec(["cp", plugin, own])
    lab.stop("n3", "earshotd")
    settled(lab, ["n1", "n2"])
    assert rollout(lab, "--without", "n3", write_new(lab, new))[0].returncode == 0
    lab.start("n3", "earshotd")
    refused(lab, "n3")
    wait_for(lambda: "only-there" in events(lab, "n3"), "it says what it lacks", 15, lambda: events(lab, "n3"))
    assert read(path_of(lab, "n3")) == text and lab.status("n3")["rollout"]["not_taken"]
    found = json.loads(lab.node("n3").exec(["earshot", "--json", "check"], check=False).stdout)["findings"]
    assert any(f["id"] == "members.refused" and "only-there" in f["found"] for f in found), found
    lab.node("n3").exec(["cp", plugin, own])
    wait_for(lambda: read(path_of(lab, "n3")) == new, "n3 asks again", 45, lambda: events(lab, "n3"))
    settled(lab, NODES)
    assert not lab.status("n3")["rollout"]["not_taken"] and lab.status("n3")["rollout"]["in_force"]
    assert events(lab, "n3").count("only-there") == 1, "it is said once"
    assert rollout(lab, write_new(lab, text))[0].returncode == 0


def test_was_changed_by_hand(lab):
    """Somebody's work on n3 is not lost: n3 is refused, and says once what is to be done."""
    old, new = back_with(lab, "n3", lambda text: write(lab, "n3", text + "# mine\n"))
    refused(lab, "n3")
    wait_for(lambda: "was changed by hand since" in events(lab, "n3"), "it says why", 15, lambda: events(lab, "n3"))
    assert read(path_of(lab, "n3")) == old + "# mine\n"
    done, _, states = rollout(lab, write_new(lab, new + "# again\n"))
    assert done.returncode == 0 and states["n3"] == ("switched", ""), done
    settled(lab, NODES)


def test_was_put_back_by_hand(lab):
    """An older file that somebody has put in its place again is his work, too; here it costs n3 nothing but the rule."""
    text = rolled_out(lab)
    rolled_out(lab)
    restart(lab, "n3", text)
    settled(lab, NODES)
    wait_for(lambda: "was changed by hand since" in events(lab, "n3").splitlines()[-1], "it says why", 15, lambda: events(lab, "n3"))
    assert read(path_of(lab, "n3")) == text
    assert rollout(lab, write_new(lab, text))[0].returncode == 0


def test_was_rolled_out_apart(lab):
    """Two sides have had rollouts of their own: neither overwrites the other's, until somebody says which it is to be."""
    text = rolled_out(lab)
    others = with_rule(text, "there")
    lab.partition([["n1", "n2"], ["n3"]], networks=["cluster", "public"])
    wait_for(lambda: lab.status("n3")["membership"]["silent"], "n3 is alone", 15)
    done, _, _ = rollout(lab, "--without", "n3", write_new(lab, with_rule(text, "here")))
    assert done.returncode == 0, done
    done, report, _ = rollout(lab, "--without", "n1", "--without", "n2", write_new(lab, others), node="n3")
    assert done.returncode == 1 and report["result"] == "switched", done
    assert not report["nodes"][2]["member"] and report["nodes"][2]["reason"].startswith("n3 is silent: "), report
    lab.heal_partition()
    refused(lab, "n3")
    wait_for(lambda: "none of the last 32 rollouts of the others" in events(lab, "n3"), "it says why", 20, lambda: events(lab, "n3"))
    assert read(path_of(lab, "n3")) == others
    done, _, states = rollout(lab, write_new(lab, text))
    assert done.returncode == 0 and states["n3"] == ("switched", ""), done
    settled(lab, NODES)


def test_is_told_not_to(lab):
    """catch_up = no: it stays refused, until somebody has it take the file."""
    text = read(path_of(lab, "n1"))
    never = text.replace("cluster {", "cluster {\n    catch_up = no", 1)
    assert rollout(lab, write_new(lab, never))[0].returncode == 0
    never, new = back_with(lab, "n3")
    refused(lab, "n3")
    with pytest.raises(LabError):
        wait_for(lambda: not seen(lab, "n3")["refused"], "n3 is in", 4)
    assert read(path_of(lab, "n3")) == never
    done, _, states = rollout(lab, write_new(lab, new.replace("    catch_up = no\n", "")))
    assert done.returncode == 0 and states["n3"] == ("switched", ""), done
    settled(lab, NODES)
