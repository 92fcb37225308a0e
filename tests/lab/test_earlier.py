# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients without timestamps that have connected before a node started, and send their first request to it: it asks the others
first whose they are. Nobody waits but they, and none is refused."""
import selectors
import time

import pytest

from earshotlab import Lab, netns
from web import raw

pytestmark = pytest.mark.earshot

COUNT = 30
PATIENCE_S = 8
EXTRA_S = 0.4  # before that, nobody has repeated anything twice
LATE_S = 4


def ask(socks):
    """All at once; after how many seconds each was answered."""
    begun = time.monotonic()
    took = {}
    with selectors.DefaultSelector() as waiting:
        for sock in socks:
            waiting.register(sock, selectors.EVENT_READ)
            sock.sendall(b"GET /1k HTTP/1.1\r\nHost: lab\r\n\r\n")
        while len(took) < len(socks):
            ready = waiting.select(PATIENCE_S)
            assert ready, f"{len(socks) - len(took)} of {len(socks)} are not answered"
            for key, _ in ready:
                assert key.fileobj.recv(65536).startswith(b"HTTP/1.1 200")
                waiting.unregister(key.fileobj)
                took[key.fileobj] = time.monotonic() - begun
    return sorted(took.values())


def test_clients_from_before_the_start():
    with Lab(nodes=3) as lab:
        netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_timestamps": 0})
        earlier = [raw.connect(lab.client) for _ in range(COUNT)]
        lab.kill("n2")
        lab.heal("n2")
        took = ask(earlier)
        asked = lab.counters("n2")["inspect_earlier"]
        assert 0 < asked < COUNT
        # Those of the other nodes do not wait, nor does who connects now.
        assert took[COUNT - asked - 1] < EXTRA_S < took[COUNT - asked] and took[-1] < LATE_S, took
        new = [ask([raw.connect(lab.client)])[0] for _ in range(COUNT)]
        assert lab.counters("n2")["inspect_earlier"] == asked
        assert sorted(new)[COUNT // 2] < EXTRA_S, new
        print(f"{asked} late: {took[-asked]:.3f} to {took[-1]:.3f} s; others {took[(COUNT - asked) // 2] * 1e3:.1f} ms, "
              f"new ones {sorted(new)[COUNT // 2] * 1e3:.1f} ms (medians)")
