# SPDX-License-Identifier: GPL-2.0-or-later
"""The model of ./dev bench scale, on costs whose results can be had by hand; and the command, on the inputs that are checked in."""
import json
import os
import subprocess
import sys

import pytest

import scale
import scale_lab
import scale_model
from scale_model import Machine, Workload

HERE = os.path.dirname(os.path.abspath(__file__))
INPUTS = os.path.join(HERE, "data", "scale.json")


def cells(close, kept, large):
    return {"close": close, "keep-alive": kept, "large": large}


def inputs(**roles):
    """100 us to inspect and serve, 120 us if two nodes do, 5 us to overhear the five packets of a connection."""
    of = {"own": cells(100, 20, 119), "moved": cells(120, 21, 120), "overhear": cells(5, 1, 36), "inspector": cells(25, 0, 0),
          "background": 0, **roles}
    return {"serve": cells(60, 19, 118), "packets": cells(5, 1, 36), "datapaths": {"bpf": of},
            "proxies": {name: {"proxy": cells(50, 25, 124), "server": cells(25, 20, 119)} for name in scale_model.PROXIES}}


CLOSE = Workload(body_kb=1, request_bytes=100, per_connection=1)


def test_packets_of_a_connection():
    """SYN, ACK, request, acknowledgement and FIN: the lab counts 5.0 of them."""
    assert CLOSE.packets == 5 and CLOSE.bytes_in == 5 * 90 + 100 + 8
    assert Workload(1, 100, 10).packets == pytest.approx(0.4 + 1 + 0.9), "each response but the last is acknowledged by itself"
    assert Workload(1, 100, 10, pauses=False).packets == pytest.approx(1.4)
    assert Workload(100, 3000, 1).packets == 4 + 3 + 35, "three segments of a request, and every second of 71 acknowledged"


def test_fit_finds_the_parts():
    """80 us a connection, 19 us a request, 1 us a KB."""
    by_cell = cells(100, 20, 119)
    assert scale_model.fitted(by_cell, CLOSE) == 100
    assert scale_model.fitted(by_cell, Workload(50, 100, 4)) == pytest.approx(80 / 4 + 19 + 50)
    assert scale_model.fitted(cells(20, 21, 10), CLOSE) == 21, "noise below zero is none"


def test_all_nodes_pay():
    assert scale_model.together(100, 120, 5, 1) == 100
    assert scale_model.together(100, 120, 5, 2) == pytest.approx((105 + 120) / 2)
    assert scale_model.together(100, 120, 5, 8) == pytest.approx((135 + 7 * 150) / 8)


def test_more_packets_than_in_the_lab():
    """The lab's clients sent 36 for 100 KB; a connection each, that is 40, and clients of the model send 40."""
    costs = scale_model.Costs(inputs(), Workload(100, 100, 1))
    assert costs.packet("bpf") == 1 and costs.more == pytest.approx(0)
    costs = scale_model.Costs(inputs(), Workload(1, 100, 2, app_us=7))
    assert costs.more == pytest.approx(0.5) and costs.of("bpf", "overhear") == pytest.approx(3.5)
    assert costs.of("bpf", "own") == pytest.approx(60 + 7 + 0.5) and costs.of("bpf", "moved") == pytest.approx(70.5 + 7 + 1)
    assert costs.proxy("haproxy") == (pytest.approx(37.5 + 0.5), pytest.approx(22.5 + 7))


def test_what_limits():
    rows = {row["nodes"]: row for row in scale_model.rows(inputs(), CLOSE, Machine(cores=4, link_gbit=100))}
    assert rows[1]["requests_per_s"] == 40000 and rows[1]["limit"] == "CPU" and rows[1]["overhearing"] == 0
    assert rows[8]["requests_per_s"] == pytest.approx(8 * 4e6 / scale_model.together(100, 120, 5, 8))
    assert rows[8]["overhearing"] == pytest.approx((7 * 5 + 7 * 6 * 5) / 8 / rows[8]["cpu_us"])
    assert rows[2]["speedup"] == pytest.approx(1 + rows[2]["last_node"])
    # All clients' packets are on each cable: 558 bytes a connection.
    slow = scale_model.rows(inputs(), CLOSE, Machine(cores=4, link_gbit=0.1))[-1]
    assert (slow["limit"], slow["requests_per_s"]) == ("inbound", pytest.approx(0.1e9 / 8 / 558))
    assert slow["inbound_mbit"] == pytest.approx(100)
    large = scale_model.rows(inputs(), Workload(100, 100, 1), Machine(cores=64, link_gbit=1))[0]
    assert large["limit"] == "outbound"


def test_background_takes_of_each_node():
    some = inputs(background=1)
    assert scale_model.rows(some, CLOSE, Machine(cores=4), [1])[0]["requests_per_s"] == 30000


