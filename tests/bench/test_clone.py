# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench clone without a cluster: its models, and what its table says."""
import os
import subprocess

import clone

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agents", "hashed")


def test_models():
    """A client's share is one; with its port, all. (That the kernel's hash is this one: tests/netfilter/test_hash.py.)"""
    ports = range(40000, 40100)
    assert {clone.share_source_port(0xc0000201, port) for port in ports} == {0, 1, 2}
    assert len({clone.share_source(0xc0000201, port) for port in ports}) == 1
    clients = [0xc0000200 + i for i in range(100)]
    assert {clone.share_source(client, 0) for client in clients} == {0, 1, 2}
    assert clone.imbalance({"n1": 3, "n2": 0, "n3": 0}) == 3 and clone.imbalance({"n1": 2, "n2": 2, "n3": 2}) == 1


def test_table():
    deaths = [{"broken": {"n1": (30, 0), "n2": (29, 29), "n3": (31, 1)}, "broken_by_return": {"n1": (60, 20), "n3": (30, 0)},
               "meanwhile": {"n1": 60, "n2": 0, "n3": 30}, "gap_s": gap, "longest_s": 3.0, "failed": 0} for gap in (1.5, 2.5, 2.0)]
    spread = clone.spread([1, 2, 3])
    row = clone.summarise("x", {1: spread, 10: spread, 1000: spread}, deaths)
    assert (row["its"], row["others"], row["on_return"]) == ([87, 87], [183, 3], [270, 60])
    assert row["gap_s"] == {"median": 2.0, "least": 1.5, "most": 2.5} and row["busiest_survivor"]["most"] == 0.67
    text = clone.table([row, clone.summarise("model", {1: spread, 10: spread, 1000: spread}, [])]).splitlines()
    assert len(text) == 3 and "87 of 87" in text[1] and "60 of 270" in text[1] and "-" in text[2]


def test_agent_tells_what_it_is():
    done = subprocess.run([AGENT, "meta-data"], capture_output=True, text=True, check=True)
    assert '<resource-agent name="hashed"' in done.stdout
