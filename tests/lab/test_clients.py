# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients with and without TCP's options: whatever they offered, the server's socket has it in the end."""
import contextlib
import hashlib
import json
import random
import re
import socket
import statistics
import time

import pytest

from earshotlab import Lab, families, netns, wait_for
from web import raw

pytestmark = pytest.mark.earshot

PLAIN = {"tcp_timestamps": 1, "tcp_sack": 1, "tcp_window_scaling": 1, "tcp_ecn": 2}
ALL = {"ts", "sack", "wscale"}
# What the client's kernel is set to, its TCP_MAXSEG, and what the server's socket must have.
CLIENTS = {
    "all-options": ({}, None, ALL),
    "no-timestamps": ({"tcp_timestamps": 0}, None, ALL - {"ts"}),
    "no-sack": ({"tcp_sack": 0}, None, ALL - {"sack"}),
    "no-window-scaling": ({"tcp_window_scaling": 0}, None, ALL - {"wscale"}),
    "windows": ({"tcp_timestamps": 0, "tcp_ecn": 0}, None, ALL - {"ts"}),
    "nothing": ({"tcp_timestamps": 0, "tcp_sack": 0, "tcp_window_scaling": 0}, None, set()),
    "mss-536": ({}, 536, ALL),
    "mss-536-nothing": ({"tcp_timestamps": 0, "tcp_sack": 0, "tcp_window_scaling": 0}, 536, set()),
    "mss-1300": ({}, 1300, ALL),
    "ecn": ({"tcp_ecn": 1}, None, ALL | {"ecn"}),
    "ecn-no-timestamps": ({"tcp_ecn": 1, "tcp_timestamps": 0}, None, ALL - {"ts"} | {"ecn"}),
}
BIG = 24 << 20


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="wrr") as lab:
        yield lab


@contextlib.contextmanager
def sysctls(lab, values):
    """The client's TCP sysctls for a while."""
    def put(these):
        netns.set_sysctls(lab.net.client, {f"net.ipv4.{key}": value for key, value in these.items()})

    put({**PLAIN, **values})
    try:
        yield
    finally:
        put(PLAIN)


def limit(mss):
    """For raw.connect(): a socket that announces that MSS."""
    return (lambda sock: sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss)) if mss else None


def server_socket(lab, port):
    """(node, what `ss` says) of the socket that serves a client port."""
    for node in lab.nodes:
        text = node.exec(["ss", "-Htino", "state", "established", "dport", "=", f":{port}"]).stdout
        if text:
            return node.name, text
    return None


def upload(lab, body, before=None, address=None):
    """POST the body; seconds."""
    response, seconds = raw.ask(lab.client, raw.head("/upload", "POST", Content_Length=len(body)) + body,
                                before=before, address=address, timeout=30)
    assert json.loads(response.text)["sha256"] == hashlib.sha256(body).hexdigest()
    return seconds


def retransmitted(lab):
    """Segments that any node had to send, or thought it had to send, again, but for those of handshakes.

    A node without BPF and module shakes hands with itself and has the SYN-ACK repeated.
    """
    rows = [node.exec(["grep", "-h", "^Tcp", "/proc/net/snmp", "/proc/net/netstat"]).stdout.splitlines() for node in lab.nodes]
    counts = [{name: int(value) for at in (0, 2) for name, value in zip(lines[at].split()[1:], lines[at + 1].split()[1:])}
              for lines in rows]
    return sum(count["RetransSegs"] - count["TCPSynRetrans"] for count in counts)


@pytest.mark.parametrize("what", CLIENTS)
def test_transfers_and_options(lab, what):
    settings, mss, options = CLIENTS[what]
    body = random.randbytes(1 << 20)
    nodes = set()
    with sysctls(lab, settings):
        for number in range(40):  # handed over, and served by the node that inspected
            if number > 5 and len(nodes) == 3:
                break
            response, _ = raw.ask(lab.client, raw.head("/1m", Connection="close"), before=limit(mss))
            assert raw.right(response, "1m")
            upload(lab, body, limit(mss))
            with raw.connect(lab.client, before=limit(mss)) as sock:
                sock.sendall(raw.head("/slow/200"))
                node, text = wait_for(lambda: server_socket(lab, sock.getsockname()[1]), "a socket at a server", 2)
                assert raw.receive(sock).node == node
            words = {word.split(":")[0] for word in text.split()}
            assert words & {"ts", "sack", "wscale", "ecn"} == options, text
            if "wscale" in options:
                # The client's is what its tcp_rmem makes of it, ours is receive_window_scale.
                assert re.search(r" wscale:10,10 ", text), text
            # Of IPv6, no link takes less than 1,280 bytes, and the kernel believes no smaller segment.
            largest = max(mss or 1460, 1220) - 20 * (not mss) if families.has6(lab.net.family) else mss or 1460
            largest -= 12 if "ts" in options else 0
            assert largest - 100 < int(re.search(r" mss:(\d+)", text)[1]) <= largest, text
            nodes.add(node)
    assert len(nodes) == 3


def test_a_long_way(tmp_path):
    """20 ms there and back: only with the window scaling that was offered in the handshake is it as fast as directly."""
    (tmp_path / "big").write_bytes(data := random.randbytes(BIG))
    digest = hashlib.sha256(data).hexdigest()
    with Lab(nodes=2, policy="wrr", docroot=str(tmp_path), wires=["client"]) as lab:
        service, direct = raw.service(lab), (lab.node("n1").public_address, 80)
        lab.wire("client").set("in", delay="20ms")
        down, up = {service: [], direct: []}, {service: [], direct: []}
        for _ in range(3):
            for address, seconds in down.items():
                response, took = raw.ask(lab.client, raw.head("/big"), address=address, timeout=30)
                assert response.digest.hexdigest() == digest
                seconds.append(took)
            for address, seconds in up.items():
                seconds.append(upload(lab, data, address=address))
        for name, times in (("download", down), ("upload", up)):
            ratio = statistics.median(times[direct]) / statistics.median(times[service])
            print(f"{name}: {BIG / statistics.median(times[direct]) / 1e6:.0f} MB/s directly, x {ratio:.2f} by the cluster",
                  times)
            assert ratio > 0.5, (name, times)
        # What the rebuilt socket believes of the round trip is measured, not taken from a handshake it never had.
        lab.wire("client").set("in", delay="300ms")
        before = retransmitted(lab)
        for _ in range(4):
            assert raw.ask(lab.client, raw.head("/big", Range="bytes=0-99999"))[0].size == 100000
        assert retransmitted(lab) == before
        lab.wire("client").set("in", delay="20ms")
        # The same without window scaling, to see that the test can tell: 64 KB in 20 ms are 3 MB/s.
        with sysctls(lab, {"tcp_window_scaling": 0}):
            begin = time.monotonic()
            with raw.connect(lab.client) as sock:
                sock.sendall(raw.head("/big", Range=f"bytes=0-{(4 << 20) - 1}"))
                assert raw.receive(sock).size == 4 << 20
            assert (4 << 20) / (time.monotonic() - begin) < BIG / statistics.median(down[service]) / 2
