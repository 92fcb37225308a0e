# SPDX-License-Identifier: GPL-2.0-or-later
"""The metrics of a real cluster: right names and right numbers, and a server that no client can hurt."""
import collections
import contextlib
import os
import re
import resource
import socket
import subprocess
import time

import pytest

from earshotlab import Lab, topology, wait_for
from web import raw

pytestmark = pytest.mark.earshot

SAMPLE = re.compile(r'^(earshot_\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)')
PAGES = [f"/u/1k/{number}" for number in range(12)]
FAMILIES = {
    "build_info", "start_time_seconds", "cluster_members", "cluster_nodes", "cluster_quorate", "ring_epoch", "ring_share_ratio", "node_up",
    "node_draining", "node_settings_differing", "requests_total", "requests_rejected_total", "handovers_total", "decision_duration_seconds",
    "handover_duration_seconds", "connections", "connections_pinned_total", "requests_active", "locality_hits_total", "server_up",
    "responses_total", "response_bytes_total", "response_time_seconds", "response_duration_seconds", "datapath_packets_total", "table_entries", "table_limit"}


def fetch(lab, node, target="/metrics", machine=None, **fields):
    """(response, text) of a node's status port, asked from another machine."""
    machine = machine or lab.node("n2" if node == "n1" else "n1")
    with raw.connect(machine, (lab.node(node).cluster_address, topology.STATUS_PORT), timeout=5) as sock:
        sock.sendall(raw.head(target, **{"Host": node, **fields}))
        response = raw.receive(sock)
    return response, response.text.decode()


