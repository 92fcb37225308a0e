# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the agent's tests. Node and namespaces are the packet suite's."""
import os
import shutil
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../datapath"))

import netns  # noqa: E402
from agent import Agent  # noqa: E402
from node import EARSHOT, EARSHOTD, Node  # noqa: E402


def _missing():
    if os.geteuid():
        return "needs root"
    for program in (EARSHOTD, EARSHOT):
        if not os.access(program, os.X_OK):
            return f"{program} is not built"
    for program in ("crm", "pcs", "crm_verify", "crm_simulate", "corosync", "pacemakerd", "ocf-tester", "nginx"):
        if not shutil.which(program, path="/usr/sbin:/usr/bin"):
            return f"{program} is not installed"
    return None


def pytest_runtest_setup(item):
    reason = _missing()
    if reason and os.environ.get("EARSHOT_REQUIRED"):
        pytest.fail(reason)  # ./dev check has installed and built everything: a skipped test would hide a fault
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def network():
    """One node's network; what the tests run in it, each ends itself."""
    netns.delete_stale()
    with Node() as node:
        yield node


@pytest.fixture
def agent(network):
    made = Agent(network)
    yield made
    made.close()
    shutil.rmtree(made.directory)
