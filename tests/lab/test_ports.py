# SPDX-License-Identifier: GPL-2.0-or-later
"""Client ports that come back while a server still holds their TIME_WAIT: twice through the whole range."""
import json
import sys

import pytest

from earshotlab import Lab
from test_integrity import TRAFFIC, total

pytestmark = pytest.mark.earshot

FIRST, LAST = 1024, 65535


def test_port_reuse_costs_no_stall(tmp_path):
    (tmp_path / "small").write_bytes(b"x" * 100)
    digest = "09ecb6ebc8bcefc733f6f2ec44f791abeed6a99edf0cc31519637898aebd52d8"
    (tmp_path / "manifest.tsv").write_text(f"small\t100\t{digest}\n", encoding="ascii")
    with Lab(policy="wrr", docroot=str(tmp_path)) as lab:
        connections = 2 * (LAST - FIRST + 1)
        done = lab.client.exec([sys.executable, TRAFFIC, str(tmp_path), f"--connections={connections}",
                                "--modes=server", f"--local-ports={FIRST}-{LAST}"],
                               check=False, timeout=280, capture_output=True, text=True)
        report = json.loads(done.stdout)
        assert report["ok"] == connections, report
        # A SYN that is not answered at once is sent again after a second.
        assert report["retransmitted_syns"] == 0 and report["total_s"]["max"] < 1.0, report
        # The second round met the first one's TIME_WAIT on the node that had served.
        assert total(lab, "syn_time_wait") > (LAST - FIRST) * 0.9
