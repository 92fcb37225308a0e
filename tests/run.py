#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the tests of a build tree by ctest, as `./dev check` does.

    run.py BUILD [--full] [SUITE...]

Passes on what ctest says. Before its summary, which stays last, come the ten slowest tests and every case that was skipped,
with its reason. A skipped case that is not in MAY_BE_SKIPPED fails the run: `./dev check` installs what the tests need, so
a skip would hide a fault.
"""
import argparse
import json
import os
import re
import subprocess
import sys

PLACES = 8  # cmake/places.cmake
MAY_BE_SKIPPED = (
    "this kernel has no MPTCP",  # CONFIG_MPTCP is the kernel builder's choice, and nothing installs it
)
SLOWEST = 10
_RESULT = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.* *(.*?) +([\d.]+) sec")
_SUMMARY = re.compile(r"^\d+% tests passed, ")


def ctest(build, *arguments, full=False):
    """The command line that runs tests of this tree; those with the label "full" are only in full runs."""
    return ["ctest", "--test-dir", build, "--no-tests=error", *([] if full else ["-LE", "^full$"]), *arguments]


def tests(build):
    """{test: [label, …]} of all that the tree has."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                                       check=True).stdout)
    return {test["name"]: next((entry["value"] for entry in test["properties"] if entry["name"] == "LABELS"), [])
            for test in listed["tests"]}


def skipped(log):
    """[(test, case and reason)] in ctest's log of a run, LastTest.log."""
    found, test = [], None
    for line in log.splitlines():
        if re.match(r"\d+/\d+ Testing: ", line):
            test = line.split(": ", 1)[1]
        elif line.startswith("SKIPPED ["):  # pytest -rs
            found.append((test, line.split("] ", 1)[1]))
        elif line.startswith("[  SKIPPED ] ") and not line.rstrip().endswith("test(s)."):  # cmocka
            found.append((test, line.split("] ", 1)[1].strip()))
        elif line.startswith("Test Skipped") or "Required regular expression not found" in line:
            found.append((test, line))
    return found


def read_log(build):
    with open(os.path.join(build, "Testing/Temporary/LastTest.log"), encoding="utf-8", errors="replace") as handle:
        return handle.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--full", action="store_true", help="all tests at full size, also those that `check` leaves out")
    parser.add_argument("--parallel", type=int, default=PLACES, help=argparse.SUPPRESS)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="only these labels")
    options = parser.parse_args()
    if options.full:
        os.environ["EARSHOT_FULL"] = "1"
    known = {label for labels in tests(options.build).values() for label in labels}
    for suite in options.suites:
        if suite not in known:
            sys.exit(f"check: no suite {suite}; there are {', '.join(sorted(known - {'full', 'build'}))}")
    select = ["-L", f"^({'|'.join(map(re.escape, options.suites))})$"] if options.suites else []
    command = ctest(options.build, "--output-on-failure", "--parallel", str(options.parallel), *select, full=options.full)

    times, summary = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace", bufsize=1) as running:
        for line in running.stdout:
            result = _RESULT.match(line)
            if result:
                times.append((float(result[3]), result[1]))
            if summary or _SUMMARY.match(line):
                summary.append(line)
            else:
                print(line, end="", flush=True)

    skips = skipped(read_log(options.build)) if times else []
    hidden = [skip for skip in skips if not any(allowed in skip[1] for allowed in MAY_BE_SKIPPED)]
    print("The slowest: " + ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(times, reverse=True)[:SLOWEST]))
    print("Skipped: " + ("nothing" if not skips else ""))
    for skip in skips:
        print(f"  {skip[0]}: {skip[1]}" + (" - THIS MUST RUN HERE, so the run has failed" if skip in hidden else ""))
    print()
    print("".join(summary), end="", flush=True)
    sys.exit(running.returncode or (1 if hidden else 0))


if __name__ == "__main__":
    main()
