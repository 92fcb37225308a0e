# SPDX-License-Identifier: GPL-2.0-or-later
"""A program's connection at the node that it leaves: silent from before it is given away until its fate is known."""
import concurrent.futures
import contextlib
import ctypes
import errno
import itertools
import os
import socket
import struct
import threading
import time

import pytest

from earshotlab import tls, wait_for
from packets import model, packet
from packets.client import LINUX, PLAIN, WINDOWS
from packets.families import BOTH
from packets.model import ANSWER, ASK, CANCEL, CANCELLED, CONNECTION, FOLLOW, FULL, HERE, NO_LISTENER, OVER, READY
from packets.node import CLUSTER, ESTABLISHED, HANDOVER_PORT, PEER_MAC, PROGRAM, SERVER, SERVICE_INDEX, VIP, WEB
from packets.packet import ACK, FIN, PSH, RST, URG
from tree import BUILD

MASK = 0xFFFFFFFF


@pytest.fixture(scope="module", name="library")
def _library():
    loaded = ctypes.CDLL(os.path.join(BUILD, "lib/libearshot.so.1"))
    loaded.request_handover.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    return loaded


class Program:
    """A program on n1 with a connection of a client, and n2 as the test plays it."""

    def __init__(self, node, client, library, offer=LINUX, service=PROGRAM, shakes=True):
        self.node, self.library = node, library
        self.client = client(service, offer=offer)
        if shakes:
            self.client.shake()
        self.shaken_ts = self.client.ts_recent
        self.pool = concurrent.futures.ThreadPoolExecutor(1)

    def request(self, text=b"POST /upload HTTP/1.1\r\nHost: test\r\n\r\n", read=None):
        """The client sends, the program reads so much of it."""
        self.client.request(text=text)
        self.client.take("the acknowledgment")
        self.text = self.client.read(len(text) if read is None else read)
        return self

    def go(self, node="n2", given=None, fd=None):
        """request_handover() in a thread of its own."""
        given = self.text if given is None else given
        fd = self.client.server.fileno() if fd is None else fd
        os.environ["EARSHOT_HANDOVER_SOCKET"] = self.node.control + ".handover"
        self.future = self.pool.submit(self.library.request_handover, fd, node and node.encode(), given, len(given))
        return self

    def result(self, timeout=10):
        value = self.future.result(timeout)
        return errno.errorcode[-value] if value < 0 else value

    def taken(self, kind):
        """The next message of that kind to n2; others are repetitions of what was taken before."""
        return self.node.taken(2, kind)

    def answer(self, message, what, expects=None):
        """As n2's datapath answers a message."""
        reply = model.Handover.parse(message._body() + bytes(8) + message.packet)
        reply.kind, reply.nack, reply.mac = ANSWER, what, None
        reply.source, reply.target, reply.stream = message.target, 0, model.STREAM_DATAPATH
        if expects is not None:
            reply.next_request_seq = expects & MASK
        self.node.sequence += 1
        reply.sequence = self.node.sequence
        self.node.cluster.send(packet.eth(self.node.cluster.node_mac, PEER_MAC[1], packet.ETH_IP, packet.ip(
            CLUSTER[1], CLUSTER[0], packet.UDP,
            packet.udp(CLUSTER[1], CLUSTER[0], HANDOVER_PORT, message.ports[0],
                       reply.pack(self.node.keys.handover[0])))))

    def agreed(self):
        """n2 has said that it would; returns the first message that gives it the connection."""
        self.answer(self.taken(ASK), READY)
        return self.taken(CONNECTION)

    def only_asked(self):
        """Nothing was given to n2; the question comes again after 10 ms, where the machine is slow."""
        self.node.cluster.nothing(lambda f: f.udp and f.udp.payload[5] != ASK, "only questions")
        self.node.cluster.clear()

    def lives(self, text=b"and more"):
        """The connection is where it was, and works."""
        c = self.client
        c.request(text=text)
        assert c.read(len(text)) == text
        c.answer()

    def gone(self):
        wait_for(lambda: not self.node.sockets(self.client), "the socket gone")
        self.node.settle()
        self.client.silence("nothing said to the client")


@pytest.fixture
def program(node, client, library):
    made = []

    def make(*arguments, **keywords):
        made.append(Program(node, client, library, *arguments, **keywords))
        return made[-1]

    yield make
    for each in made:
        each.pool.shutdown()
    node.settle()
    node.cluster.clear()


SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27


@contextlib.contextmanager
def as_if_taken_up(sock):
    """What comes now is received, as what some CPU had taken up when the socket was frozen: its filter, which drops all, is away."""
    drop_all = ctypes.create_string_buffer(bytes([6, 0, 0, 0]) + bytes(4))
    sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
    yield
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                    (1).to_bytes(8, "little") + ctypes.addressof(drop_all).to_bytes(8, "little"))


def segment_of(message):
    kind = packet.ETH_IP6 if message.packet[0] >> 4 == 6 else packet.ETH_IP
    return packet.parse(packet.eth("00:00:00:00:00:00", "00:00:00:00:00:00", kind, message.packet))


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
def test_fate_unknown(node, program):
    """n2 agreed and fell silent: it may have the connection, so the client is told nothing."""
    p = program().request().go()
    p.agreed()
    assert p.taken(CANCEL)
    assert p.result() == "ETIMEDOUT"
    p.gone()


@BOTH
def test_over(node, program):
    """Made and reset by the server before we could see it, or swallowed by n2's firewall: the client is told."""
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
def test_filter_of_the_program(node, program):
    p = program().request()
    accept_all = ctypes.create_string_buffer(bytes([6, 0, 0, 0]) + b"\xff\xff\0\0")
    fprog = (1).to_bytes(8, "little") + ctypes.addressof(accept_all).to_bytes(8, "little")
    p.client.server.setsockopt(socket.SOL_SOCKET, 26, fprog)
    assert p.go().result() == "ENOTSUP"
    p.lives()


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


@BOTH
def test_no_server_on_this_node(node, program, family):
    p = program().request()
    node.unlisten(SERVER, family)
    try:
        assert p.go(None).result() == "ECONNREFUSED"
    finally:
        node.listen(SERVER, family=family)
    p.lives()


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
