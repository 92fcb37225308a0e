#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench papers-lab: the papers' experiments on a real cluster, with limited page caches and disks (README.md)."""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass, field

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import papers_cached  # noqa: E402
import papers_data  # noqa: E402
import runs  # noqa: E402
from papers_client import KINDS, PHASES  # noqa: E402
from papers_content import FILES  # noqa: E402
from papers_nodes import NODES, Nodes  # noqa: E402
from papers_sim import GIVEN  # noqa: E402

POLICIES = ("wrr", "wlc", "uri-hash", "lard", "lard-r", "cawll", "xlard-r", "cahrd", "hylard", "cap", "ward",
            "ext-lard")
BLIND = ("ring", "wrr", "wlc")
DEFAULT_POLICIES = ("wrr", "lard", "lard-r", "hylard")
SECONDS, SECONDS_FAST = (8, 3, 8), (2, 1, 2)
FAST_POLICIES = ("wrr", "lard-r")
SITE_MB, SITE_CPU, SITE_SECONDS = 24, 0.4, (10, 2, 5)  # of Yang and Luo's nodes
CLIENTS = (NODES - 1) * 65 + 26  # as many as LARD's front-end admits: (N - 1) T_high + T_low + 1


@dataclass
class Experiment:
    """What a paper did. `client` goes to papers_client.py; `paper` is its figures, for the table.

    loads       connections at a time, a run for each; empty: the command line says how many
    content     of papers_content.CONTENTS; `dynamic`: share of the requests for which a program makes the page
    rules       locations and rules, by policy
    seconds     of each phase, in place of SECONDS
    membership  "static" leaves the CPUs to the nodes: four corosyncs, at real-time priority, take more than small answers do
    cache_mb    memory of each node's server; 0: the command line's
    cpu         each node's share of one CPU; 0: all nodes share the machine's
    """

    name: str
    title: str
    client: dict
    paper: dict
    policies: tuple = ()  # empty: those of --policies
    base: str = "wrr"
    every: bool = False  # content-aware policies inspect every request
    loads: tuple = ()
    content: str = "worldcup"
    dynamic: float = 0.0
    rules: dict = field(default_factory=dict)
    seconds: tuple = SECONDS
    membership: str = "corosync"
    cache_mb: int = 0
    cpu: float = 0.0

    def arguments(self, files):
        """Of its content; `files` as on the command line."""
        return {"files": files} if self.content == "worldcup" else {"dynamic": self.dynamic}

    def settings(self, policy):
        """More of the service's configuration; `policy` as in --policies."""
        name, _, text = policy.partition(":")
        parameters = text.split("+") if text else []
        set_already = {each.partition("=")[0] for each in parameters}
        parameters += [f"{each}=paper" for each in GIVEN.get(name, ()) if each not in set_already]
        return {**({"service.inspect": "every"} if self.every and name not in BLIND else {}),
                **({"service.parameters": parameters} if parameters else {})}


