# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting for conditions, never for a time."""
import time

from .errors import LabError


def wait_for(condition, what, timeout=10.0):
    """Call `condition` until it returns something true, and return that.

    It is asked often at first, then less and less (at most every 100 ms), so that short waits stay short.
    LabError when `timeout` seconds have passed; an OSError in `condition` means "not yet" and is quoted then.
    """
    deadline = time.monotonic() + timeout
    pause = 0.002
    last = None
    while True:
        try:
            result = condition()
            if result:
                return result
        except OSError as error:
            last = error
        if time.monotonic() >= deadline:
            raise LabError(f"{what}: not within {timeout:g} s" + (f" (last: {last})" if last else ""))
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)
