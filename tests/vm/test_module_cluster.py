# SPDX-License-Identifier: GPL-2.0-or-later
"""Three machines with Debian 12's kernel and earshot.ko are one server.

Takes minutes, so ./dev check leaves it out: README.md has the command.
"""
import itertools

import pytest

from earshotvm import cluster
from earshotvm.cluster import Lab
from earshotvm.modules import OLD, module_of
from serving import TIMEOUT_S, get
from web import raw

NODES = ("n1", "n2", "n3")
TOKEN_MS = 5000  # of corosync: they may also stand still for a second


def home(lab):
    """{node: an iterator over URIs that are its own}, as the policy uri-hash has them for as long as the ring is the same."""
    found = {}
    for number in range(60):
        status, headers, body = lab.client.get(f"/u/13k/{number}", timeout=TIMEOUT_S)
        assert status == 200 and len(body) == 13 << 10
        found.setdefault(headers["X-Node"], []).append(number)
    return {node: itertools.cycle(numbers) for node, numbers in found.items()}


@pytest.mark.parametrize("membership", ["static", "corosync"])
def test_three_machines(kernel, membership):
    old = kernel(OLD)
    with Lab(nodes=len(NODES), policy="uri-hash", datapath="module", membership=membership, token=TOKEN_MS, transport="udpu",
             settings={"service.inspect": "every", "service.load_bound": 0}, autostart=[]) as lab:
        with cluster.nodes(lab, dict.fromkeys(NODES, old), insmod=dict.fromkeys(NODES, [module_of(old)])) as vms:
            lab.wait_serving()
            assert all(vm.ask("status")["datapath"]["type"] == "module" for vm in vms.values())
            own = home(lab)
            assert set(own) == set(NODES)
            before = {node: vm.counters() for node, vm in vms.items()}
            connection = raw.http_connection(lab.client, TIMEOUT_S)
            # Each request is another node's than the one before: each moves the connection.
            turns = [node for _ in range(10) for node in NODES]
            answered = [get(connection, next(own[node])) for node in turns]
            assert answered == turns
            after = {node: vm.counters() for node, vm in vms.items()}
            moved = sum(after[node]["end_done"] - before[node]["end_done"] for node in NODES)
            assert moved == len(turns) - 1
            assert all(after[node]["handover_rebuilt"] - before[node]["handover_rebuilt"] >= 10 for node in NODES)
            print(f"{membership}: {len(turns)} requests, {moved} moves")
            if membership == "corosync":
                the_others_go_on(lab, vms, connection, own)


def the_others_go_on(lab, vms, connection, own):
    """One machine loses its power while another has the connection."""
    assert get(connection, next(own["n1"])) == "n1"
    vms["n3"].kill()
    cluster.wait_for(lambda: len(vms["n1"].ask("nodes")["nodes"]) and not alive(vms["n1"], "n3"), "n3 is gone", TIMEOUT_S)
    for number in range(30):  # what n3 had is the others' now, on old connections and on new ones
        assert get(connection, number) in ("n1", "n2")
        status, headers, _ = lab.client.get(f"/u/13k/{number}", timeout=TIMEOUT_S)
        assert status == 200 and headers["X-Node"] in ("n1", "n2")


def alive(vm, node):
    return next(n for n in vm.ask("nodes")["nodes"] if n["name"] == node)["state"] in ("up", "draining")
