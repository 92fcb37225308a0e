# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTPS in a cluster with corosync, under load: a node is drained, loses its power, and comes again. Who is not on it notices nothing."""
import collections
import itertools
import random
import threading
import time

import pytest

from cluster import secure as cluster
from cluster.membership import TOKEN, serving, settled
from cluster.secure import ALL
from earshotlab import wait_for
from web import raw, secure

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]
CLIENTS = 5
LASTS = 40  # requests of a connection
COUNTED = ("ask", "connection_", "handover_", "layer4_")
Answer = collections.namedtuple("Answer", "at node")
Failure = collections.namedtuple("Failure", "began at node error")


@pytest.fixture(scope="module", name="lab")
def _lab():
    settings = {"https.inspect": "every", "https.policy": "wrr", "service.policy": "wrr"}
    with cluster.lab_of(settings, membership="corosync", token=int(TOKEN * 1000), timeout=60) as lab:
        cluster.start_backends(lab)
        settled(lab, ALL, 60)
        # A check that only connects would not see whether there is a server behind.
        with cluster.changed(lab) as change:
            change("service https {", 'service https {\n check { type = https  path = "/len/1" }')
            serving(lab)
            yield lab


def outs(lab):
    """Who is out by the check of its server, as n1 knows it."""
    return {each["name"] for each in lab.status("n1")["nodes"] if "check" in each.get("trouble", "")}


def known(lab):
    """Why a node may be left out: how each that has power sees all of them, and what has become of connections and requests there."""
    found = ""
    for node in (name for name in ALL if name not in lab.dead):
        status = lab.status(node)
        nodes = [[each.get(key) for key in ("name", "state", "member", "weight", "lacks", "failing", "trouble")] for each in status["nodes"]]
        counted = {name: value for name, value in lab.counters(node).items() if value and name.startswith(COUNTED)}
        ended = {name: value for name, value in cluster.counters(lab, node).items() if value}
        found += f"\n  {node}: {nodes}, {status['membership']}, counters {counted}, earshot-tls {ended}"
    return found


class Load:
    """Kept connections, on which requests follow each other at once; one that breaks is noted, and followed by another one."""

    def __init__(self, lab):
        self.lab, self.answers, self.failures, self.is_over, self.lasts = lab, [], [], False, LASTS
        self.threads = [threading.Thread(target=self.client, args=(seed,)) for seed in range(CLIENTS)]

    def client(self, seed):
        how, order = secure.context(self.lab, ("1.2", "1.3")[seed % 2]), random.Random(seed)
        while not self.is_over:
            began, node = time.monotonic(), None
            try:
                sock, reader = cluster.connect(self.lab, how, timeout=20)
                with sock:
                    for number in itertools.count():
                        if self.is_over or number >= self.lasts:
                            break
                        target, began = f"/len/{order.randrange(60_000)}?{seed}.{number}", time.monotonic()
                        sock.sendall(raw.head(target))
                        node = reader.response(target).node
                        self.answers.append(Answer(time.monotonic(), node))
                        time.sleep(0.01)
            except (OSError, EOFError, AssertionError) as error:
                self.failures.append(Failure(began, time.monotonic(), node, repr(error)))

    def nodes(self, since):
        return {answer.node for answer in list(self.answers) if answer.at > since}

    def becomes(self, nodes, seconds=20):
        """Until each of these has answered, and nobody else for half a second. Connections stay where the ring has put them unless
        that node goes: for all to answer, new ones are needed, however slow the machine is."""
        began = time.monotonic()

        def check():
            since = time.monotonic()
            time.sleep(0.5)
            return self.nodes(began) >= set(nodes) and set() < self.nodes(since) <= set(nodes)

        self.lasts = 3 if nodes == ALL else LASTS
        wait_for(check, f"answers of {nodes}", seconds, lambda: self.seen(5) + known(self.lab))
        self.lasts = LASTS

    def seen(self, seconds):
        """Which nodes have answered so lately, and how often; what has failed."""
        since = time.monotonic() - seconds
        return (f"in {seconds} s {dict(collections.Counter(answer.node for answer in list(self.answers) if answer.at > since))}, "
                f"failed {[failure for failure in list(self.failures) if failure.at > since][:5]}")

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def connections_on(lab, count, how):
    """{node: [(socket, reader), …]}: so many connections on each, by the node that has answered last."""
    found = {node: [] for node in ALL}
    while any(len(those) < count for those in found.values()):
        sock, reader = cluster.connect(lab, how, timeout=20)
        sock.sendall(raw.head("/len/100"))
        found[reader.response("/len/100").node].append((sock, reader))
    return found


def test_drain(lab):
    """No request fails; connections that are on the node move away with their next request, and so does one within an upload after it."""
    how = secure.context(lab)
    with Load(lab) as load:
        load.becomes(ALL)
        kept = connections_on(lab, 2, how)
        busy, busy_reader = kept["n2"][0]
        busy.sendall(raw.head("/chunks/40/50"))
        lab.node("n1").exec(["earshot", "drain", "n2"])
        load.becomes(["n1", "n3"])
        busy_reader.response()
        for sock, reader in (one for those in kept.values() for one in those):
            for _ in range(3):
                sock.sendall(raw.head("/len/1000"))
                assert reader.response("/len/1000").node in ("n1", "n3")
            sock.close()
        lab.node("n1").exec(["earshot", "drain", "n2", "--wait=60"])
        lab.node("n1").exec(["earshot", "undrain", "n2"])
        load.becomes(ALL)
    assert not load.failures, load.failures[:5]
    assert len(load.answers) > 200


def test_power(lab):
    """A node loses its power: connections of the others go on, and soon so do all new ones; nothing fails when it comes again."""
    how = secure.context(lab)
    with Load(lab) as load:
        load.becomes(ALL)
        kept = connections_on(lab, 3, how)
        killed = time.monotonic()
        lab.kill("n2")
        load.becomes(["n1", "n3"], 30)
        gone = time.monotonic()
        for node in ("n1", "n3"):
            for sock, reader in kept[node]:
                for _ in range(4):
                    sock.sendall(raw.head("/len/1000"))
                    assert reader.response("/len/1000").node in ("n1", "n3")
        load.becomes(["n1", "n3"])
        lab.heal("n2")
        # While it is out, its check must not move to a node that passes: n2 would stay out as long as there is a load.
        wait_for(lambda: outs(lab) == {"n2"}, "n2, without its server, that is out", 30, lambda: known(lab))
        cluster.start_backend(lab.node("n2"))
        settled(lab, ALL, 60)
        load.becomes(ALL, 40)
        for node in ("n1", "n3"):
            for sock, reader in kept[node]:
                sock.sendall(raw.head("/len/1000"))
                reader.response("/len/1000")
                sock.close()
    unexcused = [failure for failure in load.failures if not killed <= failure.at or failure.began > gone]
    print(f"away after {gone - killed:.1f} s, {len(load.failures)} connections broke until then, {len(load.answers)} answers")
    assert not unexcused, unexcused[:5]
