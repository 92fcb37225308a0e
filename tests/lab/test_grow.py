# SPDX-License-Identifier: GPL-2.0-or-later
"""A node is added, one is removed, and settings of a start change: under load, while all nodes but one serve at least."""
import contextlib
import os
import re
import shutil
import threading
import time

import pytest

from cluster.membership import TOKEN, settled
from earshotlab import Lab, LabError, daemon, wait_for
from web.traffic import Traffic

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]
ALL = ["n1", "n2", "n3", "n4"]


def path_of(lab, node):
    return os.path.join(lab.node_directory(node), "earshot.conf")


def read(path):
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)
    return path


def without(text, node):
    return re.sub(rf"^node {node} {{[^}}]*}}\n", "", text, flags=re.M)


def section(text, node):
    return re.search(rf"^node {node} {{[^}}]*}}$", text, re.M).group(0)


def setting(text, name, value):
    """In inspector { }, which is there."""
    text = re.sub(rf"^\s*{name} = .*\n", "", text, flags=re.M)
    assert "inspector {" in text, text
    return text.replace("inspector {", f"inspector {{\n    {name} = {value}", 1)


def status(lab, node):
    try:
        return daemon.ask(lab.net.namespace(node), {"command": "status"})
    except (OSError, LabError):
        return None


def serves(lab, node):
    """By its own word: it is in force as a member, and can serve."""
    told = status(lab, node)
    return bool(told) and not told["membership"]["silent"] and any(
        other["self"] and other["state"] == "up" for other in told["nodes"])


class Watch:
    """How many of these nodes serve at least, looked at all the time."""

    def __init__(self, lab, nodes):
        self.lab, self.nodes, self.least, self.looks, self.seen, self.stopping = lab, nodes, len(nodes), 0, [], False
        self.thread = threading.Thread(target=self._main, daemon=True)

    def _main(self):
        while not self.stopping:
            now = [node for node in self.nodes if serves(self.lab, node)]
            if len(now) < len(self.nodes) and now not in self.seen:
                self.seen.append(now)
            self.least = min(self.least, len(now))
            self.looks += 1
            time.sleep(0.05)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join()


@contextlib.contextmanager
def load(lab, nodes):
    """Nothing fails, and never are there fewer than all of these nodes but one."""
    with Watch(lab, nodes) as watch, Traffic(lab, kept=10, fresh=6) as traffic:
        traffic.run(1)
        yield traffic
        traffic.run(2)
    assert not traffic.broken, traffic.broken[:5]
    assert not traffic.wrong, traffic.wrong[:5]
    assert watch.least >= len(nodes) - 1, watch.seen
    assert watch.looks > 10


def start_with(lab, text, nodes):
    """Each with a file of its own, as on machines of their own."""
    for node in ALL:
        lab.stop(node, "earshotd")
        write(path_of(lab, node), text)
    for node in nodes:
        lab.start(node, "earshotd")
    settled(lab, nodes)


def rollout(lab, new, *arguments, node="n1", check=True):
    return lab.node(node).exec(["earshot", "rollout", *arguments, write(os.path.join(lab.directory, "new.conf"), new)],
                              check=check, timeout=600)


def started(lab, node):
    return status(lab, node)["uptime_s"]


def pid(lab, node):
    return lab.node(node).exec(["pgrep", "-o", "-f", f"earshotd --config {path_of(lab, node)}"]).stdout


