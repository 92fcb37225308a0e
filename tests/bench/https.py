#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench https: HTTPS by Earshot, by one nginx and by two proxies that end TLS (README.md)."""
import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import https_targets as targets  # noqa: E402
import runs  # noqa: E402
from earshotlab import LabError, daemon  # noqa: E402

SIZES = ("1k", "13k", "100k", "1m")
XO_SIZES = ("1k", "4k", "16k", "64k", "256k", "1m", "4m")
WAYS = ("resume", "full", "keep-alive")
SHARES = ("0", "50", "100")
SUITES = {"aes-256": "TLS_AES_256_GCM_SHA384", "aes-128": "TLS_AES_128_GCM_SHA256"}
ERRORS = ("connect", "handshake", "read", "write", "timeout", "status", "resume")
SHAPES = {"grid": {"modes": targets.DEFAULT_MODES, "sizes": SIZES, "clients": 64, "nodes": 3},
          "xo": {"modes": targets.DEFAULT_MODES, "sizes": XO_SIZES, "clients": 100, "nodes": 4}}


@dataclass
class Workload:
    """earshot-https-load, and what it is told. `nodes`: names of targets that requests are for (https_targets.py). Without `ca` it is
    HTTP."""

    name: str
    way: str
    share: str
    nodes: list
    ca: str
    suite: str
    only: tuple = ()  # Earshot's modes that it is for

    def takes(self, mode):
        return not mode.startswith("earshot") or mode in self.only

    def run(self, lab, url, size, seconds, connections):
        """One run; its figures, CPU time in "client_cpu_s", and the sum of its errors in "errors"."""
        command = [daemon.binary("earshot-https-load"), "--to", url, *(("--ca", self.ca, "--suite", self.suite) if self.ca else ()), "--mode", self.way,
                   "--share", self.share, "--nodes", ",".join(self.nodes), "--sizes", f"{size}={targets.SIZES[size]}",
                   "--files", str(targets.FILES), "--seconds", str(seconds), "--connections", str(connections)]
        child = lab.client.popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stdout.close()
        if child.returncode:
            raise LabError(f"{' '.join(command)} ended with {child.returncode}", output)
        result = json.loads(output)
        kinds = {kind: result[kind] for kind in ERRORS}
        return {**result, "pid": child.pid, "client_cpu_s": usage.ru_utime + usage.ru_stime, "kinds": kinds,
                "errors": sum(kinds.values())}


def parser():
    root = argparse.ArgumentParser(prog="./dev bench https", description=__doc__)
    root.add_argument("--shape", choices=tuple(SHAPES), default="grid",
                      help="grid: bodies, kinds of connections, shares of requests that move; xo: four servers, 100 connections, each "
                           "request for the next server, as in the paper")
    root.add_argument("--modes", type=runs.choice_list(targets.MODES), metavar="M,...",
                      help=f"of {', '.join(targets.MODES)} (default: {','.join(targets.DEFAULT_MODES)})")
    root.add_argument("--sizes", type=runs.choice_list(targets.SIZES), metavar="S,...",
                      help=f"bodies (default: {','.join(SIZES)}; xo: {','.join(XO_SIZES)})")
    root.add_argument("--connections", type=runs.choice_list(WAYS), default=list(WAYS), metavar="C,...",
                      help=f"of {', '.join(WAYS)}: closed after each response, with a session that is resumed or a full handshake; "
                           "default all; xo: keep-alive")
    root.add_argument("--shares", type=runs.choice_list(SHARES), default=list(SHARES), metavar="P,...",
                      help="keep-alive: percent of the requests that are for another node than the one before")
    root.add_argument("--suite", choices=tuple(SUITES), default="aes-256", help="default %(default)s")
    root.add_argument("--rounds", type=int, metavar="N", help="default 3")
    root.add_argument("--seconds", type=int, metavar="N", help="each run; default 3")
    root.add_argument("--warmup", type=int, default=1, metavar="N", help="seconds before each run; default 1")
    root.add_argument("--clients", type=int, metavar="N", help="connections at a time; default 64; xo: 100")
    root.add_argument("--fast", action="store_true", help="one round of 1 s each, 1k and 100k: for a look, not for figures")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    root.add_argument("--quiet", action="store_true", help="no line per run")
    return root


def options():
    arguments = parser().parse_args()
    shape = SHAPES[arguments.shape]
    arguments.rounds = arguments.rounds or (1 if arguments.fast else 3)
    arguments.seconds = arguments.seconds or (1 if arguments.fast else 3)
    arguments.clients = arguments.clients or shape["clients"]
    arguments.modes = arguments.modes or list(shape["modes"])
    arguments.sizes = arguments.sizes or (["1k", "100k"] if arguments.fast else list(shape["sizes"]))
    return arguments


