#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench packet: nanoseconds that the BPF programs take for a packet of each kind (README.md)."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import bpf_run  # noqa: E402
import paths  # noqa: E402, F401
from packet_cases import CASES, V6, Bench  # noqa: E402

WAYS = ("warm", "cold", "load")
FORMAT = 1  # of the JSON file: figures of one format can be compared
HERE = os.path.dirname(os.path.abspath(__file__))


def parser():
    root = argparse.ArgumentParser(prog="./dev bench packet", description=__doc__)
    root.add_argument("--rounds", type=int, metavar="N", help="default 9")
    root.add_argument("--repeats", type=int, metavar="N", help="runs of a program that changes nothing; default 100000")
    root.add_argument("--packets", type=int, metavar="N", help="single runs, and packets under load; default 1000")
    root.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES), metavar="NAME,...",
                      help=f"default {','.join(CASES)}")
    root.add_argument("--fast", action="store_true", help="few rounds: for a look, not for figures")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    root.add_argument("--compare", metavar="FILE", help="print ratios to what --json wrote, perhaps of another commit")
    return root


def summarise(runs):
    """A row for each case: medians of the rounds, the empty program's already subtracted; None: not measured that way."""
    rows = []
    for case in dict.fromkeys(run["case"] for run in runs):
        row = {"case": case, "program": CASES[case].program}
        for way in WAYS:
            found = [run[way] for run in runs if run["case"] == case and run[way] is not None]
            row[f"{way}_ns"] = round(statistics.median(found), 1) if found else None
            row[f"{way}_range"] = [round(min(found), 1), round(max(found), 1)] if found else None
        rows.append(row)
    return rows


def _figure(value):
    return "-" if value is None else f"{value:.0f}"


def _ratios(row, other):
    """"warm 1.05, ..." of what both were measured by; "" if by nothing."""
    return ", ".join(f"{way} {row[f'{way}_ns'] / other[f'{way}_ns']:.2f}" for way in WAYS
                     if other and other.get(f"{way}_ns") and row[f"{way}_ns"] is not None)


def table(rows, before=()):
    """`before`: the rows of an earlier run, for ratios to them. Those of IPv6 are compared with their like of IPv4, too."""
    lines = [f"{'packet':17} {'program':11}" + "".join(f" {way + ' ns':>8} {'range':>12}" for way in WAYS)]
    earlier, found = ({row["case"]: row for row in of} for of in (before, rows))
    for row in rows:
        line = f"{row['case']:17} {row['program']:11}"
        for way in WAYS:
            bounds = row[f"{way}_range"]
            line += f" {_figure(row[f'{way}_ns']):>8} {'..'.join(map(_figure, bounds)) if bounds else '-':>12}"
        lines.append(line)
        for said, other in (("before", earlier.get(row["case"])), ("IPv4", found.get(row["case"].removesuffix(V6)))):
            ratios = _ratios(row, other) if other is not row else ""
            if ratios:
                lines.append(f"    to {said}: {ratios}")
    return "\n".join(lines)


def machine():
    """What else figures depend on."""
    done = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as handle:
        models = [line.split(":", 1)[1].strip() for line in handle if line.startswith("model name")]
    return {"commit": done.stdout.strip() or None, "kernel": platform.release(), "processor": models[0] if models else None,
            "processors": os.cpu_count()}


def earlier(path):
    if not path:
        return []
    with open(path, encoding="utf-8") as handle:
        found = json.load(handle)
    if found.get("format") != FORMAT:
        raise OSError(f"{path}: this is not what --json of this version writes (format {found.get('format')}, not {FORMAT})")
    return found["rows"]


def main():
    arguments = parser().parse_args()
    unknown = set(arguments.cases) - set(CASES)
    if unknown:
        raise OSError(f"no case {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    before = earlier(arguments.compare)
    rounds = arguments.rounds or (2 if arguments.fast else 9)
    repeats = arguments.repeats or (10000 if arguments.fast else 100000)
    packets = arguments.packets or (100 if arguments.fast else 1000)
    runs, can_count = [], False
    with Bench() as bench, bpf_run.stats() as can_count:
        for number in range(1, rounds + 1):
            for case in arguments.cases:
                runs.append({"round": number, "case": case, **bench.measure(CASES[case], repeats, packets, can_count)})
    result = {"format": FORMAT, **machine(), "rounds": rounds, "repeats": repeats, "packets": packets,
              "rows": summarise(runs), "runs": runs}
    print(table(result["rows"], before))
    if not can_count:
        print("NOTE: this kernel counts no programs' runs (BPF_ENABLE_STATS), so nothing is known under load")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump(result, handle, indent=1)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (AssertionError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"bench packet: {error}")
