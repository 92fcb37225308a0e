# SPDX-License-Identifier: GPL-2.0-or-later
"""The source tree, what is built of it, and its Python in processes of their own."""
import os
import sys

import pytest

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.path.abspath(os.environ.get("EARSHOT_BUILD") or os.path.join(SOURCE, "build"))
EARSHOT = os.path.join(BUILD, "bin/earshot")
EARSHOTD = os.path.join(BUILD, "bin/earshotd")
EARSHOTD_TABLES = os.path.join(BUILD, "bin/earshotd-tables")  # the same, whose tables tests can reach
PYTHON_PATH = os.pathsep.join(os.path.join(SOURCE, name) for name in ("tests/lib", "lab"))  # as in pytest.ini


def module(name):
    """The beginning of a command line that runs a module of tests/lib as a program."""
    return ["env", f"PYTHONPATH={PYTHON_PATH}", "PYTHONDONTWRITEBYTECODE=1", sys.executable, "-m", name]


def unbuilt(*programs):
    """Why these cannot be run, or None."""
    return next((f"{program} is not built" for program in programs if not os.access(program, os.X_OK)), None)


def skip(reason):
    """Skip the test that is under way; without a reason nothing happens."""
    if reason and os.environ.get("EARSHOT_REQUIRED"):
        pytest.fail(reason)  # ./dev check has installed and built everything: a skipped test would hide a fault
    if reason:
        pytest.skip(reason)
