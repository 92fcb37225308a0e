# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot.ko of the build tree: loads and unloads it, and what it has allocated."""
import collections
import glob
import os
import re
import subprocess
import time

from tree import BUILD

FILE = os.path.join(BUILD, "module", os.uname().release, "earshot.ko")
FAULTS = os.path.join(BUILD, "module", os.uname().release, "faults", "earshot.ko")  # see faults.h
_OURS = re.compile(r"\S+ \[earshot\]")
_ASKED_BY_US = re.compile(r"^ *\d+ (\S+ \[earshot\])")  # the line that begins an entry names who called the allocator
PATIENCE_S = float(os.environ.get("EARSHOT_LAB_TIMEOUT") or 20)


def loaded():
    return os.path.exists("/sys/module/earshot")


def load(file=FILE):
    if not loaded():
        subprocess.run(["insmod", file], check=True)


def unload():
    """Returns the exit status."""
    return subprocess.run(["rmmod", "earshot"], capture_output=True).returncode


def unload_patiently():
    """Who was killed lets go of the module a moment later."""
    deadline = time.monotonic() + PATIENCE_S
    while unload():
        assert time.monotonic() < deadline, "the module is still in use"
        time.sleep(0.02)


def traces():
    """The kernel's lists of who allocated what; with slub_debug=U only (earshotvm/machine.py)."""
    # Address ranges are freed when the kernel likes.
    return [name for name in glob.glob("/sys/kernel/debug/slab/*/alloc_traces") if "/vmap_area/" not in name]


def kept():
    """Where the module's functions have allocated something that is not freed, and how often: a Counter of lines of the
    kernel's lists. To be compared with what there was when the module had been loaded: where it is now, another one's
    code may have been. In caches of one kind of object (sockets, requests) also what the kernel's functions have made for
    the module counts; in those for everything it does not: what a socket brought about there, the kernel may keep."""
    found = collections.Counter()
    for name in ("/proc/vmallocinfo", *traces()):
        ours = _ASKED_BY_US if "/slab/kmalloc-" in name else _OURS
        try:
            with open(name, encoding="ascii", errors="replace") as handle:
                found.update(f"{name}: {match[match.lastindex or 0]}" for match in map(ours.search, handle) if match)
        except OSError:
            pass  # a cache that has gone meanwhile
    return found


def kernel_log():
    return subprocess.run(["dmesg"], check=True, capture_output=True, text=True).stdout
