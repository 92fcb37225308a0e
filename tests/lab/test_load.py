# SPDX-License-Identifier: GPL-2.0-or-later
"""What each node has in hand, as all nodes know it: real corosync, real servers."""
import contextlib
import time

import pytest

from earshotlab import Lab, wait_for
from web import raw

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

NODES = ["n1", "n2", "n3"]
REQUESTS = 20
SERVED_MS = 3000


@pytest.fixture(scope="module", name="lab")
def _lab():
    settings = {"service.inspect": "every", "service.load_bound": 0}
    with Lab(nodes=3, membership="corosync", policy="uri-hash", settings=settings) as lab:
        wait_for(lambda: all(known(lab, node) for node in NODES), "every node knows of every node")
        yield lab


def known(lab, node):
    """By node, what this one says of it."""
    found = {n["name"]: n for n in lab.status(node)["nodes"] if "active" in n}
    return found if len(found) == len(NODES) else None


def home(lab, target):
    return lab.node("n1").ask({"command": "explain", "request": raw.head(target).decode()})["node"]


def slow_targets(lab, node, count):
    """Requests that this node serves, and takes its time for."""
    found, number = [], 0
    while len(found) < count:
        target = f"/slow/{SERVED_MS}?{number}"
        if home(lab, target) == node:
            found.append(target)
        number += 1
    return found


def test_everybody_sees_it(lab):
    """n2's requests show up on all nodes while they last, and only as n2's; then it is known how long they took."""
    targets = slow_targets(lab, "n2", REQUESTS)
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(raw.connect(lab.client)) for _ in range(REQUESTS)]
        began = time.monotonic()
        for sock, target in zip(socks, targets):
            sock.sendall(raw.head(target))
        for node in NODES:
            wait_for(lambda node=node: known(lab, node)["n2"]["active"] == REQUESTS, f"{REQUESTS} in hand, by {node}", 2)
        assert time.monotonic() - began < SERVED_MS / 1000
        for node in NODES:
            seen = known(lab, node)
            assert {n: seen[n]["active"] for n in NODES} == {"n1": 0, "n2": REQUESTS, "n3": 0}, node
            assert seen["n2"]["load"] == REQUESTS
        for sock in socks:
            sock.settimeout(10)
            assert b"X-Node: n2" in sock.recv(65536)
        for node in NODES:
            wait_for(lambda node=node: known(lab, node)["n2"]["active"] == 0, f"nothing in hand, by {node}", 2)
        # Open connections, nothing in hand.
        assert known(lab, "n1")["n2"]["connections"] >= REQUESTS
    mean_us = known(lab, "n3")["n2"]["mean_us"]
    assert SERVED_MS * 700 < mean_us < SERVED_MS * 1300, mean_us


def test_shares_of_time(lab):
    """cpu and disk are shares; the table shows all of it."""
    for node, seen in known(lab, "n1").items():
        assert 0 <= seen["cpu"] <= 1 and 0 <= seen["disk"] <= 1, node
    text = lab.node("n1").exec(["earshot", "nodes"]).stdout
    assert {"CONNS", "ACTIVE", "LOAD", "MEAN", "CPU", "DISK"} <= set(text.split("\n", 1)[0].split())


def test_sizes_are_known_everywhere(lab):
    """One node serves it and measures the response; all inspectors count with it from then on."""
    def told(node):
        return lab.node(node).ask({"command": "explain", "request": raw.head("/100k?a").decode()})

    assert told("n1")["size_bytes"] == 0 and told("n1")["cost"] == 1
    assert raw.right(raw.ask(lab.client, raw.head("/100k?b"))[0], "100k")
    for node in NODES:
        wait_for(lambda node=node: told(node)["size_bytes"], f"the size, by {node}", 3)
        assert 100 * 1024 < told(node)["size_bytes"] < 101 * 1024 and told(node)["cost"] == 71, told(node)


def test_admission(lab):
    """While the cluster has much in hand, requests of low priority are told to come back; others are served."""
    with open(lab.config_file, encoding="utf-8") as handle:
        text = handle.read()
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(text.replace("service web {\n", "service web {\n    admit_low = 3\n    retry_after_s = 7\n", 1)
                     + 'rule crawler { header = "User-Agent: crawler"  priority = low }\n')
    for node in lab.nodes:
        node.exec(["earshot", "reload"])

    def ask(**fields):
        response, _ = raw.ask(lab.client, raw.head("/1k", Connection="close", **fields))
        return response.status, response.fields.get("retry-after")

    low = {"User-Agent": "crawler"}
    assert ask() == ask(**low) == (200, None)
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(raw.connect(lab.client)) for _ in range(REQUESTS)]
        for sock, target in zip(socks, slow_targets(lab, "n2", REQUESTS)):
            sock.sendall(raw.head(target))
        for node in NODES:
            wait_for(lambda node=node: known(lab, node)["n2"]["active"] == REQUESTS, f"{REQUESTS} in hand, by {node}", 2)
        for _ in range(10):
            assert ask(**low) == (503, "7") and ask() == (200, None)
        for sock in socks:
            sock.settimeout(10)
            assert b"X-Node: n2" in sock.recv(65536)
    wait_for(lambda: all(known(lab, node)["n2"]["active"] == 0 for node in NODES), "nothing in hand", 3)
    assert ask(**low) == (200, None)


def test_admission_beside_idle_connections(lab):
    """Connections that are kept, and websockets, are no requests in hand, however many; a slow request is one."""
    with open(lab.config_file, encoding="utf-8") as handle:
        text = handle.read()
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(text.replace("service web {\n", "service web {\n    admit_normal = 4\n", 1))
    for node in lab.nodes:
        node.exec(["earshot", "reload"])

    def statuses(count):
        return {raw.ask(lab.client, raw.head("/1k", Connection="close"))[0].status for _ in range(count)}

    upgrade = raw.head("/upgrade", Connection="Upgrade", Upgrade="echo")
    with contextlib.ExitStack() as stack:
        for number in range(40):
            sock = stack.enter_context(raw.connect(lab.client))
            sock.settimeout(10)
            sock.sendall(upgrade if number % 2 else raw.head("/1k"))
            assert sock.recv(65536).startswith((b"HTTP/1.1 101", b"HTTP/1.1 200", b"HTTP/1.1 503"))
            if number % 4 == 3:
                time.sleep(1.2)  # the limit is for those that begin at once, too
        wait_for(lambda: statuses(1) == {200}, "no refusal beside idle connections", 5)
        assert sum(known(lab, "n1")[node]["active"] for node in NODES) >= 15
        assert statuses(20) == {200}
        for sock, target in zip([stack.enter_context(raw.connect(lab.client)) for _ in range(5 * len(NODES))],
                                (target for node in NODES for target in slow_targets(lab, node, 5))):
            sock.sendall(raw.head(target))
        wait_for(lambda: statuses(1) == {503}, "a refusal beside slow requests", 3)
