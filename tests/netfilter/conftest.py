# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of `earshot-rebuilder` need."""
import os
import subprocess

import pytest

import namespaces
from place import PREFIX, REBUILDER
from tree import skip, unbuilt


def _missing():
    """Why nothing can be tested here, or None."""
    if os.geteuid():
        return "needs root"
    if unbuilt(REBUILDER):
        return unbuilt(REBUILDER)
    probe = subprocess.run([REBUILDER, "probe"], capture_output=True, text=True, check=False)
    return f"this kernel cannot rebuild connections by netfilter: {probe.stdout}" if probe.returncode else None


@pytest.fixture(scope="session", name="possible")
def _possible():
    skip(_missing())
    namespaces.delete_stale(PREFIX)
