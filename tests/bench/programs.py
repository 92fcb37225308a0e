#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench programs: connections that a program hands over, beside those that the inspector does (README.md)."""
import argparse
import concurrent.futures
import contextlib
import json
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import cpu  # noqa: E402
import paths  # noqa: E402, F401
from cluster.programs import PROGRAM, serve  # noqa: E402
from earshotlab import Lab, LabError, topology  # noqa: E402
from web import raw  # noqa: E402

SERVICES = {"inspector": (topology.VIP, topology.PORT), "program": PROGRAM}
FIGURES = ("median_ms", "longest_ms", "per_s", "cpu_us")
PARALLEL = (1, 16, 64, 250)


def parser():
    root = argparse.ArgumentParser(prog="./dev bench programs", description=__doc__)
    root.add_argument("--rounds", type=int, default=3, metavar="N", help="default %(default)s")
    root.add_argument("--connections", type=int, default=500, metavar="N", help="of each run; default %(default)s")
    root.add_argument("--parallel", type=lambda text: [int(word) for word in text.split(",")], default=PARALLEL,
                      metavar="N,...", help=f"connections at a time; default {','.join(map(str, PARALLEL))}")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    return root


def request(lab, service, number):
    """Milliseconds of a connection with one request for 1 KB, which n1, n2 or n3 in turn is to answer."""
    target = f"n{number % 3 + 1}"
    began = time.perf_counter()
    with raw.connect(lab.client, SERVICES[service], timeout=10) as sock:
        sock.sendall(raw.head("/1k", X_To=target, Connection="close"))
        response = raw.receive(sock)
    if not raw.right(response, "1k"):
        raise LabError(f"a wrong answer: {response.status} with {response.size} bytes")
    return (time.perf_counter() - began) * 1000


def measure(lab, service, parallel, connections, identities):
    connections = min(connections, 60 * parallel)
    before, began = cpu.snapshot(identities), time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        took = sorted(pool.map(lambda number: request(lab, service, number), range(connections)))
    seconds = time.perf_counter() - began
    used = cpu.usage(before, cpu.snapshot(identities))
    return {"service": service, "parallel": parallel, "median_ms": round(statistics.median(took), 2),
            "longest_ms": round(took[-1], 2), "per_s": round(connections / seconds, 1),
            "cpu_us": round(used["total"] * 1e6 / connections, 1)}


def summarise(runs):
    """A row for each service and number at a time: medians of the rounds; ratios are to the inspector's same round."""
    rows = []
    for parallel in dict.fromkeys(run["parallel"] for run in runs):
        base = {run["round"]: run for run in runs if run["parallel"] == parallel and run["service"] == "inspector"}
        for service in SERVICES:
            group = [run for run in runs if run["parallel"] == parallel and run["service"] == service]
            row = {name: statistics.median(run[name] for run in group) for name in FIGURES}
            ratio = statistics.median(run["per_s"] / base[run["round"]]["per_s"] for run in group)
            rows.append({"parallel": parallel, "service": service, "rounds": len(group), **row,
                         "ratio": round(ratio, 3)})
    return rows


def table(rows):
    lines = [f"{'at a time':>9}  {'handed over by':14} {'median ms':>9} {'longest':>8} {'per s':>8} {'ratio':>6} "
             f"{'CPU us':>8}"]
    for row in rows:
        lines.append(f"{row['parallel']:9}  {row['service']:14} {row['median_ms']:9.1f} {row['longest_ms']:8.1f} "
                     f"{row['per_s']:8,.0f} {row['ratio']:6.2f} {row['cpu_us']:8,.0f}")
    return "\n".join(lines)


def main():
    arguments = parser().parse_args()
    runs = []
    with Lab(name="bench-programs", nodes=3, policy="wrr") as lab, contextlib.ExitStack() as stack:
        serve(lab, stack)
        identities = {(status.st_dev, status.st_ino) for status in
                      (os.stat(f"/proc/{pid}/ns/net") for node in lab.nodes for pid in node.pids()[:1])}
        for number in range(1, arguments.rounds + 1):
            for parallel in arguments.parallel:
                for service in sorted(SERVICES, reverse=number % 2 == 0):
                    runs.append({"round": number, **measure(lab, service, parallel, arguments.connections, identities)})
    rows = summarise(runs)
    print(table(rows))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump({"rows": rows, "runs": runs}, handle, indent=1)


if __name__ == "__main__":
    try:
        main()
    except (LabError, OSError) as error:
        sys.exit(f"bench programs: {error}")
