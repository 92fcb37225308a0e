#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Run tests by name, as `./dev test` does: what a developer wants beside an editor.

    ./dev test outlier                          the unit test, build/bin/test_outlier, which is built alone
    ./dev test outlier -k limit --asan          the cases whose names have "limit", under AddressSanitizer and UBSan
    ./dev test datapath/test_strays -k asked    cases of a file of packet tests
    ./dev test lab/outlier -k four -x           what follows the first option of pytest goes to pytest
    ./dev test datapath/handover --datapath=netfilter
    ./dev test lab.demo lint.shell              tests that are no file, by ctest's names

A NAME is a file below tests/, its folder, "test_" and ending left out or not; a name without a folder that is a unit test's
means that one. Otherwise it is a part of such names, or a pattern ('lab/netfilter_*'). Several of one folder run if they are
at most eight, or with -k, which takes words with "and", "or", "not" and parentheses as pytest does; else they are listed.
"""
import argparse
import difflib
import fnmatch
import glob
import os
import re
import subprocess
import sys

import cases
import ctest

TESTS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(TESTS)
PROGRAMS = ("unit", "fuzz")  # of C, which a build makes one by one
ELSEWHERE = {"module": "./dev vm (CONTRIBUTING.md)", "upgrade": "./dev upgrade COMMIT"}
SUITES = {"bench": "lab"}  # what a folder's tests need, if not what its name says
MOST = 8  # files that run when they share a part of their names


def files():
    """{name: path} of all files of tests, as lab/test_outlier."""
    found = {}
    for pattern in ("unit/test_*.c", "fuzz/fuzz_*.c", "*/**/test_*.py"):
        for path in glob.glob(os.path.join(TESTS, pattern), recursive=True):
            found[os.path.relpath(os.path.splitext(path)[0], TESTS)] = path
    found.pop("fuzz/fuzz_main")
    return found


def plain(name):
    """That without what a developer may leave out: unit.outlier, tests/unit/test_outlier.c and unit/outlier are one."""
    folder, _, rest = name.partition(".")
    if rest and os.path.isdir(os.path.join(TESTS, folder)):
        name = f"{folder}/{rest}"
    folder, base = os.path.split(re.sub(r"^tests/|\.(c|py)$", "", name.strip("/")))
    return os.path.join(folder, re.sub(r"^(test|fuzz)_", "", base.replace("-", "_")))


def find(wanted, names):
    """Those of the names that are meant, best first; none if there are none."""
    by_plain = {plain(name): name for name in sorted(names)}
    wanted = plain(wanted)
    if f"unit/{wanted}" in by_plain:
        return [by_plain[f"unit/{wanted}"]]
    for means in (lambda name: wanted in (name, os.path.basename(name)),
                  lambda name: fnmatch.fnmatch(name, wanted) or fnmatch.fnmatch(os.path.basename(name), wanted),
                  lambda name: wanted in name):
        found = [name for short, name in by_plain.items() if means(short)]
        if found:
            return found
    return []


def folder_of(name):
    return name.split("/")[0]


def choose(wanted, names, others, cases_only):
    """The files or tests of ctest that one NAME means; ends with what there is if that is none, or too many."""
    found = find(wanted, names)
    if not found and wanted in others:
        return [wanted]
    if not found:
        base = os.path.basename
        near = difflib.get_close_matches(base(plain(wanted)), {base(plain(name)) for name in names})
        near = difflib.get_close_matches(wanted, others, cutoff=0.8) + [name for name in sorted(names) if base(plain(name)) in near]
        sys.exit(f"test: there is no test {wanted}" + (f"; near it: {', '.join(near)}" if near else
                                                       f" in {', '.join(sorted({*map(folder_of, names)}))}"))
    if len(found) > 1 and (len({*map(folder_of, found)}) > 1 or len(found) > MOST and not cases_only):
        sys.exit(f"test: {wanted} may be one of {len(found)} (./dev check runs whole suites):\n  " + "\n  ".join(found))
    if folder_of(found[0]) in ELSEWHERE:
        sys.exit(f"test: {found[0]} is run by {ELSEWHERE[folder_of(found[0])]}")
    return found


def selects(expression, case):
    """What pytest's -k says of a case's name."""
    words = re.sub(r"[^\s()]+", lambda word: word[0] if word[0] in ("and", "or", "not") else str(word[0].lower() in case.lower()),
                   expression)
    try:
        return eval(words, {"__builtins__": {}})  # nothing but True, False, and, or, not, ( and )
    except SyntaxError:
        sys.exit(f"test: -k {expression}: words with and, or, not and parentheses")


def build(tree, *targets):
    if targets and subprocess.run(["cmake", "--build", tree, "--target", *targets, "--", "--quiet"], check=False).returncode:
        sys.exit(1)


def run_programs(names, options):
    """The exit status; each program, or of each those cases that -k selects, one after the other."""
    tree = f"{options.build}-asan" if options.asan else options.build
    chosen = {}
    for name in names:
        folder, program = name.split("/")
        there = cases.cmocka(plain(program)) if folder == "unit" else []
        chosen[name] = [case for case in there if selects(options.k, case)] if options.k else [None]
        if options.k and len(names) == 1 and not chosen[name]:
            sys.exit(f"test: no case of {name} has {options.k}; it has {', '.join(there) or 'no cases'}")
    chosen = {name: some for name, some in chosen.items() if some}
    if not chosen:
        sys.exit(f"test: no case of {', '.join(names)} has {options.k}")
    build(tree, *(os.path.basename(name) for name in chosen))
    commands = {name.removesuffix(".plain"): command for name, command, _ in ctest.registered(tree)}
    failed = 0
    for name, some in chosen.items():
        for case in some:
            environment = {**os.environ, "EARSHOT_CASE": case} if case else os.environ
            failed |= subprocess.run(commands[plain(name).replace("/", ".")], env=environment, check=False).returncode != 0
    return failed


def around(tree, paths):
    """(tests that must run before these files, tests that clean up after them), of ctest's fixtures."""
    there = ctest.registered(tree)
    needed = {fixture for _, command, properties in there for fixture in properties.get("FIXTURES_REQUIRED", ())
              if any(os.path.join(properties.get("WORKING_DIRECTORY", ""), word) in paths for word in command)}
    return [[name for name, _, properties in there if needed & set(properties.get(key, ()))]
            for key in ("FIXTURES_SETUP", "FIXTURES_CLEANUP")]