def test_add_and_remove():
    """n4 is written down by a rollout, and starts; n2 goes, and its place is kept; n4 goes from the end. No daemon restarts."""
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), timeout=60,
             settings={"service.inspect": "every"}) as lab:
        all_of_them = read(lab.config_file)
        three = without(all_of_them, "n4")
        start_with(lab, three, ALL[:3])
        since = {node: started(lab, node) for node in ALL[:3]}
        with load(lab, ALL[:3]) as traffic:
            done = rollout(lab, all_of_them)
            assert "it is in force on all of these nodes" in done.stdout, done.stdout
            write(path_of(lab, "n4"), all_of_them)
            lab.start("n4", "earshotd")
            settled(lab, ALL)
            traffic.run(1)
        assert "n4" in {answer.node for answer in traffic.answers}
        # One that serves is not removed.
        gone = all_of_them.replace(section(all_of_them, "n2"), section(all_of_them, "n2").replace("}", " removed = yes }"))
        refused = rollout(lab, gone, check=False)
        assert refused.returncode == 1 and "node n2 is a member of the cluster" in refused.stdout, refused
        left = ["n1", "n3", "n4"]
        with load(lab, left):
            lab.node("n1").exec(["earshot", "drain", "n2", "--wait=20"])
            lab.stop("n2", "earshotd")
            settled(lab, left)
            done = rollout(lab, gone)
            wait_for(lambda: status(lab, "n4")["nodes"][1]["state"] == "removed", "n4 knows it")
            assert re.search(r"^n2 .*removed", done.stdout, re.M), done.stdout
        # Whoever is restarted finds the others again; and one that was forgotten, with the file before, does, too.
        for node, text in (("n3", gone), ("n4", all_of_them)):
            lab.stop(node, "earshotd")
            write(path_of(lab, node), text)
            lab.start(node, "earshotd")
            settled(lab, left)
        # From the end of the list, without a place that is kept.
        lab.stop("n4", "earshotd")
        settled(lab, ["n1", "n3"])
        with load(lab, ["n1", "n3"]):
            rollout(lab, without(gone, "n4"))
            settled(lab, ["n1", "n3"])
        assert started(lab, "n1") > since["n1"], "n1's daemon was restarted"


def test_settings_of_a_start():
    """connection_rate, gather_flows and workers change: one daemon after the other starts anew in its process; and back."""
    with Lab(nodes=3, membership="corosync", policy="lard", token=int(TOKEN * 1000), timeout=60) as lab:
        nodes = ALL[:3]
        before = read(lab.config_file)
        if "inspector {" not in before:
            before += "inspector {\n}\n"
        for node in nodes:
            lab.stop(node, "earshotd")
            write(path_of(lab, node), before)
        for node in nodes:
            lab.start(node, "earshotd")
        settled(lab, nodes)
        new = setting(setting(before, "connection_rate", 1000), "gather_flows", 2048)
        processes = {node: pid(lab, node) for node in nodes}
        refused = rollout(lab, new, check=False)
        assert refused.returncode == 1 and "earshot rollout --restart" in refused.stdout, refused
        done = rollout(lab, new, "--restart", "--dry-run")
        needed = "needs a restart of its daemon: inspector: connection_rate, inspector: gather_flows"
        assert done.stdout.count(needed) == 3, done.stdout
        since = time.monotonic()
        with load(lab, nodes) as traffic:
            done = rollout(lab, new, "--restart", node="n2")
            took = time.monotonic() - since
        assert re.findall(r"^(n\d) (serves again|restarts)", done.stdout, re.M) == [
            (node, what) for node in ("n1", "n3", "n2") for what in ("restarts", "serves again")], done.stdout
        assert all(started(lab, node) < took + 10 for node in nodes)
        assert {node: pid(lab, node) for node in nodes} == processes
        assert all(status(lab, node)["waiting_for_restart"] == "" for node in nodes)
        assert all(read(path_of(lab, node)) == new for node in nodes)
        # Again: there is nothing to restart for.
        assert "restarts" not in rollout(lab, new, "--restart").stdout
        with load(lab, nodes):
            rollout(lab, setting(before, "workers", 2), "--restart")
        assert all(len(status(lab, node)["workers"]) == 2 for node in nodes)
        print(f"{len(traffic.answers)} requests, the slowest {max(answer.seconds for answer in traffic.answers):.2f} s; "
              f"three restarts took {took:.1f} s")
