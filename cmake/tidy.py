#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""clang-tidy over every userspace C file that the build compiles.

    tidy.py BUILD_DIRECTORY [--all]

The analyzer looks at 10,000 states of a function at most, of one of tests/ at 2,000, where cmocka's macros multiply them; its own
limit, with --all or EARSHOT_FULL=1 in the environment, is 225,000.

A file is looked at again only when something that clang-tidy sees has changed: the file with all that it includes, macros
and comments (NOLINT) among it, its command, .clang-tidy, or clang-tidy itself. What has passed is noted, by a hash of all
that, in /var/cache/earshot/tidy, or ~/.cache/earshot/tidy where that cannot be written; --all and EARSHOT_FULL=1 look at every
file. Clones share the notes: paths of the tree do not count.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time

SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
KEPT_S = 30 * 86400  # a note that nobody has needed for so long goes
STATES, STATES_OF_TESTS = 10000, 2000
CACHES = ("/var/cache/earshot/tidy", os.path.expanduser("~/.cache/earshot/tidy"))


def cache_directory():
    """Where the notes are, or None if there is no place for them."""
    for path in CACHES:
        try:
            os.makedirs(path, exist_ok=True)
        except OSError:
            continue
        if os.access(path, os.W_OK):
            return path
    return None


def entries(build):
    """[(file, command)] of the tree's own files, from what the build compiles; a file that it compiles twice counts once."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as handle:
        commands = {entry["file"]: entry for entry in json.load(handle)}
    outside = os.path.realpath(build) + os.sep
    return [(file, entry) for file, entry in sorted(commands.items())
            if file.startswith(SOURCE + os.sep) and not file.startswith(outside)]


def preprocess(entry):
    """The text that the compiler sees, with macros and comments, or None where clang does not take the command."""
    words = shlex.split(entry["command"])
    while not os.path.basename(words[0]).startswith(("cc", "gcc", "clang")) or os.path.basename(words[0]) == "ccache":
        words = words[1:]
    arguments = []
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MT", "-MQ"):
            skip = True
        elif word not in ("-c", "-MD", "-MMD"):
            arguments.append(word)
    done = subprocess.run(["clang", "-E", "-dD", "-C", "-Wno-everything", *arguments], cwd=entry["directory"],
                          capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def key(entry, common):
    """What a pass is noted under, or None."""
    text = preprocess(entry)
    if text is None:
        return None
    seen = hashlib.sha256(common)
    for part in (entry["command"].encode(), text):
        seen.update(part.replace(SOURCE.encode() + b"/", b""))
    return seen.hexdigest()


def limit(file):
    """The arguments that bound what the analyzer looks at."""
    states = STATES_OF_TESTS if os.path.relpath(file, SOURCE).startswith("tests" + os.sep) else STATES
    return [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={states}")]


def look_at(file, entry, build, cache, common, everything):
    """(was it looked at, output, passed)"""
    arguments = [] if everything else limit(file)
    mark = None
    if cache:
        name = key(entry, common + " ".join(arguments).encode())
        mark = name and os.path.join(cache, name)
    if mark and not everything and os.path.exists(mark):
        os.utime(mark)
        return False, "", True
    done = subprocess.run(["clang-tidy", "--quiet", "-p", build, *arguments, file], capture_output=True, text=True, check=False)
    if done.returncode == 0 and mark:
        with open(mark, "w", encoding="ascii"):
            pass
    return True, done.stdout, done.returncode == 0


def forget_old(cache):
    for name in os.listdir(cache):
        path = os.path.join(cache, name)
        if os.path.getmtime(path) < time.time() - KEPT_S:
            os.unlink(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--all", action="store_true", help="every file, whatever has passed before")
    options = parser.parse_args()
    everything = options.all or os.environ.get("EARSHOT_FULL") == "1"
    cache = cache_directory()
    with open(os.path.join(SOURCE, ".clang-tidy"), "rb") as handle:
        common = handle.read() + subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    looked = failed = 0
    files = entries(options.build)
    assert files, f"{options.build}/compile_commands.json names no file of {SOURCE}"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for new, output, passed in pool.map(lambda one: look_at(*one, options.build, cache, common, everything), files):
            looked += new
            failed += not passed
            if not passed:
                print(output, end="")
    if cache:
        forget_old(cache)
    print(f"clang-tidy: {len(files)} files, {looked} looked at, {len(files) - looked} as they have passed before, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
