# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the tests of `earshot check`."""
import os

import pytest

from site_of_two import BUILD, Site, delete_stale


def pytest_runtest_setup(item):
    reason = "needs root" if os.geteuid() else None
    for program in ("bin/earshot", "bin/earshotd"):
        if not reason and not os.access(os.path.join(BUILD, program), os.X_OK):
            reason = f"{program} is not built"
    if reason and os.environ.get("EARSHOT_REQUIRED"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def stale():
    delete_stale()


@pytest.fixture
def site():
    with Site() as made:
        yield made
