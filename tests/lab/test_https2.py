# SPDX-License-Identifier: GPL-2.0-or-later
"""HTTP/2 in earshot-tls: the first request places the connection, rules hold for each stream, and a node that drains lets go of all."""
import concurrent.futures
import contextlib
import os
import random
import re
import ssl
import threading

import h2.errors
import pytest

from cluster import secure as cluster
from cluster.secure import ALL
from earshotlab import families, tls, wait_for
from web import http2
from web.backend import content
from web.http2 import Http2
from web.reader import sha256

pytestmark = pytest.mark.earshot
VERSIONS = ["1.2", "1.3"]
RULES = 'rule private { service = https  path = "/private/"  deny = yes }\n' + "".join(
    f'rule to-{node} {{ service = https  header = "X-To: {node}"  nodes = {node} }}\n' for node in ALL)
LENGTHS = [0, 1, 1000, 16384, 16385, 100_000, 3_000_000]


@pytest.fixture(scope="module", name="lab")
def _lab():
    with cluster.lab_of({"https.inspect": "every", "tls.alpn": "h2, http/1.1"}, membership="corosync", policy="wrr") as lab:
        cluster.start_backends(lab)
        with open(lab.config_file, "a", encoding="utf-8") as config:
            config.write(RULES)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab
        assert cluster.total(lab, "arrived_bad") == 0


@pytest.fixture(name="how", params=VERSIONS)
def _how(lab, request):
    return http2.context(lab, request.param)


def url(lab):
    return f"https://{families.in_url(lab.net.vip)}"


def curl(lab):
    return ["curl", "-sS", "--http2", "--max-time", "60", "--cacert", f"{tls.directory(lab.directory)}/ca.pem"]


def test_first_request(lab, how):
    """Each connection is at the node that its first request names; later ones of other nodes stay there, and are whole."""
    before = {name: cluster.total(lab, name) for name in ("moved", "stayed_pinned")}
    right = 0
    for node in ALL * 4:
        with Http2(lab, how) as client:
            place = client.get("/len/1000", X_To=node).node
            right += place == node
            for other in ALL:
                response = client.get(f"/len/2000?{other}", X_To=other)
                assert response.node == place and response.text == content(f"/len/2000?{other}", 2000)
    assert right >= 11, right  # on a machine that is busy a question may have no answer in time
    assert cluster.total(lab, "moved") > before["moved"]
    assert cluster.total(lab, "stayed_pinned") > before["stayed_pinned"]


def test_lengths(lab, how):
    """Bodies of all lengths, both ways, with a length and without."""
    for node in ALL:
        with Http2(lab, how) as client:
            for length in LENGTHS:
                assert client.get(f"/len/{length}", X_To=node).text == content(f"/len/{length}", length)
                body = random.Random(length).randbytes(length)
                assert client.upload("/upload", body, Content_Length=length, X_To=node).text.decode() == sha256(body)
                assert client.upload("/upload", body, X_To=node).text.decode() == sha256(body)


def test_curl(lab):
    """A stock client: 20 MB each way, on connections that move."""
    moved = cluster.total(lab, "moved")
    body = os.path.join(lab.directory, "body2")
    with open(body, "wb") as out:
        out.write(random.Random(1).randbytes(20 << 20))
    for node in ALL:
        argv = [*curl(lab), "-D", "-", "-H", f"X-To: {node}"]
        done = lab.client.exec([*argv, "-H", "Expect:", "--data-binary", f"@{body}", f"{url(lab)}/upload"])
        with open(body, "rb") as sent:
            assert done.stdout.startswith("HTTP/2 200") and sha256(sent.read()) in done.stdout
        done = lab.client.exec([*argv, "-o", f"{body}.got", f"{url(lab)}/len/20971520"])
        assert done.stdout.startswith("HTTP/2 200")
        with open(f"{body}.got", "rb") as got:
            assert got.read() == content("/len/20971520", 20 << 20)
    assert cluster.total(lab, "moved") > moved


def test_http1(lab):
    """A client that knows no other gets HTTP/1.1, whose requests move."""
    for node in ALL:
        done = lab.client.exec([*curl(lab)[:2], "--http1.1", *curl(lab)[3:], "-D", "-", "-H", f"X-To: {node}", f"{url(lab)}/chunks/0/0"])
        assert done.stdout.startswith("HTTP/1.1 200") and f"X-Node: {node}" in done.stdout


def test_many_streams(lab):
    """A load generator with a hundred streams on each connection: all of them are answered."""
    done = lab.client.exec(["h2load", "-n3000", "-c6", "-m100", f"{url(lab)}/len/1000"])
    assert re.search(r"3000 done, 3000 succeeded, 0 failed, 0 errored, 0 timeout", done.stdout), done.stdout
    assert "3000 2xx" in done.stdout, done.stdout


def test_nghttp(lab):
    """Another client, which sends its priorities first."""
    moved = cluster.total(lab, "moved")
    for node in 3 * ALL:  # a connection may begin where its request belongs
        done = lab.client.exec(["nghttp", "-nv", "--no-dep", "-H", f"X-To: {node}", f"{url(lab)}/len/50000", f"{url(lab)}/chunks/3/1"])
        assert f"x-node: {node}" in done.stdout and "x-trailer: yes" in done.stdout, done.stdout
    assert cluster.total(lab, "moved") > moved


