# SPDX-License-Identifier: GPL-2.0-or-later
"""Whoever is alike is in: a node that was refused joins when it is made alike, whoever does that; no client notices."""
import contextlib
import re

import pytest

from cluster.files import NODES, own_files, path_of, read, ready, rollout, write_new
from cluster.membership import TOKEN, serving, settled
from earshotlab import Lab, wait_for
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
    events = lab.node("n3").exec(["earshot", "events"]).stdout
    assert "it was refused, is like the members now, and joins again" in events, events
    assert "joined" in lab.node("n1").exec(["earshot", "events", "--kind", "join"]).stdout.splitlines()[-1]


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
    assert not re.search("differs|refused", lab.node("n1").exec(["earshot", "nodes"]).stdout)


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
        assert said.returncode == 1 and re.search(rf"^n3 +has it, and is no member +{reason}$", said.stdout, re.M), said
        assert said.stdout.count("no member") == 1 and read(path_of(lab, "n3")) == read(new), said
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
