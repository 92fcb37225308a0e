# SPDX-License-Identifier: GPL-2.0-or-later
"""Two processors: while one carries a packet to its socket, the other ends that. The client must not hear of it."""
import contextlib
import multiprocessing
import os
import random

import pytest

from packets.node import EACH
from packets.packet import ACK, RST

TRIALS = 100
COPIES = 400  # some milliseconds of them
PAUSE = 2000  # turns of a loop: the end comes somewhere among them


def _repeat(wire, frames, processor):
    os.sched_setaffinity(0, {processor})
    with contextlib.suppress(EOFError):
        while True:
            frame = frames.recv_bytes()
            frames.send_bytes(b"begun")
            for _ in range(COPIES):
                wire.send(frame)
            frames.send_bytes(b"done")


@pytest.fixture(name="race")
def _race(node):
    """race(frame, end): frame many times on one processor, and meanwhile end() on the other."""
    processors = sorted(os.sched_getaffinity(0))
    assert len(processors) > 1, "nothing is at once on one processor"
    ours, theirs = multiprocessing.Pipe()
    other = multiprocessing.get_context("fork").Process(
        target=_repeat, args=(node.public, theirs, processors[-1]), daemon=True)
    other.start()

    def race(frame, end):
        ours.send_bytes(frame)
        ours.recv_bytes()
        for _ in range(random.randrange(PAUSE)):
            pass
        end()
        ours.recv_bytes()

    os.sched_setaffinity(0, {processors[0]})
    yield race
    os.sched_setaffinity(0, processors)
    other.kill()
    other.join()


def resets(node, c):
    return [f for f in node.public.all(c.mine) if f.tcp.flags & RST]


def test_ended_by_the_client(node, client, race):
    """Its RST, for instance to a challenge of this node, overtakes packets of the next connection of its port."""
    for _ in range(TRIALS):
        c = client().serve()
        rst = c.frame(RST)
        race(c.frame(ACK), lambda: node.public.send(rst))
        assert not node.sockets(c)
        assert not resets(node, c)
        c.abort()


def test_moved_away(node, client, race):
    """Acknowledgements that are too late: the connection is at its next node."""
    for _ in range(TRIALS):
        c = client(EACH).serve()
        c.answer(b"HTTP/1.1 204 No Content\r\n\r\n")
        request = c.frame(ACK, c.get(2))
        race(c.frame(ACK), lambda: node.public.send(request))
        node.taken(2)
        assert not node.sockets(c)
        assert not resets(node, c)
        c.abort()
