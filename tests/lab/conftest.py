# SPDX-License-Identifier: GPL-2.0-or-later
"""What this directory's tests share. `-m "not earshot"` leaves out what needs earshotd."""
import os
import shutil

import pytest

from earshotlab import daemon
from helpers import cli, traces


def pytest_addoption(parser):
    parser.addoption("--datapath", choices=("bpf", "module"), help="of all labs (default: $EARSHOT_DATAPATH, or bpf)")


def pytest_configure(config):
    if config.getoption("datapath"):  # also for the command line in processes of its own
        os.environ["EARSHOT_DATAPATH"] = daemon.DATAPATH = config.getoption("datapath")
    config.addinivalue_line("markers", "earshot: needs a built earshotd and a kernel that it runs on")
    config.addinivalue_line("markers", "wire: needs a built earshot-wire")
    config.addinivalue_line("markers", "corosync: needs corosync")
    config.addinivalue_line("markers", "pacemaker: needs pacemaker and crmsh")


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


def pytest_runtest_setup(item):
    reason = _missing(item)
    if reason and os.environ.get("EARSHOT_REQUIRED"):
        pytest.fail(reason)  # ./dev check has installed and built everything: a skipped test would hide a fault
    if reason:
        pytest.skip(reason)


@pytest.fixture
def name(request):
    """A lab's name for tests that use the command line; whatever happens, that lab is gone afterwards."""
    unique = f"c{os.getpid()}-{abs(hash(request.node.name)) % 10000}"
    yield unique
    cli("down", "--name", unique, "--force")
    assert not traces(unique)
