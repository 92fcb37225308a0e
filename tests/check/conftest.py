# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the tests of `earshot check`."""
import os

import pytest

import namespaces
from site_of_two import PREFIX, Site
from tree import EARSHOT, EARSHOTD, skip, unbuilt


def pytest_runtest_setup(item):
    skip("needs root" if os.geteuid() else unbuilt(EARSHOT, EARSHOTD))


@pytest.fixture(scope="session", autouse=True)
def stale():
    namespaces.delete_stale(PREFIX)


@pytest.fixture
def site():
    with Site() as made:
        yield made
