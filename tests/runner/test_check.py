# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/run.py on build trees of a few shell scripts: what is tried again, what decides, and what is told."""
import os
import re
import subprocess
import sys

import pytest

from tree import SOURCE

ALWAYS = "echo 'E   assert 3 == 4'; exit 1"


class Tree:
    """A build tree of shell scripts, for ctest."""

    def __init__(self, path):
        self.path = path

    def add(self, name, script):
        file = self.path / "CTestTestfile.cmake"
        old = file.read_text() if file.exists() else ""
        file.write_text(f'{old}add_test({name} "/bin/sh" "-c" [==[cd {self.path}; {script}]==])\n')

    def fails_first(self, name, times=1):
        """A test that fails so often, and passes then."""
        self.add(name, f"echo x >>{name}.runs; echo 'E   of {name}'; [ $(wc -l <{name}.runs) -gt {times} ]")

    def check(self, *words, unsteady=""):
        """(exit status, output)"""
        (self.path / "unsteady.txt").write_text(unsteady)
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "tests/run.py"), str(self.path),
                               "--unsteady", str(self.path / "unsteady.txt"), *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def tries(self, name):
        return len((self.path / f"{name}.runs").read_text().splitlines())


@pytest.fixture(name="tree")
def _tree(tmp_path):
    tree = Tree(tmp_path)
    tree.add("steady", "exit 0")
    return tree


def last(output):
    return output.splitlines()[-1]


def test_all_pass(tree):
    status, output = tree.check()
    assert status == 0 and last(output) == "1 passed, 0 failed", output
    assert "Passed only" not in output and "Failed" not in output


@pytest.mark.parametrize("times, word", ((1, "second"), (2, "third")))
def test_one_that_fails_by_chance(tree, times, word):
    """It passes at a later try, and the table tells what it was the first time, and where that is kept."""
    tree.fails_first("chance", times)
    status, output = tree.check()
    assert status == 0 and last(output) == "2 passed, 0 failed", output
    table = output.split(f"Passed only at the {word} try:")[1]
    log = tree.path / "unsteady/chance.try1.log"
    assert "chance" in table and str(log) in table and "of chance" in table, output
    assert "of chance" in log.read_text() and tree.tries("chance") == times + 1


def test_one_that_always_fails(tree):
    """Three tries, and no more."""
    tree.add("broken", f"echo x >>broken.runs; {ALWAYS}")
    tree.fails_first("chance")
    status, output = tree.check()
    assert status == 1 and last(output) == "2 passed, 1 failed", output
    assert "assert 3 == 4" in output.split("\nFailed:")[1] and tree.tries("broken") == 3


def test_alone(tree):
    """Of two that fail beside each other, the second tries come one after the other."""
    for name in ("one", "other"):
        tree.add(name, f"echo x >>{name}.runs; mkdir busy || exit 1; sleep 0.2; rmdir busy; [ $(wc -l <{name}.runs) -gt 1 ]")
    status, output = tree.check()
    assert status == 0 and last(output) == "3 passed, 0 failed", output


def test_nine_that_fail(tree):
    """No chance: the run ends at once, with the first cause of each."""
    for number in range(9):
        tree.add(f"broken{number}", f"echo x >>broken{number}.runs; echo 'E   cause {number}'; exit 1")
    status, output = tree.check()
    assert status == 1 and last(output) == "1 passed, 9 failed", output
    assert all(f"cause {number}" in output.split("\nFailed:")[1] and tree.tries(f"broken{number}") == 1 for number in range(9))


def test_eight_that_fail_once(tree):
    for number in range(8):
        tree.fails_first(f"chance{number}")
    status, output = tree.check()
    assert status == 0 and last(output) == "9 passed, 0 failed", output


def test_listed_as_unsteady(tree):
    """It runs, is reported, and does not decide; another one does."""
    tree.add("shaky", ALWAYS)
    status, output = tree.check(unsteady="# a comment\nshaky 2026-11-25 three is no four; 2 of 7 runs\n")
    assert status == 0 and last(output) == "1 passed, 0 failed, 1 skipped", output
    assert "assert 3 == 4" in output.split("does not decide")[1]
    tree.add("broken", ALWAYS)
    status, output = tree.check(unsteady="shaky 2026-11-25 three is no four; 2 of 7 runs\n")
    assert status == 1 and last(output) == "1 passed, 1 failed, 1 skipped", output


@pytest.mark.parametrize("line, complaint", (
    ("shaky three is no four", "NAME YYYY-MM-DD WHAT"),
    ("gone 2026-11-25 nobody knows it", "there is no test gone"),
))
def test_bad_lines_of_unsteady(tree, line, complaint):
    tree.add("shaky", ALWAYS)
    status, output = tree.check(unsteady=line + "\n")
    assert status == 1 and complaint in output and "unsteady.txt:1:" in output, output


def test_too_many_unsteady(tree):
    for number in range(7):
        tree.add(f"shaky{number}", ALWAYS)
    status, output = tree.check(unsteady="".join(f"shaky{number} 2026-11-25 often\n" for number in range(7)))
    assert status == 1 and "may list 6" in output, output


def test_skipped(tree):
    """What nobody may skip fails its test, whatever its exit status was."""
    tree.add("hides", "echo 'SKIPPED [1] test_x.py:3: no Chromium'")
    status, output = tree.check()
    assert status == 1 and last(output) == "1 passed, 1 failed, 1 skipped" and "no Chromium" in output, output


def test_may_be_skipped(tree):
    tree.add("lacks", "echo 'SKIPPED [1] test_x.py:3: this kernel has no MPTCP'")
    status, output = tree.check()
    assert status == 0 and last(output) == "2 passed, 0 failed, 1 skipped", output


def test_crash_and_time(tree):
    """ctest's own word for what has said nothing."""
    tree.add("crashed", "kill -SEGV $$")
    tree.add("slow", "sleep 30")
    with open(tree.path / "CTestTestfile.cmake", "a", encoding="utf-8") as file:
        file.write("set_tests_properties(slow PROPERTIES TIMEOUT 1)\n")
    status, output = tree.check()
    assert status == 1 and last(output) == "1 passed, 2 failed", output
    assert "SEGFAULT" in output.split("\nFailed:")[1] and "Timeout" in output.split("\nFailed:")[1]


def test_where_the_time_goes(tree):
    """A suite's seconds, and the tests that had to wait for each other."""
    for name, seconds in (("lab.one", 0.5), ("lab.other", 0.7), ("unit.x", 0.1), ("lint.tidy", 0.2)):
        tree.add(name, f"sleep {seconds}")
    with open(tree.path / "CTestTestfile.cmake", "a", encoding="utf-8") as file:
        file.write("set_tests_properties(lab.one lab.other PROPERTIES PROCESSORS 7)\n"
                   "set_tests_properties(lint.tidy PROPERTIES RESOURCE_LOCK idle)\n")
    status, output = tree.check()
    told = output.split("Where the time went:")[1]
    assert status == 0 and re.search(r"\n  lab +2 +1 +1\n", told) and "busy for" in told, output
    assert "each is alone: 1 s: lab.other 1, lab.one" in told and "each locks idle: 0 s: lint.tidy 0" in told, output
    assert "the slowest: lab.other 1" in told and told.index("lab ") < told.index("unit "), output


def test_no_such_suite(tree):
    status, output = tree.check("nothing")
    assert status == 1 and "no suite nothing" in output, output
