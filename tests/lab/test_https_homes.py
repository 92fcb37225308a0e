# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that come back: the ticket names the node that served them, and the ClientHello goes there at once."""
import contextlib
import socket
import ssl
import struct

import pytest

from cluster import secure as cluster
from cluster.secure import ALL
from earshotlab import tls, wait_for
from web import raw, secure

pytestmark = pytest.mark.earshot
VERSIONS = ["1.2", "1.3"]
RULES = "".join(f'rule to-{node} {{ service = https  header = "X-To: {node}"  nodes = {node} }}\n' for node in ALL)
HOME_AT = 27  # in a ticket (inspector/http/tls_home.h)
COMES = 24  # so often a client comes back; that the ring has one node for all of these is out of the question


@pytest.fixture(scope="module", name="lab")
def _lab():
    with cluster.lab_of({"https.inspect": "every"}, membership="corosync") as lab:
        cluster.start_backends(lab)
        with open(lab.config_file, "a", encoding="utf-8") as config:
            config.write(RULES)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab


@pytest.fixture(name="how", params=VERSIONS)
def _how(lab, request):
    return secure.context(lab, request.param)


def inspected(lab, name):
    return sum(lab.counters(node).get(f"inspect_{name}", 0) for node in ALL)


def handshakes(lab):
    """{node: handshakes that have resumed a session}"""
    return {node: cluster.counters(lab, node)["handshakes_resumed"] for node in ALL}


def come(lab, how, session=None, node="n2", **keywords):
    """A connection with one request that is for `node`: the session to resume, and whether one was resumed."""
    sock, reader = cluster.connect(lab, how, session=session, **keywords)
    with sock:
        sock.sendall(raw.head("/len/3", X_To=node))
        assert reader.response("/len/3").node == node
        return sock.tls.session, sock.tls.session_reused


def come_back(lab, how, node="n2", times=COMES):
    """So often, with the newest session each time: (connections that moved, {node: sessions resumed there})."""
    session, _ = come(lab, how, node=node)
    moves, before = cluster.total(lab, "arrived"), handshakes(lab)
    for _ in range(times):
        session, resumed = come(lab, how, session, node)
        assert resumed
    after = handshakes(lab)
    return cluster.total(lab, "arrived") - moves, {node: after[node] - before[node] for node in ALL if after[node] > before[node]}


def hello(how, session, name=tls.NAMES[0]):
    """The ClientHello that would resume it."""
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        how.wrap_bio(came, goes, server_hostname=name, session=session).do_handshake()
    return goes.read()


@contextlib.contextmanager
def config(lab, before, after):
    """Another text in the configuration of all nodes, for a while."""
    def put(old, new):
        with open(lab.config_file, encoding="utf-8") as handle:
            text = handle.read()
        assert old in text
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(text.replace(old, new))
        for node in lab.nodes:
            node.exec(["earshot", "reload"])

    put(before, after)
    try:
        yield
    finally:
        put(after, before)


def test_served_at_home(lab):
    """TLS 1.3: the ticket is made when the first request has a node, so the next connection begins there, and nothing moves."""
    how = secure.context(lab, "1.3")
    for node in ALL:
        taken = inspected(lab, "home_taken")
        moves, nodes = come_back(lab, how, node)
        assert moves == 0 and nodes == {node: COMES}
        assert inspected(lab, "home_taken") - taken == COMES


def test_resume_ring(lab):
    """Without it, two of three connections begin elsewhere, and move."""
    with config(lab, "tls {", "tls { resume = ring "):
        taken = inspected(lab, "home_taken")
        moves, nodes = come_back(lab, secure.context(lab, "1.3"))
        assert COMES / 4 < moves and set(nodes) == set(ALL), (moves, nodes)
        assert inspected(lab, "home_taken") == taken


def test_handshake_at_home(lab):
    """TLS 1.2: the ticket is part of the handshake, so it names that node, whatever is asked for later."""
    for _ in range(3):
        moves, nodes = come_back(lab, secure.context(lab, "1.2"))
        assert list(nodes.values()) == [COMES]
        assert moves == (0 if "n2" in nodes else COMES)


def long_hello(how):
    """As long as those of browsers, whose key shares take more than a segment."""
    how.set_alpn_protocols([f"protocol-{i:03d}" for i in range(200)] + ["http/1.1"])
    return how


def test_long_hello(lab, how):
    session, _ = come(lab, long_hello(how))
    assert len(hello(how, session)) > 2400
    before = handshakes(lab)
    for _ in range(COMES):
        session, resumed = come(lab, how, session)
        assert resumed
    after = handshakes(lab)
    assert sorted(after[node] - before[node] for node in ALL) == [0, 0, COMES]


def test_cut_hello(lab):
    """Segments that come one after the other are gathered, wherever they are cut."""
    how = long_hello(secure.context(lab, "1.3"))
    session, _ = come(lab, how)
    data = hello(how, session)
    cuts = range(1, len(data), 97)
    taken, gathered = inspected(lab, "home_taken"), inspected(lab, "gathered")
    for at in cuts:
        with raw.connect(lab.client, (lab.net.vip, tls.PORT)) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(data[:at])
            sock.sendall(data[at:])
            assert sock.recv(5)[:1] == b"\x16"
    assert inspected(lab, "home_taken") - taken == inspected(lab, "gathered") - gathered == len(cuts)


