#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run suites again and again, beside busy loops if wished, and keep what the failures leave.

A SUITE is a label of ./dev check (unit and fuzz are repeated as a whole, of others each test by itself), a test's name, or
its end: chaos is lab.chaos. Without one, all are repeated. Results are kept for the commit under test, in build/soak:
--times counts those that are there already with the same options, so a long series fits into several sittings. Each failure
has a directory with the test's output (nodes' logs among it), the kernel's messages, and the seed that repeats it.
"""
import argparse
import collections
import contextlib
import hashlib
import json
import os
import random
import re
import resource
import subprocess
import sys
import time

import ctest

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
WHOLE = ("unit", "fuzz")  # hundreds of tests of milliseconds each: one row of the table
_BUSY = "while True: pass"


def parser():
    root = argparse.ArgumentParser(prog="./dev soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root.add_argument("suites", nargs="*", metavar="SUITE")
    root.add_argument("--times", type=int, default=1, metavar="N", help="until each has run so often (default: %(default)s)")
    root.add_argument("--busy", type=int, default=0, metavar="K", help="beside K processes that never wait")
    root.add_argument("--short", action="store_true", help="the sizes of ./dev check, not those of ./dev check --full")
    root.add_argument("--minutes", type=float, metavar="M", help="start nothing more after so long; go on another day")
    root.add_argument("--build", default=os.path.join(TOP, "build"), help=argparse.SUPPRESS)
    return root


def commit():
    """Names what is tested: the commit, and a hash of what differs from it."""
    def git(*words):
        return subprocess.run(["git", "-C", TOP, *words], capture_output=True, check=True).stdout

    name = git("rev-parse", "--short=12", "HEAD").decode().strip()
    changed = git("diff", "HEAD")
    return f"{name}+{hashlib.sha256(changed).hexdigest()[:8]}" if changed else name


def series(build, wanted):
    """[(name, ctest's arguments)] of what is to be repeated."""
    labels = {test: of for test, of in ctest.tests(build).items() if not {"full", "build"} & set(of)}
    rows = {}
    for name in wanted or sorted({label for of in labels.values() for label in of}):
        if name in WHOLE:
            rows[name] = ["-L", f"^{name}$", "--parallel", str(os.cpu_count())]
            continue
        tests = [test for test, of in labels.items() if name in of or test == name or test.endswith(f".{name}")]
        if not tests:
            sys.exit(f"soak: no suite or test {name}; suites: {', '.join(sorted({l for of in labels.values() for l in of}))}")
        for test in tests:
            if test.split(".")[0] not in WHOLE or name == test:
                rows[test] = ["-R", f"^{re.escape(test)}$"]
    return list(rows.items())


@contextlib.contextmanager
def busy(count):
    loops = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def cpu_seconds():
    """Of everything that has been run and has ended."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def kernel_messages():
    done = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace", check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


class Results:
    """Of one commit: a line of JSON a run."""

    def __init__(self, build):
        self.directory = os.path.join(build, "soak", commit())
        os.makedirs(self.directory, exist_ok=True)
        self.path = os.path.join(self.directory, "results.jsonl")

    def read(self, busy_loops, short):
        """{suite: [result, …]}"""
        found = collections.defaultdict(list)
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as handle:
                for line in handle:
                    result = json.loads(line)
                    if (result["busy"], result["short"]) == (busy_loops, short):
                        found[result["suite"]].append(result)
        return found

    def add(self, result, output, messages):
        if not result["passed"]:
            result["kept"] = os.path.join(self.directory, f"{result['suite']}-{int(time.time())}")
            os.makedirs(result["kept"])
            for name, text in (("output", output), ("kernel", "\n".join(messages) + "\n"), ("seed", f"{result['seed']}\n")):
                with open(os.path.join(result["kept"], name), "w", encoding="utf-8") as handle:
                    handle.write(text)
        with open(self.path, "a", encoding="utf-8") as handle:
            handle.write(json.dumps(result) + "\n")


def one_run(build, arguments, options, seed):
    """(the first failure's cause or None, output)"""
    environment = {**os.environ, "EARSHOT_SEED": str(seed)}
    if not options.short:
        environment["EARSHOT_FULL"] = "1"
    tests, output = ctest.run(build, *arguments, environment=environment)
    return next((test.causes(most=1)[0] for test in tests if test.why), None), output


def table(found):
    """As lines, and whether all passed."""
    lines = [f"{'suite':24} {'runs':>5} {'failures':>8}  first cause"]
    for suite, results in sorted(found.items()):
        failed = [result for result in results if not result["passed"]]
        cause = f"{failed[0]['cause']} (seed {failed[0]['seed']}, {failed[0]['kept']})" if failed else ""
        lines.append(f"{suite:24} {len(results):5} {len(failed):8}  {cause}".rstrip())
    return lines, not any(not result["passed"] for results in found.values() for result in results)


def main():
    options = parser().parse_args()
    results = Results(options.build)
    rows = series(options.build, options.suites)
    until = time.monotonic() + options.minutes * 60 if options.minutes else None
    with busy(options.busy):
        for number in range(1, options.times + 1):
            for suite, arguments in rows:
                if len(results.read(options.busy, options.short)[suite]) >= number:
                    continue
                if until and time.monotonic() > until:
                    break
                seed = int(os.environ.get("EARSHOT_SEED") or random.randrange(1 << 30))
                before, began, used = len(kernel_messages()), time.monotonic(), cpu_seconds()
                cause, output = one_run(options.build, arguments, options, seed)
                took, used = time.monotonic() - began, cpu_seconds() - used
                results.add({"suite": suite, "busy": options.busy, "short": options.short, "passed": not cause, "seed": seed,
                             "seconds": round(took, 1), "cpu": round(used, 1), "cause": cause},
                            output, kernel_messages()[before:])
                print(f"{suite} {number}/{options.times}: {'FAILED' if cause else 'passed'}, {took:.0f} s, "
                      f"CPU {used:.0f} s, seed {seed}", flush=True)
    found = results.read(options.busy, options.short)
    lines, good = table({suite: found[suite] for suite, _ in rows if found[suite]})
    print("\n".join(["", f"{os.path.basename(results.directory)}, {options.busy} busy loops", *lines]))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
