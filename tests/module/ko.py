# SPDX-License-Identifier: GPL-2.0-or-later
"""earshot.ko of the build tree: loads and unloads it, and what it has allocated."""
import collections
import glob
import os
import re
import subprocess
import time

BUILD = os.path.abspath(os.environ.get("EARSHOT_BUILD") or os.path.join(os.path.dirname(__file__), "../../build"))
FILE = os.path.join(BUILD, "module", os.uname().release, "earshot.ko")
FAULTS = os.path.join(BUILD, "module", os.uname().release, "faults", "earshot.ko")  # see faults.h
_OURS = re.compile(r"\S+ \[earshot\]")
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
    code may have been."""
    found = collections.Counter()
    for name in ("/proc/vmallocinfo", *traces()):
        try:
            with open(name, encoding="ascii", errors="replace") as handle:
                found.update(f"{name}: {match[0]}" for match in map(_OURS.search, handle) if match)
        except OSError:
            pass  # a cache that has gone meanwhile
    return found


def kernel_log():
    return subprocess.run(["dmesg"], check=True, capture_output=True, text=True).stdout