# Fig. 4: +153.74% on WRR, +61.47% on LARD, +10.11% on LARD/R. Fig. 5: +84.51% on WRR, +16.90% on LARD/R.
EXPERIMENTS = {each.name: each for each in (
    Experiment("dts", "DTS Tables 3 and 4: layer 4 and content-aware, downloads of limited speed",
               {"mode": "sessions", "requests": 1, "pages": 3, "rate": 1e6, "think_s": 0.25,
                "spread_s": 2.0},
               {"ring": {"downloads": (20643, 116, 100), "pages": (284938, 1935, 5),
                         "waiting": (0.20, 0.12, 0.21, 0.12), "kb": (11038, 10294, 11970, 11513)},
                "uri-hash": {"downloads": (20879, 109, 52), "pages": (288112, 378, 3),
                             "waiting": (0.028, 0.011, 0.061, 0.22), "kb": (2839, 3196, 7330, 10169)}},
               policies=("ring", "uri-hash"), base="ring"),
    Experiment("fig4", "HyLARD Fig. 4: one request per connection",
               {"mode": "loop", "requests": 1, "spread_s": 0.5},
               {"wrr": 1.0, "lard": 2.5374 / 1.6147, "lard-r": 2.5374 / 1.1011, "hylard": 2.5374}),
    Experiment("fig5", "HyLARD Fig. 5: ten requests per connection, every one inspected",
               {"mode": "loop", "requests": 10, "spread_s": 0.5},
               {"wrr": 1.0, "lard-r": 1.8451 / 1.1690, "hylard": 1.8451}, every=True),
    Experiment("yl3", "Yang and Luo Fig. 3: affinity by content beside weighted round robin, static pages",
               {"mode": "loop", "requests": 1, "spread_s": 0.5}, {}, policies=("wrr", "uri-hash"), loads=(32, 128),
               content="site", seconds=SITE_SECONDS, membership="static", cache_mb=SITE_MB, cpu=SITE_CPU),
    Experiment("yl4", "Yang and Luo Fig. 4: content segregation beside weighted round robin, 20% of the requests dynamic",
               {"mode": "loop", "requests": 1, "spread_s": 0.5}, {"page": 1.36, "dynamic": 1.27},
               policies=("wrr", "cahrd"), loads=(192,), content="site", dynamic=0.2,
               seconds=SITE_SECONDS, membership="static", cache_mb=SITE_MB, cpu=SITE_CPU,
               rules={"cahrd": 'location "/" { nodes = {n1, n2} }\n'
                               'location "/cgi-bin/" { type = dynamic  class = cpu  nodes = {n3, n4} }\n'}),
)}
NAMES = (*EXPERIMENTS, *papers_cached.EXPERIMENTS)


def policy_list(text):
    """For argparse: "wrr,hylard,hylard:M=20+P=2"."""
    chosen = text.split(",")
    runs.choice_list(POLICIES)(",".join(each.partition(":")[0] for each in chosen))
    return chosen


def parser():
    root = argparse.ArgumentParser(prog="./dev bench papers-lab", description=__doc__)
    root.add_argument("--experiments", type=runs.choice_list(NAMES), default=list(NAMES), metavar="E,...",
                      help=f"of {', '.join(NAMES)} (default: all)")
    root.add_argument("--policies", type=policy_list, metavar="P,...",
                      help=f"in HyLARD's figures, of {', '.join(POLICIES)}; hylard:M=20+P=2 sets parameters "
                           f"(default: {','.join(DEFAULT_POLICIES)})")
    root.add_argument("--rounds", type=int, metavar="N", help="default 3")
    root.add_argument("--fast", action="store_true", help="one round of short runs, in HyLARD's figures of "
                      f"{' and '.join(FAST_POLICIES)} only: for a look, not for figures")
    root.add_argument("--seconds", type=float, nargs=len(PHASES), metavar="S",
                      help=f"of each run with disks: {', '.join(PHASES)}; default 8 3 8, of yl3 and yl4 10 2 5")
    root.add_argument("--files", type=int, default=FILES, metavar="N", help=f"default {FILES}: 200 MB in each copy")
    root.add_argument("--cache-mb", type=int, default=48, metavar="MB", help="memory of each node's server; default 48")
    root.add_argument("--disk-iops", type=int, default=40, metavar="N", help="of each node's disk; default 40")
    root.add_argument("--disk-mb", type=float, default=20, metavar="MB", help="per second, 10^6 bytes; default 20")
    root.add_argument("--clients", type=int, default=CLIENTS, metavar="N",
                      help=f"connections at a time in HyLARD's figures; default {CLIENTS}")
    root.add_argument("--sessions", type=int, default=40, metavar="N", help="of dts; default 40")
    root.add_argument("--seed", type=int, default=1, metavar="N", help="of the order of requests; default 1")
    root.add_argument("--directory", default="/var/tmp", help="on a disk, for the nodes' copies; default /var/tmp")
    root.add_argument("--data", metavar="DIR", help="write the figures as data for plots into DIR, a file each")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    root.add_argument("--quiet", action="store_true", help="no line per run")
    return root


