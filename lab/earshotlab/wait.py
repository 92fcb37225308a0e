# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting for conditions, never for a time."""
import os
import time

from .errors import LabError

TIMEOUT = float(os.environ.get("EARSHOT_LAB_TIMEOUT") or 20)  # longer where the machine is emulated


def wait_for(condition, what, timeout=TIMEOUT, seen=None):
    """Call `condition` until it returns something true, and return that.

    It is asked often at first, then less and less (at most every 100 ms), so that short waits stay short.
    LabError when `timeout` seconds have passed, with what was seen last: what `seen()` tells, or else what the condition
    returned. An OSError in `condition` means "not yet" and is quoted then.
    """
    began = time.monotonic()
    pause = 0.002
    while True:
        try:
            last = condition()
            if last:
                return last
        except OSError as error:
            last = error
        waited = time.monotonic() - began
        if waited >= timeout:
            raise LabError(f"{what}: not within {timeout:g} s", _told(last, seen, waited))
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def _told(last, seen, waited):
    if seen is not None:
        try:
            last = seen()
        except (OSError, LabError) as error:
            last = error
    text = f"{type(last).__name__}: {last}" if isinstance(last, Exception) else last if isinstance(last, str) else repr(last)
    return f"waited {waited:.1f} s, seen last: {text}"
