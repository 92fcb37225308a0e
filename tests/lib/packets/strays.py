# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections that are nowhere near, and whose clients go on."""
import random
import time

from packets.packet import RST

OTHERS = (2, 3)


def elsewhere(client, *arguments, **keywords):
    """A connection whose socket is nowhere near; its client has sent and heard something."""
    c = client(*arguments, **keywords)
    c.next = random.getrandbits(32)
    c.ack = c.no_cookie(random.getrandbits(32))
    return c


def lets_pass(seconds):
    """The node's clock may lie behind: by a tick, up to 10 ms, and by more where a virtual machine gets its ticks late."""
    time.sleep(seconds + 0.1)


def told(c):
    reset = c.take("the RST")
    assert (reset.flags, reset.seq, reset.payload) == (RST, c.ack, b"")
    c.silence("one RST")
