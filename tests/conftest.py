# SPDX-License-Identifier: GPL-2.0-or-later
"""What holds for all suites in Python (README.md)."""
import os

import pytest

# An assertion that fails there, too, tells what it has seen.
pytest.register_assert_rewrite("cluster", "module_control", "namespaces", "packets", "web",  # of lib
                               "agent", "job", "ko", "loading", "packages", "pacemaker", "prepared", "roots", "serving", "sim",
                               "site_of_two")

import node_logs  # noqa: E402
from earshotlab import daemon  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--datapath", choices=("bpf", "module", "netfilter"), default=os.environ.get("EARSHOT_DATAPATH") or "bpf",
                     help="the datapath under test, and of all labs (default: $EARSHOT_DATAPATH, or bpf)")


def pytest_configure(config):
    # Also for the command line in processes of its own.
    os.environ["EARSHOT_DATAPATH"] = daemon.DATAPATH = config.getoption("datapath")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """With a failure come the ends of the logs of all nodes there are."""
    report = (yield).get_result()
    if report.failed:
        ends = node_logs.ends()
        if ends:
            report.sections.append(("Nodes' logs", ends))