def options(argv=None):
    arguments = parser().parse_args(argv)
    arguments.rounds = arguments.rounds or (1 if arguments.fast else 3)
    arguments.policies = arguments.policies or list(FAST_POLICIES if arguments.fast else DEFAULT_POLICIES)
    arguments.seconds = arguments.seconds or (SECONDS_FAST if arguments.fast else None)
    arguments.cached_seconds = 1 if arguments.fast else 2
    arguments.cells = [(EXPERIMENTS[name], list(EXPERIMENTS[name].policies or arguments.policies))
                       for name in arguments.experiments if name in EXPERIMENTS]
    arguments.cached = [papers_cached.EXPERIMENTS[name] for name in arguments.experiments
                        if name in papers_cached.EXPERIMENTS]
    return arguments


def one_line(run):
    errors = ", ".join(f"{count} {what}" for what, count in run["client"]["errors"].items())
    return (f"{run['experiment']} {run['policy']:11} {run['connections']:3} at a time {run['requests_per_s']:7,.0f}/s "
            f"{run['mb_per_s']:6.1f} MB/s  hit {run['hit_share']:6.1%}  {run['cpu_us']:6.0f} us CPU  imbalance {run['imbalance']:.2f}  "
            f"busy {run['machine_busy']:4.0%}  others {run['machine_foreign']:3.0%}"
            + (f"  ERRORS: {errors or 'no request completed'}" if run["failed"] else ""))


def loads_of(experiment, arguments):
    if experiment.loads:
        return experiment.loads[-1:] if arguments.fast else experiment.loads
    return (arguments.sessions if experiment.name == "dts" else arguments.clients,)


def measure_round(nodes, number, experiment, policies, arguments):
    """One run of each policy and load, in an order that turns from round to round."""
    done = []
    for connections in loads_of(experiment, arguments):
        for place in range(len(policies)):
            policy = policies[(place + number) % len(policies)]
            done.append({"round": number + 1, **nodes.measure(policy, experiment, connections)})
            if not arguments.quiet:
                print(f"round {number + 1}  {one_line(done[-1])}", file=sys.stderr, flush=True)
    return done


def summarise(done):
    """One dictionary per experiment, policy and load: medians of the rounds, ratios to the base in the same round."""
    groups = {}
    for run in done:
        groups.setdefault((run["experiment"], run["policy"], run["connections"]), []).append(run)
    rows = []
    for (name, policy, connections), group in groups.items():
        bases = {run["round"]: run for run in groups.get((name, EXPERIMENTS[name].base, connections), ())}

        def ratios(value, group=group, bases=bases):
            pairs = [(value(run), value(bases[run["round"]])) for run in group if run["round"] in bases]
            return [ours / base for ours, base in pairs if base]

        rates = ratios(lambda run: run["requests_per_s"])
        row = {"experiment": name, "policy": policy, "connections": connections, "rounds": len(group),
               "to_base": round(statistics.median(rates), 3) if rates else None,
               "to_base_range": [round(min(rates), 3), round(max(rates), 3)] if rates else None,
               "errors": sum(sum(run["client"]["errors"].values()) for run in group)}
        for key in ("requests_per_s", "mb_per_s", "hit_share", "cpu_us", "cpu_us_without_client", "imbalance",
                    "machine_busy", "moved_share"):
            row[key] = statistics.median(run[key] for run in group)
        row["reads_per_request"] = statistics.median(
            sum(run["disk_reads_per_s"]) / max(run["requests_per_s"], 1) for run in group)
        row["cpu_us_corosync"] = statistics.median(run["cpu_us_by_process"].get("corosync", 0) for run in group)
        for key in ("disk_kb_per_s", "disk_waiting"):
            row[key] = [statistics.median(run[key][node] for run in group) for node in range(NODES)]
        for kind in KINDS:
            row[kind] = [sum(run["client"]["kinds"].get(kind, {}).get(quality, 0) for run in group)
                         for quality in ("good", "tolerable", "fail")]
            of_kind = ratios(lambda run, kind=kind: rate_of(run, kind))
            row[f"{kind}_rate"] = statistics.median(rate_of(run, kind) for run in group)
            row[f"{kind}_to_base"] = (statistics.median(of_kind), min(of_kind), max(of_kind)) if of_kind else None
            row[f"{kind}_p50_ms"] = statistics.median(run["client"]["p50_ms_of"][kind] for run in group)
        rows.append(row)
    return rows


