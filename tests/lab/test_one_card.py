# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes with a single network card, by the configuration in docs/machine.md: handovers share it with the clients."""
import collections
import os
import re
import socket

import pytest

from earshotlab import Lab, daemon
from tree import SOURCE
from web import raw

pytestmark = pytest.mark.earshot

BODY = 300000  # of a request: many segments of the largest size


@pytest.fixture(name="lab")
def _lab(tmp_path):
    with open(os.path.join(SOURCE, "docs/machine.md"), encoding="utf-8") as page:
        (text,) = re.findall(r"^```conf\n(datapath.*?)^```$", page.read(), re.M | re.S)
    key, config = str(tmp_path / "key"), tmp_path / "earshot.conf"
    daemon.make_key(key)
    text = text.replace("datapath {", f"datapath {{\n    type = {daemon.DATAPATH}").replace("port = 80", "port = 80  policy = wrr")
    config.write_text(f'cluster {{ key_file = "{key}" }}\n{text}')
    with Lab(nodes=3, config=str(config), family="4") as lab:
        yield lab


def test_serves(lab):
    """All nodes, most by a handover; an upload comes whole, in segments that fit into a handover message."""
    served = collections.Counter(raw.ask(lab.client, raw.head("/node"))[0].node for _ in range(60))
    assert set(served) == {"n1", "n2", "n3"} and min(served.values()) > 10, served
    assert sum(lab.counters(node)["handover_rebuilt"] for node in served) >= 60
    with raw.connect(lab.client) as sock:
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) <= 1368
        sock.sendall(raw.head("/node", method="POST", Content_Length=BODY) + b"x" * BODY)
        assert raw.receive(sock).status in (200, 405)
    for node in served:
        counted = lab.counters(node)
        assert not counted["handover_public"] and not counted["handover_bad_mac"] and not counted["request_fallback"], (node, counted)
