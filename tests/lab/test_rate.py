# SPDX-License-Identifier: GPL-2.0-or-later
"""A rate by client address over all nodes: how exact it is, whom it limits and whom it does not."""
import collections
import re
import threading
import time

import pytest

from earshotlab import Lab, families, wait_for
from web import raw

pytestmark = pytest.mark.earshot

RATE, BURST = 20, 40
RULES = f"""
rule limit {{ path = "/u/"  rate = "{RATE}/s"  burst = {BURST} }}
rule rare {{ path = "/node"  rate = "1/h"  burst = 1 }}
"""


@pytest.fixture(scope="module", name="inspect", params=["first", "every"])
def _inspect(request):
    return request.param


@pytest.fixture(scope="module", name="lab")
def _lab(inspect):
    with Lab(nodes=3, policy="wrr", client_addresses=3, timeout=60, settings={"service.inspect": inspect}) as lab:
        with open(lab.config_file, "a", encoding="utf-8") as handle:
            handle.write(RULES)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab


def clients(lab):
    return lab.net.client_addresses if families.has4(lab.net.family) else lab.net.client_addresses6


def ask(lab, source, target="/u/1k/1"):
    with raw.connect(lab.client, before=lambda sock: sock.bind((source, 0))) as sock:
        sock.sendall(raw.head(target, Connection="close"))
        return raw.receive(sock)


def flood(lab, source, seconds, threads=4):
    """As fast as so many threads can, each request on a connection of its own. Returns what became of them, by status."""
    end = time.monotonic() + seconds
    results = collections.Counter()

    def run():
        while time.monotonic() < end:
            results[ask(lab, source).status] += 1
    all_of_them = [threading.Thread(target=run) for _ in range(threads)]
    for thread in all_of_them:
        thread.start()
    for thread in all_of_them:
        thread.join()
    return results


def rejected(lab):
    """By node."""
    found = {}
    for node in lab.nodes:
        text = node.exec(["earshot", "metrics"]).stdout
        found[node.name] = int(re.search(r'^earshot_requests_rejected_total{service="web",rule="limit"} (\d+)', text, re.M)[1])
    return found


def test_over_all_nodes(lab):
    """One who floods gets what one node alone would give, though three decide; another is not touched meanwhile."""
    noisy, quiet = clients(lab)[:2]
    seconds, others, is_over = 6.0, [], threading.Event()

    def calm():
        while not is_over.is_set():
            others.append(ask(lab, quiet).status)
            time.sleep(0.1)
    thread = threading.Thread(target=calm)
    thread.start()
    begun = time.monotonic()
    results = flood(lab, noisy, seconds)
    took = time.monotonic() - begun
    is_over.set()
    thread.join()
    exact = BURST + RATE * took
    print(f"admitted {results[200]} of {sum(results.values())}, exact {exact:.0f}; rejected by node: {rejected(lab)}")
    assert set(results) == {200, 429} and results[429] > 100
    assert all(rejected(lab).values()), "all nodes decide"
    # Below: what was admitted too much is missing afterwards. Above: what comes before the others hear of it.
    within = sum(results.values()) / took * 0.1
    assert exact * 0.9 - 3 <= results[200] <= exact + within + 3, (results, exact, within)
    assert set(others) == {200}


def test_answer(lab):
    source = clients(lab)[2]
    assert ask(lab, source, "/node").status == 200
    time.sleep(0.5)  # a node that does not know by then would admit it, and the test fail
    response = ask(lab, source, "/node")
    assert response.status == 429 and 3500 < int(response.fields["retry-after"]) <= 3600
    assert ask(lab, source, "/u/1k/1").status == 200
    text = lab.node("n1").exec(["earshot", "explain", "--client", source, "GET /node"]).stdout
    assert "rule rare: rate: the client has no request left" in text


def test_explain_counts_nothing(lab):
    for _ in range(3 * BURST):
        text = lab.node("n1").exec(["earshot", "explain", "--client", "192.0.2.77", "GET /u/1k/1"]).stdout
        assert "rule limit: rate: the client has requests left" in text


def test_later_requests(lab, inspect):
    """On one connection, which the answer ends; where they are not inspected, they are not counted."""
    time.sleep((BURST + 2) / RATE)
    source = clients(lab)[2]
    with raw.connect(lab.client, before=lambda sock: sock.bind((source, 0))) as sock:
        for number in range(2 * BURST):
            sock.sendall(raw.head("/u/1k/1"))
            status = raw.receive(sock).status
            if status == 429:
                break
    assert (status == 429 and number >= BURST - 1) if inspect == "every" else status == 200