def rate_of(run, kind):
    """Requests of that kind, a second."""
    return sum(run["client"]["kinds"].get(kind, {}).values()) / run["client"]["seconds"]


def aligned(lines, left=1):
    """Rows of words as text; the first `left` columns to the left."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(word.ljust(width) if column < left else word.rjust(width)
                               for column, (word, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def throughput_table(experiment, rows):
    """Ours beside the paper's ratios."""
    lines = [("policy", "at a time", "paper x wrr", "ours x wrr", "min..max", "req/s", "MB/s", "hits", "reads", "CPU us",
              "no client", "corosync", "imbalance", "moved", "busy", "errors")]
    for row in rows:
        paper, spread = experiment.paper.get(row["policy"]), row["to_base_range"]
        lines.append((
            row["policy"], str(row["connections"]),
            f"{paper:.2f}" if paper else "-", f"{row['to_base']:.2f}" if row["to_base"] else "-",
            f"{spread[0]:.2f}..{spread[1]:.2f}" if spread else "-", f"{row['requests_per_s']:,.0f}",
            f"{row['mb_per_s']:.1f}", f"{row['hit_share']:.1%}", f"{row['reads_per_request']:.2f}", f"{row['cpu_us']:.0f}",
            f"{row['cpu_us_without_client']:.0f}", f"{row['cpu_us_corosync']:.0f}", f"{row['imbalance']:.2f}",
            f"{row['moved_share']:.0%}", f"{row['machine_busy']:.0%}", str(row["errors"])))
    return aligned(lines)


def downloads_table(experiment, rows):
    """DTS' tables, the paper's lines below ours."""
    def quality(counts):
        total = max(sum(counts), 1)
        return (f"{sum(counts):,}", *(f"{count / total:.2%}" for count in counts))

    names = {"ring": "L4 (ring)", "uri-hash": "L7 (uri-hash)"}
    table3 = [("Table 3", "", "file type", "requests", "good", "tolerable", "fail")]
    table4 = [("Table 4", "", "waiting for the disk, mean by node", "disk reads, KB/s by node", "in all", "hits")]
    for row in rows:
        paper = experiment.paper[row["policy"]]
        name = names[row["policy"]]
        for kind, plural in (("download", "downloads"), ("page", "pages")):
            table3 += [(name, "ours", plural, *quality(row[kind])), ("", "paper", plural, *quality(paper[plural]))]
        table4 += [(name, "ours", " / ".join(f"{value:.2f}" for value in row["disk_waiting"]),
                    " / ".join(f"{value:,.0f}" for value in row["disk_kb_per_s"]),
                    f"{sum(row['disk_kb_per_s']):,.0f}", f"{row['hit_share']:.1%}"),
                   ("", "paper", " / ".join(str(value) for value in paper["waiting"]),
                    " / ".join(f"{value:,}" for value in paper["kb"]), f"{sum(paper['kb']):,}", "-")]
    return f"{aligned(table3, 3)}\n\n{aligned(table4, 2)}"