def ticket_at(data):
    """Where the ticket is in a ClientHello of TLS 1.3: pre_shared_key is the last extension, and has one."""
    for at in range(len(data)):
        kind, length, identities, identity = struct.unpack_from(">HHHH", data[at:] + bytes(8))
        if kind == 41 and at + 4 + length == len(data) and identities == identity + 6:
            return at + 8
    raise AssertionError("no ticket")


def nodes_of_hellos(lab, data, count=30):
    """The nodes of so many clients that send this ClientHello, and then go. Checks of the service are few."""
    def accepted():
        return {node: cluster.counters(lab, node)["accepted"] for node in ALL}

    before = accepted()
    for _ in range(count):
        with raw.connect(lab.client, (lab.net.vip, tls.PORT)) as sock:
            sock.sendall(data)
            assert sock.recv(5)
    return {node for node, number in accepted().items() if number - before[node] > count / 10}


def test_forged(lab):
    """Who has one ticket of a node can send all that he has there, as he can by his ports; nobody makes one up for another node."""
    how = secure.context(lab, "1.3")
    session, _ = come(lab, how)
    data = hello(how, session)
    taken = inspected(lab, "home_taken")
    assert nodes_of_hellos(lab, data) == {"n2"}
    assert inspected(lab, "home_taken") - taken == 30
    ticket = ticket_at(data)
    for byte in (0, 16, HOME_AT, 28, 31):  # in the key's name, and in the IV
        forged = bytearray(data)
        forged[ticket + byte] ^= 0x40
        before = inspected(lab, "home_taken"), inspected(lab, "home_left")
        nodes = nodes_of_hellos(lab, bytes(forged))
        now = inspected(lab, "home_taken"), inspected(lab, "home_left")
        if byte == HOME_AT:  # this is another number, of a node that is not there
            assert now == (before[0], before[1] + 30)
        else:
            assert now == before
        assert len(nodes) > 1, nodes


def drained(lab, at):
    return [drain["service"] for node in lab.status(at)["nodes"] if node["name"] == "n2" for drain in node["drained_services"]]


def test_draining(lab, how):
    """A home that takes no connections: the ring's node resumes the session."""
    session, _ = come(lab, how)
    lab.node("n1").exec(["earshot", "drain", "n2", "--service", "https"])
    try:
        wait_for(lambda: all(drained(lab, at) == ["https"] for at in ALL), "n2 that drains", 30)
        before, left = handshakes(lab), inspected(lab, "home_left")
        for _ in range(COMES):
            assert come(lab, how, session, "n3")[1]
        assert handshakes(lab)["n2"] == before["n2"]
        if how.minimum_version == secure.VERSIONS["1.3"]:
            assert inspected(lab, "home_left") - left == COMES
    finally:
        lab.node("n1").exec(["earshot", "undrain", "n2", "--service", "https"])
        wait_for(lambda: all(not drained(lab, at) for at in ALL), "n2 that serves", 30)


def test_home_is_gone(lab):
    """Nobody listens there any more: its kernel says so, and the ring's node resumes the session."""
    how = secure.context(lab, "1.3")
    session, _ = come(lab, how)
    lab.stop("n2", tls.NAME)
    try:
        for _ in range(COMES):
            assert come(lab, how, session, "n3")[1]
    finally:
        lab.start("n2", tls.NAME)

    def serves():
        sock, reader = cluster.connect(lab, how)
        with sock:
            sock.sendall(raw.head("/len/3", X_To="n2"))
            return reader.response("/len/3").node == "n2"

    wait_for(serves, "n2 that takes connections again", 30)


def test_refused_at_once(lab):
    """An answer of earshot-tls itself to the first request: after the tickets, and with a right end."""
    for _ in range(3):
        how = secure.context(lab, "1.3")
        how.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # Python passes over an end without close_notify
        sock, reader = cluster.connect(lab, how)
        with sock:
            sock.sendall(b"GET / HTTP/1.1\nHost: x\n\n")
            assert reader.response().status == 400
            assert sock.recv(1) == b""
            assert sock.tls.session.has_ticket
            assert come(lab, how, sock.tls.session)[1]


def test_ring_beside_home(lab):
    """A node that goes by the ring alone, as one of the version before does: it takes what others give, and all sessions are resumed."""
    with open(lab.config_file, encoding="utf-8") as handle:
        text = handle.read()
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(text.replace("tls {", "tls { resume = ring "))
    lab.node("n2").exec(["earshot", "reload"])
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(text)
    try:
        how = secure.context(lab, "1.3")
        taken = lab.counters("n2").get("inspect_home_taken", 0)
        moves, nodes = come_back(lab, how)
        assert moves == 0 and nodes == {"n2": COMES}
        moves, nodes = come_back(lab, how, "n1")
        assert 0 < moves < COMES and nodes == {"n1": COMES - moves, "n2": moves}
        assert lab.counters("n2").get("inspect_home_taken", 0) == taken
    finally:
        lab.node("n2").exec(["earshot", "reload"])
