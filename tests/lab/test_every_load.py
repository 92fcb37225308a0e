# SPDX-License-Identifier: GPL-2.0-or-later
"""inspect = every, as clients see it: at full speed, with bad cables, and beside clients that mean no good."""
import functools
import itertools
import os
import socket
import time

import pytest

from cluster.every import MOVES, NODES, SETTINGS, Mover, ask, homes, snmp, start_backends, steps, there_and_back, walk
from earshotlab import Lab, server
from web import raw
from web.backend import content
from web.reader import connection, sha256

pytestmark = pytest.mark.earshot

SECONDS = float(os.environ.get("EARSHOT_EVERY_SECONDS", "10"))
LINKS = ("client", *(f"n{number}-{network}" for number in range(1, NODES + 1) for network in ("pub", "clu")))
FILES = {f"f{size}": size for size in (1, 200, 1000, 1377, 5000, 13000, 60000, 200000)}
SMALL = [name for name, size in FILES.items() if size <= 5000]
TCP = ("ActiveOpens", "EstabResets", "OutRsts")  # of the client: connects, connections broken, packets to no connection


@pytest.fixture(scope="module", name="docroot")
def _docroot(tmp_path_factory):
    directory = tmp_path_factory.mktemp("files")
    for name, size in FILES.items():
        (directory / name).write_bytes(server.file_content(name, size))
    return str(directory)


@pytest.fixture(scope="module", name="nginx")
def _nginx(docroot):
    with Lab(nodes=NODES, policy="uri-hash", docroot=docroot, settings=SETTINGS) as lab:
        yield lab


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=NODES, policy="uri-hash", server="none", settings=SETTINGS) as lab:
        start_backends(lab)
        lab.homes = homes(lab, (f"/len/{300 + 37 * number}?{number}" for number in itertools.count()), 12)
        yield lab


def files(names):
    """Endless targets, the names in turns."""
    return (f"/u/{name}/{number}" for number in itertools.count() for name in names)


@functools.lru_cache(None)
def digest(target):
    name = target.split("/")[2]
    return sha256(server.file_content(name, FILES[name]))


def visited(walkers):
    """Each connection has been on the nodes that it should have been on."""
    for walker in walkers:
        assert len(set(walker.seen)) == (NODES if MOVES else 1), walker.seen
    return sum(len(walker.seen) for walker in walkers)


def test_there_and_back_at_full_speed(nginx):
    """64 connections: A, B, A, C, A, D, ... No connection breaks, no packet is sent to one that is over."""
    lists = homes(nginx, files(SMALL), 15)
    before = snmp(nginx, *TCP, "TCPChallengeACK")
    segments = snmp(nginx, "OutSegs", "RetransSegs")
    count = visited(walk(nginx, [there_and_back(lists, number) for number in range(64)], digest, seconds=SECONDS))
    assert snmp(nginx, *TCP, "TCPChallengeACK") == [before[0] + 64, *before[1:]]
    sent, again = (after - earlier for after, earlier in zip(snmp(nginx, "OutSegs", "RetransSegs"), segments))
    print(f"{count / SECONDS:.0f} requests/s, {again} of {sent} segments retransmitted")
    assert count > 500 * SECONDS and again < 0.005 * count  # a move that loses its request would show here


@pytest.mark.wire
def test_every_cable_bad(docroot):
    """1% lost, doubled and late on each link at once, bodies up to 200 KB. What cannot move for once, because something
    of the request before is under way again, is served where it is."""
    with Lab(nodes=NODES, policy="uri-hash", docroot=docroot, settings=SETTINGS, wires=LINKS, segment=True) as lab:
        lists = homes(lab, files(FILES), 3 * len(FILES))
        for link in LINKS:
            lab.wire(link).zero()
            lab.wire(link).set(loss=0.01, dup=0.01, reorder=0.01)
        before = snmp(lab, *TCP)
        patterns = [there_and_back(lists, number) for number in range(48)]
        count = visited(walk(lab, patterns, digest, seconds=1.5 * SECONDS, strays=0.005))
        assert snmp(lab, *TCP) == [before[0] + 48, *before[1:]]
        stats = [lab.wire(link).stats()[direction] for link in LINKS for direction in ("in", "out")]
        frames = sum(each["received"] for each in stats)
        rates = [sum(each[what] for each in stats) / frames for what in ("lost", "duplicated", "reordered")]
        print(f"{count} requests, {frames} frames, of which lost, doubled, late: {rates}")
        assert count > 20 * SECONDS and all(0.007 < rate < 0.013 for rate in rates)
        assert all(lab.wire(link).stats()["in"]["lost"] for link in LINKS if MOVES or not link.endswith("-clu"))


