# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/one.py: what a name means in this tree; and what is built and run of it, in a tree of a few scripts. And that each
place that has a list of the suites has all of them."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tree import BUILD, SOURCE

TESTS = os.path.join(SOURCE, "tests")


@pytest.fixture(name="one")
def _one(monkeypatch):
    monkeypatch.syspath_prepend(TESTS)
    import one
    return one


@pytest.mark.parametrize("wanted, found", (
    ("outlier", ["unit/test_outlier"]),  # though there is a lab of that name
    ("unit.outlier", ["unit/test_outlier"]),
    ("tests/unit/test_outlier.c", ["unit/test_outlier"]),
    ("lab/outlier", ["lab/test_outlier"]),
    ("lab/test_outlier", ["lab/test_outlier"]),
    ("lab.every-load", ["lab/test_every_load"]),
    ("vlan", ["datapath/test_vlan"]),
    ("fuzz/url", ["fuzz/fuzz_url"]),
    ("load_moves", ["lab/load/test_load_moves"]),
    ("datapath/stray", ["datapath/test_strays", "datapath/test_strays_many"]),
    ("datapath/lease*", ["datapath/test_lease", "datapath/test_lease_unproven"]),
))
def test_names(one, wanted, found):
    assert one.choose(wanted, one.files(), {}, False) == found


@pytest.mark.parametrize("wanted, words", (
    ("outler", "there is no test outler; near it: .*lab/test_outlier.*, unit/test_outlier"),
    ("xqz", "there is no test xqz in .*datapath, .*unit"),
    ("lint.shel", "near it: lint.shell"),
    ("netfilter", r"may be one of \d+ .*\n  lab/test_netfilter\n  vm/test_netfilter"),
    ("datapath/", r"may be one of \d\d "),
    ("module/life", "run by ./dev vm"),
))
def test_no_name(one, wanted, words):
    """What is near, what there is to choose from, and what runs it instead."""
    with pytest.raises(SystemExit) as told:
        one.choose(wanted, one.files(), {"lint.shell": ["lint"]}, False)
    assert re.search(words, str(told.value)), told.value


def test_cases_of_many(one):
    """Those of many files run if something is said of the cases; and ctest's names are names."""
    assert len(one.choose("datapath/", one.files(), {}, True)) > 40
    assert one.choose("lint.shell", one.files(), {"lint.shell": ["lint"]}, False) == ["lint.shell"]


@pytest.mark.parametrize("expression, true", (
    ("limit", True), ("LIMIT", True), ("off", False), ("limit and not off", True), ("off or (limit and not x)", True), ("not limit", False)))
def test_selects(one, expression, true):
    assert one.selects(expression, "test_limits") is true


def test_selects_no_code(one):
    """A word is a part of a name, whatever it is in Python."""
    assert one.selects("__import__ or exit", "test_limits") is False
    with pytest.raises(SystemExit):
        one.selects("limit limit", "test_limits")


LISTS = """
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES NONE)
enable_testing()
foreach(name first second)
  add_custom_target(test_${name} COMMAND cp ${PROJECT_SOURCE_DIR}/program ${CMAKE_BINARY_DIR}/test_${name})
  add_test(NAME unit.${name}.plain COMMAND ${CMAKE_BINARY_DIR}/test_${name})
endforeach()
add_custom_target(test_broken ALL COMMAND false)
add_test(NAME packages.build COMMAND touch ${CMAKE_BINARY_DIR}/built)
add_test(NAME packages.cluster COMMAND python3 -m pytest test_cluster.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/packages)
set_tests_properties(packages.build PROPERTIES FIXTURES_SETUP packages)
set_tests_properties(packages.cluster PROPERTIES FIXTURES_REQUIRED packages)
"""
PROGRAM = '#!/bin/sh\necho "ran ${0##*/} ${EARSHOT_CASE:-all}"; [ "$EARSHOT_CASE" != test_wrong ]\n'
PYTHON = 'import os\n\ndef test_built():\n    assert os.path.exists(os.environ["EARSHOT_BUILD"] + "/built")\n\ndef test_wrong():\n    assert 3 == 4\n'


