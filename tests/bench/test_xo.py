# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench xo: which of Earshot's modes a workload is for, and what becomes of the medians."""
import pytest

import chart
import xo


def row(mode, rate, cpu_us, size="1k", name="round robin"):
    return {"mode": mode, "size": size, "connection": name, "requests_per_s": rate, "own_us": cpu_us}


def test_workloads_have_modes_of_their_own():
    arguments = xo.options(["--sizes", "1k"])
    taken = {workload.name: [mode for mode in arguments.modes if workload.takes(mode)] for _, workload in arguments.cells}
    assert taken == {name: ["direct", mode, "haproxy", "nginx-proxy"] for name, (_, _, mode) in xo.WORKLOADS.items()}


def test_another_policy_by_content():
    arguments = xo.options(["--workloads", "by content", "--policy", "lard-r", "--fast"])
    taken = [mode for mode in arguments.modes if arguments.cells[0][1].takes(mode)]
    assert taken == ["direct", "earshot-lard-r", "haproxy", "nginx-proxy"] and arguments.rounds == 1


def test_table_and_charts():
    arguments = xo.options(["--sizes", "1k,4m", "--workloads", "round robin,each moves"])
    rows = [row("direct", 1000, 100), row("earshot", 900, 120), row("haproxy", 450, 240), row("nginx-proxy", 600, 300),
            row("earshot-every", 300, 480, "4m", "each moves"), row("haproxy", 400, 400, "4m", "each moves")]
    assert xo.table(rows, arguments)[2:] == [
        "| round robin | 1k | 900 (120) | 1,000 (100) | 450 (240) | 600 (300) | +50 | +27 .. +365 | +50 |",
        "| each moves | 4m | 300 (480) |  | 400 (400) |  | -25 | +27 .. +365 | -20 |"]
    made = xo.charts(rows, arguments)
    for data in made.values():
        chart.check(data)
    assert made["xo-gain"]["x"]["values"] == [1, 4096]
    assert [(each["name"], each["values"]) for each in made["xo-gain"]["series"]] == [
        ("round robin", [50.0, None]), ("each moves", [None, -25.0])]
    assert not xo.charts([row("direct", 1000, 100)], arguments), "without proxies there is no gain"


@pytest.mark.parametrize("words", [["--sizes", "2k"], ["--workloads", "none"], ["--modes", "earshot-never"]])
def test_what_is_not_there_is_refused(words):
    with pytest.raises(SystemExit):
        xo.options(words)
