# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench plots: what is drawn of a chart's data, what is refused, and that --check sees a plot that is not its data's."""
import copy
import json
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import chart
import keepalive
import plots
import runs

SVG = "{http://www.w3.org/2000/svg}"
DATA = {"title": "Rate\nof three & <four>", "x": {"label": "nodes", "values": [1, 2, 4]}, "y": {"label": "requests/s"},
        "series": [{"name": "ours", "values": [100, None, 400]}, {"name": "theirs", "values": [150, 200, 250], "paper": True}],
        "command": "./dev bench nothing", "measured": {"commit": "abc", "date": "2026-11-29", "machine": "two cores"}}


def drawn(**changes):
    return ElementTree.fromstring(chart.draw({**copy.deepcopy(DATA), **changes}))


def test_lines_are_where_the_values_are():
    root = drawn()
    lines = [line for line in root.iter(f"{SVG}polyline") if line.get("points").split()[0].startswith(f"{chart.LEFT + 20.0},") or
             line.get("points").count(" ") == 0]
    assert len(lines) == 3, "a null interrupts ours"
    heights = [float(point.split(",")[1]) for point in lines[2].get("points").split()]
    assert lines[2].get("stroke-dasharray") and not lines[0].get("stroke-dasharray")
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2), "150, 200, 250"
    places = [float(point.split(",")[0]) for point in lines[2].get("points").split()]
    assert places[2] - places[1] == pytest.approx(2 * (places[1] - places[0]), abs=0.2)
    assert {"Rate", "of three & <four>", "nodes", "requests/s", "ours", "theirs"} <= {text.text for text in root.iter(f"{SVG}text")}


def test_a_scale_by_ratio():
    root = drawn(x={"label": "KB", "values": [1, 2, 4], "scale": "log"})
    points = next(line for line in root.iter(f"{SVG}polyline") if line.get("stroke-dasharray")).get("points").split()
    places = [float(point.split(",")[0]) for point in points]
    assert places[2] - places[1] == pytest.approx(places[1] - places[0], abs=0.2)


def test_words_make_bars():
    root = drawn(x={"label": "policy", "values": ["wrr", "lard", "hylard"]},
                 series=[{"name": "gain", "values": [-10, None, 20]}, {"name": "paper", "values": [5, 10, 20], "paper": True}])
    bars = [bar for bar in root.iter(f"{SVG}rect") if float(bar.get("width")) not in (14, chart.WIDTH)]
    heights = [float(bar.get("height")) for bar in bars]
    assert len(bars) == 5 and heights[4] == pytest.approx(2 * heights[0], abs=0.2) and heights[3] == heights[4]
    assert float(bars[0].get("y")) == pytest.approx(float(bars[3].get("y")) + heights[3], abs=0.2), "below and above the same line"


@pytest.mark.parametrize("changes, told", [
    ({"title": ""}, "title"),
    ({"y": {"unit": "s"}}, "y.label"),
    ({"measured": {"commit": "abc", "date": "today"}}, "measured.machine"),
    ({"x": {"label": "", "values": [1, "two", 3]}}, "numbers or words"),
    ({"x": {"label": "", "values": [1, 3, 2]}}, "that rise"),
    ({"x": {"label": "", "values": [0, 1, 2], "scale": "log"}}, "above 0"),
    ({"series": [{"name": "short", "values": [1]}]}, "series short"),
    ({"series": [{"name": "odd", "values": [1, 2, "3"]}]}, "series odd"),
    ({"series": [{"name": "nothing", "values": [None] * 3}]}, "a value at least"),
])
def test_wrong_data_is_refused(changes, told):
    with pytest.raises(chart.WrongData, match=told):
        drawn(**changes)


def test_a_long_title_has_two_lines():
    title = "Yang and Luo Fig. 4: content segregation beside weighted round robin, 20% of the requests dynamic"
    texts = [text.text for text in drawn(title=title).iter(f"{SVG}text")]
    assert " ".join(texts[:2]) == title and len(texts[0]) <= chart.TITLE


def test_ticks():
    assert chart.ticks(0, 93) == [0, 20, 40, 60, 80, 100]
    assert chart.ticks(-5, 5) == [-6, -4, -2, 0, 2, 4, 6]
    assert chart.ticks(0, 0.5) == [0, 0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.fixture(name="run")
def _run(tmp_path, capsys):
    """./dev bench plots for pages in tmp_path: (exit status, all that it says)."""
    def run(*arguments):
        try:
            status = plots.main(["--docs", str(tmp_path), *arguments])
        except SystemExit as refused:
            return 1, str(refused)
        return status, capsys.readouterr().out

    return run


def test_charts_are_taken_from_a_benchmark(run, tmp_path):
    made = chart.make("Rate", ("nodes", (1, 2)), "requests/s", {"ours": (1, 2), "paper's": (3, 4)}, "./dev bench nothing")
    (tmp_path / "out.json").write_text(json.dumps({"charts": {"rate": made}}))
    assert run("--take", str(tmp_path / "out.json")) == (0, "drew docs/plots/rate.svg\n")
    assert json.loads((tmp_path / "data/rate.json").read_text()) == made
    assert [series.get("paper") for series in made["series"]] == [None, True]
    (tmp_path / "out.json").write_text("{}")
    assert run("--take", str(tmp_path / "out.json"))[0] == 1


def test_charts_of_what_requests_cost():
    arguments = SimpleNamespace(sizes=["1k"], shares=["0", "100"], modes=["direct", "earshot-every", "haproxy"])
    rows = [{"size": "1k", "mode": mode, "connection": f"{share}% move", "own_to_direct": cost}
            for share, costs in (("0", (1, 1.2, 1.5)), ("100", (1, 2.5, 1.5))) for mode, cost in zip(arguments.modes, costs)]
    series = [{"name": "earshot-every", "values": [1.2, 2.5]}, {"name": "haproxy", "values": [1.5, 1.5]}]
    for made, places in ((keepalive.charts(rows, arguments)["keepalive-1k-cost"], [0, 100]),
                         (runs.cost_chart("quick", rows)["quick-cost"], ["1k, 0% move", "1k, 100% move"])):
        chart.check(made)
        assert made["series"] == series and made["x"]["values"] == places
    alone = [{**row, "own_to_direct": None} for row in rows]
    assert not keepalive.charts(alone, arguments) and not runs.cost_chart("quick", alone)


def test_check_sees_what_is_not_as_the_data_say(run, tmp_path):
    assert run("--check") == (0, "")
    (tmp_path / "data/rate.json").write_text(json.dumps(DATA))
    assert run("--check")[0] == 1
    assert run() == (0, "drew docs/plots/rate.svg\n")
    assert run() == run("--check") == (0, ""), "the same bytes again"
    (tmp_path / "data/rate.json").write_text(json.dumps({**DATA, "title": "Another"}))
    assert run("--check")[0] == 1
    (tmp_path / "data/rate.json").unlink()
    status, told = run("--check")
    assert status == 1 and "has no docs/data/rate.json" in told
    (tmp_path / "data/rate.json").write_text("{}")
    status, told = run()
    assert status == 1 and "title" in told
