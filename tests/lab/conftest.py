# SPDX-License-Identifier: GPL-2.0-or-later
"""What this directory's tests share. `-m "not earshot"` leaves out what needs earshotd."""
import os
import shutil

import pytest

from cluster.command import cli, traces
from earshotlab import daemon
from tree import skip


def _missing(item):
    """Why the test cannot run here, or None."""
    if os.geteuid():
        return "needs root"
    if not shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin"):
        return "needs nginx"
    for marker, names in (("earshot", ("earshotd", "earshot")), ("wire", ("earshot-wire",))):
        if item.get_closest_marker(marker):
            for name in names:
                if not os.access(os.path.join(daemon.BIN, name), os.X_OK):
                    return f"{name} is not built in {daemon.BIN}"
    if item.get_closest_marker("earshot") and daemon.DATAPATH == "module" and not os.path.exists("/sys/module/earshot"):
        return "earshot.ko is not loaded"
    for marker, programs in (("corosync", ("corosync", "nft")), ("pacemaker", ("pacemakerd", "crm_mon", "crm"))):
        if item.get_closest_marker(marker):
            for program in programs:
                if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
                    return f"needs {program}"
    return None


def pytest_collection_modifyitems(config, items):
    """What does not hold for the datapath is not run with it, as in the packet suite."""
    marker = {"module": "bpf", "netfilter": "no_netfilter"}.get(daemon.DATAPATH)
    left_out = [item for item in items if marker and item.get_closest_marker(marker)]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def pytest_runtest_setup(item):
    skip(_missing(item))


@pytest.fixture
def name(request):
    """A lab's name for tests that use the command line; whatever happens, that lab is gone afterwards."""
    unique = f"c{os.getpid()}-{abs(hash(request.node.name)) % 10000}"
    yield unique
    cli("down", "--name", unique, "--force")
    assert not traces(unique)
