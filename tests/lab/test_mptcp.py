# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers that listen with MPTCP: nodes with the netfilter datapath serve, one with BPF is down and says why."""
import contextlib
import hashlib
import itertools
import json
import random
import socket

import pytest

import tree
from earshotlab import Lab, in_namespace, topology, wait_for
from web import mptcp, raw
from web.backend import content

pytestmark = pytest.mark.earshot

SERVING = {"n1": False, "n2": True, "n3": True}


@pytest.fixture(scope="module", name="lab")
def _lab():
    if not mptcp.is_there():
        pytest.skip("this kernel has no MPTCP")
    with Lab(nodes=3, policy="uri-hash", server="none", datapath="bpf", family="46",
             node_datapath={name: "netfilter" for name, serves in SERVING.items() if serves}) as lab:
        for node in lab.nodes:
            child = node.popen([*tree.module("web.mptcp"), node.name, ",".join(lab.net.vips), str(topology.PORT)], stdout=-1)
            assert child.stdout.readline() == "listening\n"
        wait_for(lambda: all(seen(lab, at) == SERVING for at in SERVING), "all know who serves",
                 seen=lambda: [lab.status(at)["nodes"] for at in SERVING])
        yield lab


def seen(lab, at):
    """{node: is it up?}, as one node knows."""
    return {node["name"]: node["state"] == "up" and not node["trouble"] for node in lab.status(at)["nodes"]}


def test_what_nodes_say_of_themselves(lab):
    for name, serves in SERVING.items():
        node = lab.node(name)
        trouble = next(each for each in lab.status(name)["nodes"] if each["self"])["trouble"]
        assert ("is one of MPTCP" in trouble) != serves, (name, trouble)
        assert f'earshot_server_up{{service="web"}} {int(serves)}' in node.exec(["earshot", "metrics"]).stdout
        checked = json.loads(node.exec(["earshot", "--json", "check", "--config", lab.config_of(name)], check=False).stdout)
        said = {finding["id"]: finding["severity"] for finding in checked["findings"]}
        assert said["server.mptcp"] == ("ok" if serves else "error"), name


def with_mptcp(lab, address):
    """A client that speaks it, too; the nodes answer it by TCP."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = in_namespace(lab.net.client, socket.socket, family, socket.SOCK_STREAM, mptcp.IPPROTO_MPTCP)
    sock.settimeout(10)
    sock.connect(address)
    return sock


@pytest.mark.parametrize("way", ["tcp", "mptcp"])
def test_served(lab, way):
    """Whoever inspects, by both families, also the requests behind the first and what clients send."""
    served, inspected = set(), raw.total(lab, "inspect_handovers")
    body = random.randbytes(1 << 20)
    for number, vip in itertools.product(range(12), lab.net.vips):
        address = (vip, topology.PORT)
        with contextlib.closing(with_mptcp(lab, address) if way == "mptcp" else raw.connect(lab.client, address)) as sock:
            for uri in (f"/len/{100 + number}", "/len/300000"):
                sock.sendall(raw.head(uri))
                response = raw.receive(sock)
                assert response.status == 200
                assert response.digest.digest() == hashlib.sha256(content(uri, int(uri.split("/")[2]))).digest()
                served.add(response.node)
            sock.sendall(raw.head("/upload", "POST", Content_Length=len(body)) + body)
            assert raw.receive(sock).text == hashlib.sha256(body).hexdigest().encode()
    assert served == {name for name, serves in SERVING.items() if serves}
    assert raw.total(lab, "inspect_handovers") > inspected
    assert raw.total(lab, "rebuild_refused", "handover_malformed", "handover_bad_mac", "answer_failed") == 0
