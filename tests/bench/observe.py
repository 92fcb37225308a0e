#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench observe: what it costs four nodes under full load to be looked at: metrics, page, trace (README.md)."""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import load  # noqa: E402
import runs  # noqa: E402
from earshotlab import Lab, LabError, netns, topology  # noqa: E402
from web import raw  # noqa: E402

NODES = 4
MODES = ("quiet", "scraped", "page", "trace")
DIRECTORY = "u/1k"


def parser():
    root = argparse.ArgumentParser(prog="./dev bench observe", description=__doc__)
    root.add_argument("--modes", type=runs.choice_list(MODES), default=list(MODES), metavar="M,...",
                      help=f"of {', '.join(MODES)} (default: all); ratios are to quiet")
    root.add_argument("--rounds", type=int, default=5, metavar="N", help="default %(default)s")
    root.add_argument("--seconds", type=int, default=6, metavar="N", help="each run; default %(default)s")
    root.add_argument("--clients", type=int, default=load.CONNECTIONS, metavar="N", help="connections of wrk; default %(default)s")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    return root


class Reader:
    """Asks nodes for a document at an interval, on the cluster network, as a machine beside them would. Its own CPU time is
    Python's, and in no figure."""

    def __init__(self, lab, nodes, path, interval):
        self.pairs = [(lab.node(f"n{number % NODES + 1}"), lab.node(f"n{number}")) for number in nodes]  # who asks whom
        self.path, self.interval = path, interval
        self.answers = self.failures = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.ended.wait(self.interval):
            for asking, asked in self.pairs:
                try:
                    with raw.connect(asking, (asked.cluster_address, topology.STATUS_PORT), timeout=5) as sock:
                        sock.sendall(raw.head(self.path, Host=asked.name, Accept="application/openmetrics-text"))
                        self.answers += raw.receive(sock).status == 200
                except (OSError, EOFError):
                    self.failures += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


@contextlib.contextmanager
def watching(lab):
    """`earshot trace` on all nodes; what they show is read by nobody."""
    with contextlib.ExitStack() as stack:
        for node in lab.nodes:
            child = node.popen(["earshot", "trace"], stdout=subprocess.DEVNULL)
            stack.callback(child.wait)
            stack.callback(child.terminate)
        yield None


def looked_at(lab, mode):
    """The mode, for as long as the block lasts."""
    if mode == "scraped":
        return Reader(lab, range(1, NODES + 1), "/metrics", 1)
    if mode == "page":
        return Reader(lab, [1], "/", 2)
    return watching(lab) if mode == "trace" else contextlib.nullcontext()


def used(lab):
    """{thread of a daemon: (is it a worker, nanoseconds that it has run)}; workers are batch threads, no other is."""
    found = {}
    for node in lab.nodes:
        pid = lab.pid(node.name, "earshotd")
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as handle:
                found[thread] = (os.sched_getscheduler(thread) == os.SCHED_BATCH, int(handle.read().split()[0]))
    return found


def measure(lab, mode, arguments):
    with looked_at(lab, mode) as reader:
        load.run(lab, lab.url("").rstrip("/"), DIRECTORY, load.Workload("keep-alive", ["keep-alive"]), 1, arguments.clients)
        before, began = used(lab), time.monotonic()
        asked = reader.answers if reader else 0
        result = load.run(lab, lab.url("").rstrip("/"), DIRECTORY, load.Workload("keep-alive", ["keep-alive"]),
                          arguments.seconds, arguments.clients)
        seconds, after = time.monotonic() - began, used(lab)
        asked = reader.answers - asked if reader else 0
    spent = {is_worker: sum(ns - before.get(thread, (0, 0))[1] for thread, (kind, ns) in after.items() if kind == is_worker)
             for is_worker in (True, False)}
    requests = max(result["requests"], 1)
    return {"mode": mode, "requests_per_s": round(result["requests"] / seconds, 1), "errors": result["errors"],
            "answers": asked, "failures": reader.failures if reader else 0,
            "daemon_us": round(sum(spent.values()) / 1000 / requests, 2),
            "workers_us": round(spent[True] / 1000 / requests, 2),
            "others_cpu": round(spent[False] / 1e9 / seconds / NODES, 5)}


def summarise(done):
    """A row for each mode: medians of the rounds, of ratios and differences to quiet of the same round."""
    quiet = {run["round"]: run for run in done if run["mode"] == "quiet"}
    rows = []
    for mode in dict.fromkeys(run["mode"] for run in done):
        group = [run for run in done if run["mode"] == mode]
        row = {"mode": mode, **{name: statistics.median(run[name] for run in group)
                                for name in ("requests_per_s", "daemon_us", "workers_us", "others_cpu", "answers")}}
        both = [(run, quiet[run["round"]]) for run in group if run["round"] in quiet]
        for name in ("requests_per_s", "daemon_us", "workers_us"):
            row[f"{name}_ratio"] = round(statistics.median(run[name] / base[name] for run, base in both), 3) if both else None
        more = sorted(run["others_cpu"] - base["others_cpu"] for run, base in both)
        row["more_cpu"] = [statistics.median(more), more[0], more[-1]] if more else None
        rows.append(row)
    return rows


def table(rows):
    lines = [f"{'mode':8} {'req/s':>8} {'ratio':>6}  {'daemons us':>10} {'ratio':>6}  {'workers us':>10} {'ratio':>6}  "
             f"{'other threads':>13}  {'more than quiet, of a CPU and node':>34}"]
    for row in rows:
        more = row["more_cpu"]
        lines.append(f"{row['mode']:8} {row['requests_per_s']:8,.0f} {row['requests_per_s_ratio'] or 0:6.2f}  {row['daemon_us']:10.2f} "
                     f"{row['daemon_us_ratio'] or 0:6.2f}  {row['workers_us']:10.2f} {row['workers_us_ratio'] or 0:6.2f}  "
                     f"{row['others_cpu']:13.2%}  " + (f"{more[0]:.2%} ({more[1]:.2%}..{more[2]:.2%})" if more else "-").rjust(34))
    return "\n".join(lines)


def main():
    arguments = parser().parse_args()
    done = []
    with Lab(name="bench-observe", nodes=NODES, policy="wlc", settings={"service.inspect": "every", "inspector.workers": 0}) as lab:
        netns.set_sysctls(lab.net.client, {"net.ipv4.tcp_tw_reuse": 1})
        for number in range(arguments.rounds):
            for place in range(len(arguments.modes)):
                mode = arguments.modes[(place + number) % len(arguments.modes)]
                done.append({"round": number + 1, **measure(lab, mode, arguments)})
                print(f"round {number + 1}  {json.dumps(done[-1])}", file=sys.stderr, flush=True)
    rows = summarise(done)
    print(table(rows))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump({"rows": rows, "runs": done, "kernel": os.uname().release, "cpus": os.cpu_count()}, handle, indent=1)
    failed = [run for run in done if run["errors"] or run["failures"]]
    for run in failed:
        print(f"FAILED: round {run['round']} {run['mode']}: {run['errors']} errors of clients, {run['failures']} of readers")
    return 1 if failed else 0


if __name__ == "__main__":
    runs.run("observe", main)
