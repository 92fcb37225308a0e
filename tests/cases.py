#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every test case of a build tree, a line each, sorted: what a change of the test run must not lose.

    cases.py [BUILD]      then compare two commits' lists: comm -23 before after

A case is unit.CONCEPT::function, fuzz.NAME, FILE::function[parameters] of pytest, or the name of any other test.
"""
import os
import re
import subprocess
import sys

import ctest

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# A file may have a TEST(name) for test_name with what it needs around it.
_CMOCKA = re.compile(r"(?:cmocka_unit_test\w*|\bTEST)\(\s*(?!name\b)(\w+)\b(?!##)")


def cmocka(concept):
    """The functions that tests/unit/test_<concept>.c registers."""
    with open(os.path.join(TOP, "tests/unit", f"test_{concept}.c"), encoding="utf-8") as handle:
        return _CMOCKA.findall(handle.read())


def pytest(command, directory):
    """What pytest would run, by file."""
    words = [word for word in command[command.index("pytest") + 1:] if word not in ("-q", "-rs")]
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "--collect-only", *words], cwd=directory, text=True,
                          capture_output=True, check=False)
    cases = [line for line in done.stdout.splitlines() if "::" in line]
    assert done.returncode == 0 and cases, f"{directory}: {' '.join(words)}\n{done.stdout}{done.stderr}"
    return [f"{os.path.basename(case.split('::')[0])}::{case.split('::', 1)[1]}" for case in cases]


def cases(build):
    found = set()
    for name, command, properties in ctest.registered(build):
        base = name.removesuffix(".plain")
        if base.startswith("unit."):
            found.update(f"{base}::{function}" for function in cmocka(base.split(".", 1)[1]))
        elif "pytest" in command:
            found.update(pytest(command, properties["WORKING_DIRECTORY"]))
        else:
            found.add(base)
    return sorted(found)


if __name__ == "__main__":
    tree = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, "build"))
    os.environ.update(EARSHOT_BUILD=tree, EARSHOT_SOURCE=TOP, PYTHONDONTWRITEBYTECODE="1")
    print("\n".join(cases(tree)))
