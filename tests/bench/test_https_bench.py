# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench https: the load generator counts what it gets and what is wrong with it, and the tables are made of the medians."""
import argparse
import contextlib
import http.server
import json
import os
import ssl
import subprocess
import threading

import pytest

import https
import https_targets
from earshotlab import daemon, tls

BODY = bytes(range(256)) * 4


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with BODY; under /short/ with less than it says, under /wrong/ with another length, under /no/ with 404."""

    protocol_version = "HTTP/1.1"
    seen = []

    def do_GET(self):  # pylint: disable=invalid-name
        self.seen.append(self.path)
        kind = self.path.split("/")[1]
        body = BODY[1:] if kind in ("short", "wrong") else BODY
        self.send_response(404 if kind == "no" else 200)
        self.send_header("Content-Length", str(len(body) + (kind == "short")))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection |= kind == "short"

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Its sockets speak TLS, or without a place of certificates HTTP. What a client breaks off is no news."""

    daemon_threads = True

    def __init__(self, place, tickets):
        super().__init__(("127.0.0.1", 0), Handler)
        self.how = None
        if place:
            self.how = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.how.load_cert_chain(f"{place}/www.pem", f"{place}/www.key")
            self.how.num_tickets = tickets

    def finish_request(self, request, client_address):
        with contextlib.suppress(OSError), self.how.wrap_socket(request, server_side=True) if self.how else request as wrapped:
            self.RequestHandlerClass(wrapped, client_address, self)

    def handle_error(self, *_):
        pass


@pytest.fixture(scope="module", name="place")
def _place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("https")
    tls.make_files(directory, ["127.0.0.1"])
    return tls.directory(directory)


def measured(place, way, nodes="n1,n2,n3", share="turn", tickets=2, size=len(BODY), connections=2):
    """What the load generator says after a second; without a @place of HTTP."""
    Handler.seen.clear()
    with Server(place, tickets) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = subprocess.run(
            [daemon.binary("earshot-https-load"), "--to", f"127.0.0.1:{server.server_port}", "--mode", way,
             *(("--ca", f"{place}/ca.pem") if place else ()), "--nodes", nodes, "--share", share, "--sizes", f"1k={size}",
             "--files", "3", "--seconds", "1", "--connections", str(connections), "--threads", "1"],
            capture_output=True, text=True, timeout=30, check=True)
        server.shutdown()
    result = json.loads(done.stdout)
    result["errors"] = {kind: result[kind] for kind in https.ERRORS if result[kind]}
    return result


@pytest.mark.parametrize("way", https.WAYS)
def test_requests(place, way):
    """Whole bodies, no error, and the sessions that were asked for."""
    result = measured(place, way)
    assert result["requests"] > 5 and not result["errors"]
    assert result["bytes"] == result["requests"] * len(BODY)
    assert 0 < result["p50_us"] <= result["p90_us"] <= result["p99_us"]
    if way == "keep-alive":
        assert result["handshakes"] == 2
    else:
        assert result["handshakes"] >= result["requests"]
    assert result["resumed"] == (result["handshakes"] - 2 if way == "resume" else 0)


@pytest.mark.parametrize("way", ["keep-alive", "full"])
def test_requests_without_tls(way):
    result = measured(None, way)
    assert result["requests"] > 5 and not result["errors"] and not result["handshakes"]
    assert result["bytes"] == result["requests"] * len(BODY)
    nodes = [path.split("/")[1] for path in Handler.seen]
    assert all(nodes.count(node) > len(nodes) / 6 for node in ("n1", "n2", "n3"))


@pytest.mark.parametrize("nodes, error", [("no", "status"), ("wrong", "status"), ("short", "read")])
def test_errors_without_tls(nodes, error):
    result = measured(None, "keep-alive", nodes)
    assert result["requests"] == 0 and set(result["errors"]) == {error}


def test_not_resumed(place):
    """A server without tickets resumes nothing: nothing is offered, so that is no error, but it is told."""
    result = measured(place, "resume", tickets=0)
    assert not result["errors"] and not result["resumed"] and result["handshakes"] > 5


