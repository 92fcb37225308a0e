# SPDX-License-Identifier: GPL-2.0-or-later
"""A program's connection at the node that it leaves: silent from before it is given away until its fate is known."""
import errno
import itertools
import os
import socket
import struct

import pytest

from earshotlab import tls
from packets import model
from packets.client import LINUX, MASK, PLAIN, WINDOWS
from packets.families import BOTH
from packets.model import ASK, CONNECTION, FOLLOW, HERE, READY
from packets.node import CLUSTER, PROGRAM, SERVER, SERVICE_INDEX, VIP
from packets.packet import ACK, PSH
from packets.program import Program, segment_of


@BOTH
@pytest.mark.parametrize("offer", [LINUX, WINDOWS, PLAIN], ids=lambda o: o.name)
def test_handover(node, program, offer):
    """All that n2 must know is in the message; the client hears nothing; nothing is left here."""
    p = program(offer).request().go()
    c = p.client
    means = c.offer.means
    message = p.agreed()
    f = segment_of(message)
    assert (f.ip.src, f.tcp.sport, f.tcp.dport) == (c.ip, c.port, PROGRAM)
    assert f.tcp.seq == (c.next - len(p.text)) & MASK and f.tcp.ack == c.ack and f.tcp.payload == p.text
    assert (message.stream, message.service) == (model.STREAM_PROGRAMS, SERVICE_INDEX[PROGRAM])
    assert message.mss == means.kept_mss() and message.rcv_wscale == (0 if means.wscale is None else 10)
    assert message.snd_wscale == (means.wscale or 0)
    assert message.flags & 7 == (means.wscale is not None) | means.sack << 1 | means.ts << 2
    if means.ts:
        assert f.tcp.tsval == c.tsval and 0 <= (f.tcp.tsecr - c.ts_recent) & MASK < 60000
    else:
        assert f.tcp.tsval is None
    p.answer(p.taken(ASK), HERE, c.next)
    assert p.result() == 0
    p.gone()
    with pytest.raises(OSError):
        c.server.send(b"nobody hears that")
    c.server.close()
    c.server = None
    p.gone()
    # n2's socket answers a client that has not heard anything yet, and what comes next.
    c.ts_recent = p.shaken_ts
    with node.counts(drop_decided=1):
        c.send(ACK | PSH, p.text, seq=c.isn + 1)
        c.silence()
    # In the first moment, only the inspector knows that it is not one that it has given away itself.
    with node.counts(drop_no_flow={0, 1}, cookie_invalid={0, 1}, drop_decided={0, 1}, request_later_queued={0, 1}):
        c.send(ACK | PSH, b"next")
        c.silence()
    assert node.pending(PROGRAM) == 0 and node.sockets(c) == []


@BOTH
def test_unread(node, program):
    """What the program left unread goes along; what comes while the socket is frozen is not acknowledged."""
    p = program().request(b"x" * 900 + b"y" * 100, read=100)
    c = p.client
    c.request(text=b"z" * 300)
    c.take("its acknowledgment")
    p.go(given=p.text[40:])
    message = p.agreed()
    assert segment_of(message).tcp.payload == b"x" * 860 + b"y" * 100 + b"z" * 300
    first = segment_of(message).tcp.seq
    c.send(ACK | PSH, b"while it is frozen")
    c.send(ACK, seq=(c.next - 1) & MASK)  # a keep-alive probe
    node.settle()
    c.silence()
    p.answer(p.taken(ASK), HERE, first + 1260)
    assert p.result() == 0
    p.gone()


@BOTH
def test_two_threads(node, program):
    """One connection cannot go to two nodes."""
    p = program().request().go()
    ask = p.taken(ASK)
    again = p.library.request_handover(p.client.server.fileno(), b"n3", p.text, len(p.text))
    assert again == -errno.EAGAIN
    p.answer(ask, READY)
    p.taken(CONNECTION)
    again = p.library.request_handover(p.client.server.fileno(), b"n3", p.text, len(p.text))
    assert again == -errno.EOPNOTSUPP  # its socket is frozen
    p.answer(p.taken(ASK), HERE, p.client.next)
    assert p.result() == 0


