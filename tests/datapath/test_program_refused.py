# SPDX-License-Identifier: GPL-2.0-or-later
"""A program's connection that cannot be given away, or of which nobody says what became of it."""
import ctypes
import errno
import os
import socket
import threading
import time

import pytest

from earshotlab import wait_for
from packets import packet
from packets.families import BOTH
from packets.client import MASK
from packets.model import ASK, CANCEL, CANCELLED, CONNECTION, FULL, HERE, NO_LISTENER, OVER, READY, SERVED
from packets.node import CLUSTER, HANDOVER_PORT, PEER_MAC, PROGRAM, SERVER, WEB
from packets.packet import ACK, FIN, PSH, RST
from packets.program import segment_of


@BOTH
@pytest.mark.parametrize("answer", [NO_LISTENER, FULL])
def test_refused(node, program, answer):
    """At the first question: nothing has happened to the connection."""
    p = program().request().go()
    p.answer(p.taken(ASK), answer)
    assert p.result() == "ECONNREFUSED"
    p.only_asked()
    p.lives()


@BOTH
def test_nobody_there(node, program):
    """Without an answer nothing is given away."""
    began = time.monotonic()
    p = program().request().go()
    assert p.result() == "EHOSTUNREACH" and time.monotonic() - began < 2
    assert p.taken(ASK)
    p.only_asked()
    p.lives()


def test_no_datapath_there(node, program):
    """The kernel of n2 says so: no need to wait."""
    p = program().request().go()
    message = p.taken(ASK)
    src, dst = CLUSTER[0], CLUSTER[1]
    original = packet.ip(src, dst, packet.UDP, packet.udp(src, dst, message.ports[0], HANDOVER_PORT, b""))[:28]
    icmp = packet.icmp(3, 3, bytes(4), original)
    node.cluster.send(packet.eth(node.cluster.node_mac, PEER_MAC[1], packet.ETH_IP, packet.ip(dst, src, 1, icmp)))
    assert p.result() == "EHOSTUNREACH"
    p.lives()


@BOTH
def test_refused_late(node, program):
    """After it was given away: n2 must first promise, then the connection goes on, with what came meanwhile."""
    p = program().request().go()
    c = p.client
    p.answer(p.agreed(), NO_LISTENER)
    cancel = p.taken(CANCEL)
    c.send(ACK | PSH, b"frozen")
    node.settle()
    c.silence()
    assert not p.future.done()
    p.answer(cancel, CANCELLED)
    assert p.result() == "ECONNREFUSED"
    p.lives(b"frozen")  # the client sends it again
    # Or the program could not be started again while this connection is open.
    assert c.server.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)


@BOTH
def test_lost_messages(node, program):
    """Of the messages to n2 or of its answers: all is repeated until it is known."""
    p = program().request().go()
    p.taken(ASK)  # lost
    p.answer(p.taken(ASK), READY)
    one = p.taken(CONNECTION)
    p.answer(p.taken(ASK), READY)  # the first message was lost
    two = p.taken(CONNECTION)
    assert (one.packet, one.content) == (two.packet, two.content) and one.sequence != two.sequence
    p.taken(CONNECTION)  # its answer is lost
    p.answer(p.taken(ASK), HERE, p.client.next)
    assert p.result() == 0
    p.gone()


@BOTH
def test_late_answers_of_another_handover(node, program):
    """Only the answer to this one counts."""
    p = program().request().go()
    first = p.taken(ASK)
    p.answer(first, FULL)
    assert p.result() == "ECONNREFUSED"
    p.only_asked()  # or the next question that is taken may be this one's
    p.go()
    message = p.agreed()
    p.answer(first, HERE, p.client.next)
    p.answer(first, CANCELLED)
    node.settle()
    assert not p.future.done() and message.content > first.content
    p.answer(p.taken(ASK), HERE, p.client.next)
    assert p.result() == 0


@BOTH
def test_fate_unknown(node, program):
    """n2 agreed and fell silent: it may have the connection, so the client is told nothing."""
    p = program().request().go()
    p.agreed()
    assert p.taken(CANCEL)
    assert p.result() == "ETIMEDOUT"
    p.gone()


