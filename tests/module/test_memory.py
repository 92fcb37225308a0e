# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables for which there is no memory: the daemon is told so, nobody is killed for it, and nothing stays behind.

What fails here are the large tables, because they are asked for until they do not fit. The small allocations (a note, a
request, an answer) fail in test_faults.py.
"""
import errno
import os

import pytest

import ko
from earshotlab import netns, wait_for
from module_control import params, refused
from packets.client import Client
from packets.node import PREFIX, WEB, Node
from packets.tables_module import CMD_COUNTERS, CMD_GET, CMD_NEW, CMD_REMOVE, Control

WORKERS, QUEUE_BYTES, DECISION_SETS = 8, 64 << 20, 1 << 22  # the bounds of control.h
SETTLED_BYTES = 120  # and its lock, of struct es_settled_set: half as many sets
NODE_KB = (WORKERS * QUEUE_BYTES + DECISION_SETS * 64 + DECISION_SETS // 2 * SETTLED_BYTES) >> 10
SPARE_KB = 64 << 10  # what the machine may do with its memory meanwhile


def available_kb():
    with open("/proc/meminfo", encoding="ascii") as handle:
        return next(int(line.split()[1]) for line in handle if line.startswith("MemAvailable"))


@pytest.fixture
def controls():
    """As many namespaces as hold all of the machine's memory, and one more."""
    made = []
    for number in range(available_kb() // NODE_KB + 1):
        name = f"{PREFIX}{os.getpid()}-memory{number}"
        netns.ip("netns", "add", name)
        made.append((name, netns.in_namespace(name, Control)))
    yield [control for _, control in made]
    for name, control in made:
        control.close()
        netns.delete(name)


def test_more_than_there_is(controls):
    log = len(ko.kernel_log())
    largest = {"workers": WORKERS, "queue_bytes": QUEUE_BYTES, "decision_sets": DECISION_SETS}
    with Node(datapath="module") as node:
        node.start()
        node.listen(WEB)
        Client(node).serve().abort()
        before = available_kb()
        *fitting, last = controls
        for control in fitting:
            control.ask(CMD_NEW, params(control, **largest))
        for _ in range(3):
            refused(errno.ENOMEM, last.ask, CMD_NEW, params(last, **largest))
            refused(errno.ENOENT, last.ask, CMD_COUNTERS)
        left = available_kb()
        assert left > before - len(fitting) * NODE_KB - SPARE_KB, "what was refused has kept memory"
        # One that is there already and is to grow stays what it is.
        last.ask(CMD_NEW, params(last, decision_sets=1024))
        for sets in (1024, DECISION_SETS):
            refused(errno.ENOMEM, last.ask, CMD_NEW, params(last, **{**largest, "decision_sets": sets}))
            assert last.ask(CMD_COUNTERS)
        Client(node).serve().abort()
        for control in (*fitting, last):
            control.ask(CMD_REMOVE)
            control.ask(CMD_GET)
        wait_for(lambda: available_kb() > before - SPARE_KB, "all memory back")
    assert "oom" not in ko.kernel_log()[log:].lower()
    assert ko.unload() == 0
    ko.load()
