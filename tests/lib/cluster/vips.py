# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests whose clients ask by each address of the service."""
import pytest

from earshotlab import families, topology

FAMILY = families.usual()[0]  # of labs with both, unless EARSHOT_FAMILY says which


def each(family=FAMILY):
    """A mark: parameter `vip`, for each address of a lab of that family."""
    return pytest.mark.parametrize("vip", topology.vips_of(family), ids=[f"v{one}" for one in family])
