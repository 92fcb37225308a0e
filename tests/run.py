#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the tests of a build tree by ctest, as `./dev check` does.

    run.py BUILD [--full] [SUITE...]

What fails is tried again when all others are done, one test at a time with nothing beside it, up to twice; what passes then
has passed, and a table says so (CONTRIBUTING.md: a test in it has a defect, or has found one). More than eight failures are
no chance: there is no second try. A test that tests/unsteady.txt lists runs and is reported, and does not decide.

A skipped case that is not in MAY_BE_SKIPPED fails its test: `./dev check` installs what the tests need, so a skip would hide
a fault. Before the last line, `N passed, N failed, N skipped`, come where the time went, the ten slowest tests, and what was
skipped, with the reason. Exit status: 0 if nothing has failed, else 1.
"""
import argparse
import os
import re
import shutil
import sys
import time

import ctest

PLACES = 8  # cmake/places.cmake
ALONE = 7  # EARSHOT_PLACES_ALONE there
MAY_BE_SKIPPED = (
    "this kernel has no MPTCP",  # CONFIG_MPTCP is the kernel builder's choice, and nothing installs it
)
TRIES = 3
CHANCE = 8  # failures; if there are more, they have a cause
SLOWEST = 10
UNSTEADY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unsteady.txt")
UNSTEADY_MOST = 6
_ENTRY = re.compile(r"(?P<test>\S+)\s+(?P<date>\d{4}-\d\d-\d\d)\s+(?P<what>\S.*)")


def read_unsteady(path, known):
    """{test: what was seen}, of a file with a line for each: its name, a date, what failed and how often."""
    found = {}
    if not os.path.exists(path):
        return found
    with open(path, encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if not line.strip() or line.startswith("#"):
                continue
            entry = _ENTRY.fullmatch(line.strip())
            if not entry:
                sys.exit(f"check: {path}:{number}: not NAME YYYY-MM-DD WHAT: {line.strip()}")
            if entry["test"] not in known:
                sys.exit(f"check: {path}:{number}: there is no test {entry['test']}")
            found[entry["test"]] = entry["what"]
    if len(found) > UNSTEADY_MOST:
        sys.exit(f"check: {path} lists {len(found)} tests, and may list {UNSTEADY_MOST}: mend or remove one")
    return found


def run(build, *arguments, full):
    """The results of one round, whose output is passed on as it comes."""
    results, said = ctest.run(build, *arguments, full=full, tell=lambda line: print(line, end="", flush=True))
    print("".join(line for line in said.splitlines(True) if line.startswith("Total Test time")), end="")
    for result in results:
        hidden = [skip for skip in result.skipped() if not any(allowed in skip for allowed in MAY_BE_SKIPPED)]
        if hidden and not result.why:
            result.why = f"Skipped what must run here: {hidden[0]}"
    return results


def keep(directory, result, number):
    """Write what a failed try has said to a file of its own. Returns its path."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, f"{result.name}.try{number}.log")
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(f"{result.name}: {result.why}, {result.seconds:.1f} s\n{result.output}\n")
    return path


