# SPDX-License-Identifier: GPL-2.0-or-later
"""`./dev upgrade COMMIT`: a cluster of that commit's daemons becomes one of this tree's under load, node by node, and back.

No client may notice. What a node does to another's messages, tables and membership while versions are mixed is all in the way:
requests that are not safe, connections that are kept and move, new ones. EARSHOT_BEFORE is that commit's build tree.
"""
import collections
import hashlib
import itertools
import os
import time

import pytest

from cluster.every import homes, start_backends
from earshotlab import Lab, wait_for
from sizes import size
from tree import skip
from web.backend import content
from web.traffic import Request, Traffic

BEFORE = os.environ.get("EARSHOT_BEFORE")
LENGTH = 1000
DOUBTS_S = 125  # after a whole cluster has started: docs/failures.md, ES_GROUP_DOUBT_MS
SECONDS = size(4.0, 30.0)  # with each mixture of versions


class Orders(Traffic):
    """Every fourth request is a POST; the others ask each node for what it has at home."""

    def __init__(self, lab, targets):
        super().__init__(lab, kept=20, fresh=10)
        self.targets = targets

    def request(self, number):
        if number % 4 == 0:
            return Request("POST", f"/upload?{number}", b"%08d" % number * 90)
        return Request("GET", self.targets[number * 7 % len(self.targets)], b"")

    def is_right(self, request, node, body):
        if request.method == "POST":
            return body == hashlib.sha256(request.body).hexdigest().encode()
        return body == content(request.target, LENGTH)


def is_inspecting(lab, members):
    def condition():
        for node in lab.net.nodes:
            status = lab.status(node)
            if status["datapath"]["state"] != "inspecting" or status["ring"]["members"] != members:
                raise BlockingIOError(f"{node}: {status['datapath']} {status['ring']}")
        return True

    return condition


def drifts(lab):
    """In what nodes with the same file differ, as any of them sees it."""
    return {(asked, node["name"]): node["drift"] for asked in lab.net.nodes for node in lab.status(asked)["nodes"] if node.get("drift")}


@pytest.mark.parametrize("inspect", ["every", "first"])
@pytest.mark.parametrize("membership", ["static", "corosync"])
@pytest.mark.parametrize("back", [False, True], ids=["upgrade", "downgrade"])
def test_node_by_node(membership, inspect, back):
    skip(None if BEFORE else "EARSHOT_BEFORE names no build tree of the version before: ./dev upgrade COMMIT")
    settings = {"service.inspect": inspect, "service.load_bound": 0}
    settings.update({f"node.n{number}.id": None for number in (1, 2, 3)})  # 821588f does not know them
    lab = Lab(nodes=3, server="none", policy="uri-hash", membership=membership, settings=settings)
    old = dict.fromkeys(lab.net.nodes, os.path.join(BEFORE, "bin/earshotd"))
    if not back:
        lab.daemons = dict(old)
    with lab:
        start_backends(lab, "backend")
        lists = homes(lab, (f"/len/{LENGTH}?{number}" for number in itertools.count()), 3)
        if membership == "corosync":
            time.sleep(DOUBTS_S)
        with Orders(lab, list(itertools.chain(*lists.values()))) as traffic:
            traffic.run(SECONDS)
            for node in lab.net.nodes:
                lab.node(node).stop("earshotd")
                if back:
                    lab.daemons[node] = old[node]
                else:
                    del lab.daemons[node]
                lab.node(node).start("earshotd")
                wait_for(is_inspecting(lab, 3), f"a whole ring with {node} anew", 20)
                traffic.run(SECONDS)
                wait_for(lambda: not drifts(lab), f"no drift with {node} anew", 10, lambda: drifts(lab))
        assert not traffic.wrong, traffic.wrong[:5]
        assert not traffic.broken, traffic.broken[:5]
        served = collections.Counter(answer.node for answer in traffic.answers)
        assert set(served) == set(lab.net.nodes), served
        print(f"{membership} {inspect}: {len(traffic.answers)} requests, the slowest {max(a.seconds for a in traffic.answers):.2f} s")
