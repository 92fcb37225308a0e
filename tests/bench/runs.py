# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in interleaved rounds, what they cost, and the table of them; for each benchmark that sends requests."""
import argparse
import contextlib
import json
import os
import signal
import statistics
import sys
import tempfile
import time

import chart
import cpu
import targets
from earshotlab import LabError

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

FOREIGN_LIMIT = 0.05  # of the machine; a run in which others used more is disturbed
REPEATS_MAX = 2  # of a disturbed run
REPEATING_MAX_S = 90  # in all, so that a busy machine does not make it endless


def measure(world, mode, size, workload, arguments):
    """Warm up, run once; a dictionary as in the JSON file's "runs"."""
    lab, url = world.lab(mode), world.url(mode)
    warmup = {"errors": 0}
    if arguments.warmup:
        warmup = workload.run(lab, url, size, arguments.warmup, arguments.clients)
    identities = world.identities(mode)
    counters = world.counters(mode)
    before = cpu.snapshot(*identities)
    started = time.monotonic()
    result = workload.run(lab, url, size, arguments.seconds, arguments.clients)
    elapsed = time.monotonic() - started
    used = cpu.usage(before, cpu.snapshot(*identities))
    requests = max(result["requests"], 1)

    def per_request(seconds):
        return round(seconds * 1e6 / requests, 2)

    run = {
        "mode": mode, "size": size, "connection": workload.name,
        "requests_per_s": round(requests / (result["duration_us"] / 1e6), 1),
        "cpu_us": per_request(used["total"]),
        "cpu_us_without_client": per_request(used["total"] - result["client_cpu_s"]),
        "cpu_us_own": per_request(sum(used["by_name"].values()) + result["client_cpu_s"]),
        "cpu_us_softirq": per_request(used["softirq"]),
        "cpu_us_by_process": {name: per_request(value) for name, value in sorted(used["by_name"].items()) if value},
        "machine_busy": round(used["total"] / elapsed / os.cpu_count(), 3),
        "machine_foreign": round((used["foreign"] + used["steal"]) / elapsed / os.cpu_count(), 3),
        "warmup_errors": warmup["errors"],
        "short": result["bytes"] < requests * targets.SIZES.get(size, 0),
        "wrk": result,
        "counters": {name: value - counters.get(name, 0) for name, value in world.counters(mode).items()
                     if value != counters.get(name, 0)},
    }
    run["failed"] = bool(result["errors"] or warmup["errors"] or run["short"] or not result["requests"])
    return run


def errors_of(run):
    """What went wrong in a run, in words; empty if nothing did."""
    words = [f"{number} {kind}" for kind, number in run["wrk"]["kinds"].items() if number]
    words += [f"{run['warmup_errors']} while warming up"] * bool(run["warmup_errors"])
    words += ["bodies too short"] * run["short"]
    words += ["no request completed"] * (not run["wrk"]["requests"])
    return ", ".join(words)


def one_line(run):
    return (f"{run['size']:>5} {run['connection']:10} {run['mode']:13} {run['requests_per_s']:>9,.0f}/s "
            f"{run['cpu_us']:8.1f} us CPU  busy {run['machine_busy']:4.0%}  others {run['machine_foreign']:3.0%}"
            + (f"  ERRORS: {errors_of(run)}" if run["failed"] else ""))


def measure_quietly(world, mode, size, workload, arguments, deadline):
    """measure(), again if it was disturbed and there is time; the least disturbed run, or one that failed."""
    best = measure(world, mode, size, workload, arguments)
    for _ in range(REPEATS_MAX):
        if best["failed"] or best["machine_foreign"] <= FOREIGN_LIMIT or time.monotonic() > deadline:
            break
        run = measure(world, mode, size, workload, arguments)
        if run["failed"] or run["machine_foreign"] < best["machine_foreign"]:
            best = run
    return best


