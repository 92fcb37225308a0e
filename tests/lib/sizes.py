# SPDX-License-Identifier: GPL-2.0-or-later
"""How much a test does: enough to see the defect it is for, or, in full runs (./dev check --full, ./dev soak), as much as
time allows. A number in the environment overrides both."""
import os

FULL = os.environ.get("EARSHOT_FULL") == "1"


def size(short, full, variable=None):
    """How many, or how long in seconds; `variable` names the override."""
    return type(short)(os.environ.get(variable or "") or (full if FULL else short))