@BOTH
def test_many_bytes(node, program):
    """Each answer says how far they came; what was lost comes again."""
    text = bytes(itertools.islice(itertools.cycle(range(251)), 60000))
    p = program()
    c = p.client
    c.server = c.request(text=text[:1000]) and c.accept()
    for at in range(1000, len(text), 1000):
        c.request(text=text[at:at + 1000])
        if at % 8000 == 0:
            assert c.read(8000) == text[at - 8000:at]
    p.text = text[:8 * ((len(text) - 1) // 8000 * 1000)]
    p.go()
    message = p.agreed()
    first, got = segment_of(message).tcp.seq, bytearray()
    drop = 3
    ask, pieces = None, {0: segment_of(message).tcp.payload}

    def known():
        at = 0
        while at in pieces:
            at += len(pieces[at])
        return at

    while not p.future.done():
        try:
            f = node.cluster.take(lambda f: f.udp and f.ip.dst == CLUSTER[1], "a message", 0.3)
        except AssertionError:
            continue
        m = model.Handover.parse(f.udp.payload)
        m.ports = (f.udp.sport, f.udp.dport)
        if m.kind == FOLLOW:
            drop -= 1
            s = segment_of(m).tcp
            if drop:
                pieces[(s.seq - first) & MASK] = s.payload
        elif m.kind == ASK:
            p.answer(m, HERE, first + known())
    assert p.result() == 0
    assert known() == len(text)
    for at in sorted(pieces):
        got += pieces[at]
    assert bytes(got) == text


@BOTH
def test_front(node, program):
    """A program that says so by the message's version may put something in front of all that it has read; up to a bound."""
    p = program().request()
    front = bytes(range(256)) * 32

    def go(given, version=2):
        request = struct.pack("=II64s", 0x45534850, version, b"n2") + given  # libearshot/wire.h
        daemon = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        daemon.settimeout(10)
        daemon.connect(node.control + ".handover")
        socket.send_fds(daemon, [request], [p.client.server.fileno()])
        return daemon

    def result(daemon):
        with daemon:
            return struct.unpack("=Ii", daemon.recv(8))[1]

    assert result(go(b"?" + p.text, 1)) == -errno.EINVAL and result(go(b"?" + front + p.text)) == -errno.EINVAL
    node.no_message()
    daemon = go(front + p.text)
    first = segment_of(p.agreed())
    c = p.client
    assert first.tcp.seq == (c.next - len(front + p.text)) & MASK
    assert (front + p.text).startswith(first.tcp.payload) and first.tcp.payload
    p.answer(p.taken(ASK), HERE, c.next)
    assert result(daemon) == 0
    p.gone()


@BOTH
@pytest.mark.parametrize("name", [None, "n1"])
@pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=lambda o: o.name)
def test_to_this_node(node, program, name, offer):
    """The same with the server of this machine."""
    p = program(offer).request()
    c, old = p.client, p.client.server
    with node.counts(handover_received=3, connection_asked=2, connection_rebuilt=1, own_answer_received=2):
        p.go(name)
        assert p.result() == 0
    c.server, (ip, port, *_) = node.listener(SERVER, c.family).accept()
    c.server.settimeout(5)
    old.close()
    assert (ip, port) == (c.ip, c.port)
    assert c.read(len(p.text)) == p.text
    node.public.clear()
    p.lives()
    c.send(ACK | PSH, p.text, seq=c.isn + 1)
    assert c.take("its acknowledgment").ack == c.next


@BOTH
def test_server_hands_on(node, program):
    """Whoever has its descriptor may, but with netfilter, where its socket has another name."""
    p = program().request().go("n1")
    assert p.result() == 0
    c = p.client
    c.server, _ = node.listener(SERVER, c.family).accept()
    c.server.settimeout(5)
    assert c.read(len(p.text)) == p.text
    c.take("its acknowledgment")
    node.public.clear()
    p.go()
    if node.netfilter:
        assert p.result() == "ENOTSUP"
        p.lives()
        return
    assert segment_of(p.agreed()).tcp.payload == p.text
    p.answer(p.taken(ASK), HERE, c.next)
    assert p.result() == 0
    p.gone()


@pytest.fixture(name="tls_node")
def _tls_node(own_node):
    """A node whose earshot-tls takes what others hand over where clients connect, too."""
    node = own_node()
    with open(node.config_path, encoding="ascii") as handle:
        text = handle.read()
    place = os.path.dirname(node.config_path)
    tls.make_files(place, [VIP])
    files = tls.directory(place)
    section = f'tls {{ certificate = {files}/www.pem key = {files}/www.key server = "127.0.0.1:1" }}'
    with open(node.config_path, "w", encoding="ascii") as handle:
        handle.write(text.replace(f"server_port = {SERVER}", section).replace(f"port = {PROGRAM} inspect = never", f"port = {PROGRAM}"))
    node.reload()
    return node


@pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=lambda o: o.name)
def test_handed_on(tls_node, client, library, offer):
    """n2 hands it over to n1, with bytes of its own in front of the client's; and n1 to n2 again, with others."""
    node = tls_node
    p = Program(node, lambda *arguments, **keywords: client(*arguments, at=node, owner=2, **keywords), library, offer,
                shakes=False)
    c = p.client
    c.forge()
    state, request = bytes(range(250)) * 2, b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
    message = c.handover(c.ip_packet(ACK | PSH, state + request, seq=(c.next - len(state)) & MASK), CONNECTION, content=77,
                         stream=14)
    node.message(message)
    c.server, (ip, port, *_) = node.listener(PROGRAM, c.family).accept()
    c.server.settimeout(5)
    assert (ip, port) == (c.ip, c.port) and c.server.getsockname()[:2] == (c.vip, PROGRAM)
    assert c.read(len(state + request)) == state + request
    c.sent(request)
    c.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    c.request(text=request)
    c.take("the acknowledgment")
    assert c.read(len(request)) == request
    with p.pool:
        p.go(given=state[::-1] + request)
        f = segment_of(p.agreed()).tcp
        assert (f.seq, f.payload) == ((c.next - len(request) - len(state)) & MASK, state[::-1] + request)
        p.answer(p.taken(ASK), HERE, c.next)
        assert p.result() == 0
        p.gone()


