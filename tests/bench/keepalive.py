#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench keepalive: every request of persistent connections inspected, beside one nginx and two proxies (README.md)."""
import argparse
import math
import sys

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import chart  # noqa: E402
import load  # noqa: E402
import runs  # noqa: E402
import targets  # noqa: E402

MODES = ("direct", "earshot-every", "haproxy", "nginx-proxy")
SIZES = ("1k", "13k", "100k")
SHARES = ("0", "10", "50", "67", "100")
HOT_MODES = ("direct", "earshot-every", *targets.HOT, "haproxy", "nginx-proxy")


def parser():
    root = argparse.ArgumentParser(prog="./dev bench keepalive", description=__doc__)
    root.add_argument("--hot", action="store_true",
                      help="one hot file, and 1,000 by Zipf's law, with policies that may move connections")
    root.add_argument("--modes", type=runs.choice_list(targets.MODES), metavar="M,...",
                      help=f"of {', '.join(targets.MODES)} (default: {','.join(MODES)}; with --hot: {','.join(HOT_MODES)})")
    root.add_argument("--sizes", type=runs.choice_list(targets.SIZES), metavar="S,...",
                      help=f"bodies, of {', '.join(targets.SIZES)} (default: {','.join(SIZES)}; with --hot: 1k)")
    root.add_argument("--shares", type=runs.choice_list(SHARES), default=list(SHARES), metavar="P,...",
                      help="percent of the requests that are for another node than the one before")
    root.add_argument("--rounds", type=int, metavar="N", help="default 3")
    root.add_argument("--seconds", type=int, metavar="N", help="each run; default 3")
    root.add_argument("--warmup", type=int, default=1, metavar="N", help="seconds before each run; default 1")
    root.add_argument("--clients", type=int, default=load.CONNECTIONS, metavar="N",
                      help=f"connections of wrk; default {load.CONNECTIONS}")
    root.add_argument("--fast", action="store_true", help="one round of 2 s each: for a look, not for figures")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    root.add_argument("--quiet", action="store_true", help="no line per run")
    return root


def homes(lab, size):
    """For each node the numbers of the targets that the policy gives it, as wrk.lua takes them."""
    found = {}
    for number in range(load.TARGETS):
        found.setdefault(lab.client.get(f"/{size}/{number}")[1]["X-Node"], []).append(str(number))
    return [",".join(numbers) for _, numbers in sorted(found.items())]


def workload(share, lists):
    """Requests of which `share` percent are for another node than the one before on the same connection.

    wrk mixes the requests of a thread's connections, so what one connection asks for is a random draw: two draws from
    one node's targets with probability p and another's else differ with 2 p (1 - p), and from three nodes' at random
    with 67%. That all differ cannot be drawn: then each connection has a thread of its own, and takes the nodes in turn.
    """
    name = f"{share}% move"
    if share == "67":
        return load.Workload(name, ["keep-alive"])
    if share == "100":
        return load.Workload(name, ["walk", "turn", *lists], threads=None)
    other = (1 - math.sqrt(1 - 2 * int(share) / 100)) / 2
    return load.Workload(name, ["walk", f"{other:.4f}", *lists], threads=len(lists))


def moved(rows, done):
    """What Earshot counted: the share of the later requests that moved their connection; "-" if it counted none."""
    lines = []
    for row in rows:
        counted = [run["counters"] for run in done if (run["size"], run["connection"], run["mode"]) ==
                   (row["size"], row["connection"], row["mode"])]
        if not any(counted):
            continue  # a mode without Earshot
        owned = sum(counters.get("inspect_owned", 0) for counters in counted)
        moves = sum(counters.get("inspect_moved", 0) for counters in counted)
        share = f"{moves / owned:.1%}" if owned else "-"
        lines.append(f"{row['size']:>5} {row['connection']:10} {row['mode']}: {share} of the requests moved{why(counted, owned)}"
                     f"{balance(counted)}")
    return lines


def why(counted, owned):
    """The reasons for which they moved, as far as Earshot told them."""
    found = {name.removeprefix("inspect_moved_"): sum(counters.get(name, 0) for counters in counted)
             for name in sorted({name for counters in counted for name in counters if name.startswith("inspect_moved_")})}
    return f" ({', '.join(f'{name} {count / owned:.2%}' for name, count in found.items())})" if owned and found else ""


def balance(counted):
    """How many requests the busiest node had, to the mean."""
    by_node = [sum(counters.get(f"inspect_owned@n{number}", 0) for counters in counted)
               for number in range(1, targets.NODES + 1)]
    return f", busiest node / mean {max(by_node) * targets.NODES / sum(by_node):.2f}" if sum(by_node) else ""


def charts(rows, arguments):
    """For each body, what each mode costs by the share of requests that move."""
    made = {}
    for size in arguments.sizes:
        found = {(row["mode"], row["connection"]): row["own_to_direct"] for row in rows if row["size"] == size}
        series = {mode: [found.get((mode, f"{share}% move")) for share in arguments.shares]
                  for mode in arguments.modes if mode != "direct"}
        if any(value for values in series.values() for value in values):
            made[f"keepalive-{size}-cost"] = chart.make(
                f"Every request inspected, {size}, connections kept", ("requests that move their connection, %", map(int, arguments.shares)),
                "CPU time, one server asked directly = 1", series, "./dev bench keepalive")
    return made


def hot_workloads():
    """One file; and Zipf's popularity, as the web has it, of files that fit into any node's memory."""
    return [load.Workload("hot file", ["walk", "0", "0"]),
            load.Workload("zipf", ["zipf", "0.9"], targets=load.FILES)]


def main():
    arguments = parser().parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.fast else 3)
    arguments.seconds = arguments.seconds or (2 if arguments.fast else 3)
    arguments.modes = arguments.modes or list(HOT_MODES if arguments.hot else MODES)
    arguments.sizes = arguments.sizes or (["1k"] if arguments.hot else list(SIZES))
    with runs.world() as world:
        if arguments.hot:
            arguments.cells = [(size, workload) for size in arguments.sizes for workload in hot_workloads()]
            return runs.report(world, arguments, moved)
        # Where a target lives depends on its path, so on the size too.
        lists = {size: homes(world.lab("earshot-every"), size) for size in arguments.sizes}
        arguments.cells = [(size, workload(share, lists[size])) for size in arguments.sizes for share in arguments.shares]
        return runs.report(world, arguments, moved, lambda rows: charts(rows, arguments))


if __name__ == "__main__":
    runs.run("keepalive", main)
