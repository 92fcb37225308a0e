# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the agent's tests. Node and namespaces are the packet suite's."""
import os
import shutil

import pytest

import namespaces
from agent import Agent
from packets.node import PREFIX, Node
from tree import EARSHOT, EARSHOTD, skip, unbuilt


def _missing():
    if os.geteuid():
        return "needs root"
    for program in ("crm", "pcs", "crm_verify", "crm_simulate", "corosync", "pacemakerd", "ocf-tester", "nginx"):
        if not shutil.which(program, path="/usr/sbin:/usr/bin"):
            return f"{program} is not installed"
    return unbuilt(EARSHOT, EARSHOTD)


def pytest_runtest_setup():
    skip(_missing())


@pytest.fixture(scope="session")
def network():
    """One node's network; what the tests run in it, each ends itself."""
    namespaces.delete_stale(PREFIX)
    with Node() as node:
        yield node


@pytest.fixture
def agent(network):
    made = Agent(network)
    yield made
    made.close()
    shutil.rmtree(made.directory)
