# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that the inspector answers itself, and what rules and document root tell a policy; real servers and clients."""
import collections
import concurrent.futures
import contextlib
import datetime
import email.utils
import json
import re
import sys
import time

import pytest

from earshotlab import Lab, families, wait_for
from web import raw

pytestmark = pytest.mark.earshot

ALL = ["n1", "n2", "n3"]
RULES = """
location "/u/" {{ nodes = {{n2}} }}
location "/only/" {{ nodes = n3  otherwise = reject }}
"""


@contextlib.contextmanager
def cluster(text, service="", **options):
    """Three nodes; after their start `text` is added to their configuration, `service` to that of the service."""
    with Lab(nodes=3, **{"policy": "uri-hash", **options}) as lab:
        with open(lab.config_file, encoding="utf-8") as handle:
            before = handle.read()
        changed = re.sub(r"(\nservice web \{\n)", rf"\1{service}\n", before) + text
        assert not service or changed.count(service) == 1
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(changed)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab


@pytest.fixture(name="lab", params=["first", "every"])
def _lab(request):
    """Both ways to be refused: no socket was made yet, or one must end first."""
    with cluster(RULES.format(), settings={"service.inspect": request.param, "service.handover_cost": 0}) as lab:
        yield lab


def explain(lab, uri, *options):
    return json.loads(lab.node("n1").exec(["earshot", "explain", uri, "--json", *options]).stdout)


def curl(lab, target, *options, data=None):
    """(exit status, HTTP status, headers, body)"""
    if data:
        options += ("-H", "Expect:", "--data-binary", "@-")
    done = lab.client.exec(["curl", "-s", "-i", "--max-time", "5", *options, lab.url(target)], check=False, input=data)
    head, _, body = done.stdout.partition("\n\n")
    lines = head.split("\n")
    fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:] if ": " in line)}
    return done.returncode, int(lines[0].split()[1]) if lines[0] else None, fields, body


def lingering(lab):
    """The client's connections to the service that are not closed in order."""
    listed = [lab.client.exec(["ss", "-Htan", "state", "all", "dst", families.in_url(vip)]).stdout for vip in lab.net.vips]
    return [line for line in "".join(listed).splitlines() if line.split()[0] not in ("TIME-WAIT", "ESTAB")]


def test_refusal(lab):
    """Without the one node that may serve it, a request is answered at once, by nobody's server."""
    lab.node("n3").stop("nginx")
    before = raw.total(lab, "inspect_rejected")
    for number in range(20):
        code, status, fields, body = curl(lab, f"/only/{number}")
        assert (code, status) == (0, 503) and fields["retry-after"] == "5", (code, status, fields)
        assert fields["connection"] == "close" and int(fields["content-length"]) == len(body.encode()) > 0
        assert "x-node" not in fields
    code, status, fields, body = curl(lab, "/only/head", "--head")
    assert (code, status, body) == (0, 503, "") and int(fields["content-length"]) > 0
    # A body that nobody reads: the client hears of it, and does not hang.
    began = time.monotonic()
    code, status, _, _ = curl(lab, "/only/post", data="x" * 300000)
    assert (code, status) == (0, 503), (code, status)
    assert time.monotonic() - began < 3
    assert raw.total(lab, "inspect_rejected") >= before + 22

    def told():
        curl(lab, "/only/1")  # n3 is known to refuse for a second
        return explain(lab, "/only/1").get("status")

    assert wait_for(told, "an explanation", 5) == 503
    # Nobody is left waiting for an acknowledgment of its FIN.
    wait_for(lambda: not lingering(lab), "closed connections", 3)
    # The rest is served all the while.
    assert raw.right(raw.ask(lab.client, raw.head("/1k"))[0], "1k")
    lab.node("n3").start("nginx")
    wait_for(lambda: curl(lab, "/only/1")[1] == 404, "n3's answer", 5)  # it has no such file, and says so itself


UPLOAD = """
import http.client, sys
for size in (300000, 5000000):
    connection = http.client.HTTPConnection(sys.argv[1], timeout=10)
    connection.request("PUT", "/only/upload", b"x" * size)
    print(connection.getresponse().status)
"""