def run_ctest(tree, names):
    only = "|".join(map(re.escape, names))
    return subprocess.run(["ctest", "--test-dir", tree, "--output-on-failure", "-R", f"^({only})$"], check=False).returncode


def run_pytest(folder, paths, options):
    """The exit status, of the files of one folder."""
    before, after = around(options.build, paths)
    if before and run_ctest(options.build, before):
        return 1
    environment = {**os.environ, "EARSHOT_BUILD": options.build, "EARSHOT_SOURCE": TOP, "EARSHOT_REQUIRED": "1",
                   "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["/usr/bin/python3", "-m", "pytest", "-q", *paths, *(["-k", options.k] if options.k else []), *options.pytest]
    status = subprocess.run(words, cwd=os.path.join(TESTS, folder), env=environment, check=False).returncode
    return (run_ctest(options.build, after) if after else 0) or status


def parse(words):
    parser = argparse.ArgumentParser(prog="./dev test", usage="./dev test NAME... [-k CASES] [--asan] [option of pytest...]",
                                     description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("-k", metavar="CASES", help="only cases whose names are so")
    parser.add_argument("--asan", action="store_true", help="unit tests and fuzz bodies: under AddressSanitizer and UBSan")
    parser.add_argument("--build", default=os.path.join(TOP, "build"), help=argparse.SUPPRESS)
    parser.add_argument("--suites", action="store_true", help=argparse.SUPPRESS)  # for ./dev: says what is needed, and ends
    ours = ("-k", "--asan", "--build", "--suites", "-h", "--help")
    theirs = next((at for at, word in enumerate(words) if word.startswith("-") and word.split("=")[0] not in ours), len(words))
    options = parser.parse_args(words[:theirs])
    options.build, options.pytest = os.path.abspath(options.build), words[theirs:]
    return options


def main():
    options = parse(sys.argv[1:])
    there = files()
    others = ctest.tests(options.build) if os.path.exists(os.path.join(options.build, "CTestTestfile.cmake")) else {}
    chosen = list(dict.fromkeys(name for wanted in options.names for name in choose(wanted, there, others, options.k)))
    folders = {}
    for name in chosen:
        folders.setdefault(folder_of(name) if name in there else "", []).append(name)
    for folder, names in folders.items():
        if options.asan and folder not in PROGRAMS:
            sys.exit(f"test: --asan is for unit and fuzz, not for {names[0]}")
        if (options.pytest and folder in (*PROGRAMS, "")) or (options.k and folder in ("fuzz", "")):
            sys.exit(f"test: {names[0]} is no file of pytest: {' '.join(options.pytest) or '-k'} is not for it")
    if options.suites:
        labels = {label for name in folders.get("", ()) for label in others[name] if label not in ("full", "build")}
        print(" ".join(sorted(labels | {SUITES.get(folder, folder) for folder in folders if folder})))
        return 0
    if len(chosen) > 1:
        print(f"{len(chosen)} tests: {', '.join(chosen)}", flush=True)
    failed = 0
    for folder, names in folders.items():
        if folder in PROGRAMS:
            status = run_programs(names, options)
        elif folder:
            status = run_pytest(folder, [there[name] for name in names], options)
        else:
            status = run_ctest(options.build, names)
        failed |= status != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