HIDDEN = b"GET /len/77?hidden HTTP/1.1\r\nHost: x\r\n\r\n"
SMUGGLING = {  # a line end is \n here, @ the server's target for uploads
    "length-and-chunked": "POST @ HTTP/1.1\nHost: x\nContent-Length: 45\nTransfer-Encoding: chunked\n\n0\n\n",
    "chunked-and-length": "POST @ HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nContent-Length: 4\n\n0\n\n",
    "two-lengths": "POST @ HTTP/1.1\nHost: x\nContent-Length: 0\nContent-Length: 40\n\n",
    "length-list": "POST @ HTTP/1.1\nHost: x\nContent-Length: 0, 40\n\n",
    "bare-cr": "GET @ HTTP/1.1\nHost: x\rContent-Length: 40\n\n",
    "folded": "POST @ HTTP/1.1\nHost: x\nContent-Length:\n 40\n\n",
    "folded-coding": "POST @ HTTP/1.1\nHost: x\nTransfer-Encoding:\n chunked\n\n0\n\n",
    "space-before-colon": "POST @ HTTP/1.1\nHost: x\nContent-Length : 40\n\n",
    "chunk-size-overflow": "POST @ HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n10000000000000002\n",
    "chunk-size-sign": "POST @ HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n+0\n\n",
}
assert len(HIDDEN) == 40


def answers(sock, patience=5.0):
    """What comes until the stream ends or is silent, and whether it ended."""
    data = b""
    while True:
        sock.settimeout(0.2 if data else patience)
        try:
            piece = sock.recv(65536)
        except socket.timeout:
            return data, False
        except ConnectionResetError:
            piece = b""
        if not piece:
            return data, True
        data += piece


def smuggle(lab, good, odd, behind):
    """All that is answered to the odd request and to what is hidden behind it, which comes glued to it, apart, or after
    its answer."""
    with connection(lab) as (sock, reader):
        good(sock, reader)
        sock.sendall(odd + (HIDDEN if behind == "glued" else b""))
        data, ended = b"", False
        if behind == "apart":
            time.sleep(0.002)
        elif behind == "after":  # some servers wait for a body here
            data, ended = answers(sock, 0.5)
        try:
            if behind != "glued" and not ended:
                sock.sendall(HIDDEN)
        except (ConnectionResetError, BrokenPipeError):
            pass
        if not ended:
            more, ended = answers(sock)
            data += more
    assert ended or data, "neither an answer nor an end in 5 s"
    return data


def check_smuggling(lab, shape, upload, good, foreign):
    """One node gives all answers, and nobody else's bytes are in them; to the others nothing happens."""
    odd = SMUGGLING[shape].replace("@", upload).replace("\n", "\r\n").encode()
    for behind in ("glued", "apart", "after"):
        for number in range(2):
            data = smuggle(lab, lambda sock, reader, n=number: good(sock, reader, n), odd, behind)
            assert not data or data.startswith(b"HTTP/1.1 "), data
            nodes = {line for line in data.split(b"\r\n") if line.startswith(b"X-Node: ")}
            assert len(nodes) <= 1 and data.count(b"HTTP/1.1 ") <= 2, (behind, data)
            assert not any(text in data for text in foreign), (behind, data)


@pytest.mark.parametrize("shape", SMUGGLING)
def test_smuggling_beside_victims(lab, shape):
    """A server that refuses most of it."""
    foreign = [content(target, 64) for targets in lab.homes.values() for target in targets]
    with Mover(lab), Mover(lab, 1):
        check_smuggling(lab, shape, "/upload", lambda sock, reader, n: ask(sock, reader, steps(lab, 3, n)), foreign)


@pytest.mark.parametrize("shape", SMUGGLING)
def test_smuggling_to_nginx(nginx, shape):
    """nginx answers some of the shapes, and then reads what is hidden as a request or as a body."""
    lists = homes(nginx, files(["f1377"]), 3)

    def good(sock, reader, number):
        for _, target in itertools.islice(there_and_back(lists, number), 3):
            sock.sendall(raw.head(target))
            assert reader.response().digest.hexdigest() == digest(target)

    check_smuggling(nginx, shape, "/upload", good, [server.file_content("f1377", 64)])