def test_refused_upload(lab):
    """A client that reads only when it has sent all reads the answer."""
    lab.node("n3").stop("nginx")
    for number in range(4):
        done = lab.client.exec([sys.executable, "-c", UPLOAD, families.in_url(lab.net.vips[number % len(lab.net.vips)])])
        assert done.stdout.split() == ["503", "503"], done
    assert raw.total(lab, "reject_dropped") > 0
    wait_for(lambda: not lingering(lab), "closed connections", 3)
    lab.node("n3").start("nginx")
    wait_for(lambda: curl(lab, "/only/1")[1] == 404, "n3's answer", 5)


def test_refused_later(lab):
    """On a connection that has been served before: the answer comes on it, in order, and ends it."""
    lab.node("n3").stop("nginx")
    for number in range(10):
        with raw.connect(lab.client) as sock:
            sock.sendall(raw.head(f"/u/1k/{number}"))
            assert raw.right(raw.receive(sock), "1k")
            sock.sendall(raw.head(f"/only/{number}"))
            if lab.options["settings"]["service.inspect"] == "first":
                continue  # it is nginx' on n2 then, which has no such file
            answer = raw.receive(sock)
            assert answer.status == 503 and answer.fields["retry-after"] == "5"
            assert sock.recv(100) == b""
    wait_for(lambda: not lingering(lab), "closed connections", 3)


@pytest.mark.wire
def test_refusals_over_a_bad_line():
    """Lost, doubled and reordered: each request has one answer, whole, and none of them a server's."""
    with cluster(RULES.format(), wires=["client"]) as lab:
        lab.wire("client").set(loss=0.05, dup=0.02, reorder=0.02)
        lab.node("n3").stop("nginx")

        def one(number):
            response, _ = raw.ask(lab.client, raw.head(f"/only/{number}", Connection="close"), timeout=20)
            return response.status, response.node

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = collections.Counter(pool.map(one, range(400)))
        assert answers == {(503, None): 400}, answers
        assert raw.total(lab, "inspect_repeated") > 0


DENY = """
rule friend {{ path = "/closed/friend/"  deny = no }}
rule closed {{ path = "/closed/"  deny = yes }}
rule old {{ path = "/old/"  deny = yes  status = 410  body = "Version 1 has ended: use /v2/ (café)." }}
"""


@pytest.mark.parametrize("inspect", ["first", "every"])
def test_denied(inspect):
    """Status and body are the rule's, no server sees the request, and each rule's refusals are counted."""
    with cluster(DENY.format(), settings={"service.inspect": inspect}) as lab:
        code, status, fields, body = curl(lab, "/closed/1")
        assert (code, status, body) == (0, 403, "403 Forbidden\n") and "retry-after" not in fields, fields
        assert "x-node" not in fields
        dated = email.utils.parsedate_to_datetime(fields["date"])
        assert abs((datetime.datetime.now(datetime.timezone.utc) - dated).total_seconds()) < 10, fields["date"]
        code, status, fields, body = curl(lab, "/old/1", data="x" * 20000)
        assert (code, status, body) == (0, 410, "Version 1 has ended: use /v2/ (café).\n"), body
        assert int(fields["content-length"]) == len(body.encode()) and fields["content-type"] == "text/plain; charset=utf-8"
        assert curl(lab, "/closed/friend/1")[1] == 404  # nginx' own answer
        told = explain(lab, "/old/1")
        assert told["status"] == 410 and told["body"].startswith("Version 1") and told["node"] is None, told
        # Whichever nodes inspected them.
        texts = [node.exec(["earshot", "metrics"]).stdout for node in lab.nodes]
        for rule in ("closed", "old"):
            line = rf'^earshot_requests_rejected_total{{service="web",rule="{rule}"}} (\d+)$'
            assert sum(int(re.search(line, text, re.M)[1]) for text in texts) == 1, rule
        assert not any('rule="friend"' in text for text in texts)


