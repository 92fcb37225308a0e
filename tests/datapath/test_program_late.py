# SPDX-License-Identifier: GPL-2.0-or-later
"""A client that says more, or ends, while its connection is being given away."""
import contextlib
import ctypes
import socket

import pytest

from earshotlab import wait_for
from packets.client import LINUX, MASK, PLAIN
from packets.families import BOTH
from packets.model import ASK, CANCEL, CANCELLED, FOLLOW, HERE, NO_LISTENER
from packets.node import ESTABLISHED
from packets.packet import ACK, FIN, PSH, RST, URG
from packets.program import segment_of

SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27


@contextlib.contextmanager
def as_if_taken_up(sock):
    """What comes now is received, as what some CPU had taken up when the socket was frozen: its filter, which drops all, is away."""
    drop_all = ctypes.create_string_buffer(bytes([6, 0, 0, 0]) + bytes(4))
    sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
    yield
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                    (1).to_bytes(8, "little") + ctypes.addressof(drop_all).to_bytes(8, "little"))


@BOTH
@pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=lambda o: o.name)
@pytest.mark.parametrize("fin", [0, FIN], ids=["bytes", "bytes-fin"])
def test_late(node, program, offer, fin):
    """What the socket has taken and acknowledged after it was read follows, and its client's FIN after that."""
    p = program(offer).request(b"x" * 900 + b"y" * 100, read=900)
    c = p.client
    p.go()
    first = segment_of(p.agreed()).tcp.seq
    with as_if_taken_up(c.server):
        c.send(ACK | PSH | fin, b"late")
        if not fin:
            c.send(ACK | PSH, b", and later", seq=(c.next + 4) & MASK)
        wait_for(lambda: node.sockets(c) == [8 if fin else ESTABLISHED] and c.take("an acknowledgment"), "it is received")
    node.settle()
    late = b"late" if fin else b"late, and later"
    p.answer(p.taken(ASK), HERE, first + 1000)
    got, end = b"", 0
    while len(got) < len(late) or (fin and not end):
        f = segment_of(p.taken(FOLLOW)).tcp
        got = got[:f.seq - first - 1000] + f.payload
        end = f.flags & FIN
    assert got == late
    assert not p.future.done()
    p.answer(p.taken(ASK), HERE, first + 1000 + len(late))
    if fin:
        assert segment_of(p.taken(FOLLOW)).tcp.flags & FIN
        assert not p.future.done()
        p.answer(p.taken(ASK), HERE, first + 1000 + len(late) + 1)
    assert p.result() == 0
    node.public.clear()
    p.gone()


@BOTH
def test_late_fin(node, program):
    """Nothing but a FIN."""
    p = program().request()
    c = p.client
    p.go()
    p.agreed()
    with as_if_taken_up(c.server):
        c.send(ACK | FIN)
        wait_for(lambda: node.sockets(c) == [8], "it is received")
    p.answer(p.taken(ASK), HERE, c.next)
    f = segment_of(p.taken(FOLLOW)).tcp
    assert (f.seq, f.payload) == (c.next, b"") and f.flags & FIN
    p.answer(p.taken(ASK), HERE, c.next + 1)
    assert p.result() == 0
    node.public.clear()
    p.gone()


@BOTH
def test_late_reset(node, program):
    """It is over, and n2 will hear so from the client."""
    p = program().request()
    c = p.client
    p.go()
    p.agreed()
    with as_if_taken_up(c.server):
        c.send(RST)
        wait_for(lambda: not node.sockets(c), "it is received")
    p.answer(p.taken(ASK), HERE, c.next)
    assert p.result() == 0
    p.gone()


@BOTH
def test_late_urgent(node, program):
    """Its place in the order is lost: the client is told that its connection is."""
    p = program().request()
    c = p.client
    p.go()
    p.agreed()
    with as_if_taken_up(c.server):
        c.send(ACK | PSH | URG, b"urgent", urgent=6)
        c.take("its acknowledgment")
    p.answer(p.taken(ASK), HERE, c.next)
    assert p.result() == "ECONNRESET"
    assert c.take("the RST").flags & RST
    wait_for(lambda: not node.sockets(c), "the socket gone")


@BOTH
def test_late_and_back(node, program):
    """n2 does not take it after all: what came late is read here."""
    p = program().request()
    c = p.client
    p.go()
    message = p.agreed()
    with as_if_taken_up(c.server):
        c.request(text=b"late")
    p.answer(message, NO_LISTENER)
    p.answer(p.taken(CANCEL), CANCELLED)
    assert p.result() == "ECONNREFUSED"
    assert c.read(4) == b"late"
    c.take("the acknowledgment")
    p.lives()


@BOTH
@pytest.mark.parametrize("flags", [ACK | FIN, RST])
def test_client_ends_while_it_is_frozen(node, program, flags):
    """That it does is for who has it to hear; if it comes back, the client says it again."""
    p = program().request().go()
    c = p.client
    message = p.agreed()
    c.send(flags)
    node.settle()
    c.silence()
    p.answer(message, NO_LISTENER)
    p.answer(p.taken(CANCEL), CANCELLED)
    assert p.result() == "ECONNREFUSED"
    assert node.sockets(c) == [ESTABLISHED]
    c.send(flags)
    if flags & RST:
        wait_for(lambda: not node.sockets(c), "the socket gone", seen=lambda: node.sockets(c))
    else:
        wait_for(lambda: node.sockets(c) == [8], "CLOSE_WAIT", seen=lambda: node.sockets(c))
