# SPDX-License-Identifier: GPL-2.0-or-later
"""What the nodes of a real cluster tell of themselves: events over restarts of the daemon, and with it dead."""
import json
import re
import signal
import time

import pytest

from cluster.membership import ALL, TOKEN, settled
from earshotlab import Lab, wait_for

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000)) as lab:
        settled(lab)
        yield lab


def events(lab, node, *arguments):
    done = lab.node(node).exec(["earshot", "events", "--json", *arguments])
    return [json.loads(line) for line in done.stdout.splitlines()]


def texts(lab, node, kind, after=0):
    return [event["text"] for event in events(lab, node, "--kind", kind) if event["id"] > after]


def wait_text(lab, node, kind, pattern, after=0):
    """@after: the id of an event."""
    wait_for(lambda: any(re.fullmatch(pattern, text) for text in texts(lab, node, kind, after)), f"{node}: {pattern}", 20,
             lambda: texts(lab, node, kind, after))


def test_machine_dies_and_returns(lab):
    lab.kill("n3")
    for node in ("n1", "n2", "n4"):
        wait_text(lab, node, "crash", r"n3 left: its machine or network died; ring of n1, n2, n4, epoch \d+")
    last = {node: events(lab, node)[-1]["id"] for node in ("n1", "n2", "n4")}
    lab.heal("n3")
    settled(lab)
    for node, after in last.items():
        wait_text(lab, node, "join", r"n3 joined; ring of n1, n2, n3, n4, epoch \d+", after)


def test_drain_weight_and_server(lab):
    lab.node("n1").exec(["earshot", "drain", "n2", "--reason", "new disk"])
    wait_text(lab, "n4", "drain", r"n2 is drained by \S+@n1: new disk")
    lab.node("n1").exec(["earshot", "undrain", "n2"])
    wait_text(lab, "n4", "undrain", r"n2 is not drained any more by \S+@n1")
    lab.node("n1").exec(["earshot", "weight", "n2", "50"])
    wait_text(lab, "n4", "weight", r"n2 has weight 50, before \d+ by \S+@n1; ring of .*")
    lab.node("n3").exec(["earshot", "weight", "n2", "100"])
    wait_text(lab, "n4", "weight", r"n2 has weight 100, before 50 by \S+@n3; ring of .*")
    lab.stop("n2", "nginx")
    wait_text(lab, "n1", "server_down", r"n2 cannot serve web: nothing listens for the service")
    wait_text(lab, "n2", "server_down", r".+; until then the other nodes serve")
    lab.start("n2", "nginx")
    wait_text(lab, "n1", "server_up", "n2 can serve again")
    settled(lab)


def test_follow_goes_on_over_a_restart(lab, tmp_path):
    """Each event once and in order; that the daemon is away is said once."""
    paths = {name: tmp_path / name for name in ("out", "err")}
    with open(paths["out"], "wb") as out, open(paths["err"], "wb") as err:
        following = lab.node("n4").popen(["earshot", "events", "--follow", "--json"], stdout=out, stderr=err)

        def shown():
            return [json.loads(line) for line in paths["out"].read_text(encoding="utf-8").splitlines()]
        try:
            wait_for(lambda: shown() and shown()[-1] == events(lab, "n4")[-1], "it shows what there is")
            last = shown()[-1]["id"]
            lab.stop("n4", "earshotd")
            wait_for(lambda: "waiting" in paths["err"].read_text(encoding="utf-8"), "it says that the daemon is away")
            lab.start("n4", "earshotd")
            settled(lab)
            wait_for(lambda: "serving" in {event["kind"] for event in shown() if event["id"] > last}, "it goes on", 15, seen=shown)
            assert {"leave", "start", "serving"} <= {event["kind"] for event in shown() if event["id"] > last}
            found = [event["id"] for event in shown()]
            assert found == list(range(found[0], found[0] + len(found)))
            assert paths["err"].read_text(encoding="utf-8").count("earshot:") == 1
        finally:
            following.kill()
            following.wait()


