# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of earshot.ko as a module: not of what it does to packets (../datapath, ../lab do that), but of its life.

They load and unload it, so they run in a virtual machine only: see CONTRIBUTING.md.
"""
import os
import re

import pytest

import ko
from earshotlab import netns
from packets.node import PREFIX
from packets.tables_module import Control


def _takes_bpf():
    """Whether this kernel has the function without which there is no bpf datapath."""
    with open("/sys/kernel/btf/vmlinux", "rb") as handle:
        return b"\0bpf_sk_assign_tcp_reqsk\0" in handle.read()


def pytest_collection_modifyitems(config, items):
    both = [item for item in items if item.path.name == "test_both.py"]
    if both and not _takes_bpf():
        items[:] = [item for item in items if item not in both]
        config.hook.pytest_deselected(items=both)


@pytest.fixture(autouse=True)
def module():
    if not os.path.exists(ko.FILE):
        pytest.fail(f"no {ko.FILE}: ./dev check module builds it, for the kernels whose headers are installed")
    ko.load()
    before = len(ko.kernel_log())
    yield
    log = ko.kernel_log()[before:]
    assert not re.search(r"WARNING:|\bBUG\b|Oops|Call Trace", log), log


@pytest.fixture
def namespace():
    name = f"{PREFIX}{os.getpid()}-module"
    netns.ip("netns", "add", name)
    yield name
    netns.delete(name)


@pytest.fixture
def control(namespace):
    c = netns.in_namespace(namespace, Control)
    yield c
    c.close()
