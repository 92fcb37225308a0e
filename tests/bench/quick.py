#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench quick: Earshot beside one nginx and beside two proxies, in namespaces of this machine (README.md)."""
import argparse
import contextlib
import itertools
import json
import os
import signal
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lab"))
# pylint: disable=wrong-import-position
import cpu  # noqa: E402
import load  # noqa: E402
import perf  # noqa: E402
import targets  # noqa: E402
from earshotlab import LabError, process  # noqa: E402

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CONNECTIONS = ("close", "keep-alive")
FOREIGN_LIMIT = 0.05  # of the machine; a run in which others used more is disturbed
REPEATS_MAX = 2  # of a disturbed run
REPEATING_MAX_S = 90  # in all, so that a busy machine does not make it endless


def choice_list(allowed):
    """For argparse: "a,b" out of `allowed`."""
    def parse(text):
        chosen = text.split(",")
        for item in chosen:
            if item not in allowed:
                raise argparse.ArgumentTypeError(f"{item!r}: expected {', '.join(allowed)}")
        return chosen
    return parse


def parser():
    root = argparse.ArgumentParser(prog="./dev bench quick", description=__doc__)
    root.add_argument("--modes", type=choice_list(targets.MODES), default=list(targets.DEFAULT_MODES), metavar="M,...",
                      help=f"of {', '.join(targets.MODES)} (default: {','.join(targets.DEFAULT_MODES)})")
    root.add_argument("--sizes", type=choice_list(targets.SIZES), default=list(targets.SIZES), metavar="S,...",
                      help=f"bodies, of {', '.join(targets.SIZES)} (default: all)")
    which = root.add_mutually_exclusive_group()
    which.add_argument("--close-only", dest="connections", action="store_const", const=["close"])
    which.add_argument("--keep-alive-only", dest="connections", action="store_const", const=["keep-alive"])
    root.add_argument("--rounds", type=int, metavar="N", help="default 3")
    root.add_argument("--seconds", type=int, metavar="N", help="each run; default 3, with --profile 5")
    root.add_argument("--warmup", type=int, default=1, metavar="N", help="seconds before each run; default 1")
    root.add_argument("--clients", type=int, default=load.CONNECTIONS, metavar="N",
                      help=f"connections of wrk; default {load.CONNECTIONS}")
    root.add_argument("--fast", action="store_true", help="one round of 2 s each: for a look, not for figures")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    root.add_argument("--profile", type=choice_list(targets.MODES), metavar="M,...",
                      help="instead: record these modes with perf (first of --sizes; close unless --keep-alive-only) "
                           "and compare the first with the others")
    root.add_argument("--top", type=int, default=40, metavar="N", help="symbols shown by --profile; default 40")
    root.add_argument("--perf-data", metavar="FILE", help="keep the recordings of --profile as FILE.MODE")
    root.add_argument("--quiet", action="store_true", help="no line per run")
    return root


def options():
    arguments = parser().parse_args()
    arguments.connections = arguments.connections or list(CONNECTIONS)
    arguments.rounds = arguments.rounds or (1 if arguments.fast else 3)
    arguments.seconds = arguments.seconds or (5 if arguments.profile else 2 if arguments.fast else 3)
    return arguments


def measure(world, mode, size, connection, arguments):
    """Warm up, run once; a dictionary as in the JSON file's "runs"."""
    lab, url = world.lab(mode), world.url(mode)
    warmup = {"errors": 0}
    if arguments.warmup:
        warmup = load.run(lab, url, size, connection, arguments.warmup, arguments.clients)
    identities = world.identities()
    counters = world.counters(mode)
    before = cpu.snapshot(identities)
    started = time.monotonic()
    result = load.run(lab, url, size, connection, arguments.seconds, arguments.clients)
    elapsed = time.monotonic() - started
    used = cpu.usage(before, cpu.snapshot(identities))
    requests = max(result["requests"], 1)

    def per_request(seconds):
        return round(seconds * 1e6 / requests, 2)

    run = {
        "mode": mode, "size": size, "connection": connection,
        "requests_per_s": round(requests / (result["duration_us"] / 1e6), 1),
        "cpu_us": per_request(used["total"]),
        "cpu_us_without_client": per_request(used["total"] - result["client_cpu_s"]),
        "cpu_us_softirq": per_request(used["softirq"]),
        "cpu_us_by_process": {name: per_request(value) for name, value in sorted(used["by_name"].items()) if value},
        "machine_busy": round(used["total"] / elapsed / os.cpu_count(), 3),
        "machine_foreign": round((used["foreign"] + used["steal"]) / elapsed / os.cpu_count(), 3),
        "warmup_errors": warmup["errors"],
        "short": result["bytes"] < requests * targets.SIZES[size],
        "wrk": result,
        "counters": {name: value - counters.get(name, 0) for name, value in world.counters(mode).items()
                     if value != counters.get(name, 0)},
    }
    run["failed"] = bool(result["errors"] or warmup["errors"] or run["short"] or not result["requests"])
    return run