def test_proxies_are_machines_too():
    row = scale_model.rows(inputs(), CLOSE, Machine(cores=4, link_gbit=100), [4])[0]["proxies"]
    assert row["haproxy x1"] == {"requests_per_s": 80000, "limit": "proxy's CPU"}
    assert row["haproxy x2"] == {"requests_per_s": 160000, "limit": "proxy's CPU"}
    assert scale_model.rows(inputs(), CLOSE, Machine(), [2])[0]["proxies"].keys() == {"haproxy x1", "nginx-proxy x1"}
    few = scale_model.rows(inputs(), Workload(1, 100, 1, app_us=1000), Machine(cores=4, link_gbit=100), [4])[0]["proxies"]
    assert few["haproxy x1"] == {"requests_per_s": pytest.approx(3 * 4e6 / 1025), "limit": "servers' CPU"}
    cable = scale_model.rows(inputs(), Workload(100, 100, 1), Machine(cores=64, link_gbit=1), [4])[0]["proxies"]
    assert cable["haproxy x1"]["limit"] == "proxy's cable"


def test_where_it_ends():
    machine = Machine(cores=4, link_gbit=100)
    last = scale_model.stops_paying(inputs(), CLOSE, machine, "bpf")
    rows = {row["nodes"]: row for row in scale_model.rows(inputs(), CLOSE, machine, range(1, last + 2))}
    assert rows[last]["last_node"] >= scale_model.PAYS > rows[last + 1]["last_node"]
    assert scale_model.stops_paying(inputs(overhear=cells(0, 0, 0)), CLOSE, machine, "bpf", most=20) == 20


def test_where_proxies_are_ahead():
    """Here a proxy is full at 80,000 requests a second, and a server behind it takes a quarter of what it takes a node to serve clients."""
    machine = Machine(cores=4, link_gbit=100)
    assert scale_model.proxies_ahead(inputs(), CLOSE, machine, "bpf", 1, most=20) == [2]
    # An application of a millisecond hides what a proxy costs, and what overhearing costs grows on.
    dear = inputs(overhear=cells(50, 10, 360))
    slow = Workload(1, 100, 1, app_us=1000)
    ahead = scale_model.proxies_ahead(dear, slow, machine, "bpf", 1, most=30)
    rows = scale_model.rows(dear, slow, machine, range(1, 31))
    assert ahead and 2 not in ahead
    assert ahead == [row["nodes"] for row in rows[1:] if row["proxies"]["haproxy x1"]["requests_per_s"] > row["requests_per_s"]]
    assert scale._ranges([2, 5, 6, 7]) == "2, 5 to 7" and scale._ranges([]) == ""


def test_one_inspector_is_the_bottleneck():
    some = inputs()
    assert scale_model.dts(some, "bpf", 1) == (1, 1)
    many, one = scale_model.dts(some, "bpf", 8)
    assert many == pytest.approx(800 / scale_model.together(100, 120, 5, 8))
    assert one == pytest.approx(100 / ((100 + 7 * 30) / 8))
    many, one = scale_model.dts(some, "bpf", 8, free=True)
    assert many == pytest.approx(320 / scale_model.together(40, 60, 5, 8)) and one == pytest.approx(40 / ((40 + 7 * 30) / 8))
    fills = 1e9 / 8 / Workload(1, 1024, 1, pauses=False).bytes_in
    assert fills == pytest.approx(85000, rel=0.02), "where the paper's Fig. 7 stops, which its authors ascribe to the cable"


def test_check_counts_what_the_lab_costs_more():
    one = {"nodes": 2, "cell": "close", "datapath": "bpf", "slower": 1.5, "background": 0, "measured": 190,
           **{role: {"processes": processes, "receiving": 10} for role, processes in (("own", 100), ("moved", 120), ("overhear", 0))}}
    predicted, measured, ratio = scale_model.checked(one)
    assert predicted == pytest.approx(1.5 * 110 + 15) and measured == 190 and ratio == pytest.approx(190 / 180)
    assert scale_model.checked(one | {"background": 20, "measured": 210})[:2] == (pytest.approx(200), 210)
    found = scale_lab._checks([one, one | {"cell": "keep-alive", "slower": 1.1}])
    assert [each["slower"] for each in found] == [1.3, 1.3] and found[0]["nodes"] == 2
    text = scale.checks_table(found)
    assert "OUTSIDE" in text and "0 of 2 within 10%" in text
    assert "OUTSIDE" not in scale.checks_table([each | {"ratio": 1.09} for each in found])


def test_command_computes(tmp_path):
    out = tmp_path / "rows.json"
    done = subprocess.run([sys.executable, os.path.join(HERE, "scale.py"), "--inputs", INPUTS, "--json", str(out), "--app-us", "500"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "DTS Figs. 6, 7" in done.stdout, done
    found = json.loads(out.read_text())
    with open(INPUTS, encoding="utf-8") as handle:
        known = json.load(handle)
    assert len(found["rows"]) == len(scale_model.NODES) * len(known["datapaths"])
    for chart in found["charts"].values():
        assert {len(series["values"]) for series in chart["series"]} == {len(chart["x"]["values"])}


def test_other_inputs_are_refused(tmp_path):
    (tmp_path / "old.json").write_text('{"format": 0}')
    done = subprocess.run([sys.executable, os.path.join(HERE, "scale.py"), "--inputs", str(tmp_path / "old.json")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "this is not what --measure" in done.stderr, done
