# SPDX-License-Identifier: GPL-2.0-or-later
"""What a node says of its earshot-tls: status, counters, metrics, and what `earshot check` makes of it."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from cluster import secure as cluster
from earshotlab import LabError, tls, topology, wait_for
from web import raw, secure

pytestmark = pytest.mark.earshot
CONNECTIONS, REQUESTS = 6, 3
RULES = "".join(f'rule to-{node} {{ service = https  header = "X-To: {node}"  nodes = {node} }}\n' for node in cluster.ALL)


@pytest.fixture(scope="module", name="lab")
def _lab():
    with cluster.lab_of({"https.inspect": "every"}) as lab:
        cluster.start_backends(lab)
        with open(lab.config_file, "a", encoding="utf-8") as config:
            config.write(RULES)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
        yield lab


def told(lab, node):
    return lab.status(node)["tls"]


def counted(lab, node):
    """The counters of the one service."""
    (service,) = told(lab, node)["services"]
    assert service["name"] == "https"
    return service["counters"]


def counts(lab, name):
    return sum(counted(lab, node)[name] for node in cluster.ALL)


def metrics(lab, node):
    """{name and labels: value} of those of earshot-tls"""
    command = ["curl", "-sSf", "--max-time", "5", f"http://{lab.node(node).cluster_address}:{topology.STATUS_PORT}/metrics"]
    text = lab.node(node).exec(command).stdout
    return {name: float(value) for name, value in re.findall(r"^(earshot_tls_\S+) (\S+)$", text, re.M)}


def metric(lab, name, **labels):
    """The sum over all nodes."""
    parts = [f'{label}="{value}"' for label, value in labels.items()]
    return sum(value for node in cluster.ALL for each, value in metrics(lab, node).items()
               if each.split("{")[0] == f"earshot_tls_{name}" and all(part in each for part in parts))


def gone(lab):
    """Connections that nodes have given away."""
    return sum(metric(lab, "moves_total", result=result) for result in ("moved", "lost"))


def ask(lab, how, times=REQUESTS):
    sock, reader = cluster.connect(lab, how)
    with sock:
        for number in range(times):
            sock.sendall(raw.head(f"/len/{number}", X_To=cluster.ALL[number % 3]))
            reader.response(f"/len/{number}")


def test_counted(lab):
    """Each connection and request once, by version, wherever it was served; and nobody is connected at the end."""
    before = {name: counts(lab, name) for name in ("full_12", "full_13", "requests", "bytes_out")}
    before_moves, before_arrivals = gone(lab), metric(lab, "arrivals_total", result="taken")
    for version in ("1.2", "1.3"):
        for _ in range(CONNECTIONS):
            ask(lab, secure.context(lab, version))
    wait_for(lambda: sum(told(lab, node)["services"][0]["connections"] for node in cluster.ALL) == 0, "all are gone")
    assert counts(lab, "full_12") - before["full_12"] == CONNECTIONS
    assert counts(lab, "full_13") - before["full_13"] == CONNECTIONS
    moves = gone(lab) - before_moves
    assert moves > 0
    assert metric(lab, "arrivals_total", result="taken") - before_arrivals == moves
    # One that moves is read where it comes from, and where it goes to.
    assert counts(lab, "requests") - before["requests"] == 2 * CONNECTIONS * REQUESTS + moves
    assert counts(lab, "bytes_out") > before["bytes_out"]
    assert metric(lab, "handshakes_total", version="1.2", kind="full") == counts(lab, "full_12")
    assert metric(lab, "requests_total") == counts(lab, "requests")
    assert metric(lab, "up") == 3 and metric(lab, "service_up") == 3 and metric(lab, "workers", state="accepting") == 6
    for node in cluster.ALL:
        assert lab.counters(node)["tls_requests"] == counted(lab, node)["requests"]
        assert cluster.counters(lab, node)["requests"] == counted(lab, node)["requests"]


def test_open_connections(lab):
    """Those that are open, of a worker that is killed too."""
    def opened():
        return sum(told(lab, node)["services"][0]["connections"] for node in cluster.ALL)

    died = {node: told(lab, node)["died"] for node in cluster.ALL}
    socks = [secure.Secure(lab, secure.context(lab)) for _ in range(5)]
    wait_for(lambda: opened() == 5, "five", 5, opened)
    for node in cluster.ALL:
        parent = lab.pid(node, tls.NAME)
        with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as children:
            for pid in children.read().split():
                os.kill(int(pid), signal.SIGKILL)
    wait_for(lambda: opened() == 0, "none", 5, opened)
    for sock in socks:
        sock.close()
    wait_for(lambda: all(told(lab, node)["workers"] == 2 for node in cluster.ALL), "workers again")
    for node in cluster.ALL:
        assert told(lab, node)["died"] == died[node] + 2
        wait_for(lambda node=node: metrics(lab, node)["earshot_tls_workers_died_total"] == died[node] + 2, "the metrics say so")
        assert len(re.findall(r"error: worker \d \(process \d+\) was ended by signal 9", cluster.log_of(lab, node))) == died[node] + 2
    assert "; 2 workers have died" in lab.node("n1").exec(["earshot", "status"]).stdout


def test_stop_and_reload_are_no_deaths(lab):
    """Workers that were told to end, or that a reload has replaced, are not counted among those that died."""
    died = {node: told(lab, node)["died"] for node in cluster.ALL}
    before = {node: cluster.workers(lab, node) for node in cluster.ALL}
    cluster.reload(lab)
    wait_for(lambda: not any(set(before[node]) & set(cluster.workers(lab, node)) for node in cluster.ALL), "other workers")
    lab.stop("n1", tls.NAME)
    lab.start("n1", tls.NAME)
    assert {node: told(lab, node)["died"] for node in cluster.ALL} == died


@pytest.mark.parametrize("reason, sent", [("no_tls", b"GET / HTTP/1.0\r\n\r\n"), ("left", b"\x16\x03\x01\x02\x00\x01")])
def test_failed(lab, reason, sent):
    """What is no handshake is counted by what it is."""
    before = metric(lab, "handshakes_failed_total", reason=reason)
    with raw.connect(lab.client, (lab.net.vip, tls.PORT)) as sock:
        sock.sendall(sent)
    wait_for(lambda: metric(lab, "handshakes_failed_total", reason=reason) == before + 1, "the failure is counted", 5,
             lambda: [{k: v for k, v in counted(lab, n).items() if v} for n in cluster.ALL])


def test_refused_by_client(lab):
    """A client that does not trust the certificate says so in an alert, and one with old ciphers finds nothing in common."""
    before = metric(lab, "handshakes_failed_total", reason="alert")
    lab.client.exec(["curl", "-s", f"https://{lab.net.vip}/"], check=False)
    wait_for(lambda: metric(lab, "handshakes_failed_total", reason="alert") == before + 1, "the alert is counted")
    before = metric(lab, "handshakes_failed_total", reason="nothing_common")
    lab.client.exec(["curl", "-sk", "--tls-max", "1.2", "--ciphers", "AES128-SHA", f"https://{lab.net.vip}/"], check=False)
    wait_for(lambda: metric(lab, "handshakes_failed_total", reason="nothing_common") == before + 1, "so is this")


def test_restarts(lab):
    """Counters go on when earshot-tls or the daemon is started anew, and while it does not run that is said."""
    ask(lab, secure.context(lab))
    before = {node: counted(lab, node) for node in cluster.ALL}
    lab.stop("n1", tls.NAME)
    try:
        assert told(lab, "n1")["running"] is False and told(lab, "n1")["workers"] == 0
        assert counted(lab, "n1")["requests"] == before["n1"]["requests"]
        wait_for(lambda: metrics(lab, "n1")["earshot_tls_up"] == 0, "the metrics say so")
        assert "TLS       earshot-tls does not run" in lab.node("n1").exec(["earshot", "status"]).stdout
        found = lab.node("n1").exec(["earshot", "check"], check=False)
        assert found.returncode == 1 and "earshot-tls does not run" in found.stdout
    finally:
        lab.start("n1", tls.NAME)
    lab.stop("n2", "earshotd")
    lab.start("n2", "earshotd")
    wait_for(lambda: told(lab, "n1")["workers"] == 2, "earshot-tls again")
    for _ in range(CONNECTIONS):
        ask(lab, secure.context(lab))
    for node in cluster.ALL:
        assert counted(lab, node)["requests"] >= before[node]["requests"]
    assert counts(lab, "requests") >= sum(each["requests"] for each in before.values()) + CONNECTIONS * REQUESTS

    def said():
        return lab.node("n1").exec(["earshot", "status"]).stdout

    wait_for(lambda: re.search(r"^https +0 +\d+", said(), re.M), "the last connection has ended", 5, said)
    assert "tls       earshot-tls, 2 workers, up " in said()
    assert "earshot-tls runs, with 2 workers" in lab.node("n1").exec(["earshot", "check", "--verbose"], check=False).stdout


def expire(lab, name):
    """NAME.pem ended in 2020, from now on."""
    place = tls.directory(lab.directory)
    files = {"index.txt": "", "serial": "01\n", "ca.cnf": "[ca]\ndefault_ca = x\n[x]\ndatabase = index.txt\nnew_certs_dir = .\n"
             "serial = serial\ndefault_md = sha256\npolicy = p\ncertificate = ca.pem\nprivate_key = ca.key\n[p]\ncommonName = supplied\n"}
    for file, text in files.items():
        with open(f"{place}/{file}", "w", encoding="ascii") as out:
            out.write(text)
    for command in (["req", "-new", "-key", f"{name}.key", "-subj", "/CN=localhost", "-out", "old.csr"],
                    ["ca", "-batch", "-notext", "-config", "ca.cnf", "-startdate", "20200101000000Z", "-enddate", "20200201000000Z",
                     "-in", "old.csr", "-out", f"{name}.pem"]):
        subprocess.run(["openssl", *command], cwd=place, capture_output=True, check=True)


def restart(lab, node="n1"):
    lab.stop(node, tls.NAME)
    lab.start(node, tls.NAME)
    wait_for(lambda: told(lab, node)["running"], "earshot-tls runs")


def service(lab, node="n1"):
    (found,) = told(lab, node)["services"]
    return found


@pytest.fixture(name="files")
def _files(lab):
    place = tls.directory(lab.directory)
    shutil.copytree(place, f"{place}.kept")
    yield place
    shutil.rmtree(place)
    os.rename(f"{place}.kept", place)
    restart(lab)


def test_start_expired(lab, files):
    """A node that starts with a certificate that has ended serves with it, and says so; a reload does not take one."""
    del files
    expire(lab, "www")
    os.kill(lab.pid("n1", tls.NAME), signal.SIGHUP)
    wait_for(lambda: "what was in force stays so" in cluster.log_of(lab, "n1"), "the reload is refused")
    assert service(lab)["problem"] == ""
    restart(lab)
    assert service(lab)["served"] and "www.pem: the certificate has expired on 2020-02-01" in service(lab)["problem"]
    assert "the service is served all the same" in cluster.log_of(lab, "n1")
    assert "TLS       service https is served: " in lab.node("n1").exec(["earshot", "status"]).stdout
    found = lab.node("n1").exec(["earshot", "check"], check=False)
    assert found.returncode == 1 and "the certificate has expired on 2020-02-01" in found.stdout
    lab.node("n1").exec(["curl", "-sSk", "--max-time", "5", "-o", "/dev/null", f"https://{lab.net.vip}/len/1"])
    # Other keys of the configuration can be changed meanwhile.
    before = cluster.log_of(lab, "n1").count("reloaded")
    os.kill(lab.pid("n1", tls.NAME), signal.SIGHUP)
    wait_for(lambda: cluster.log_of(lab, "n1").count("reloaded") > before, "a reload")


def test_start_without_key(lab, files):
    """With a key that is missing the service is not served, which is said; a reload with the key heals it."""
    os.rename(f"{files}/www.key", f"{files}/www.away")
    with pytest.raises(LabError):  # it waits for a listener
        restart(lab)
    assert told(lab, "n1")["running"]
    assert not service(lab)["served"] and f"{files}/www.key: cannot be read" in service(lab)["problem"]
    assert metrics(lab, "n1")['earshot_tls_service_up{service="https"}'] == 0
    assert "TLS       service https IS NOT SERVED: " in lab.node("n1").exec(["earshot", "status"]).stdout
    assert "service https is not served" in lab.node("n1").exec(["earshot", "check"], check=False).stdout
    os.rename(f"{files}/www.away", f"{files}/www.key")
    os.kill(lab.pid("n1", tls.NAME), signal.SIGHUP)
    wait_for(lambda: service(lab)["served"] and not service(lab)["problem"], "the service is served again")
    ask(lab, secure.context(lab))