def test_rules(lab, how):
    """What a rule refuses is refused on any stream, and the others go on."""
    with Http2(lab, how) as client:
        slow = client.begin("/slow/500", X_To="n1")
        client.flush()
        denied = client.get("/private/x", X_To="n1")
        assert denied.status == 403 and b"403" in denied.text
        assert not client.streams[slow].is_over
        response = client.finish(slow)
        assert response.status == 200 and response.node == "n1"
        assert client.get("/len/7", X_To="n1").text == content("/len/7", 7)
    with Http2(lab, how) as client:  # a first one, too
        assert client.get("/private/x").status == 403
        assert client.get("/len/7").status == 200


def test_slow_reader(lab):
    """A client that does not read a stream stops that one only."""
    with Http2(lab) as client:
        lazy = client.begin("/len/8000000", X_To="n1")
        client.h2.acknowledge_received_data = lambda *_: None  # no window is opened any more
        client.flush()
        while len(client.streams[lazy].text) < 60000:
            client.read()
        with Http2(lab) as other:
            for number in range(20):
                assert other.get(f"/len/{number}", X_To="n1").text == content(f"/len/{number}", number)


def test_told(lab):
    """The server hears who the client is, and it cannot lie about that."""
    with Http2(lab) as client:
        told = client.get("/head", X_Forwarded_For="6.6.6.6", X_Mine="stays", Te="trailers").text.decode()
        assert f'"x-forwarded-for": "{client.sock.getsockname()[0]}"' in told and "6.6.6.6" not in told and '"x-mine": "stays"' in told


def test_reset_flood(lab):
    """A client that begins and resets without end loses its connection (CVE-2023-44487); others are served."""
    calm = cluster.total(lab, "http2_calm")
    with Http2(lab) as client, contextlib.suppress(ssl.SSLError, ConnectionError):
        client.get("/len/1", X_To="n1")
        for _ in range(3000):
            number = client.begin("/slow/100", X_To="n1")
            client.h2.reset_stream(number, h2.errors.ErrorCodes.CANCEL)
            client.flush()
        while client.read():
            pass
    wait_for(lambda: cluster.total(lab, "http2_calm") == calm + 1, "the end of the flood")
    with Http2(lab) as client:
        assert client.get("/len/1", X_To="n1").status == 200


def asks(lab, stop, seen, errors, seed):
    """Requests until `stop`, on connections that are left when they are to be."""
    order = random.Random(seed)
    try:
        while not stop.is_set():
            with Http2(lab, timeout=30) as client:
                for _ in range(20):
                    if stop.is_set() or client.last is not None or client.is_over:
                        break
                    numbers = [client.begin(f"/len/{order.randrange(30000)}") for _ in range(order.randrange(1, 8))]
                    client.flush()
                    for number in numbers:
                        response = client.finish(number)
                        assert response.error is None and response.status == 200, (response.error, response.fields)
                        assert response.text == content(response.target, int(response.target.rpartition("/")[2]))
                        seen.append(response.node)
    except Exception as error:  # pylint: disable=broad-exception-caught
        errors.append(f"{type(error).__name__}: {error}")


@contextlib.contextmanager
def load(lab, clients=6):
    stop, seen, errors = threading.Event(), [], []
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        for seed in range(clients):
            pool.submit(asks, lab, stop, seen, errors, seed)
        try:
            yield seen, errors
        finally:
            stop.set()
    assert not errors, errors


def test_drain(lab):
    """A node that is drained lets go of its clients, no request fails, and the other nodes have them all."""
    left = cluster.counters(lab, "n2")["http2_left"]
    idle = Http2(lab)
    assert idle.get("/len/1", X_To="n2").node == "n2"
    with load(lab) as (seen, errors):
        wait_for(lambda: "n2" in seen[-100:] or errors, "requests at n2")
        lab.node("n2").exec(["earshot", "drain", "n2"])
        try:
            wait_for(lambda: (len(seen) > 300 and "n2" not in seen[-200:]) or errors, "no more requests at n2", 30,
                     lambda: (len(seen), seen[-20:]))
            while idle.read():  # who only waits is told, too, and in order
                pass
            assert idle.last == 1 and idle.error == h2.errors.ErrorCodes.NO_ERROR
        finally:
            lab.node("n2").exec(["earshot", "undrain", "n2"])
    idle.sock.close()
    assert cluster.counters(lab, "n2")["http2_left"] > left


def test_stop(lab):
    """earshot-tls ends: whoever it serves has all, and is told to leave."""
    with Http2(lab) as client:
        assert client.get("/len/1", X_To="n1").node == "n1"
        slow = client.begin("/chunks/20/50", X_To="n1")
        client.flush()
        while not client.streams[slow].fields:
            client.read()
        lab.stop("n1", tls.NAME)
        try:
            response = client.finish(slow)
            assert response.error is None and response.trailers == {"x-trailer": "yes"}
            while client.read():
                pass
            assert client.last == slow
        finally:
            lab.start("n1", tls.NAME)


def test_wrong_preface(lab):
    """A client that agrees on h2 and speaks something else is told so, and nothing goes to a server."""
    bad = cluster.total(lab, "http2_bad")
    sock = http2.Secure(lab, http2.context(lab))
    sock.sendall(b"GET /len/1 HTTP/1.1\r\nHost: x\r\n\r\n")
    data = b""
    while piece := sock.recv(1000):
        data += piece
    assert b"HTTP/1.1" not in data
    sock.close()
    assert cluster.total(lab, "http2_bad") == bad + 1
