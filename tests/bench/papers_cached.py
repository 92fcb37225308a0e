# SPDX-License-Identifier: GPL-2.0-or-later
"""The papers' experiments whose pages are all in memory: LVS-CAD Fig. 16, and Yang and Luo's Table 1."""
import statistics
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import load
import papers_fronts
import runs

NAMES = {"nat": "plain LVS: NAT", "route": "plain LVS: routing", "ring": "layer 4 by the ring"}


@dataclass
class Experiment:
    """A grid of cells, in each of which the modes take turns. `bases`: what the other modes are compared with in the same
    round."""

    name: str
    title: str
    paper: str
    modes: tuple
    bases: tuple
    cells: tuple  # (nodes, size, connection)
    fast: tuple  # cells of --fast
    clients: int
    figure: object  # of summarised rows: what goes into docs/data


def response_ms(row, clients):
    """The mean time of a request with so many always under way (Little's law)."""
    return clients / row["requests_per_s"] * 1e3


def _fig16(rows):
    """By how much the content-aware cluster is ahead of each plain one, by the number of nodes, in requests for a CPU second:
    the nodes share this machine's CPUs. Connections are closed, since it is in setting them up that the clusters differ."""
    chosen = [row for row in rows if (row["size"], row["connection"], row["mode"]) == ("1k", "close", "wlc")]
    ours = [{"name": f"ours, over {NAMES[base]}", "paper": False,
             "values": [_percent(1 / row["cpu_to"][base][0]) for row in chosen]} for base in EXPERIMENTS["fig16"].bases]
    return {"title": "LVS-CAD Fig. 16: LVS-CAD over LVS, one page of 1 KB in memory, closed connections",
            "x": {"label": "nodes", "values": [row["nodes"] for row in chosen]},
            "y": {"label": "requests per CPU second over plain LVS (paper: requests/s), %"},
            "series": [*ours, *_range((0.8, 32.4), len(chosen))]}


def _table1(rows):
    """The overhead by size, as CPU time, since all machines share the CPUs. Our copy of the paper has the range only."""
    chosen = [row for row in rows if (row["nodes"], row["connection"], row["mode"]) == (4, "close", "distributor")]
    return {"title": "Yang and Luo Table 1: what a content-aware decision adds, four nodes",
            "x": {"label": "body", "values": [row["size"] for row in chosen]},
            "y": {"label": "CPU time added (paper: response time), %"},
            "series": [{"name": "ours", "paper": False, "values": [_percent(row["cpu_to"]["direct"][0]) for row in chosen]},
                       *_range((4, 10), len(chosen))]}


def _percent(ratio):
    return round((ratio - 1) * 100, 1)


def _range(values, count):
    """A paper's range, of which we do not know the points."""
    return [{"name": f"paper, {word}", "paper": True, "values": [value] * count}
            for word, value in zip(("least", "most"), values)]


EXPERIMENTS = {each.name: each for each in (
    Experiment("fig16", "LVS-CAD Fig. 16: cached pages, plain LVS beside content-aware nodes",
               "LVS-CAD over LVS, both WLC, one page of 1 KB, 1 to 8 nodes: +0.8 .. +32.4%",
               ("nat", "route", "ring", "wlc", "xlard-r"), ("nat", "route", "ring"),
               (*((nodes, "1k", "close") for nodes in (1, 2, 4, 8)),
                (4, "1k", "keep-alive"), (4, "13k", "close"), (4, "100k", "close")),
               ((2, "1k", "close"),), load.CONNECTIONS, _fig16),
    Experiment("yl1", "Yang and Luo Table 1: a server asked directly, and through a content-aware decision",
               "the response time is 4 to 10% longer, more with larger bodies",
               ("direct", "distributor"), ("direct",),
               ((1, "1k", "close"), (1, "1m", "close"), (4, "1k", "keep-alive"),
                *((4, size, "close") for size in ("1k", "13k", "100k", "1m"))),
               ((4, "1k", "close"),), 16, _table1),
)}


def one_line(run):
    return f"{run['experiment']} {run['nodes']} nodes {runs.one_line(run)}"


def measure(experiment, arguments):
    """All runs of all cells. The labs of one number of nodes are up together, and those not being measured are idle."""
    done = []
    cells = experiment.fast if arguments.fast else experiment.cells
    for nodes in sorted({cell[0] for cell in cells}):
        with runs.world(papers_fronts, nodes=nodes) as world:
            for mode in experiment.modes:
                world.check(mode)
            for number in range(arguments.rounds):
                for _, size, connection in (cell for cell in cells if cell[0] == nodes):
                    for place in range(len(experiment.modes)):
                        mode = experiment.modes[(place + number) % len(experiment.modes)]
                        run = runs.measure(world, mode, size, load.Workload(connection, [connection]), SimpleNamespace(
                            warmup=0 if number else 1, seconds=arguments.cached_seconds, clients=experiment.clients))
                        done.append({"experiment": experiment.name, "nodes": nodes, "round": number + 1, **run})
                        if not arguments.quiet:
                            print(f"round {number + 1}  {one_line(done[-1])}", file=sys.stderr, flush=True)
    return done


def summarise(experiment, done):
    """A row for each cell and mode: medians of the rounds. "to" and "cpu_to" have for each base the ratio of rates, and
    of the processes' own CPU time, within the rounds: median, least, greatest."""
    def key(run, mode):
        return run["nodes"], run["size"], run["connection"], mode

    groups = {}
    for run in done:
        if run["experiment"] == experiment.name:
            groups.setdefault(key(run, run["mode"]), []).append(run)
    rows = []
    for (nodes, size, connection, mode), group in groups.items():
        row = {"nodes": nodes, "size": size, "connection": connection, "mode": mode, "to": {}, "cpu_to": {},
               "errors": sum(run["wrk"]["errors"] + run["warmup_errors"] for run in group)}
        for name in ("requests_per_s", "cpu_us", "cpu_us_own"):
            row[name] = statistics.median(run[name] for run in group)
        for base in experiment.bases:
            others = {run["round"]: run for run in groups.get((nodes, size, connection, base), ())}
            for into, name in (("to", "requests_per_s"), ("cpu_to", "cpu_us_own")):
                ratios = [run[name] / others[run["round"]][name] for run in group
                          if others.get(run["round"], {}).get(name)]
                row[into][base] = (statistics.median(ratios), min(ratios), max(ratios)) if ratios else None
        rows.append(row)
    return rows


def table(experiment, rows):
    """Rows of words: a line for each cell and mode."""
    def against(row, which):
        ratios = (row[which][base] if row["mode"] not in experiment.bases else None for base in experiment.bases)
        return ["{:.2f} ({:.2f}..{:.2f})".format(*each) if each else "-" for each in ratios]

    lines = [("nodes", "body", "connection", "mode", "req/s", "response ms", "CPU us", "own us",
              *(f"rate / {base}" for base in experiment.bases), *(f"own / {base}" for base in experiment.bases), "errors")]
    for row in rows:
        lines.append((str(row["nodes"]), row["size"], row["connection"], row["mode"], f"{row['requests_per_s']:,.0f}",
                      f"{response_ms(row, experiment.clients):.2f}",
                      f"{row['cpu_us']:.0f}", f"{row['cpu_us_own']:.0f}",
                      *against(row, "to"), *against(row, "cpu_to"), str(row["errors"])))
    return lines