def samples(text):
    """{(name, ((label, value), …)): number}; no sample is there twice."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.match(line).groups()
        key = (name, tuple(LABEL.findall(labels or "")))
        assert key not in found, line
        found[key] = float(value)
    return found


def metrics(lab, node):
    return samples(full_text(lab, node))


def full_text(lab, node):
    """The whole document: Response keeps only the beginning of a long one."""
    command = ["curl", "-sSf", "--max-time", "5", f"http://{lab.node(node).cluster_address}:{topology.STATUS_PORT}/metrics"]
    return lab.node(node).exec(command).stdout


def total(found, name, **labels):
    return sum(value for (sample, has), value in found.items() if sample == f"earshot_{name}" and labels.items() <= dict(has).items())


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="uri-hash", settings={"service.inspect": "every", "service.load_bound": 0}) as lab:
        yield lab


def by_target(lab):
    """Requests by target, as all nodes count them: those that were given to it the first time."""
    found = collections.Counter()
    for node in lab.nodes:
        of_node = metrics(lab, node.name)
        for target in lab.nodes:
            for decision in ("first", "stay", "move"):
                found[target.name] += int(total(of_node, "requests_total", target=target.name, decision=decision))
    return found


def test_families_and_promtool(lab):
    lab.client.get("/u/1k/warm")
    for node in lab.nodes:
        text = full_text(lab, node.name)
        found = samples(text)
        assert {f"earshot_{name}" for name in FAMILIES} <= {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
        done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0 and not done.stderr.strip() and not done.stdout.strip(), done
        assert total(found, "cluster_members") == 3 and total(found, "cluster_quorate") == 1
        assert total(found, "cluster_nodes") == 3 and total(found, "node_settings_differing") == 0
        assert total(found, "node_up") == 3 and total(found, "node_draining") == 0
        assert total(found, "ring_share_ratio") == pytest.approx(1)
        assert total(found, "server_up", service="web") == 1
        assert abs(total(found, "start_time_seconds") - time.time()) < 3600


def test_openmetrics(lab):
    response, _ = fetch(lab, "n1", Accept="application/openmetrics-text; version=1.0.0, text/plain;q=0.5")
    assert response.fields["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    text = lab.node("n1").exec(["earshot", "metrics", "--openmetrics"]).stdout
    assert text.endswith("# EOF\n") and "# TYPE earshot_requests counter" in text and "earshot_requests_total{" in text
    response, _ = fetch(lab, "n1")
    assert response.fields["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_requests_by_target_are_what_the_servers_say(lab):
    """First requests, and requests of persistent connections, which move or stay."""
    before, served = by_target(lab), collections.Counter()
    for page in PAGES:
        served[lab.client.get(page)[1]["X-Node"]] += 1
    for _ in range(3):
        connection = raw.http_connection(lab.client)
        for page in PAGES:
            connection.request("GET", page)
            response = connection.getresponse()
            response.read()
            served[response.headers["X-Node"]] += 1
        connection.close()
    wait_for(lambda: by_target(lab) - before == served, "the metrics say what the servers said", 5,
             seen=lambda: (by_target(lab) - before, served))
    assert len(served) == 3 and sum(served.values()) == 4 * len(PAGES)
    found = [metrics(lab, node.name) for node in lab.nodes]
    assert sum(total(each, "requests_total", decision="move") for each in found) > 0
    assert sum(total(each, "locality_hits_total", service="web") for each in found) > 0
    sent = sum(total(each, "handovers_total", result="sent") for each in found)
    assert sent == sum(total(each, "handover_duration_seconds_count") for each in found) > 0
    assert sum(total(each, "decision_duration_seconds_count") for each in found) >= sum(served.values())


def responses(lab):
    """By status class, on all nodes."""
    found = [metrics(lab, node.name) for node in lab.nodes]
    return {of: sum(int(total(each, "responses_total", service="web", **{"class": of})) for each in found)
            for of in ("2xx", "3xx", "4xx", "5xx")}


def response_bytes(lab):
    return sum(int(total(metrics(lab, node.name), "response_bytes_total", service="web")) for node in lab.nodes)


def test_response_bytes(lab):
    """All that clients get, heads included, to the byte; also of a response that is no page, and of one of many segments."""
    before, got = response_bytes(lab), 0
    for target in ["/u/1k/bytes", "/u/100k/bytes", "/nowhere", "/u/1m/bytes"] * 3:
        with raw.connect(lab.client) as sock:
            sock.sendall(raw.head(target, Connection="close"))
            while data := sock.recv(65536):
                got += len(data)
    assert got > 3 * 1100 * 1024
    wait_for(lambda: response_bytes(lab) - before == got, "all bytes in the metrics", 5, lambda: (response_bytes(lab) - before, got))


def test_responses(lab):
    """Each response that is read counts once, on the node that served it, whether or not its length was wanted."""
    wait_for(lambda: responses(lab)["2xx"] > 0, "responses of the tests before", 5)
    before = responses(lab)
    for _ in range(2):
        connection = raw.http_connection(lab.client)
        for target in ["/u/1k/counted"] * 20 + ["/nowhere"] * 5:
            connection.request("GET", target)
            connection.getresponse().read()
        connection.close()
    wait_for(lambda: {of: count - before[of] for of, count in responses(lab).items()} ==
             {"2xx": 40, "3xx": 0, "4xx": 10, "5xx": 0}, "all responses in the metrics", 5, lambda: (before, responses(lab)))
    found = [metrics(lab, node.name) for node in lab.nodes]
    assert sum(total(each, "response_time_seconds_count") for each in found) == sum(responses(lab).values())
    assert sum(total(each, "response_duration_seconds_count") for each in found) == sum(responses(lab).values())
    assert sum(total(each, "response_duration_seconds_sum") for each in found) < 60


def test_counters_go_on_after_a_reload(lab):
    before, answered = by_target(lab), responses(lab)
    assert sum(before.values()) > 0 and sum(answered.values()) > 0
    for node in lab.nodes:
        node.exec(["earshot", "reload"])
    assert by_target(lab) == before
    assert sum(responses(lab).values()) >= sum(answered.values())


def test_text_file(lab, tmp_path):
    path = tmp_path / "earshot.prom"
    lab.node("n1").exec(["earshot", "metrics", "--output", str(path)])
    assert total(samples(path.read_text(encoding="utf-8")), "cluster_members") == 3
    assert os.listdir(tmp_path) == ["earshot.prom"] and path.stat().st_mode & 0o777 == 0o644
    done = lab.node("n1").exec(["earshot", "metrics", "--output", "/nowhere/x"], check=False)
    assert done.returncode == 1 and "/nowhere/x" in done.stderr


def test_other_requests(lab):
    assert fetch(lab, "n1", "/")[0].status == 200
    assert fetch(lab, "n1", "/nothing")[0].status == 404
    with raw.connect(lab.node("n2"), (lab.node("n1").cluster_address, topology.STATUS_PORT)) as sock:
        sock.sendall(raw.head("/metrics", method="POST", Host="n1", Content_Length="5") + b"hello")
        assert raw.receive(sock).status == 405


def status_of(lab, host):
    """What n1 answers to a request with that Host; None while it has no server, amid a reload."""
    with contextlib.suppress(OSError, EOFError):
        return fetch(lab, "n1", Host=host)[0].status
    return None


def test_another_site_is_refused(lab):
    """A page of another site, whose name leads here, reads nothing; who asks by a name that is configured does, from the next reload on."""
    address = lab.node("n1").cluster_address
    for target in ("/", "/metrics", "/page.json"):
        assert fetch(lab, "n1", target, Host="rebound.attacker.example:7351")[0].status == 421
        for host in (address, f"{address}:7351", "n1:7351", "localhost:9000", None):
            assert fetch(lab, "n1", target, Host=host)[0].status == 200, host
    back = configure(lab, "n1", "", '\nstatus { names = { "status.example", "*.nodes.example" } }\n')
    try:
        wait_for(lambda: status_of(lab, "status.example") == 200, "the name is known")
        assert status_of(lab, "n1.nodes.example") == 200 and status_of(lab, "attacker.example") == 421
    finally:
        back()
    wait_for(lambda: status_of(lab, "status.example") == 421, "the name is forgotten")


def test_clients_do_not_see_it(lab):
    """It is on the cluster's network alone."""
    with pytest.raises(OSError):
        raw.connect(lab.client, (topology.VIP, topology.STATUS_PORT), timeout=2).close()
    with pytest.raises(OSError):
        raw.connect(lab.client, (lab.node("n1").public_address, topology.STATUS_PORT), timeout=2).close()