def workloads(arguments, here):
    """Who makes a new connection each time comes to the node that the ring names for it, or to the one of its ticket, and its
    request is for any node: with three nodes two requests of three move. For none to move, another lab does not look at them."""
    common = {"nodes": here.names, "ca": f"{here.place}/ca.pem", "suite": SUITES[arguments.suite]}
    earshot = tuple(mode for mode in arguments.modes if mode in targets.EARSHOT)
    if arguments.shape == "xo":
        return [Workload("in turn", "keep-alive", "turn", only=earshot, **common)]
    found = []
    for way in WAYS:
        if way not in arguments.connections:
            continue
        if way == "keep-alive":
            found += [Workload(f"keep-alive, {share}% move", way, "turn" if share == "100" else share, only=earshot, **common)
                      for share in arguments.shares]
            continue
        moving = 1 - 1 / len(here.names)
        other = f"{100 * moving:.0f}"  # than the connection before, whose ticket this one has
        found += [Workload(f"{way}, {share:.0%} move", way, other, only=only, **common)
                  for share, only in ((0, ("earshot-never",)), (moving, earshot)) if f"{share:.0%}" != "0%" or "0" in arguments.shares]
    return found


def per_row(rows, cells):
    """[(row's words, {mode: summary})] in the order of the cells."""
    found = {}
    for row in rows:
        found.setdefault((row["size"], row["connection"]), {})[row["mode"]] = row
    return [((size, workload.name), found[size, workload.name]) for size, workload in cells if (size, workload.name) in found]


def markdown(rows, arguments):
    """The table as docs/performance.md has it: rate to one nginx, and the processes' CPU time per request in brackets, likewise."""
    modes = [mode for mode in arguments.modes if mode not in ("direct", "earshot-never")]
    lines = ["| body, connection | " + " | ".join(modes) + " |", "|---|" + "---|" * len(modes)]
    for (size, connection), by_mode in per_row(rows, arguments.cells):
        cells = []
        for mode in modes:
            row = by_mode.get(mode) or (by_mode.get("earshot-never") if mode == "earshot" else None)
            cells.append(f"{row['to_direct']:.2f} ({row['own_to_direct']:.2f})" if row and row["to_direct"] else "")
        lines.append(f"| {size}, {connection} | " + " | ".join(cells) + " |")
    return lines


def gains(rows, arguments):
    """The table of the paper's shape: requests/s and CPU us of each mode, and what Earshot gains over the better proxy."""
    lines = ["| body | " + " | ".join(f"{mode}, req/s (CPU us)" for mode in arguments.modes) + " | gain over the better proxy, % | CPU us saved, % |",
             "|---|" + "---|" * (len(arguments.modes) + 2)]
    for (size, _), by_mode in per_row(rows, arguments.cells):
        gain, saved = (f"{value:{form}}" if value is not None else "" for value, form in zip(gain_of(by_mode), ("+.0f", ".0f")))
        shown = [f"{by_mode[mode]['requests_per_s']:,.0f} ({by_mode[mode]['own_us']:.0f})" if mode in by_mode else "" for mode in arguments.modes]
        lines.append(f"| {size} | " + " | ".join(shown) + f" | {gain} | {saved} |")
    return lines


def gain_of(by_mode):
    """(requests/s that Earshot has more than the better proxy, CPU time that it saves of the cheaper one's), percent; None: not run."""
    proxies = [by_mode[mode] for mode in targets.PROXIES if mode in by_mode]
    ours = by_mode.get("earshot") or next((row for mode, row in by_mode.items() if mode.startswith("earshot")), None)
    if not proxies or not ours:
        return None, None
    return (100 * ours["requests_per_s"] / max(row["requests_per_s"] for row in proxies) - 100,
            100 - 100 * ours["own_us"] / min(row["own_us"] for row in proxies))


def moved(rows, done):
    """What earshot-tls counted."""
    lines = []
    for row in rows:
        counted = [run["counters"] for run in done if (run["size"], run["connection"], run["mode"]) ==
                   (row["size"], row["connection"], row["mode"])]
        total = {name: sum(counters.get(name, 0) for counters in counted)
                 for name in sorted({name for counters in counted for name in counters})}
        asked = total.get("requests", 0) - total.get("moved", 0)  # who gets a connection counts its request again
        if asked <= 0:
            continue
        stayed = ", ".join(f"{name} {number / asked:.2%}" for name, number in total.items() if name.startswith("stayed_") and number)
        lines.append(f"{row['size']:>5} {row['connection']:20} {row['mode']}: {total.get('moved', 0) / asked:.1%} of the requests moved"
                     + f"{'; ' if stayed else ''}{stayed}")
    return lines


def main():
    arguments = options()
    shape = SHAPES[arguments.shape]
    with runs.world(targets, nodes=shape["nodes"]) as here:
        if arguments.shape == "grid" and "earshot" in arguments.modes and "0" in arguments.shares and \
                set(arguments.connections) & {"resume", "full"} and "earshot-never" not in arguments.modes:
            arguments.modes.insert(arguments.modes.index("earshot") + 1, "earshot-never")
        arguments.cells = [(size, workload) for size in arguments.sizes for workload in workloads(arguments, here)]

        def remarks(rows, done):
            made = gains(rows, arguments) if arguments.shape == "xo" else markdown(rows, arguments)
            return [*moved(rows, done), "", *made, ""]

        return runs.report(here, arguments, remarks)


if __name__ == "__main__":
    runs.run("https", main)