def measure_all(world, arguments):
    """All rounds; within each, the modes of one cell come right after one another, in turning order."""
    runs = []
    spare = REPEATING_MAX_S * (0 if arguments.fast else 1)
    for number in range(arguments.rounds):
        turned = [arguments.modes[(i + number) % len(arguments.modes)] for i in range(len(arguments.modes))]
        for size, workload in arguments.cells:
            for mode in filter(workload.takes, turned):
                started = time.monotonic()
                needed = arguments.warmup + arguments.seconds + 0.5
                run = {"round": number + 1,
                       **measure_quietly(world, mode, size, workload, arguments, started + spare)}
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
        rate_ratios, cpu_ratios, own_ratios = ratios("requests_per_s"), ratios("cpu_us"), ratios("cpu_us_own")
        rows.append({
            "size": size, "connection": connection, "mode": mode, "rounds": len(group),
            "requests_per_s": median(lambda run: run["requests_per_s"]),
            "requests_per_s_range": [min(rates), max(rates)],
            "to_direct": round(statistics.median(rate_ratios), 3) if rate_ratios else None,
            "to_direct_range": [round(min(rate_ratios), 3), round(max(rate_ratios), 3)] if rate_ratios else None,
            "cpu_us": median(lambda run: run["cpu_us"]),
            "cpu_us_without_client": median(lambda run: run["cpu_us_without_client"]),
            "cpu_to_direct": round(statistics.median(cpu_ratios), 3) if cpu_ratios else None,
            "own_us": median(lambda run: run["cpu_us_own"]),
            "own_to_direct": round(statistics.median(own_ratios), 3) if own_ratios else None,
            "p50_us": median(lambda run: run["wrk"]["p50_us"]),
            "p99_us": median(lambda run: run["wrk"]["p99_us"]),
            "errors": sum(run["wrk"]["errors"] + run["warmup_errors"] for run in group),
            "failed": any(run["failed"] for run in group),
        })
    return rows


def table(rows):
    """The rows as aligned text."""
    lines = [("body", "connection", "mode", "req/s", "min..max", "x direct", "min..max", "CPU us", "x direct",
              "no client", "own us", "x direct", "p50 ms", "p99 ms", "errors")]
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
            f"{row['own_us']:.1f}", f"{row['own_to_direct']:.2f}" if row["own_to_direct"] else "-",
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


def choice_list(allowed):
    """For argparse: "a,b" out of `allowed`."""
    def parse(text):
        chosen = text.split(",")
        for item in chosen:
            if item not in allowed:
                raise argparse.ArgumentTypeError(f"{item!r}: expected {', '.join(allowed)}")
        return chosen
    return parse


def interrupted(number, _):
    """Ends in the orderly way, the labs too, and is not interrupted again."""
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


@contextlib.contextmanager
def world(which=targets, **options):
    """The Targets of a benchmark, of the module `which`, taken down behind it."""
    with contextlib.ExitStack() as stack:
        docroot = stack.enter_context(tempfile.TemporaryDirectory(prefix="earshot-bench-"))
        which.make_docroot(docroot)
        yield which.Targets(stack, docroot, **options)


def cost_chart(name, rows):
    """The CPU time of each mode beside that of one server directly; {} if that was not measured, or nothing beside it."""
    cells = list(dict.fromkeys((row["size"], row["connection"]) for row in rows))
    found = {(row["size"], row["connection"], row["mode"]): row["own_to_direct"] for row in rows}
    modes = [mode for mode in dict.fromkeys(row["mode"] for row in rows) if mode != "direct"]
    series = {mode: [found.get((*cell, mode)) for cell in cells] for mode in modes}
    if not any(value for values in series.values() for value in values):
        return {}
    return {f"{name}-cost": chart.make("CPU time of a request, of all processes", ("body, connection", [", ".join(cell) for cell in cells]),
                                       "one server asked directly = 1", series, f"./dev bench {name}")}


def report(here, arguments, remarks=None, charts=None):
    """Measure the cells, print the table and `remarks(rows, runs)`, write the JSON file, with `charts(rows)`; the exit status."""
    started = time.time()
    for mode in arguments.modes:
        here.check(mode)
    done = measure_all(here, arguments)
    rows = summarise(done)
    print(table(rows), *(remarks(rows, done) if remarks else ()), *notes(done), sep="\n")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump({"started": int(started), "kernel": os.uname().release, "cpus": os.cpu_count(),
                       "seconds": arguments.seconds, "rounds": arguments.rounds, "clients": arguments.clients,
                       "summary": rows, "runs": done, "charts": charts(rows) if charts else {}}, handle, indent=1)
            handle.write("\n")
    return 1 if any(run["failed"] for run in done) else 0


def run(name, main):
    """A benchmark's whole life; exits."""
    for number in ENDING:
        signal.signal(number, interrupted)
    try:
        sys.exit(main())
    except LabError as problem:
        print(f"bench {name}: {problem}", file=sys.stderr)
        sys.exit(2)
