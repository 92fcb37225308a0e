# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the machine's CPU time goes: all of it from /proc/stat, so that softirq is in; processes beside it.

The kernel charges softirq work to whichever process it interrupts. A packet that wrk sends runs through bridge, tc
programs and a node's TCP in wrk's time. So only the total is exact; the parts tell in whose time it was spent.
"""
import contextlib
import os
from dataclasses import dataclass, field

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Snapshot:
    """All figures in seconds."""

    busy: float = 0.0
    softirq: float = 0.0
    steal: float = 0.0
    processes: dict = field(default_factory=dict)  # (pid, start time): (name, ours or None, own time, reaped children's)


def _process(pid, ours, idle):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as handle:
        head, _, tail = handle.read().rpartition(")")
    fields = tail.split()
    if int(fields[1]) == 2 or pid == 2:
        return None  # a kernel thread; ksoftirqd works for us
    user, system, child_user, child_system = (int(value) * TICK_S for value in fields[11:15])
    with contextlib.suppress(PermissionError):
        status = os.stat(f"/proc/{pid}/ns/net")
        there = (status.st_dev, status.st_ino)
        mine = None if there in idle else there in ours
        return (pid, int(fields[19])), (head.partition("(")[2], mine, user + system, child_user + child_system)
    return None


def snapshot(identities, idle=frozenset()):
    """Now. `identities` are the namespaces (device, inode) whose processes belong to the benchmark; those of `idle` do, and are not
    measured: what they use is neither the benchmark's nor foreign."""
    result = Snapshot()
    with open("/proc/stat", encoding="ascii") as handle:
        fields = handle.readline().split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = (int(value) * TICK_S for value in fields)
    result.busy, result.softirq, result.steal = user + nice + system + irq + softirq, softirq, steal
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            entry = _process(int(pid), identities, idle)
            if entry:
                result.processes[entry[0]] = entry[1]
    return result


def usage(before, after):
    """What was used between two snapshots, in seconds: {"total", "softirq", "steal", "foreign", "by_name"}.

    "foreign" is what processes outside the benchmark used, "total" is without that. `by_name` has the benchmark's
    processes that were there all the time, so not wrk.
    """
    by_name, foreign, idle, here = {}, 0.0, 0.0, os.getpid()
    for key, (name, mine, own, reaped) in after.processes.items():
        _, _, own_before, reaped_before = before.processes.get(key, (name, mine, 0.0, 0.0))
        if mine:
            by_name[name] = by_name.get(name, 0.0) + own - own_before
        elif mine is None:
            idle += own - own_before
        elif key[0] == here:
            continue  # its reaped child is wrk
        else:
            foreign += own - own_before + reaped - reaped_before
    # What was there before and has ended is in its parent's time now, with all that it ever used.
    foreign -= sum(own + reaped for key, (_, mine, own, reaped) in before.processes.items()
                   if key not in after.processes and mine is False)
    foreign = max(foreign, 0.0)
    return {"total": max(after.busy - before.busy - foreign - idle, 0.0), "softirq": after.softirq - before.softirq,
            "steal": after.steal - before.steal, "foreign": foreign, "by_name": by_name}
