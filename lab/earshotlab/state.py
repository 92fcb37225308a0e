# SPDX-License-Identifier: GPL-2.0-or-later
"""What a lab remembers between invocations: one JSON file and one lock per lab, both under /run/earshot-lab."""
import contextlib
import fcntl
import json
import os
import shutil
import sys

from .errors import LabError

BASE = "/run/earshot-lab"


def directory(name):
    """Everything that the lab writes is in here; it exists exactly as long as the lab does, in whatever condition."""
    return os.path.join(BASE, name)


def labs():
    """Names of all labs that exist."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(entry for entry in os.listdir(BASE) if os.path.isdir(os.path.join(BASE, entry)))
    return []


@contextlib.contextmanager
def lock(name, wait=True):
    """Hold the lab for oneself: no other process (or thread) changes it meanwhile. Not recursive.

    The lock file is removed by whoever let the lab go down; a waiter that gets a removed file's lock tries again.
    """
    path = directory(name) + ".lock"
    os.makedirs(BASE, exist_ok=True)
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                os.close(handle)
                raise LabError(f"lab {name} is being changed by another process") from None
            print(f"lab {name}: waiting for another invocation to finish", file=sys.stderr)
            fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(handle).st_ino == os.stat(path).st_ino:
                break
        os.close(handle)
    try:
        yield
    finally:
        if not os.path.exists(directory(name)):
            os.unlink(path)
        os.close(handle)


def save(name, content):
    """Replace the state as a whole, so that readers without the lock never see half of it."""
    os.makedirs(directory(name), exist_ok=True)
    path = os.path.join(directory(name), "state.json")
    with open(path + ".new", "w", encoding="utf-8") as handle:
        json.dump(content, handle, indent=1)
    os.rename(path + ".new", path)


def load(name):
    """The saved state; None if there is no such lab."""
    try:
        with open(os.path.join(directory(name), "state.json"), encoding="utf-8") as handle:
            return json.load(handle)
    except FileNotFoundError:
        return None


def remove(name):
    shutil.rmtree(directory(name), ignore_errors=True)
