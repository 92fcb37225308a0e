# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs earshot-sim."""
import functools
import json
import os
import subprocess

from tree import BUILD

SIM = os.path.join(BUILD, "bin/earshot-sim")

# Small enough for a test; the working set of zipf (340 MB) is beyond one cache.
SMALL = ("--synthetic", "zipf", "--requests", "60000", "--cache-mb", "64")
# HyLARD's setting, long enough that caches are warm.
HYLARD = ("--synthetic", "worldcup98", "--requests", "500000", "--nodes", "8", "--cache-mb", "128")


def call(*args, **kwargs):
    """The finished process."""
    return subprocess.run([SIM, *map(str, args)], stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                          **{"stdout": subprocess.PIPE, **kwargs})


def output(*args):
    done = call(*args)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@functools.lru_cache(maxsize=None)
def run(policy, *args):
    """The result of `run`, as read from its JSON."""
    return json.loads(output("run", "--policy", policy, *args, "--json"))


def complaints(*args):
    """What it says on standard error besides the result."""
    done = call(*args)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return done.stderr


def refused(*args):
    """What it says to a command line that is wrong."""
    done = call(*args)
    assert done.returncode != 0
    assert done.stdout == ""
    return done.stderr
