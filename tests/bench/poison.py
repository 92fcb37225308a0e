#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench poison: what it costs a request that none ends more than one daemon: marks, guard and keeper (README.md)."""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("EARSHOT_BUILD", os.path.join(HERE, "..", "..", "build"))


def parser():
    root = argparse.ArgumentParser(prog="./dev bench poison", description=__doc__)
    root.add_argument("--rounds", type=int, metavar="N", help="default 60")
    root.add_argument("--requests", type=int, metavar="N", help="of each case and round; default 20000")
    root.add_argument("--fast", action="store_true", help="few rounds: for a look, not for figures")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    return root


def parse(text):
    """What poison_bench has printed: runs, and the keeper's CPU nanoseconds in a second."""
    runs, keeper_ns = [], None
    for line in text.splitlines():
        if line.startswith("keeper\t"):
            keeper_ns = float(line.split("\t")[2])
        else:
            number, case, without_ns, with_ns = line.split("\t")
            runs.append({"round": int(number), "case": case, "without_ns": float(without_ns), "with_ns": float(with_ns)})
    return runs, keeper_ns


def summarise(runs):
    """A row for each case: medians; differences and ratios are to the same work without it, right before."""
    rows = []
    for case in dict.fromkeys(run["case"] for run in sorted(runs, key=lambda run: run["case"])):
        group = [run for run in runs if run["case"] == case]
        more = [run["with_ns"] - run["without_ns"] for run in group]
        rows.append({
            "case": case, "rounds": len(group),
            "without_ns": round(statistics.median(run["without_ns"] for run in group), 1),
            "with_ns": round(statistics.median(run["with_ns"] for run in group), 1),
            "more_ns": round(statistics.median(more), 1), "more_ns_range": [round(min(more), 1), round(max(more), 1)],
            "ratio": round(statistics.median(run["with_ns"] / run["without_ns"] for run in group), 2),
        })
    return rows


def table(rows, keeper_ns):
    lines = [f"{'a request is read and routed':28} {'ns':>6} {'with ns':>8} {'more ns':>8} {'range':>10} {'ratio':>6}"]
    for row in rows:
        least, most = row["more_ns_range"]
        lines.append(f"{row['case']:28} {row['without_ns']:6.0f} {row['with_ns']:8.0f} {row['more_ns']:8.0f} "
                     f"{f'{least:.0f}..{most:.0f}':>10} {row['ratio']:6.2f}")
    lines.append(f"the keeper of two busy workers: {keeper_ns / 1e7:.2f}% of a CPU")
    return "\n".join(lines)


def main():
    arguments = parser().parse_args()
    requests = arguments.requests or (2000 if arguments.fast else 20000)
    rounds = arguments.rounds or (3 if arguments.fast else 60)
    command = [os.path.join(BUILD, "bin", "poison_bench"), str(rounds), str(requests), "500" if arguments.fast else "10000"]
    runs, keeper_ns = parse(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    result = {"requests": requests, "rows": summarise(runs), "runs": runs, "keeper_cpu_ns_per_s": keeper_ns}
    print(table(result["rows"], keeper_ns))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump(result, handle, indent=1)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (subprocess.CalledProcessError, OSError) as error:
        sys.exit(f"bench poison: {error}")