@pytest.fixture(name="small")
def _small(tmp_path):
    """one.py(words) -> (exit status, output) in a tree with two unit tests and a file of pytest that a fixture must precede."""
    for folder in ("unit", "fuzz", "packages"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
    for name in ("one.py", "ctest.py", "cases.py"):
        shutil.copy(os.path.join(TESTS, name), tmp_path / "tests")
    for name in ("first", "second", "broken"):
        (tmp_path / f"tests/unit/test_{name}.c").write_text("cmocka_unit_test(test_good), cmocka_unit_test(test_wrong)\n")
    (tmp_path / "tests/fuzz/fuzz_main.c").touch()
    (tmp_path / "tests/packages/test_cluster.py").write_text(PYTHON)
    (tmp_path / "CMakeLists.txt").write_text(LISTS)
    (tmp_path / "program").write_text(PROGRAM)
    (tmp_path / "program").chmod(0o755)
    subprocess.run(["cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "build"], check=True, capture_output=True)

    def run(*words):
        done = subprocess.run([sys.executable, tmp_path / "tests/one.py", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        return done.returncode, [line for line in done.stdout.splitlines() if line.startswith(("ran", "test:"))], done.stdout
    return run


def test_just_its_program_is_built(small):
    """test_broken, which all would build, does not disturb; nor is the other one made."""
    status, ran, output = small("first")
    assert (status, ran) == (0, ["ran test_first all"]), output
    status, ran, output = small("broken")
    assert status == 1 and not ran, output


def test_cases_of_programs(small):
    """One case, all that are so in several programs; a failure decides; a case that is not there is no success."""
    status, ran, output = small("first", "-k", "good")
    assert (status, ran) == (0, ["ran test_first test_good"]), output
    status, ran, output = small("first", "unit/second", "-k", "good or wrong")
    assert status == 1 and ran == [f"ran test_{name} test_{case}" for name in ("first", "second") for case in ("good", "wrong")], output
    status, ran, output = small("first", "-k", "nothing")
    assert status == 1 and "no case of unit/test_first has nothing; it has test_good, test_wrong" in output


def test_file_of_pytest(small):
    """What must be there before is made; -k and options of pytest are pytest's; a case that is not there is no success."""
    status, _, output = small("packages/cluster", "-k", "built", "-rp")
    assert status == 0 and "PASSED test_cluster.py::test_built" in output and "1 deselected" in output, output
    status, _, output = small("cluster")
    assert status == 1 and "assert 3 == 4" in output, output
    assert small("cluster", "-k", "nothing")[0] != 0


def test_options_that_are_not_for_it(small):
    for words in (("first", "-x"), ("cluster", "--asan"), ("packages.build", "-k", "x")):
        status, told, output = small(*words)
        assert status == 1 and " for " in told[0], output


def test_suites_are_named_everywhere():
    """Those that ctest knows: dev, its help, the presets, CONTRIBUTING.md."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, check=True).stdout)
    labels = {value for test in listed["tests"] for entry in test["properties"] if entry["name"] == "LABELS" for value in entry["value"]}
    labels = (labels | {"unit", "fuzz"}) - {"full", "build"}

    def read(name):
        with open(os.path.join(SOURCE, name), encoding="utf-8") as handle:
            return handle.read()

    assert set(re.search(r"^suites=\((.*)\)$", read("dev"), re.M)[1].split()) == labels
    assert set(re.search(r"or these suites: ([^;]+);", read("dev"))[1].replace(",", " ").split()) == labels
    assert {preset["name"] for preset in json.loads(read("CMakePresets.json"))["testPresets"] if not preset.get("hidden")} == labels
    assert set(re.findall(r"^\| (\w+) \|", read("CONTRIBUTING.md"), re.M)) - {"suite"} == labels
