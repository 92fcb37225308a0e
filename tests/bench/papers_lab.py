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
from dataclasses import dataclass

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import runs  # noqa: E402
from papers_client import PHASES  # noqa: E402
from papers_content import FILES  # noqa: E402
from papers_nodes import NODES, Nodes  # noqa: E402
from papers_sim import GIVEN  # noqa: E402

POLICIES = ("wrr", "wlc", "uri-hash", "lard", "lard-r", "cawll", "xlard-r", "cahrd", "hylard", "cap", "ward",
            "ext-lard")
BLIND = ("ring", "wrr", "wlc")
DEFAULT_POLICIES = ("wrr", "lard", "lard-r", "hylard")
CLIENTS = (NODES - 1) * 65 + 26  # as many as LARD's front-end admits: (N - 1) T_high + T_low + 1


@dataclass
class Experiment:
    """What a paper did. `client` goes to papers_client.py; `paper` is its figures, for the table."""

    name: str
    title: str
    client: dict
    paper: dict
    policies: tuple = ()  # empty: those of --policies
    base: str = "wrr"
    every: bool = False  # content-aware policies inspect every request

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
)}


def policy_list(text):
    """For argparse: "wrr,hylard,hylard:M=20+P=2"."""
    chosen = text.split(",")
    runs.choice_list(POLICIES)(",".join(each.partition(":")[0] for each in chosen))
    return chosen


def parser():
    root = argparse.ArgumentParser(prog="./dev bench papers-lab", description=__doc__)
    root.add_argument("--experiments", type=runs.choice_list(EXPERIMENTS), default=list(EXPERIMENTS), metavar="E,...",
                      help=f"of {', '.join(EXPERIMENTS)} (default: all)")
    root.add_argument("--policies", type=policy_list, default=list(DEFAULT_POLICIES), metavar="P,...",
                      help=f"in HyLARD's figures, of {', '.join(POLICIES)}; hylard:M=20+P=2 sets parameters "
                           f"(default: {','.join(DEFAULT_POLICIES)})")
    root.add_argument("--rounds", type=int, metavar="N", help="default 3")
    root.add_argument("--fast", action="store_true", help="one round of short runs: for a look, not for figures")
    root.add_argument("--seconds", type=float, nargs=len(PHASES), metavar="S",
                      help=f"of each run: {', '.join(PHASES)}; default 8 3 8")
    root.add_argument("--files", type=int, default=FILES, metavar="N", help=f"default {FILES}: 200 MB in each copy")
    root.add_argument("--cache-mb", type=int, default=48, metavar="MB", help="memory of each node's server; default 48")
    root.add_argument("--disk-iops", type=int, default=40, metavar="N", help="of each node's disk; default 40")
    root.add_argument("--disk-mb", type=float, default=20, metavar="MB", help="per second, 10^6 bytes; default 20")
    root.add_argument("--clients", type=int, default=CLIENTS, metavar="N",
                      help=f"connections at a time in HyLARD's figures; default {CLIENTS}")
    root.add_argument("--sessions", type=int, default=40, metavar="N", help="of dts; default 40")
    root.add_argument("--seed", type=int, default=1, metavar="N", help="of the order of requests; default 1")
    root.add_argument("--directory", default="/var/tmp", help="on a disk, for the nodes' copies; default /var/tmp")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    root.add_argument("--quiet", action="store_true", help="no line per run")
    return root


def options(argv=None):
    arguments = parser().parse_args(argv)
    arguments.rounds = arguments.rounds or (1 if arguments.fast else 3)
    arguments.seconds = arguments.seconds or ([3, 1, 3] if arguments.fast else [8, 3, 8])
    for experiment in EXPERIMENTS.values():
        experiment.client["connections"] = arguments.sessions if experiment.name == "dts" else arguments.clients
    arguments.cells = [(EXPERIMENTS[name], list(EXPERIMENTS[name].policies or arguments.policies))
                       for name in arguments.experiments]
    return arguments


def one_line(run):
    errors = ", ".join(f"{count} {what}" for what, count in run["client"]["errors"].items())
    return (f"{run['experiment']} {run['policy']:11} {run['requests_per_s']:7,.0f}/s {run['mb_per_s']:6.1f} MB/s  "
            f"hit {run['hit_share']:6.1%}  {run['cpu_us']:6.0f} us CPU  imbalance {run['imbalance']:.2f}  "
            f"busy {run['machine_busy']:4.0%}  others {run['machine_foreign']:3.0%}"
            + (f"  ERRORS: {errors or 'no request completed'}" if run["failed"] else ""))


def measure_round(nodes, number, experiment, policies, quiet=False):
    """One run of each policy, in an order that turns from round to round."""
    done = []
    for place in range(len(policies)):
        policy = policies[(place + number) % len(policies)]
        done.append({"round": number + 1, **nodes.measure(policy, experiment)})
        if not quiet:
            print(f"round {number + 1}  {one_line(done[-1])}", file=sys.stderr, flush=True)
    return done


