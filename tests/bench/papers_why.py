#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Why some of the papers' statements do not hold in papers_sim.py: each again with one of the settings changed that the papers
leave open, and for which of them it holds. Short runs; docs/papers.md says what follows."""
import argparse
import json
import os
import sys
from dataclasses import dataclass
from types import SimpleNamespace

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import papers_sim as sim  # noqa: E402

SEEDS = 2
LONG = 1974360  # requests: HyLARD's own number
SHORT = 300000


@dataclass
class Statement:
    """One that differs. `values(bench, settings)` are percents that are compared, and `holds(values)` whether it is as in the paper.
    `changed` has what is tried instead, each as options of the simulator."""

    figure: str
    text: str
    paper: str
    values: callable
    holds: callable
    base: dict
    changed: tuple


def lead(policy, other):
    return lambda bench, settings: [bench.gain(policy, other, settings)]


def growth(bench, policy, settings, first, second):
    """Percent that @policy gains from @second requests on a connection instead of @first."""
    rates = [bench.get(policy, {**settings, "requests-per-connection": number}) for number in (first, second)]
    return 100 * (rates[1] / rates[0] - 1)


def of_fig18(bench, settings):
    """Where most of the clicks are for few pages, and where they are spread. "capacity" is xLARD/R's parameter."""
    settings = dict(settings)
    policy = ("xlard-r", {"capacity": settings.pop("capacity")}) if "capacity" in settings else "xlard-r"
    return [bench.gain(policy, "lard-r", {**settings, "hot-share": share, "hot-rate": rate})
            for share, rate in ((0.1, 0.8), (0.4, 0.2))]


def of_fig19(bench, settings):
    return [bench.gain("xlard-r", "cawll", {**settings, "dynamic-share": share}) for share in (0.3, 0.4)]


LVS_CAD = {**sim.LVS_CAD, "nodes": 8, "requests": SHORT}
HYLARD = {**sim.HYLARD, "requests": SHORT}
STATEMENTS = (
    Statement("LVS-CAD 18", "xLARD/R over LARD/R, 80% of the clicks for 10% of the pages, and 20% for 40%", "best under all rates",
              of_fig18, sim.no_worse, LVS_CAD, (
                  {"net-rate-mbit": 1000}, {"cpu-handover-us": 1500}, {"clients": 80}, {"clients": 80, "capacity": 100},
                  {"clients": 80, "capacity": 100, "cpu-handover-us": 1500})),
    Statement("LVS-CAD 19", "xLARD/R over CAWLL, 30 and 40% dynamic", "above at 30%, below at 40%", of_fig19,
              lambda found: found[0] > 0 > found[1], LVS_CAD, (
                  {"dynamic-cpu-ms": 1.5}, {"dynamic-cpu-ms": 2}, {"cpu-handover-us": 400})),
    Statement("HyLARD 5", "HyLARD over LARD/R, 10 requests per connection", "+16.9%", lead("hylard", sim.PAPER_LARD_R),
              lambda found: found[0] > sim.NOISE, {**sim.HYLARD, "requests": LONG, "requests-per-connection": 10}, (
                  {"requests": SHORT}, {"cache-mb": 160}, {"cpu-handover-us": 400}, {"zipf-exponent": 1.3})),
    Statement("HyLARD 6", "WRR over LARD, 20 requests per connection", "similar", lead("wrr", sim.PAPER_LARD),
              lambda found: abs(found[0]) < 10, {**HYLARD, "requests-per-connection": 20}, (
                  {"cpu-handover-us": 300}, {"cpu-handover-us": 600}, {"disk-seek-ms": 5}, {"cache-mb": 256}, {"clients": 960},
                  {"handover-cost": 0})),
    Statement("HyLARD 7", "HyLARD, 10 requests per connection over 1", "much better",
              lambda bench, settings: [growth(bench, "hylard", settings, 1, 10)], lambda found: found[0] > 10, HYLARD, (
                  {"cpu-connect-us": 300}, {"cpu-connect-us": 600}, {"cache-mb": 256}, {"disk-seek-ms": 1})),
    Statement("HyLARD 7", "HyLARD and WLC, 40 requests per connection over 30", "certainly less",
              lambda bench, settings: [growth(bench, policy, settings, 30, 40) for policy in ("hylard", "wlc")],
              lambda found: max(found) < -sim.NOISE, HYLARD, (
                  {"requests": 60000}, {"clients": 960}, {"cpu-connect-us": 600}, {"cache-mb": 256}, {"inspectors": 4})),
    Statement("HyLARD 7", "WLC, 20 requests per connection over 1, less what HyLARD gains", "WLC grows more",
              lambda bench, settings: [growth(bench, "wlc", settings, 1, 20) - growth(bench, "hylard", settings, 1, 20)],
              lambda found: found[0] > sim.NOISE, HYLARD, (
                  {"cpu-connect-us": 600}, {"disk-seek-ms": 1}, {"cache-mb": 256},
                  {"zipf-exponent": 1.3, "cpu-connect-us": 600, "cpu-handover-us": 600})),
    Statement("HyLARD T.2", "with the check of moves over without", "+3.8%", lead("hylard", sim.HYLARD_ORIGINAL),
              lambda found: found[0] > sim.NOISE, {**sim.HYLARD, "requests": LONG, "requests-per-connection": 10}, (
                  {"requests": SHORT}, {"cache-mb": 160}, {"cpu-handover-us": 400}, {"zipf-exponent": 1.3})),
)


def as_words(change):
    return ", ".join(f"{name} {value:,}" for name, value in change.items()) or "as in papers_sim.py"


def rows_of(bench, statement):
    """One row for each that is tried, the script's own settings first."""
    for change in ({}, *statement.changed):
        found = statement.values(bench, {**statement.base, **change})
        yield {"figure": statement.figure, "statement": statement.text, "paper": statement.paper, "changed": as_words(change),
               "ours": " ".join(f"{value:+.1f}%" for value in found), "holds": bool(statement.holds(found))}


def print_rows(statement, rows):
    """A statement's table, as Markdown."""
    print(f"{statement.figure}: {statement.text} (the paper: {statement.paper})\n\n| setting | ours | |\n|---|---|---|")
    for row in rows:
        print(f"| {row['changed']} | {row['ours']} | {'as in the paper' if row['holds'] else ''} |")
    print(flush=True)


def run(jobs):
    """All statements, each printed when it is known."""
    bench = sim.Bench(SimpleNamespace(fast=True, jobs=jobs))
    bench.seeds = range(1, SEEDS + 1)
    found = []
    for statement in STATEMENTS:
        list(rows_of(sim.Dry(bench), statement))  # starts all
    for statement in STATEMENTS:
        rows = list(rows_of(bench, statement))
        print_rows(statement, rows)
        found += rows
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write the rows to FILE")
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time (default 2)")
    arguments = parser.parse_args()
    if not os.access(sim.SIM, os.X_OK):
        sys.exit(f"papers_why: {sim.SIM} is not built: ./dev build")
    rows = run(arguments.jobs)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            handle.write(json.dumps({"command": "papers-why", "seeds": SEEDS, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