def processors():
    """(seconds that the machine's processors have worked, seconds that they might have), since it was started."""
    with open("/proc/stat", encoding="ascii") as handle:
        ticks = [int(word) for word in handle.readline().split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / tick, sum(ticks) / tick


def where_time_goes(results, properties, took, busy):
    """As lines: each suite's seconds, and how long the run is at least, however many tests run beside each other."""
    def listed(some):
        some = sorted(some, key=lambda result: -result.seconds)
        return ", ".join(f"{result.name} {result.seconds:.0f}" for result in some[:SLOWEST]) + (", …" if len(some) > SLOWEST else "")

    def places(result):
        return min(int(properties[result.name].get("PROCESSORS", 1)), PLACES)

    def chain(what, some):
        return [f"  {what}: {sum(result.seconds for result in some):.0f} s: {listed(some)}"] if some else []

    suites = {}
    for result in results:
        suites.setdefault(result.name.split(".")[0], []).append(result)
    lines = [f"Where the time went: {took:.0f} s, in which the processors were busy for {100 * busy:.0f}%",
             f"  {'suite':10} {'tests':>5} {'seconds':>8} {'with no place empty':>20}"]
    for name, some in sorted(suites.items(), key=lambda suite: -sum(result.seconds for result in suite[1])):
        lines.append(f"  {name:10} {len(some):5} {sum(result.seconds for result in some):8.0f} "
                     f"{sum(result.seconds * places(result) for result in some) / PLACES:20.0f}")
    lines += chain("one after the other, since each is alone", [result for result in results if places(result) >= ALONE])
    for lock in sorted({lock for name in properties for lock in properties[name].get("RESOURCE_LOCK", ())}):
        lines += chain(f"one after the other, since each locks {lock}",
                       [result for result in results if lock in properties[result.name].get("RESOURCE_LOCK", ())])
    return [*lines, f"  the slowest: {listed(results)}"]


class Check:
    """All rounds of one check."""

    def __init__(self, build, full, unsteady, properties):
        self.build, self.full, self.unsteady, self.properties = build, full, unsteady, properties
        self.time = []  # lines
        self.logs = os.path.join(build, "unsteady")
        shutil.rmtree(self.logs, ignore_errors=True)
        self.first = []  # results of the first round
        self.failed = {}  # {test: [(result, log) of each try that failed]}, in order
        self.passed_at = {}  # {test: the try at which it passed}, of those that failed before

    def note(self, results, number):
        for result in results:
            if result.why and (number == 1 or result.name in self.failed):
                kept = keep(self.logs, result, number)
                self.failed.setdefault(result.name, []).append((result, kept))
            elif result.name in self.failed:
                self.passed_at[result.name] = number

    def still_failed(self):
        return [name for name in self.failed if name not in self.passed_at]

    def rounds(self, arguments, parallel):
        began, (worked, passed) = time.monotonic(), processors()
        self.first = run(self.build, "--parallel", str(parallel), *arguments, full=self.full)
        busy = (processors()[0] - worked) / max(processors()[1] - passed, 0.01)
        self.time = where_time_goes(self.first, self.properties, time.monotonic() - began, busy)
        self.note(self.first, 1)
        if len(self.failed) > CHANCE:
            print(f"\n{len(self.failed)} tests have failed: that is no chance, and nothing is tried again.")
            return
        for number in range(2, TRIES + 1):
            again = self.still_failed()
            if not again:
                return
            print(f"\nTry {number}, one at a time: {', '.join(again)}\n", flush=True)
            only = f"^({'|'.join(map(re.escape, again))})$"
            self.note(run(self.build, "--parallel", "1", "-R", only, full=self.full), number)

    def table(self, title, names):
        """The first failure's decisive lines, and where all that failed has its log."""
        if not names:
            return
        print(f"\n{title}:")
        for name in names:
            result, _ = self.failed[name][0]
            print(f"  {name} ({', '.join(log for _, log in self.failed[name])})")
            for line in result.causes():
                print(f"      {line}")

    def report(self):
        """Returns the exit status."""
        print("\n" + "\n".join(self.time))
        skips = [(result.name, skip) for result in self.first for skip in result.skipped()]
        print("Skipped: " + ("nothing" if not skips else ""))
        for name, skip in skips:
            print(f"  {name}: {skip}")

        for number, word in enumerate(("second", "third"), 2):
            self.table(f"Passed only at the {word} try", [name for name, at in self.passed_at.items() if at == number])
        still = self.still_failed()
        excused = [name for name in still if name in self.unsteady]
        failed = [name for name in still if name not in self.unsteady]
        self.table("Failed, and does not decide (tests/unsteady.txt)", excused)
        self.table("Failed", failed)
        print(f"\n{len(self.first) - len(still)} passed, {len(failed)} failed"
              + (f", {len(skips) + len(excused)} skipped" if skips or excused else ""))
        return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--full", action="store_true", help="all tests at full size, also those that `check` leaves out")
    parser.add_argument("--parallel", type=int, default=PLACES, help=argparse.SUPPRESS)
    parser.add_argument("--unsteady", default=UNSTEADY, help=argparse.SUPPRESS)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="only these labels")
    options = parser.parse_intermixed_args()
    if options.full:
        os.environ["EARSHOT_FULL"] = "1"
    properties = {name: of for name, _, of in ctest.registered(options.build)}
    known = {label for of in properties.values() for label in of.get("LABELS", ())}
    for suite in options.suites:
        if suite not in known:
            sys.exit(f"check: no suite {suite}; there are {', '.join(sorted(known - {'full', 'build'}))}")
    select = ["-L", f"^({'|'.join(map(re.escape, options.suites))})$"] if options.suites else []
    check = Check(options.build, options.full, read_unsteady(options.unsteady, properties), properties)
    check.rounds(select, options.parallel)
    sys.exit(check.report())


if __name__ == "__main__":
    main()
