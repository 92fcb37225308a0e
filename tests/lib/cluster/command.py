# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's command line, labs of nothing but the network, and what any lab may leave behind."""
import contextlib
import os
import subprocess
import sys

from earshotlab import Lab, netns, state
from tree import SOURCE

SCRIPT = os.path.join(SOURCE, "lab/lab.py")


def network(nodes=2, **options):
    """A lab without daemons."""
    return Lab(nodes=nodes, earshot=False, **options)


def cli(*arguments, build=None, check=True, **keywords):
    """./dev lab …"""
    env = {**os.environ, **({"EARSHOT_BUILD": str(build)} if build else {})}
    return subprocess.run([sys.executable, SCRIPT, *arguments], env=env, check=check, text=True,
                          capture_output=True, timeout=60, **keywords)


def traces(name):
    """All that a lab of that name could have left on the machine."""
    found = [namespace for namespace in netns.namespaces() if namespace.startswith(f"{name}-")]
    found += [path for path in (state.directory(name), state.directory(name) + ".lock") if os.path.exists(path)]
    with contextlib.suppress(FileNotFoundError):
        found += [entry for entry in os.listdir("/run/earshot") if entry.startswith(f"{name}-")]
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as handle:
            if f"{state.directory(name)}/".encode() in handle.read():
                found.append(f"process {entry}")
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as handle:
        found += [f"mount {line.split()[1]}" for line in handle if f"{state.directory(name)}/" in line]
    return found