@pytest.mark.parametrize("nodes, error", [("no", "status"), ("wrong", "status"), ("short", "read")])
def test_errors(place, nodes, error):
    """Statuses, lengths and bodies that are not what was asked for."""
    result = measured(place, "keep-alive", nodes)
    assert result["requests"] == 0 and set(result["errors"]) == {error}


def test_certificate(place, tmp_path):
    """Another authority's certificate is not taken."""
    tls.make_files(tmp_path, ["127.0.0.1"])
    os.replace(f"{tls.directory(tmp_path)}/ca.pem", f"{place}/other-ca.pem")
    os.rename(f"{place}/ca.pem", f"{place}/right-ca.pem")
    os.rename(f"{place}/other-ca.pem", f"{place}/ca.pem")
    try:
        assert set(measured(place, "full")["errors"]) == {"handshake"}
    finally:
        os.rename(f"{place}/right-ca.pem", f"{place}/ca.pem")


def test_shares(place):
    """In turn, nodes are asked equally; with 0, each connection asks its own; by chance, all are."""
    names = ["n1", "n2", "n3"]
    counted = {}
    for share in ("turn", "0", "50"):
        measured(place, "keep-alive", share=share)
        counted[share] = [[path.split("/")[1] for path in Handler.seen].count(name) for name in names]
        assert all(path.split("/")[2] == "1k" and int(path.split("/")[3]) < 3 for path in Handler.seen)
    assert max(counted["turn"]) - min(counted["turn"]) <= 2
    assert counted["0"].count(0) >= 1
    assert min(counted["50"]) > 0


@pytest.mark.parametrize("way", ["resume", "full"])
def test_new_connections(place, way):
    """A ticket brings its client back to the node that served it, so the request is for another one as often as the row says."""
    names = ["n1", "n2", "n3"]
    arguments = argparse.Namespace(modes=["earshot"], shape="grid", connections=[way], shares=["0", "100"], suite="aes-256")
    here = argparse.Namespace(names=names, place=place)
    moving = [workload for workload in https.workloads(arguments, here) if workload.only == ("earshot",)]
    assert [workload.name for workload in moving] == [f"{way}, 67% move"]
    measured(place, way, share=moving[0].share, connections=1)
    asked = [path.split("/")[1] for path in Handler.seen]
    others = sum(before != after for before, after in zip(asked, asked[1:])) / len(asked)
    assert len(asked) > 30 and 0.35 < others < 0.93, (len(asked), others)


def row(mode, rate, cpu, size="1k", connection="in turn"):
    return {"mode": mode, "size": size, "connection": connection, "requests_per_s": rate, "own_us": cpu,
            "to_direct": rate / 1000, "own_to_direct": cpu / 100}


def test_tables():
    modes = ["direct", "earshot", "haproxy", "nginx-proxy"]
    cell = ("1k", https.Workload("in turn", "keep-alive", "turn", [], "", ""))
    arguments = argparse.Namespace(modes=modes, cells=[cell])
    rows = [row("direct", 1000, 100), row("earshot", 900, 120), row("haproxy", 450, 240), row("nginx-proxy", 600, 300)]
    assert https.gains(rows, arguments)[-1] == "| 1k | 1,000 (100) | 900 (120) | 450 (240) | 600 (300) | +50 | 50 |"
    assert https.markdown(rows, arguments)[-1] == "| 1k, in turn | 0.90 (1.20) | 0.45 (2.40) | 0.60 (3.00) |"


def test_moved():
    runs = [{"mode": "earshot", "size": "1k", "connection": "in turn", "counters": {"requests": 30, "moved": 10, "stayed_refused": 1}}]
    assert https.moved([row("earshot", 1, 1)], runs) == [
        "   1k in turn              earshot: 50.0% of the requests moved; stayed_refused 5.00%"]


def test_docroot(tmp_path):
    https_targets.make_docroot(tmp_path)
    assert os.path.getsize(tmp_path / "n2" / "100k" / "31") == 100 << 10