def errors_of(run):
    """What went wrong in a run, in words; empty if nothing did."""
    words = [f"{run['wrk'][kind]} {kind}" for kind in load.ERRORS if run["wrk"][kind]]
    words += [f"{run['warmup_errors']} while warming up"] * bool(run["warmup_errors"])
    words += ["bodies too short"] * run["short"]
    words += ["no request completed"] * (not run["wrk"]["requests"])
    return ", ".join(words)


def one_line(run):
    return (f"{run['size']:>5} {run['connection']:10} {run['mode']:13} {run['requests_per_s']:>9,.0f}/s "
            f"{run['cpu_us']:8.1f} us CPU  busy {run['machine_busy']:4.0%}  others {run['machine_foreign']:3.0%}"
            + (f"  ERRORS: {errors_of(run)}" if run["failed"] else ""))


def measure_quietly(world, mode, size, connection, arguments, deadline):
    """measure(), again if it was disturbed and there is time; the least disturbed run, or one that failed."""
    best = measure(world, mode, size, connection, arguments)
    for _ in range(REPEATS_MAX):
        if best["failed"] or best["machine_foreign"] <= FOREIGN_LIMIT or time.monotonic() > deadline:
            break
        run = measure(world, mode, size, connection, arguments)
        if run["failed"] or run["machine_foreign"] < best["machine_foreign"]:
            best = run
    return best


def measure_all(world, arguments):
    """All rounds; within each, the modes of one cell come right after one another, in turning order."""
    runs = []
    spare = REPEATING_MAX_S * (0 if arguments.fast else 1)
    for number in range(arguments.rounds):
        turned = [arguments.modes[(i + number) % len(arguments.modes)] for i in range(len(arguments.modes))]
        for size, connection in itertools.product(arguments.sizes, arguments.connections):
            for mode in turned:
                started = time.monotonic()
                needed = arguments.warmup + arguments.seconds + 0.5
                run = {"round": number + 1,
                       **measure_quietly(world, mode, size, connection, arguments, started + spare)}
                spare = max(spare - max(time.monotonic() - started - needed, 0), 0)
                runs.append(run)
                if not arguments.quiet:
                    print(f"round {run['round']}  {one_line(run)}", file=sys.stderr, flush=True)
    return runs


def summarise(runs):
    """One dictionary per cell and mode: medians, ranges, ratios to direct of the same round."""
    direct = {(run["round"], run["size"], run["connection"]): run for run in runs if run["mode"] == "direct"}
    cells = {}
    for run in runs:
        cells.setdefault((run["size"], run["connection"], run["mode"]), []).append(run)
    rows = []
    for (size, connection, mode), group in cells.items():
        def median(value, group=group):
            return statistics.median(value(run) for run in group)

        def ratios(key, group=group):
            bases = [(run, direct.get((run["round"], run["size"], run["connection"]))) for run in group]
            return [run[key] / base[key] for run, base in bases if base and base[key]]

        rates = [run["requests_per_s"] for run in group]
        rate_ratios, cpu_ratios = ratios("requests_per_s"), ratios("cpu_us")
        rows.append({
            "size": size, "connection": connection, "mode": mode, "rounds": len(group),
            "requests_per_s": median(lambda run: run["requests_per_s"]),
            "requests_per_s_range": [min(rates), max(rates)],
            "to_direct": round(statistics.median(rate_ratios), 3) if rate_ratios else None,
            "to_direct_range": [round(min(rate_ratios), 3), round(max(rate_ratios), 3)] if rate_ratios else None,
            "cpu_us": median(lambda run: run["cpu_us"]),
            "cpu_us_without_client": median(lambda run: run["cpu_us_without_client"]),
            "cpu_to_direct": round(statistics.median(cpu_ratios), 3) if cpu_ratios else None,
            "p50_us": median(lambda run: run["wrk"]["p50_us"]),
            "p99_us": median(lambda run: run["wrk"]["p99_us"]),
            "errors": sum(run["wrk"]["errors"] + run["warmup_errors"] for run in group),
            "failed": any(run["failed"] for run in group),
        })
    return rows


