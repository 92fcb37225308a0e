# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers that are put out for what they answer (outlier { }), and return: one at a time, and never more."""
import collections
import contextlib
import json
import os
import re
import signal
import threading
import time

import pytest

from cluster.membership import settled
from earshotlab import Lab, wait_for
from web import raw

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3", "n4"]
LIMITS = "outlier { max_errors = 50  interval_ms = 1000  min_responses = 5  out_s = 2  out_max_s = 4 }"


@contextlib.contextmanager
def judged(membership, limits):
    """A lab whose nodes judge their servers so."""
    with Lab(nodes=4, policy="wrr", membership=membership, settings={"service.inspect": "every"}) as lab:
        if membership == "corosync":
            settled(lab)
        with open(lab.config_file, encoding="utf-8") as handle:
            text = handle.read()
        assert text.count("\nservice web {\n") == 1
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(text.replace("\nservice web {\n", f"\nservice web {{\n{limits}\n"))
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab


@pytest.fixture(name="lab", params=["static", pytest.param("corosync", marks=pytest.mark.corosync)])
def _lab(request):
    with judged(request.param, LIMITS) as lab:
        yield lab


def answer(lab, name, broken):
    """From now on, the node's nginx answers 500 to everything, or what it should."""
    path = os.path.join(lab.node(name).directory, "nginx.conf")
    with open(path, encoding="utf-8") as handle:
        text = handle.read().replace("return 500; location = /node", "location = /node")
    assert text.count("location = /node") == 1
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text.replace("location = /node", "return 500; location = /node") if broken else text)
    os.kill(lab.pid(name, "nginx"), signal.SIGHUP)


Asked = collections.namedtuple("Asked", "began node status")


class Client:
    """Asks all the time, each request on a connection of its own."""

    def __init__(self, lab, target="/1k"):
        self.target = target
        self.lab, self.asked, self.failed, self.is_over = lab, [], [], False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join(20)
        assert not self.thread.is_alive()

    def run(self):
        while not self.is_over:
            began = time.monotonic()
            try:
                response, _ = raw.ask(self.lab.client, raw.head(self.target, Connection="close"), timeout=5)
                self.asked.append(Asked(began, response.node, response.status))
            except (OSError, EOFError) as failure:
                self.failed.append(failure)
            time.sleep(0.01)

    def next(self, count):
        """So many that begin from now on."""
        since = time.monotonic()

        def found():
            return [each for each in list(self.asked) if each.began > since]

        wait_for(lambda: len(found()) >= count, f"{count} answers", 30)
        return found()[:count]


def own(lab, name):
    """What is wrong with a node, as it says itself."""
    return next(node for node in lab.status(name)["nodes"] if node["name"] == name).get("trouble", "")


def is_down_for(lab, of):
    """The nodes that take it for down."""
    return {at for at in ALL if next(n for n in lab.status(at)["nodes"] if n["name"] == of)["state"] == "down"}


def events(lab, name, kinds="server_down,server_up,outlier"):
    """What a node has told of itself."""
    done = lab.node(name).exec(["earshot", "events", "--json", "--kind", kinds])
    return [event for event in map(json.loads, done.stdout.splitlines()) if event.get("node", name) == name]


def metrics(lab, name):
    """{result: server_ejections_total} of a node, and its server_up."""
    lines = lab.node(name).exec(["earshot", "metrics"]).stdout.splitlines()
    found = {}
    for line in lines:
        if line.startswith(("earshot_server_ejections_total{", "earshot_server_up{")):
            label, value = line.rsplit(" ", 1)
            found[re.search(r'result="(\w+)"', label).group(1) if "result=" in label else "up"] = int(float(value))
    return found


def times_out(lab, name):
    """When it was out: [(from, until)], in milliseconds."""
    times = []
    for event in events(lab, name, "server_down,server_up"):
        if event["kind"] == "server_down" and "is an outlier" in event["text"]:
            times.append((event["time_ms"], float("inf")))
        elif event["kind"] == "server_up" and times:
            times[-1] = (times[-1][0], min(times[-1][1], event["time_ms"]))
    return times


def test_one_of_four(lab):
    """One that answers 500 goes, and comes back when it is cured; a second one at the same time stays."""
    with Client(lab) as client:
        wait_for(lambda: {each.node for each in client.next(8)} == set(ALL), "all nodes' answers")
        answer(lab, "n3", broken=True)
        wait_for(lambda: is_down_for(lab, "n3") == set(ALL), "n3 that is out", 10)
        assert " responses were 5xx (max_errors = 50); out for " in own(lab, "n3"), own(lab, "n3")
        after = client.next(60)
        assert {(each.node, each.status) for each in after} == {("n1", 200), ("n2", 200), ("n4", 200)}, after

        # On probation it has no better answers, and goes for twice as long.
        wait_for(lambda: len(times_out(lab, "n3")) == 2, "n3 that is out again", 15, lambda: events(lab, "n3"))
        assert own(lab, "n3").endswith("out for 4 s"), own(lab, "n3")

        assert metrics(lab, "n3") == {"up": 0, "out": 2, "kept": 0}, metrics(lab, "n3")

        # There is no place for another one, which serves all the same, as well as it can.
        answer(lab, "n1", broken=True)
        wait_for(lambda: any(event["kind"] == "outlier" for event in events(lab, "n1")), "n1 that is kept", 10,
                 lambda: events(lab, "n1"))
        assert "serves all the same: max_out = 1" in events(lab, "n1", "outlier")[0]["text"], events(lab, "n1")

        # Now and then one of the two is out, and never both.
        wait_for(lambda: len(times_out(lab, "n1")) + len(times_out(lab, "n3")) >= 4, "further turns", 40,
                 lambda: (events(lab, "n1"), events(lab, "n3")))

        for name in ("n1", "n3"):
            answer(lab, name, broken=False)
        wait_for(lambda: not any(own(lab, name) for name in ALL), "servers that are in", 20)
        wait_for(lambda: {(each.node, each.status) for each in client.next(8)} == {(name, 200) for name in ALL},
                 "all nodes' answers", 20)
    assert not client.failed, client.failed
    assert metrics(lab, "n1")["kept"] > 0 and metrics(lab, "n2") == {"up": 1, "out": 0, "kept": 0}, metrics(lab, "n1")
    both = sorted(times_out(lab, "n1") + times_out(lab, "n3"))
    assert all(end <= begin for (_, end), (begin, _) in zip(both, both[1:])), both
    assert not times_out(lab, "n2") and not times_out(lab, "n4")


def test_all_at_once():
    """What is slow on all nodes puts one out, and the others stay and say why."""
    limits = "outlier { max_slow = 50  slow_ms = 100  interval_ms = 1000  min_responses = 3  out_s = 60 }"
    with judged("static", limits) as lab, contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(Client(lab, "/slow/200"))
        wait_for(lambda: sum(bool(own(lab, name)) for name in ALL) == 1, "one that is out", 20,
                 lambda: {name: events(lab, name) for name in ALL})
        out = next(name for name in ALL if own(lab, name))
        assert re.search(r" took longer than 100 ms \(max_slow = 50\); out for 60 s$", own(lab, out)), own(lab, out)
        wait_for(lambda: all(metrics(lab, name)["kept"] for name in ALL if name != out), "all others that are kept", 20,
                 lambda: {name: events(lab, name) for name in ALL})
        assert [name for name in ALL if own(lab, name)] == [out]
