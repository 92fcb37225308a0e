# SPDX-License-Identifier: GPL-2.0-or-later
"""What must hold whatever the policy: nothing is lost, nothing is made up, the same seed gives the same bytes."""
import json

import pytest

from sim import SMALL, output, run

POLICIES = [policy["name"] for policy in json.loads(output("policies", "--json"))]


@pytest.mark.parametrize("policy", POLICIES)
def test_conservation(policy):
    for more in ((), ("--requests-per-connection", "7", "--dynamic-share", "0.2", "--inspectors", "4")):
        data = run(policy, *SMALL, *more)
        assert data["requests"] == data["completed"] == 60000
        assert data["hits"] + data["misses"] + data["dynamic"] == data["measured_requests"]
        assert sum(node["served"] for node in data["nodes"]) == data["measured_requests"]
        assert sum(node["hits"] for node in data["nodes"]) == data["hits"]
        assert sum(node["moves_in"] for node in data["nodes"]) == data["moves"]
        assert data["disk_reads"] <= data["misses"] + 8
        assert data["fallbacks"] == 0 or policy == "ring"
        assert data["imbalance"] >= 1
        for node in data["nodes"]:
            assert 0 <= node["cpu_busy"] <= 1 and 0 <= node["disk_busy"] <= 1 and 0 <= node["net_busy"] <= 1
        # Little's law: throughput x time in the system = connections, but for the client's own time
        assert sum(node["active"] for node in data["nodes"]) <= 481


@pytest.mark.parametrize("policy", ["wrr", "uri-hash", "lard-r", "hylard"])
def test_same_seed_same_bytes(policy):
    args = ("run", "--policy", policy, *SMALL, "--requests-per-connection", "3", "--inspectors", "2", "--json", "--seed")
    assert output(*args, "5") == output(*args, "5")
    assert output(*args, "5") != output(*args, "6")


def test_content_blind_policies_do_not_move():
    for policy in ("ring", "wrr", "wlc"):
        assert run(policy, *SMALL, "--requests-per-connection", "10")["moves"] == 0


def test_one_request_per_connection_never_moves():
    assert run("lard-r", *SMALL)["moves"] == 0
    assert run("lard-r", *SMALL, "--requests-per-connection", "2")["moves"] > 0


def test_handover_cost_costs():
    args = (*SMALL, "--requests-per-connection", "10", "--cache-mb", "512")
    cheap = run("lard-r", *args, "--cpu-handover-us", "0")
    dear = run("lard-r", *args, "--cpu-handover-us", "1000")
    assert dear["throughput_rps"] < 0.8 * cheap["throughput_rps"]


def test_more_cache_more_hits():
    rates = [run("wrr", *SMALL[:-1], size)["hit_rate"] for size in ("0", "16", "64", "512")]
    assert rates[0] == 0
    assert rates == sorted(rates) and rates[-1] > rates[1] + 0.1


def test_bottlenecks_by_hand():
    """One node, one file that is cached: the throughput is what the busiest station allows."""
    one = ("--synthetic", "zipf", "--files", "1", "--mean-kb", "146", "--size-sigma", "0", "--nodes", "1", "--requests",
           "20000")
    cpu = run("wrr", *one, "--net-rate-mbit", "100000")
    # 250 us request, 150 us connection, 100 packets of 15 us
    assert cpu["throughput_rps"] == pytest.approx(1e6 / (250 + 150 + 1500), rel=0.01)
    assert cpu["cpu_busy"] == pytest.approx(1, abs=0.01)
    net = run("wrr", *one, "--net-rate-mbit", "100")
    # 146,000 bytes in 3 pieces of up to 64 KiB: 45 + 45 + 11 packets
    assert net["throughput_rps"] == pytest.approx(100e6 / 8 / (146000 + 101 * 90), rel=0.01)
    disk = run("wrr", *one, "--cache-mb", "0", "--clients", "4")
    # Streamed: two extents of up to 128 KiB
    assert disk["throughput_rps"] == pytest.approx(1 / (2 * 0.007 + 0.146 / 40), rel=0.01)
    assert disk["hit_rate"] == 0
    # Two that want what is being read read it once.
    assert run("wrr", *one, "--warmup", "0", "--clients", "50")["disk_reads"] == 1


def test_dynamic_requests_need_no_disk():
    data = run("wrr", *SMALL, "--dynamic-share", "1")
    assert data["dynamic"] == data["measured_requests"]
    assert data["disk_reads"] == data["hits"] == data["misses"] == 0


def test_inspectors_agree():
    data = run("lard-r", *SMALL, "--inspectors", "4", "--requests-per-connection", "5")
    assert data["targets"]["messages"] > 0
    assert data["targets"]["tables_differ"] is False
    assert data["targets"]["entries"] > 1000


def test_slow_bus_costs_locality():
    """Without news of each other for a second, inspectors must do worse: the bus is really in between."""
    fast = run("lard-r", *SMALL, "--inspectors", "4", "--bus-delay-ms", "1", "--publish-ms", "20")
    slow = run("lard-r", *SMALL, "--inspectors", "4", "--bus-delay-ms", "1000", "--publish-ms", "20")
    assert slow["hit_rate"] < fast["hit_rate"] - 0.01