def test_over_a_restart_and_with_the_daemon_dead(lab):
    lab.node("n1").exec(["earshot", "reload"])
    before = events(lab, "n1")
    assert before[-1]["kind"] in ("reload", "ring") and "reload" in [event["kind"] for event in before], before[-3:]
    lab.stop("n1", "earshotd")
    wait_text(lab, "n2", "leave", r"n1 left in order; ring of n2, n3, n4, epoch \d+")
    dead = lab.node("n1").exec(["earshot", "events", "--json"], check=False)
    assert dead.returncode == 0, dead
    left = [json.loads(line) for line in dead.stdout.splitlines()]
    assert left[:len(before)] == before and left[-1]["kind"] == "leave", left[-3:]
    assert "from the file that it left" in dead.stderr
    lab.start("n1", "earshotd")
    settled(lab)
    after = events(lab, "n1")
    assert after[:len(left)] == left
    assert [event["id"] for event in after] == list(range(after[0]["id"], after[0]["id"] + len(after)))
    news = [event["kind"] for event in after[len(left):]]
    assert news[0] == "start" and "serving" in news, news
    assert not events(lab, "n1", "--since", "0s")
    assert events(lab, "n1", "--since", "1h") == after


def test_checks(lab):
    """What `earshot check` would find is an event when it begins and when it is over, though nobody looks; a daemon that starts
    anew knows what the one before it has told."""
    after = events(lab, "n2")[-1]["id"]
    lab.node("n2").exec(["ip", "address", "add", "10.77.0.100/32", "dev", "eth0"])
    try:
        lab.node("n2").exec(["earshot", "reload"])
        wait_text(lab, "n2", "check_failed", r"network\.\w+: .*10\.77\.0\.100.*eth0.*; do: .*", after)
        found = texts(lab, "n2", "check_failed", after)
        lab.stop("n2", "earshotd")
        lab.start("n2", "earshotd")
        settled(lab)
    finally:
        lab.node("n2").exec(["ip", "address", "del", "10.77.0.100/32", "dev", "eth0"])
    lab.node("n2").exec(["earshot", "reload"])
    name = next(text.partition(":")[0] for text in found if "10.77.0.100" in text)
    wait_text(lab, "n2", "check_passed", rf"{name}: .*", after)
    told = [text for text in texts(lab, "n2", "check_failed", after) if text.startswith(name)]
    assert len(told) == 1, told


def test_words_that_are_wrong(lab):
    for arguments, said in ((["--kind", "crush"], "expected some of start, stop"), (["--since", "soon"], "expected e.g. 30s")):
        done = lab.node("n1").exec(["earshot", "events", *arguments], check=False)
        assert done.returncode == 64 and said in done.stderr, done


def test_all_nodes_served(lab):
    for node in ALL:
        assert texts(lab, node, "quorum"), node


def test_late_words_are_no_news():
    """While one corosync stands still, what nodes say over the bus waits there; their datagrams do not. What comes late then is
    older than what is known: a node whose server stopped meanwhile does not become able to serve again, not even for a moment."""
    with Lab(nodes=3, membership="corosync", policy="wrr", token=6000) as lab:
        settled(lab, ["n1", "n2", "n3"])
        after = events(lab, "n1")[-1]["id"]
        lab.signal("n3", "corosync", signal.SIGSTOP)
        try:
            time.sleep(0.6)  # three words that n2 can serve
            lab.stop("n2", "nginx")
            wait_text(lab, "n1", "server_down", "n2 cannot serve web: .+", after)
        finally:
            lab.signal("n3", "corosync", signal.SIGCONT)
        # Who drains tells it over the bus, behind all that waits there.
        lab.node("n2").exec(["earshot", "drain", "n3"])
        wait_text(lab, "n1", "drain", "n3 is drained .*", after)
        kinds = [event["kind"] for event in events(lab, "n1") if event["id"] > after and event["node"] == "n2"]
        assert kinds == ["server_down"], kinds
        lab.start("n2", "nginx")
        wait_text(lab, "n1", "server_up", "n2 can serve again", after)
