#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench xo: HTTP in the shape of XO's experiments (NSDI 2026): four servers, 100 connections that are kept, 1 KB to 4 MB, in turn
and by content, beside HAProxy and nginx (README.md). `./dev bench https --shape xo` is the same with TLS."""
import argparse
import sys

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import chart  # noqa: E402
import https  # noqa: E402
import keepalive  # noqa: E402
import runs  # noqa: E402
import xo_targets as targets  # noqa: E402

NODES = https.SHAPES["xo"]["nodes"]
# Of the paper, over balancers of layer 7, all its sizes together (abstract).
OWN = "+27 .. +365"
# name: (what requests are for, in which order they take it, Earshot's mode)
WORKLOADS = {
    "round robin": (["any"], "0", "earshot"),
    "by content": (["content"], "0", "earshot-uri"),
    "each moves": ([f"n{number}" for number in range(1, NODES + 1)], "turn", "earshot-every"),
}


def parser():
    root = argparse.ArgumentParser(prog="./dev bench xo", description=__doc__)
    root.add_argument("--workloads", type=runs.choice_list(WORKLOADS), default=list(WORKLOADS), metavar="W,...",
                      help=f"of {', '.join(WORKLOADS)}; default all")
    root.add_argument("--modes", type=runs.choice_list(targets.MODES), default=list(targets.DEFAULT_MODES), metavar="M,...",
                      help=f"of {', '.join(targets.MODES)} (default: {','.join(targets.DEFAULT_MODES)})")
    root.add_argument("--policy", choices=("uri-hash", "lard-r"), default="uri-hash", help="by content; default %(default)s")
    root.add_argument("--sizes", type=runs.choice_list(https.XO_SIZES), metavar="S,...", help=f"bodies (default: {','.join(https.XO_SIZES)})")
    root.add_argument("--rounds", type=int, metavar="N", help="default 3")
    root.add_argument("--seconds", type=int, metavar="N", help="each run; default 2")
    root.add_argument("--warmup", type=int, default=1, metavar="N", help="seconds before each run; default 1")
    root.add_argument("--clients", type=int, default=https.SHAPES["xo"]["clients"], metavar="N", help="connections; default %(default)s")
    root.add_argument("--fast", action="store_true", help="one round of 1 s each, 1k, 64k and 4m: for a look, not for figures")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE, for ./dev bench plots --take FILE too")
    root.add_argument("--quiet", action="store_true", help="no line per run")
    return root


def options(words=None):
    arguments = parser().parse_args(words)
    arguments.rounds = arguments.rounds or (1 if arguments.fast else 3)
    arguments.seconds = arguments.seconds or (1 if arguments.fast else 2)
    arguments.sizes = arguments.sizes or (["1k", "64k", "4m"] if arguments.fast else list(https.XO_SIZES))
    if arguments.policy != "uri-hash":
        arguments.modes = [f"earshot-{arguments.policy}" if mode == "earshot-uri" else mode for mode in arguments.modes]
    arguments.cells = [(size, workload(name, arguments)) for name in arguments.workloads for size in arguments.sizes]
    return arguments


def workload(name, arguments):
    nodes, share, mode = WORKLOADS[name]
    if mode == "earshot-uri" and mode not in arguments.modes:
        mode = f"earshot-{arguments.policy}"
    return https.Workload(name, "keep-alive", share, nodes, "", "", only=(mode,))


def table(rows, arguments):
    """Requests/s and CPU us of each, and what Earshot gains, beside what XO does."""
    others = [mode for mode in ("direct", *targets.PROXIES) if mode in arguments.modes]
    lines = ["| | body | Earshot, req/s (CPU us) | " + " | ".join(f"{mode}" for mode in others)
             + " | gain over the better proxy, % | XO's own, all sizes, % | CPU time saved, % |", "|---|---|" + "---|" * (len(others) + 4)]
    for (size, name), by_mode in https.per_row(rows, arguments.cells):
        ours = next((row for mode, row in by_mode.items() if mode in targets.EARSHOT), None)
        shown = [f"{row['requests_per_s']:,.0f} ({row['own_us']:.0f})" if row else "" for row in (ours, *map(by_mode.get, others))]
        gain, saved = (f"{value:+.0f}" if value is not None else "" for value in https.gain_of(by_mode))
        lines.append(f"| {name} | {size} | " + " | ".join(shown) + f" | {gain} | {OWN} | {saved} |")
    return lines


def charts(rows, arguments):
    """The gain and the CPU time saved, by size."""
    sizes = [https.targets.SIZES[size] >> 10 for size in arguments.sizes]
    found = {cell: https.gain_of(by_mode) for cell, by_mode in https.per_row(rows, arguments.cells)}
    if not any(gain is not None for gain, _ in found.values()):
        return {}

    def made(title, y, index):
        series = {}
        for name in arguments.workloads:
            values = [found.get((size, name), (None, None))[index] for size in arguments.sizes]
            series[name] = [None if value is None else round(value, 1) for value in values]
        return chart.make(title, ("body, KB", sizes, "log"), y, series, "./dev bench xo")

    return {"xo-gain": made("Earshot in XO's shape: requests/s", "more than the better proxy, %", 0),
            "xo-cpu": made("Earshot in XO's shape: CPU time of a request", "less than the cheaper proxy, %", 1)}


def main():
    arguments = options()
    with runs.world(targets, nodes=NODES) as here:
        return runs.report(here, arguments, lambda rows, done: [*keepalive.moved(rows, done), "", *table(rows, arguments), ""],
                           lambda rows: charts(rows, arguments))


if __name__ == "__main__":
    runs.run("xo", main)