SLOW = """
rule secret { path = "/u/1k/secret/"  deny = yes  status = 410 }
rule host { host = b.example  deny = yes  status = 410 }
"""
PAUSE_S = 1.0


def asked_slowly(sock, target, at, host="a.example"):
    """What is answered to a request whose head pauses behind `at` bytes, or why nothing is."""
    text = raw.head(target, Host=host)
    sock.sendall(text[:at])
    time.sleep(PAUSE_S)
    try:
        sock.sendall(text[at:])
        return raw.receive(sock)
    except OSError as error:
        return error


@pytest.mark.parametrize("inspect", ["first", "every"])
def test_slow_heads(inspect):
    """A pause gets past no rule, and costs nobody the request, be it the first one on its connection or, where these are read,
    a later one, which stays or moves."""
    with cluster(SLOW, settings={"service.inspect": inspect, "service.handover_cost": 0, "service.load_bound": 0}) as lab:
        behind_path = len("GET /u/1k/x HTTP/1.1\r\n")
        before = raw.total(lab, "inspect_gather_acked")
        for later in (False, True) if inspect == "every" else (False,):
            served = []
            for number in range(6):
                for target, host, at, status in ((f"/u/1k/{number}", "a.example", 9, 200),
                                                 (f"/u/1k/{number}", "a.example", behind_path, 200),
                                                 ("/u/1k/secret/x", "a.example", 9, 410),
                                                 (f"/u/1k/{number}", "b.example", behind_path, 410)):
                    with raw.connect(lab.client) as sock:
                        if later:
                            sock.sendall(raw.head("/u/1k/before"))
                            assert raw.receive(sock).status == 200
                        response = asked_slowly(sock, target, at, host)
                    seen = getattr(response, "status", response)
                    assert seen == status, (later, target, host, at, seen, {
                        node.name: {k: v for k, v in lab.counters(node.name).items() if v} for node in lab.nodes})
                    served += [response.node] if status == 200 else []
            assert len(set(served)) > 1, served
        assert raw.total(lab, "inspect_gather_acked") > before
        assert not raw.total(lab, "inspect_gather_refused")


def test_heads_without_end():
    """Whether a rule refuses them nobody knows: after ten seconds they are refused, and counted by that reason."""
    with cluster(SLOW) as lab:
        for at in (9, 24):
            with raw.connect(lab.client, timeout=20) as sock:
                sock.sendall(raw.head("/u/1k/whatever")[:at])
                began = time.monotonic()
                assert raw.receive(sock).status == 408
                assert 9 < time.monotonic() - began < 15
        assert raw.total(lab, "inspect_gather_refused") == 2
        told = "".join(lab.metrics(node.name) if hasattr(lab, "metrics") else node.exec(["earshot", "metrics"]).stdout
                       for node in lab.nodes)
        assert sum(float(line.split()[1]) for line in told.splitlines() if 'rule="(unfinished)"' in line) == 2


def test_parameters_and_sizes():
    """HyLARD with a threshold: sizes come from the document root, as they are now; large files have one node each."""
    with cluster("", service='    parameters = {"threshold=10"}\n    document_root = "/DOCROOT"', policy="hylard",
                 membership="corosync") as lab:
        assert explain(lab, "/1k")["size_bytes"] == 0  # there is no such directory
        with open(lab.config_file, encoding="utf-8") as handle:
            text = handle.read()
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(text.replace('"/DOCROOT"', f'"{lab.docroot}"'))
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        told = wait_for(lambda: (seen := explain(lab, "/100k"))["size_bytes"] and seen, "the scan")
        assert told["size_bytes"] == 100 * 1024 and told["cost"] == -(-100 * 1024 // 1460), told
        node = raw.ask(lab.client, raw.head("/100k"))[0].node
        # Its set comes to n1 over the bus.
        wait_for(lambda: any("large file (threshold = 10 KB)" in step for step in explain(lab, "/100k")["steps"]),
                 "the decision of another inspector")
        told = explain(lab, "/100k")
        assert told["node"] == node, told
        assert explain(lab, "/1k")["size_bytes"] == 1024
        assert lab.status("n1")["content"][0]["document_root"]["state"] == "watched"