@BOTH
def test_over(node, program):
    """Swallowed by n2's firewall, or by a server that ends it without a word: the client is told."""
    p = program().request().go()
    p.agreed()

    def answer():
        while not p.future.done():
            p.answer(p.taken(ASK), OVER)
            time.sleep(0.01)

    threading.Thread(target=answer, daemon=True).start()
    assert p.result() == "ECONNRESET"
    assert p.client.take("the RST").flags & RST
    node.cluster.clear()


@BOTH
def test_served(node, program):
    """n2 has served and closed it before it could be asked: that is a success, and nobody speaks to the client but n2."""
    p = program().request().go()
    p.agreed()
    p.answer(p.taken(ASK), SERVED)
    assert p.result() == 0
    p.gone()
    node.cluster.clear()


@BOTH
def test_served_when_it_was_to_be_called_off(node, program):
    """Likewise if n2 has said nothing for so long that it was asked to promise."""
    p = program().request().go()
    p.agreed()
    p.answer(p.taken(CANCEL), SERVED)
    assert p.result() == 0
    p.gone()
    node.cluster.clear()


@BOTH
def test_unacknowledged(node, program):
    """What the program has written must have arrived, or nobody would send it again."""
    p = program().request()
    c = p.client
    segment = c.answer(b"HTTP/1.1 100 Continue\r\n\r\n", acknowledge=False)[-1]
    p.go()
    assert p.result() == "EBUSY"
    node.no_message()
    c.send(ACK)
    node.settle()
    p.go()
    assert segment_of(p.agreed()).tcp.ack == (segment.seq + len(segment.payload)) & MASK
    p.answer(p.taken(ASK), HERE, c.next)
    assert p.result() == 0


@BOTH
def test_errors(node, program):
    """Each leaves the connection alone."""
    p = program().request()
    for expected, arguments in {"ENOENT": dict(node="n9"), "EINVAL": dict(given=b"?" + p.text),
                                "EMSGSIZE": dict(given=bytes(65537))}.items():
        assert p.go(**arguments).result() == expected
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        assert p.go(fd=s.fileno()).result() == "ENOTSUP"
    with socket.socket() as s:  # of another network namespace
        assert p.go(fd=s.fileno()).result() == "ENOTSUP"
    assert p.go(fd=999).result() == "ENOTCONN"
    listener = node.listener(PROGRAM, p.client.family)
    assert p.go(fd=listener.fileno()).result() == "ENOTCONN"
    node.no_message()
    p.lives()
    c = p.client
    c.send(ACK | FIN)
    wait_for(lambda: node.sockets(c) == [8], "CLOSE_WAIT")
    assert p.go().result() == "EPIPE"


@BOTH
def test_service_without_a_server(node, program):
    """Nobody has said where its connections could go."""
    p = program(service=WEB)
    p.client.request(text=p.client.get(1))
    p.client.accept()
    p.text = b""
    assert p.go().result() == "ENOTSUP"


def test_no_daemon(node, program, tmp_path):
    p = program().request()
    os.environ["EARSHOT_HANDOVER_SOCKET"] = str(tmp_path / "nothing")
    assert p.library.request_handover(p.client.server.fileno(), None, p.text, len(p.text)) == -errno.ENOLINK
    p.lives()


@BOTH
def test_filter_of_the_program(node, program):
    p = program().request()
    accept_all = ctypes.create_string_buffer(bytes([6, 0, 0, 0]) + b"\xff\xff\0\0")
    fprog = (1).to_bytes(8, "little") + ctypes.addressof(accept_all).to_bytes(8, "little")
    p.client.server.setsockopt(socket.SOL_SOCKET, 26, fprog)
    assert p.go().result() == "ENOTSUP"
    p.lives()


@BOTH
def test_no_server_on_this_node(node, program, family):
    p = program().request()
    node.unlisten(SERVER, family)
    try:
        assert p.go(None).result() == "ECONNREFUSED"
    finally:
        node.listen(SERVER, family=family)
    p.lives()
