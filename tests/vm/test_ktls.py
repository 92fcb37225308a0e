# SPDX-License-Identifier: GPL-2.0-or-later
"""TLS in the kernel (module tls), which earshot-tls uses for long responses: a cluster in a machine of each datapath that needs no module of
ours, one node with it and one without."""
import pytest

from job import PYTEST, run

LAB_S = 2400  # two busy CPUs take a quarter of it


@pytest.mark.parametrize("release, datapath", [("6.1", "netfilter"), ("6.12", "bpf")])
def test_long_responses(kernel, release, datapath, tmp_path):
    print(run(kernel(release), f"modprobe tls; {PYTEST} --durations=5 tests/vm/ktls.py", LAB_S, tmp_path,
              {"EARSHOT_DATAPATH": datapath}))
