# SPDX-License-Identifier: GPL-2.0-or-later
"""Every byte of every response, over good and bad links: 20,000 connections a case, 64 at a time."""
import json
import os
import random
import sys

import pytest

from earshotlab import Lab
from traffic import make_docroot

pytestmark = [pytest.mark.earshot, pytest.mark.wire]

TRAFFIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "traffic.py")
CONNECTIONS = 20000


@pytest.fixture(scope="module")
def docroot(tmp_path_factory):
    directory = tmp_path_factory.mktemp("docroot")
    make_docroot(directory)
    return str(directory)


@pytest.fixture(scope="module")
def seed():
    chosen = int(os.environ.get("EARSHOT_SEED", random.randrange(1 << 30)))
    print(f"EARSHOT_SEED={chosen}")
    return chosen


def run(lab, docroot, seed, **options):
    """One run of traffic.py from the client; its report."""
    arguments = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
    done = lab.client.exec([sys.executable, TRAFFIC, docroot, f"--seed={seed}", *arguments], check=False, timeout=240,
                           capture_output=True, text=True)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert not report["failed"], report
    return report


def total(lab, counter):
    return sum(lab.counters(node.name)[counter] for node in lab.nodes)


def check_cluster(lab, report, connections):
    """Whatever the links did: everything was inspected, and no request made two sockets."""
    assert report["ok"] == connections and len(report["nodes"]) == 3
    assert total(lab, "request_fallback") == 0 and total(lab, "rebuild_refused") == 0
    assert total(lab, "handover_bad_mac") == 0 and total(lab, "inspect_no_target") == 0
    assert total(lab, "handover_rebuilt") == total(lab, "inspect_requests") - total(lab, "inspect_nacks")


def test_clean_links(docroot, seed):
    with Lab(policy="wrr", docroot=docroot) as lab:
        report = run(lab, docroot, seed, connections=CONNECTIONS)
        check_cluster(lab, report, CONNECTIONS)
        assert total(lab, "inspect_handovers") > CONNECTIONS / 2
        assert report["retransmitted_syns"] == 0


def test_bad_client_link(docroot, seed):
    with Lab(policy="wrr", docroot=docroot, wires=["client"], segment=True) as lab:
        lab.wire("client").set(loss=0.01, dup=0.01, reorder=0.01)
        report = run(lab, docroot, seed, connections=CONNECTIONS, max_bytes=100000)
        stats = lab.wire("client").stats()
        assert all(stats[way][what] > 100 for way in ("in", "out") for what in ("lost", "duplicated", "reordered"))
        assert total(lab, "inspect_repeated") > 0
        assert report["ok"] == CONNECTIONS and total(lab, "request_fallback") == 0


def test_lossy_handover_links(docroot, seed):
    links = ["n1-clu", "n2-clu", "n3-clu"]
    with Lab(policy="wrr", docroot=docroot, wires=links) as lab:
        for link in links:
            lab.wire(link).set(loss=0.01)
        report = run(lab, docroot, seed, connections=CONNECTIONS, max_bytes=100000)
        assert sum(lab.wire(link).stats()["in"]["lost"] for link in links) > 50
        assert total(lab, "inspect_repeated") > 50
        check_cluster(lab, report, CONNECTIONS)


def test_everything_bad_at_once(docroot, seed):
    with Lab(policy="wrr", docroot=docroot, wires=["all"], segment=True) as lab:
        for link in lab.net.links:
            lab.wire(link).set(loss=0.01, dup=0.01, reorder=0.01)
        report = run(lab, docroot, seed, connections=5000, max_bytes=100000, timeout=60)
        assert report["ok"] == 5000


def test_a_uri_lives_on_one_node(docroot, seed):
    with Lab(policy="uri-hash", docroot=docroot) as lab:
        files = [line.split()[0] for line in open(os.path.join(docroot, "manifest.tsv"), encoding="ascii")]
        where = {}
        for _ in range(3):
            for path in random.Random(seed).sample(files, 60):
                where.setdefault(path, set()).add(lab.client.get(f"/{path}")[1]["X-Node"])
        assert all(len(nodes) == 1 for nodes in where.values())
        assert len(set.union(*where.values())) == 3
