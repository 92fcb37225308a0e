# SPDX-License-Identifier: GPL-2.0-or-later
"""The ends of the logs of all that runs when a test fails; conftest.py prints them.

What logs has log_ends(), a text that is empty when there is nothing, and says that it is there by watch(). As a context
manager it adds that to the exception which leaves its block (log_note()), since afterwards it has no logs any more.
"""
import glob
import os
import weakref

from earshotlab import Lab, process

_watched = weakref.WeakSet()


def watch(source):
    _watched.add(source)


def of_files(title, *patterns):
    """The log_ends() of the files that there are of these."""
    paths = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    return "\n".join(f"--- {title}: {os.path.basename(path)}\n{process.log_tail(path) or '(logged nothing)'}" for path in paths)


def log_note(source, error):
    """For __exit__()."""
    ends = source.log_ends() if error else ""
    if ends:
        error.add_note(ends)


def ends():
    """Of all labs, and of all that is watched."""
    return "\n".join(filter(None, (source.log_ends() for source in [*Lab.up_here, *_watched])))
