# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTPS where the kernel writes the records of long responses on n1, and earshot-tls does on n2: connections move between them.

Not for this machine's kernel: test_ktls.py runs it in machines whose kernel has the module tls.
"""
import os
import re

import pytest

from cluster import secure as cluster
from earshotlab import tls
from web import raw, secure
from web.reader import sha256

MB = 1_000_000
TIMEOUT_S = 60
WITH, WITHOUT = NODES = ["n1", "n2"]
RULES = "".join(f'rule to-{node} {{ service = https  header = "X-To: {node}"  nodes = {node} }}\n' for node in NODES)


@pytest.fixture(scope="module", name="lab")
def _lab():
    with cluster.lab_of({"https.inspect": "every", "tls.workers": 1, "tls.ktls": "auto"}, nodes=len(NODES)) as lab:
        cluster.start_backends(lab)
        with open(lab.config_file, "a", encoding="utf-8") as config:
            config.write(RULES)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        with open(lab.config_file, encoding="utf-8") as config:
            text, count = re.subn(r"ktls = \"?auto\"?", "ktls = off", config.read())
        assert count == 1
        with open(os.path.join(lab.node_directory(WITHOUT), "earshot.conf"), "w", encoding="utf-8") as config:
            config.write(text)
        lab.stop(WITHOUT, tls.NAME)
        lab.start(WITHOUT, tls.NAME)
        yield lab
        assert cluster.total(lab, "arrived_bad") == cluster.total(lab, "arrived_repeated") == cluster.total(lab, "moves_lost") == 0
        assert cluster.counters(lab, WITHOUT)["ktls"] == cluster.total(lab, "ktls_refused") == 0


CLIENTS = [("1.2", cipher) for cipher in secure.CIPHERS] + [("1.3", None)]


@pytest.fixture(name="how", params=CLIENTS, ids=[f"{version}-{cipher}" for version, cipher in CLIENTS])
def _how(lab, request):
    version, cipher = request.param
    return secure.context(lab, version, cipher=cipher)


def ask(sock, reader, target, node, **fields):
    sock.sendall(raw.head(target, X_To=node, **fields))
    return reader.response(target).node


def test_log(lab):
    """It is said once, as the others inherit it."""
    assert cluster.log_of(lab, WITH).count("the kernel writes their records, with all ciphers") == 1


def test_there_and_back(lab, how):
    """20 MB by the kernel; then the connection moves to a node without, and back, and so on."""
    before = {node: cluster.counters(lab, node) for node in NODES}
    sock, reader = cluster.connect(lab, how, timeout=TIMEOUT_S)
    with sock:
        assert ask(sock, reader, "/mixed/20000000", WITH) == WITH
        moved = [ask(sock, reader, f"/mixed/{size}", node) == node for node, size in (
            (WITHOUT, 3 * MB), (WITH, 2 * MB), (WITH, 1000), (WITHOUT, 100), (WITH, MB))]
        reader.nothing()
    after = {node: cluster.counters(lab, node) for node in NODES}
    print(moved, {name: {node: after[node][name] - before[node][name] for node in NODES}
                  for name in ("ktls", "moved", "arrived", "stayed_refused", "stayed_unacknowledged", "stayed_unsealable")})
    assert all(moved)
    assert after[WITH]["ktls"] - before[WITH]["ktls"] == 3


def test_each_request(lab, how):
    """Requests to each node in turn, bodies of all lengths both ways, on one connection."""
    sock, reader = cluster.connect(lab, how, timeout=TIMEOUT_S)
    right = 0
    with sock:
        for number, size in enumerate([0, 1, 16384, 262143, 262144, 300_000, 1_234_567] * 2):
            node = NODES[number % 2]
            right += ask(sock, reader, f"/mixed/{size}?{number}", node) == node
            body = os.urandom(size)
            sock.sendall(raw.head("/upload", "POST", Content_Length=size, X_To=node) + body)
            assert reader.response().text.decode() == sha256(body)
    assert right >= 10, right


def test_slow_reader(lab, how):
    """A client that reads little at a time, and then the end in the right way."""
    sock, reader = cluster.connect(lab, how, timeout=TIMEOUT_S)
    with sock:
        target = f"/mixed/{4 * MB}"
        sock.sendall(raw.head(target, X_To=WITH, Connection="close"))
        data = bytearray()
        while piece := sock.recv(3000):
            data += piece
        reader.data, reader.sock = bytes(data), None
        reader.response(target)
        assert reader.data == b""


def test_pipelined(lab, how):
    """Requests that are there before the response before them is through."""
    sock, reader = cluster.connect(lab, how, timeout=TIMEOUT_S)
    targets = [f"/mixed/{size}" for size in (MB, 10, 400_000, 0, MB)]
    with sock:
        sock.sendall(b"".join(raw.head(target, X_To=node) for target, node in zip(targets, [WITH, WITH, WITHOUT, WITHOUT, WITH])))
        for target in targets:
            reader.response(target)