def table(rows):
    """The rows as aligned text."""
    lines = [("body", "connection", "mode", "req/s", "min..max", "x direct", "min..max", "CPU us", "x direct",
              "no client", "p50 ms", "p99 ms", "errors")]
    cell = None
    for row in rows:
        here = (row["size"], row["connection"])
        if cell not in (None, here):
            lines.append(())
        low, high = row["requests_per_s_range"]
        ratio, spread, cpu_ratio = row["to_direct"], row["to_direct_range"], row["cpu_to_direct"]
        lines.append((
            *(here if here != cell else ("", "")), row["mode"], f"{row['requests_per_s']:,.0f}",
            f"{low:,.0f}..{high:,.0f}", f"{ratio:.2f}" if ratio else "-",
            f"{spread[0]:.2f}..{spread[1]:.2f}" if spread else "-", f"{row['cpu_us']:.1f}",
            f"{cpu_ratio:.2f}" if cpu_ratio else "-", f"{row['cpu_us_without_client']:.1f}",
            f"{row['p50_us'] / 1000:.2f}", f"{row['p99_us'] / 1000:.2f}", str(row["errors"])))
        cell = here
    widths = [max(len(line[i]) for line in lines if line) for i in range(len(lines[0]))]
    return "\n".join("  ".join(
        text.ljust(width) if i < 3 else text.rjust(width) for i, (text, width) in enumerate(zip(line, widths))).rstrip()
        for line in lines)


def notes(runs):
    """What a reader of the table has to know about this run."""
    lines = []
    disturbed = [run["machine_foreign"] for run in runs if run["machine_foreign"] > FOREIGN_LIMIT]
    if disturbed:
        lines.append(f"NOTE: in {len(disturbed)} of {len(runs)} runs other processes or the host used "
                     f"more than {FOREIGN_LIMIT:.0%} of the machine (up to {max(disturbed):.0%}): trust CPU us more")
    failed = [run for run in runs if run["failed"]]
    if failed:
        lines.append(f"FAILED: {len(failed)} of {len(runs)} runs had client errors; there must be none")
        lines += [f"  round {run['round']}  {run['size']} {run['connection']} {run['mode']}: {errors_of(run)}"
                  for run in failed]
    return lines


def record(world, mode, arguments):
    """perf's recording of one mode: (perf.Profile, whether the clients saw no error)."""
    size, connection = arguments.sizes[0], arguments.connections[0]
    with tempfile.TemporaryDirectory(prefix="earshot-perf-") as directory:
        data = f"{arguments.perf_data}.{mode}" if arguments.perf_data else os.path.join(directory, "perf.data")
        load.run(world.lab(mode), world.url(mode), size, connection, arguments.warmup or 1, arguments.clients)
        recorder = perf.start(data)
        try:
            run = measure(world, mode, size, connection, argparse.Namespace(
                warmup=0, seconds=arguments.seconds, clients=arguments.clients))
        finally:
            perf.stop(recorder)
        print(f"{one_line(run)} (while recording)")
        frequent = {name: value / run["wrk"]["requests"] for name, value in run["counters"].items()}
        if frequent:
            print("counters per request: " + ", ".join(
                f"{name} {value:.2f}" for name, value in frequent.items() if value > 0.005))
        namespaces = [name for lab in world.labs.values() for name in lab.net.namespaces]
        ours = {run["wrk"]["pid"], *process.pids_in(namespaces), *perf.kernel_threads()}
        return perf.Profile(data, run["cpu_us"], ours), not run["failed"]


def profile(world, arguments):
    """--profile; returns whether the clients saw no error."""
    profiles, good = {}, True
    for mode in arguments.profile:
        profiles[mode], clean = record(world, mode, arguments)
        good = good and clean
        perf.report(profiles[mode], arguments.top)
        print()
    first, *others = arguments.profile
    for other in others:
        perf.compare(first, profiles[first], other, profiles[other], arguments.top)
    return good


def interrupted(number, _):
    """Ends in the orderly way, the labs too, and is not interrupted again."""
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    for number in ENDING:
        signal.signal(number, interrupted)
    arguments = options()
    with contextlib.ExitStack() as stack:
        docroot = stack.enter_context(tempfile.TemporaryDirectory(prefix="earshot-bench-"))
        targets.make_docroot(docroot)
        world = targets.Targets(stack, docroot)
        if arguments.profile:
            return 0 if profile(world, arguments) else 1
        started = time.time()
        for mode in arguments.modes:
            world.lab(mode)
        runs = measure_all(world, arguments)
    rows = summarise(runs)
    print(table(rows))
    print(*notes(runs), sep="\n", end="\n" if notes(runs) else "")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump({"started": int(started), "kernel": os.uname().release, "cpus": os.cpu_count(),
                       "seconds": arguments.seconds, "rounds": arguments.rounds, "clients": arguments.clients,
                       "summary": rows, "runs": runs}, handle, indent=1)
            handle.write("\n")
    return 1 if any(run["failed"] for run in runs) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as problem:
        print(f"bench quick: {problem}", file=sys.stderr)
        sys.exit(2)
