# SPDX-License-Identifier: GPL-2.0-or-later
"""One server of three kernels, each with another datapath: this machine's with BPF, Debian 12's with earshot.ko, Debian 11's with
netfilter. `auto` takes them; requests go from each to each."""
import itertools
import json

import pytest

from earshotvm import cluster
from earshotvm.cluster import Lab
from earshotvm.modules import OLD, module_of
from serving import TIMEOUT_S
from web import raw

KINDS = {"n1": "bpf", "n2": "module", "n3": "netfilter"}
TOKEN_MS = 5000  # of corosync: machines may also stand still for a second


def homes(lab):
    """{node: a URI that it serves}."""
    found = {}
    for number in range(60):
        uri = f"/u/1m/{number}"
        response = raw.ask(lab.client, raw.head(uri, Connection="close"), timeout=TIMEOUT_S)[0]
        assert raw.right(response, "1m")
        found.setdefault(response.node, uri)
        if len(found) == len(KINDS):
            return found
    raise AssertionError(f"nothing is served by others than {', '.join(found)}")


def from_to(lab, port, serving, uri):
    """Requests of a connection whose first is handed over: each answer is whole, and of the node that serves."""
    with raw.connect(lab.client, timeout=TIMEOUT_S, port=port) as sock:
        for each in (uri, "/u/1k/x", uri):
            sock.sendall(raw.head(each))
            response = raw.receive(sock)
            assert raw.right(response, each.split("/")[2]) and response.node == serving


def kinds(lab, vms):
    return {"n1": lab.status("n1")["datapath"]["type"], **{node: vm.ask("status")["datapath"]["type"] for node, vm in vms.items()}}


def counted(lab, vms, name):
    return {"n1": lab.counters("n1")[name], **{node: vm.counters()[name] for node, vm in vms.items()}}


def check(lab, vms):
    """The machine with netfilter says which datapath it has, and why no other."""
    done = vms["n3"].exec(["earshot", "--json", "check", "--config", lab.config_file, "--node", "n3"], check=False)
    said = next(finding["found"] for finding in json.loads(done.stdout)["findings"] if finding["id"] == "kernel.reqsk")
    assert "netfilter datapath" in said and "not bpf: " in said and "not module: " in said, said


@pytest.mark.parametrize("membership", ["static", "corosync"])
def test_three_datapaths(kernel, membership):
    old = kernel(OLD)
    with Lab(nodes=len(KINDS), policy="uri-hash", datapath="auto", membership=membership, token=TOKEN_MS, transport="udpu",
             settings={"service.load_bound": 0}, autostart=[]) as lab:
        with cluster.nodes(lab, {"n2": old, "n3": kernel("5.10")}, insmod={"n2": [module_of(old)]}) as vms:
            for program in ("nginx", "earshotd"):
                lab.start("n1", program)
            lab.wait_serving()
            assert kinds(lab, vms) == KINDS
            check(lab, vms)
            uris = homes(lab)
            free = {node: raw.ports(lab, node) for node in KINDS}
            before = counted(lab, vms, "handover_rebuilt")
            pairs = list(itertools.product(KINDS, KINDS))
            for inspecting, serving in pairs:
                from_to(lab, next(free[inspecting]), serving, uris[serving])
            after = counted(lab, vms, "handover_rebuilt")
            assert sum(after.values()) - sum(before.values()) == len(pairs), (before, after)
            for lost in ("rebuild_refused", "handover_malformed", "handover_bad_mac"):
                assert not any(counted(lab, vms, lost).values()), lost
            if membership == "corosync":
                the_others_go_on(lab, vms, uris)


def the_others_go_on(lab, vms, uris):
    """The machine with the module loses its power: what the others have goes on, and they take the rest."""
    with raw.connect(lab.client, timeout=TIMEOUT_S) as sock:
        sock.sendall(raw.head(uris["n3"]))
        assert raw.receive(sock).node == "n3"
        vms["n2"].kill()
        cluster.wait_for(lambda: all(node["name"] != "n2" or node["state"] not in ("up", "draining")
                                     for node in vms["n3"].ask("nodes")["nodes"]), "n2 is gone", TIMEOUT_S)
        sock.sendall(raw.head(uris["n3"]))
        response = raw.receive(sock)
        assert raw.right(response, "1m") and response.node == "n3"
    served = set()
    for number in range(20):
        response = raw.ask(lab.client, raw.head(f"/u/13k/{number}", Connection="close"), timeout=TIMEOUT_S)[0]
        assert raw.right(response, "13k")
        served.add(response.node)
    assert served == {"n1", "n3"}