def segregation_table(experiment, rows):
    """Yang and Luo's Fig. 4: both kinds of pages, ours beside the paper's ratios."""
    lines = [("policy", "pages", "paper x wrr", "ours x wrr", "min..max", "req/s", "p50 ms", "hits", "reads", "no client", "busy",
              "errors")]
    for row in rows:
        for kind, name in (("page", "static"), ("dynamic", "dynamic")):
            paper = 1.0 if row["policy"] == experiment.base else experiment.paper[kind]
            ratio = row[f"{kind}_to_base"]
            lines.append((row["policy"], name, f"{paper:.2f}", f"{ratio[0]:.2f}" if ratio else "-",
                          f"{ratio[1]:.2f}..{ratio[2]:.2f}" if ratio else "-", f"{row[f'{kind}_rate']:,.0f}",
                          f"{row[f'{kind}_p50_ms']:.1f}", f"{row['hit_share']:.1%}",
                          f"{row['reads_per_request']:.2f}", f"{row['cpu_us_without_client']:.0f}",
                          f"{row['machine_busy']:.0%}", str(row["errors"])))
    return aligned(lines, 2)


def rows_of(experiment, policies, rows):
    """Its rows, in the order of the policies."""
    return sorted((row for row in rows if row["experiment"] == experiment.name),
                  key=lambda row: (policies.index(row["policy"]), row["connections"]))


TABLES = {"dts": downloads_table, "yl4": segregation_table}


def report(arguments, done, cached=()):
    """All tables as text."""
    rows = summarise(done)
    texts = []
    for experiment, policies in arguments.cells:
        table = TABLES.get(experiment.name, throughput_table)
        texts.append(f"{experiment.title}\n{table(experiment, rows_of(experiment, policies, rows))}")
    for experiment in arguments.cached:
        lines = papers_cached.table(experiment, papers_cached.summarise(experiment, cached))
        texts.append(f"{experiment.title}\nPaper: {experiment.paper}\n{aligned(lines, 4)}")
    every = [(run, one_line) for run in done] + [(run, papers_cached.one_line) for run in cached]
    disturbed = [run["machine_foreign"] for run, _ in every if run["machine_foreign"] > runs.FOREIGN_LIMIT]
    if disturbed:
        texts.append(f"NOTE: in {len(disturbed)} of {len(every)} runs other processes or the host used more than "
                     f"{runs.FOREIGN_LIMIT:.0%} of the machine (up to {max(disturbed):.0%})")
    failed = [(run, line) for run, line in every if run["failed"]]
    if failed:
        texts.append("\n".join([f"FAILED: {len(failed)} of {len(every)} runs had client errors; there must be none",
                                *(f"  round {run['round']}  {line(run)}" for run, line in failed)]))
    return "\n\n".join(texts)


def finish(arguments, done, started, cached=()):
    """Print the tables, write the JSON files; the exit status."""
    print(report(arguments, done, cached))
    rows = summarise(done)
    if arguments.data:
        made = {experiment.name: experiment.figure(papers_cached.summarise(experiment, cached))
                for experiment in arguments.cached}
        for experiment, policies in arguments.cells:
            made |= papers_data.figures(experiment, rows_of(experiment, policies, rows))
        papers_data.write(arguments.data, made, started)
    if arguments.json:
        keys = ("seconds", "rounds", "files", "cache_mb", "disk_iops", "disk_mb", "clients", "sessions", "seed")
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump({"started": int(started), "kernel": os.uname().release, "cpus": os.cpu_count(),
                       **{key: getattr(arguments, key) for key in keys}, "summary": rows, "runs": [*done, *cached]},
                      handle, indent=1)
            handle.write("\n")
    return 1 if any(run["failed"] for run in (*done, *cached)) else 0


def main():
    arguments = options()
    started = time.time()
    done = []
    if arguments.cells:
        with contextlib.ExitStack() as stack:
            nodes = Nodes(stack, arguments)
            done = [run for number in range(arguments.rounds) for experiment, policies in arguments.cells
                    for run in measure_round(nodes, number, experiment, policies, arguments)]
    cached = [run for experiment in arguments.cached for run in papers_cached.measure(experiment, arguments)]
    return finish(arguments, done, started, cached)


if __name__ == "__main__":
    runs.run("papers-lab", main)
