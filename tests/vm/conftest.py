# SPDX-License-Identifier: GPL-2.0-or-later
"""What this directory's tests share: kernels, downloaded on first use. What is missing is a failure, never a skip."""
import functools
import os

import pytest

from earshotvm import kernels


def pytest_runtest_setup(item):
    if os.geteuid() and not item.get_closest_marker("host"):
        pytest.fail("needs root")


@pytest.fixture(scope="session", name="kernel")
def fixture_kernel():
    """kernel("6.12"): the Kernel of that name."""
    return functools.cache(kernels.find)