def open_connections(lab, node, number):
    """As many as can be had, from n2."""
    address = (lab.node(node).cluster_address, topology.STATUS_PORT)
    connections = []
    for _ in range(number):
        sock = lab.node("n2").socket()
        sock.setblocking(False)
        sock.connect_ex(address)
        connections.append(sock)
    return connections


@pytest.fixture(name="many")
def _many():
    """How many connections there are: as the machine allows, at most ten thousand."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield min(10000, hard - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def held(lab, node):
    """(file descriptors, bytes of memory) that the daemon has."""
    pid = lab.pid(node, "earshotd")
    with open(f"/proc/{pid}/statm", encoding="ascii") as handle:
        return len(os.listdir(f"/proc/{pid}/fd")), int(handle.read().split()[1]) * resource.getpagesize()


def test_hostile_clients(lab, many):
    """Thousands of connections, heads without an end, and a byte now and then: another machine reads on all the while, and the
    daemon grows no further than its bounds."""
    descriptors, memory = held(lab, "n1")
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(sock) for sock in open_connections(lab, "n1", many)]
        time.sleep(0.3)
        began, worst = time.monotonic(), 0
        while time.monotonic() - began < 12:
            for sock in slow:
                with contextlib.suppress(OSError):
                    sock.send(b"G")
            asked = time.monotonic()
            assert fetch(lab, "n1", machine=lab.node("n3"))[0].status == 200
            worst = max(worst, time.monotonic() - asked)
            assert lab.client.get("/u/1k/warm")[0] == 200
            has = held(lab, "n1")
            assert has[0] <= descriptors + 70 and has[1] < memory + 16_000_000, (descriptors, memory, has)
            time.sleep(0.5)
        assert worst < 2, worst
        # Each of them is over, however many bytes it has brought.
        for sock in slow:
            sock.settimeout(5)
            with contextlib.suppress(ConnectionError, TimeoutError):
                while sock.recv(65536):
                    pass
        wait_for(lambda: not established(lab), "all connections are ended", 5, seen=lambda: established(lab))


@pytest.mark.parametrize("head", [b"GET /metrics HTTP/1.1\r\nX: ", b"GET /", b"GET /metrics HTTP/1.1\r\n", b""], ids=["field", "target", "fields", "none"])
def test_heads_of_ten_megabytes(lab, head):
    """One field, a path, many fields, and no HTTP at all; several at a time."""
    _, memory = held(lab, "n1")
    rest = b"X-A: b\r\n" * 1_250_000 if head.endswith(b"\n") else b"x" * 10_000_000
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(raw.connect(lab.node("n2"), (lab.node("n1").cluster_address, topology.STATUS_PORT)))
                 for _ in range(5)]
        for sock in socks:
            with contextlib.suppress(OSError):
                sock.sendall(head + rest)
        for sock in socks:
            with contextlib.suppress(OSError):
                assert b" 200 " not in sock.recv(4096)
        assert fetch(lab, "n1", machine=lab.node("n3"))[0].status == 200
        assert held(lab, "n1")[1] < memory + 16_000_000


def established(lab):
    """Connections to n1's status port, as n1's kernel lists them."""
    shown = lab.node("n1").exec(["ss", "-Htn", "state", "established", f"sport = :{topology.STATUS_PORT}"]).stdout
    return shown.splitlines()


def configure(lab, node, old, new):
    """Another text in the configuration, for one node; returns how to go back."""
    with open(lab.config_file, encoding="utf-8") as handle:
        before = handle.read()
    with open(lab.config_file, "w", encoding="utf-8") as handle:
        handle.write(before.replace(old, new) if old else before + new)
    lab.node(node).exec(["earshot", "reload"])

    def back():
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(before)
        lab.node(node).exec(["earshot", "reload"])
    return back


def test_who_may_ask(lab):
    back = configure(lab, "n1", "", f'\nstatus {{ allow = {{"{lab.node("n3").cluster_address}/32"}} }}\n')
    try:
        assert fetch(lab, "n1", machine=lab.node("n3"))[0].status == 200
        with pytest.raises((OSError, EOFError)):
            fetch(lab, "n1", machine=lab.node("n2"))
    finally:
        back()
    assert fetch(lab, "n1", machine=lab.node("n2"))[0].status == 200


def test_port_in_use(lab):
    """The daemon serves clients without it, says so once, `check` names it, and it works when the port is free."""
    node = lab.node("n1")
    with node.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((node.cluster_address, 7399))
        holder.listen()
        back = configure(lab, "n1", "", "\nstatus { port = 7399 }\n")
        try:
            told = lab.status("n1")["metrics"]
            assert told["port"] == 7399 and "Address already in use" in told["error"]
            assert lab.client.get("/u/1k/warm")[0] == 200
            control = f"/run/earshot/{node.environment()['EARSHOT_NODE']}.sock"
            found = node.exec(["earshot", "check", "--config", lab.config_file, "--control", control], check=False).stdout
            assert "metrics cannot be read" in " ".join(found.split()) and "Address already in use" in " ".join(found.split())
            holder.close()
            wait_for(lambda: lab.status("n1")["metrics"]["error"] == "", "the port is taken", 10)
        finally:
            back()
    assert fetch(lab, "n1")[0].status == 200
