# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTPS where the kernel writes the records of long responses, on n1 and n2, and earshot-tls does on n3: connections move between them.

Not for this machine's kernel: test_ktls.py runs it in machines whose kernel has the module tls.
"""
import itertools
import os
import re

import pytest

from cluster import secure as cluster
from earshotlab import tls
from web import raw, secure
from web.reader import sha256

MB = 1_000_000
TIMEOUT_S = 60
RULES = "".join(f'rule to-{node} {{ service = https  header = "X-To: {node}"  nodes = {node} }}\n' for node in cluster.ALL)
WITHOUT = "n3"


@pytest.fixture(scope="module", name="lab")
def _lab():
    with cluster.lab_of({"https.inspect": "every", "tls.workers": 1}) as lab:
        cluster.start_backends(lab)
        with open(lab.config_file, "a", encoding="utf-8") as config:
            config.write(RULES)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        with open(lab.config_file, encoding="utf-8") as config:
            text, count = re.subn(r"(?m)^(\s*)tls \{", r"\g<0>\n\1    ktls = off", config.read())
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
    for node in ("n1", "n2"):
        assert cluster.log_of(lab, node).count("the kernel writes their records, with all ciphers") == 1


def test_there_and_back(lab, how):
    """20 MB by the kernel; then the connection moves to a node without, and back, and to another one with."""
    before = {node: cluster.counters(lab, node) for node in lab.net.nodes}
    sock, reader = cluster.connect(lab, how, timeout=TIMEOUT_S)
    with sock:
        assert ask(sock, reader, "/mixed/20000000", "n1") == "n1"
        moved = [ask(sock, reader, f"/mixed/{size}", node) == node for node, size in (
            ("n3", 3 * MB), ("n1", 2 * MB), ("n2", 3 * MB), ("n2", 1000), ("n3", 100), ("n2", MB))]
        reader.nothing()
    after = {node: cluster.counters(lab, node) for node in lab.net.nodes}
    print(moved, {name: {node: after[node][name] - before[node][name] for node in after}
                  for name in ("ktls", "moved", "arrived", "stayed_refused", "stayed_unacknowledged", "stayed_unsealable")})
    assert all(moved)
    assert after["n1"]["ktls"] - before["n1"]["ktls"] == 2 and after["n2"]["ktls"] - before["n2"]["ktls"] == 2


def test_each_request(lab, how):
    """Requests to each node in turn, bodies of all lengths both ways, on one connection."""
    sock, reader = cluster.connect(lab, how, timeout=TIMEOUT_S)
    right = 0
    sizes = [0, 1, 16384, 262143, 262144, 300_000, 1_234_567]
    with sock:
        for number, (size, node) in enumerate(zip(sizes * 2, itertools.cycle(["n1", "n2", "n3", "n1", "n3", "n2"]))):
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
        sock.sendall(raw.head(target, X_To="n1", Connection="close"))
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
        sock.sendall(b"".join(raw.head(target, X_To=node) for target, node in zip(targets, ["n1", "n1", "n2", "n3", "n1"])))
        for target in targets:
            reader.response(target)
