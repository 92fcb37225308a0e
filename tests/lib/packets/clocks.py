# SPDX-License-Identifier: GPL-2.0-or-later
"""A node whose wall clock the test sets."""
import os
import struct
import tempfile

from earshotlab import wait_for
from tree import BUILD

LIBRARY = os.path.join(BUILD, "lib/libearshot-set-clock.so")


class Clock:
    """The clock of nodes that were made with `before`; off by nothing at first."""

    def __init__(self):
        handle, self.path = tempfile.mkstemp(prefix="earshot-clock-")
        os.write(handle, bytes(8))
        os.close(handle)
        self.before = ["env", f"LD_PRELOAD={LIBRARY}", f"EARSHOT_CLOCK={self.path}"]

    def close(self):
        os.unlink(self.path)

    def set(self, off_s):
        """It is off by so many seconds from now on."""
        with open(self.path, "r+b") as handle:
            handle.write(struct.pack("q", off_s))

    @staticmethod
    def offset_ns(node):
        """What the node's datapath goes by, as a distance to CLOCK_MONOTONIC."""
        with node.tables() as found:
            return found.state.wall_offset_ns

    def set_and_seen(self, node, off_s):
        """The same, and the node goes by it."""
        before = self.offset_ns(node)
        self.set(off_s)
        wait_for(lambda: abs(self.offset_ns(node) - before) > 10 ** 9, "the node's new time",
                 seen=lambda: f"its offset is {self.offset_ns(node)}, and was {before}")