@pytest.mark.parametrize("offer", [LINUX, PLAIN], ids=lambda o: o.name)
def test_another_daemon(own_node, client, library, offer):
    """The next one hands over as well; but with netfilter, nobody knows any more when the clock of its client began."""
    node = own_node()
    p = Program(node, lambda *arguments, **keywords: client(*arguments, at=node, **keywords), library, offer).request()
    node.kill()
    node.start()
    with p.pool:
        if node.netfilter and offer.means.ts:
            assert p.go().result() == "EAGAIN"
            p.lives()
            return
        f = segment_of(p.go().agreed())
        assert (f.tcp.seq, f.tcp.ack, f.tcp.payload) == ((p.client.next - len(p.text)) & MASK, p.client.ack, p.text)
        p.answer(p.taken(ASK), HERE, p.client.next)
        assert p.result() == 0
        p.gone()


@BOTH
def test_there_and_back(node, program):
    """n2 gives it on to n1, where it was before: the notes of the handover before do not stand in the way."""
    p = program().request().go()
    p.agreed()
    p.answer(p.taken(ASK), HERE, p.client.next)
    assert p.result() == 0
    c = p.client
    c.server.close()
    message = c.handover(c.ip_packet(ACK | PSH, p.text, seq=(c.next - len(p.text)) & MASK), CONNECTION, content=77,
                         stream=14)
    node.message(message)
    c.server, _ = node.listener(SERVER, c.family).accept()
    c.server.settimeout(5)
    assert c.read(len(p.text)) == p.text
    p.lives()


@pytest.mark.parametrize("name", [None, "n2"])
def test_mapped(node, program, name):
    """A program that listens for both families has clients of IPv4 on sockets of IPv6; so has its server."""
    for port, address in ((PROGRAM, f"::ffff:{VIP}"), (SERVER, f"::ffff:{node.server_address(4)}")):
        node.unlisten(port)
        node.listen(port, address=address, v6only=0)
    try:
        p = program()
        c = p.client
        p.text = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
        c.request(text=p.text)
        c.take("the acknowledgment")
        c.server, (ip, *_) = node.listeners[PROGRAM].accept()
        assert ip == f"::ffff:{c.ip}" and c.read(len(p.text)) == p.text
        old = c.server
        p.go(name)
        if name:
            f = segment_of(p.agreed())
            assert (f.ip.src, f.ip.dst, f.tcp.payload) == (c.ip, VIP, p.text)
            p.answer(p.taken(ASK), HERE, c.next)
        assert p.result() == 0
        if name:
            p.gone()
            return
        c.server, (ip, *_) = node.listeners[SERVER].accept()
        old.close()
        assert ip == f"::ffff:{c.ip}" and c.read(len(p.text)) == p.text
        node.public.clear()
        p.lives()
    finally:
        for port in (PROGRAM, SERVER):
            node.unlisten(port)
            node.listen(port)
