# SPDX-License-Identifier: GPL-2.0-or-later
"""inspect = every, as clients see it: at full speed, with bad cables, and beside clients that mean no good."""
import contextlib
import functools
import itertools
import os
import socket
import time

import pytest

import raw
from earshotlab import Lab, server
from every import MOVES, NODES, SETTINGS, Mover, ask, homes, sha256, snmp, start_backends, steps, there_and_back, walk
from loading import check_impaired
from test_moves import connection

pytestmark = pytest.mark.earshot

SECONDS = float(os.environ.get("EARSHOT_EVERY_SECONDS", "10"))
LINKS = ("client", *(f"n{number}-{network}" for number in range(1, NODES + 1) for network in ("pub", "clu")))
FILES = {f"f{size}": size for size in (1, 200, 1000, 1377, 5000, 13000, 60000, 200000)}
SMALL = [name for name, size in FILES.items() if size <= 5000]


def odd(text):
    """A request head by hand; @ is a target of the server that is asked."""
    return text.replace("\n", "\r\n")


HIDDEN = "GET /len/77?hidden HTTP/1.1\r\nHost: x\r\n\r\n"
SMUGGLING = {
    "length-and-chunked": odd("POST @ HTTP/1.1\nHost: x\nContent-Length: 45\nTransfer-Encoding: chunked\n\n0\n\n"),
    "chunked-and-length": odd("POST @ HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nContent-Length: 4\n\n0\n\n"),
    "two-lengths": odd("POST @ HTTP/1.1\nHost: x\nContent-Length: 0\nContent-Length: 40\n\n"),
    "length-list": odd("POST @ HTTP/1.1\nHost: x\nContent-Length: 0, 40\n\n"),
    "bare-cr": odd("GET @ HTTP/1.1\nHost: x") + "\rContent-Length: 40\r\n\r\n",
    "folded": odd("POST @ HTTP/1.1\nHost: x\nContent-Length:\n 40\n\n"),
    "folded-coding": odd("POST @ HTTP/1.1\nHost: x\nTransfer-Encoding:\n chunked\n\n0\n\n"),
    "space-before-colon": odd("POST @ HTTP/1.1\nHost: x\nContent-Length : 40\n\n"),
    "chunk-size-overflow": odd("POST @ HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n10000000000000002\n"),
    "chunk-size-sign": odd("POST @ HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n+0\n\n"),
}


def answers(sock, patience=5):
    """All that comes until the end of the stream, or, if something came, until it is silent."""
    data, begin = b"", time.monotonic()
    while True:
        sock.settimeout(0.3 if data else patience)
        try:
            piece = sock.recv(65536)
        except socket.timeout:
            assert data, f"no answer and no end in {patience} s"
            return data, False
        except ConnectionResetError:
            piece = b""
        if not piece:
            return data, True
        data += piece
        assert time.monotonic() - begin < 2 * patience


def check_smuggling(lab, shape, upload, own, behind):
    """The odd request and what is behind it: answered from one node, and by nobody else's bytes."""
    with connection(lab) as (sock, reader):
        node = own(sock, reader)
        sock.sendall(SMUGGLING[shape].replace("@", upload).encode() + (HIDDEN.encode() if behind == "glued" else b""))
        if behind == "apart":
            time.sleep(0.002)
            sock.sendall(HIDDEN.encode())
        data, ended = answers(sock)
        if behind == "after" and not ended:
            sock.sendall(HIDDEN.encode())
            data += answers(sock)[0]
        nodes = {line for line in data.split(b"\r\n") if line.lower().startswith(b"x-node:")}
        assert data.startswith(b"HTTP/1.1 ") and len(nodes) <= 1, (node, data)
        assert data.count(b"HTTP/1.1 ") <= 3, data
        assert b"?victim" not in data
        for _, target in steps(lab, 12) if hasattr(lab, "homes") else ():
            assert content(target, 64) not in data


@pytest.mark.parametrize("shape", SMUGGLING)
def test_smuggling_beside_a_victim(lab, shape):
    """While victims' connections move: glued to the odd request, right behind it, or after its answer."""
    with Mover(lab), Mover(lab, 1):
        for behind in ("glued", "apart", "after"):
            for number in range(2):
                check_smuggling(lab, shape, "/upload",
                                lambda sock, reader, n=number: ask(sock, reader, steps(lab, 3, n)), behind)
