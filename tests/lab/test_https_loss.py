# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTPS whose requests move, over a client's cable that loses, doubles and reorders: each byte arrives, and nobody waits for ever."""
import concurrent.futures
import random

import pytest

from cluster import secure as cluster
from cluster.secure import ALL
from sizes import size
from web import raw, secure
from web.reader import sha256

pytestmark = [pytest.mark.earshot, pytest.mark.wire]
CLIENTS = 8
REQUESTS = size(10, 60)
LENGTHS = [0, 1, 1000, 16384, 16385, 100_000, 1_000_000, 3_000_000]
PATIENCE_S = 60  # retransmissions double their time, and some are lost themselves


@pytest.fixture(scope="module", name="lab", params=["4", "6"], ids=["v4", "v6"])
def _lab(request):
    with cluster.moving_lab(family=request.param, wires=["client"], segment=True, wire_seed=11) as lab:
        yield lab
        lab.wire("client").clear()


def one(lab, how, seed):
    """A connection's requests, each for another node than the one before; how many there were."""
    order = random.Random(seed)
    sock, reader = cluster.connect(lab, how, timeout=PATIENCE_S)
    node = None
    with sock:
        for number in range(REQUESTS):
            node = order.choice([other for other in ALL if other != node])
            length = order.choice(LENGTHS)
            if order.random() < 0.5:
                target = f"/len/{length}?{seed}.{number}"
                sock.sendall(raw.head(target, X_To=node))
                reader.response(target)
            else:
                body = order.randbytes(length)
                sock.sendall(raw.head(f"/upload?{seed}.{number}", "POST", Content_Length=length, X_To=node) + body)
                assert reader.response().text.decode() == sha256(body)
    return REQUESTS


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_bad_cable(lab, version):
    """1% of the segments are lost, 1% come twice, 1% late, both ways; the handshakes' too."""
    how, wire = secure.context(lab, version), lab.wire("client")
    moved = cluster.total(lab, "moved")
    wire.zero()
    wire.set(loss=0.01, dup=0.01, reorder=0.01)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        assert sum(pool.map(lambda seed: one(lab, how, seed), range(CLIENTS))) == CLIENTS * REQUESTS
    wire.clear()
    moved, stats = cluster.total(lab, "moved") - moved, wire.stats()
    print(f"{moved} of {CLIENTS * REQUESTS} moved", stats)
    assert moved > (0 if lab.options["datapath"] == "netfilter" else CLIENTS * REQUESTS // 3)