def summarise(done):
    """One dictionary per experiment and policy: medians of the rounds, ratios to the base in the same round."""
    groups = {}
    for run in done:
        groups.setdefault((run["experiment"], run["policy"]), []).append(run)
    rows = []
    for (name, policy), group in groups.items():
        experiment = EXPERIMENTS[name]
        bases = {run["round"]: run["requests_per_s"] for run in groups.get((name, experiment.base), ())}
        ratios = [run["requests_per_s"] / bases[run["round"]] for run in group if bases.get(run["round"])]
        row = {"experiment": name, "policy": policy, "rounds": len(group),
               "to_base": round(statistics.median(ratios), 3) if ratios else None,
               "to_base_range": [round(min(ratios), 3), round(max(ratios), 3)] if ratios else None,
               "errors": sum(sum(run["client"]["errors"].values()) for run in group)}
        for key in ("requests_per_s", "mb_per_s", "hit_share", "cpu_us", "cpu_us_without_client", "imbalance",
                    "machine_busy", "moved_share"):
            row[key] = statistics.median(run[key] for run in group)
        row["cpu_us_corosync"] = statistics.median(run["cpu_us_by_process"].get("corosync", 0) for run in group)
        for key in ("disk_kb_per_s", "disk_waiting"):
            row[key] = [statistics.median(run[key][node] for run in group) for node in range(NODES)]
        for kind in ("download", "page"):
            row[kind] = [sum(run["client"]["kinds"][kind].get(quality, 0) for run in group)
                         for quality in ("good", "tolerable", "fail")]
        rows.append(row)
    return rows


def aligned(lines, left=1):
    """Rows of words as text; the first `left` columns to the left."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(word.ljust(width) if column < left else word.rjust(width)
                               for column, (word, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def throughput_table(experiment, rows):
    """HyLARD's figures: ours beside the paper's ratios."""
    lines = [("policy", "paper x wrr", "ours x wrr", "min..max", "req/s", "MB/s", "hits", "CPU us", "no client",
              "corosync", "imbalance", "moved", "busy", "errors")]
    for row in rows:
        paper, spread = experiment.paper.get(row["policy"]), row["to_base_range"]
        lines.append((
            row["policy"], f"{paper:.2f}" if paper else "-", f"{row['to_base']:.2f}" if row["to_base"] else "-",
            f"{spread[0]:.2f}..{spread[1]:.2f}" if spread else "-", f"{row['requests_per_s']:,.0f}",
            f"{row['mb_per_s']:.1f}", f"{row['hit_share']:.1%}", f"{row['cpu_us']:.0f}",
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


def report(arguments, done):
    """All tables as text."""
    rows = summarise(done)
    texts = []
    for experiment, policies in arguments.cells:
        chosen = sorted((row for row in rows if row["experiment"] == experiment.name),
                        key=lambda row, policies=policies: policies.index(row["policy"]))
        table = downloads_table if experiment.name == "dts" else throughput_table
        texts.append(f"{experiment.title}\n{table(experiment, chosen)}")
    disturbed = [run["machine_foreign"] for run in done if run["machine_foreign"] > runs.FOREIGN_LIMIT]
    if disturbed:
        texts.append(f"NOTE: in {len(disturbed)} of {len(done)} runs other processes or the host used more than "
                     f"{runs.FOREIGN_LIMIT:.0%} of the machine (up to {max(disturbed):.0%})")
    failed = [run for run in done if run["failed"]]
    if failed:
        texts.append("\n".join([f"FAILED: {len(failed)} of {len(done)} runs had client errors; there must be none",
                                *(f"  round {run['round']}  {one_line(run)}" for run in failed)]))
    return "\n\n".join(texts)


def finish(arguments, done, started):
    """Print the tables, write the JSON file; the exit status."""
    print(report(arguments, done))
    if arguments.json:
        keys = ("seconds", "rounds", "files", "cache_mb", "disk_iops", "disk_mb", "clients", "sessions", "seed")
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump({"started": int(started), "kernel": os.uname().release, "cpus": os.cpu_count(),
                       **{key: getattr(arguments, key) for key in keys}, "summary": summarise(done), "runs": done},
                      handle, indent=1)
            handle.write("\n")
    return 1 if any(run["failed"] for run in done) else 0


def main():
    arguments = options()
    started = time.time()
    with contextlib.ExitStack() as stack:
        nodes = Nodes(stack, arguments)
        done = [run for number in range(arguments.rounds) for experiment, policies in arguments.cells
                for run in measure_round(nodes, number, experiment, policies, arguments.quiet)]
    return finish(arguments, done, started)


if __name__ == "__main__":
    runs.run("papers-lab", main)
