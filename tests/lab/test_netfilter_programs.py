# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that hand connections over, in one cluster of nodes with the netfilter datapath and a BPF node: what differs there, where
connections that are handed over have another name for their servers than for their clients."""
import contextlib
import errno
import hashlib
import itertools
import json
import pathlib
import random
import signal
import sys
import time

import pytest

from cluster import conntrack
from cluster.programs import ALL, ask, at, right, serve
from earshotlab import Lab, topology, wait_for
from web import raw, routers

pytestmark = pytest.mark.earshot

NETFILTER = ["n2", "n3"]
TABLE = "earshot-translate"
OWN = {"4": "169.254.69.2", "6": "fd45:6172:7368:6f74::2"}  # of the second service: netfilter/rules/translation.h


@pytest.fixture(scope="module", name="lab", params=["4", "6"], ids=["v4", "v6"])
def _lab(request):
    with Lab(nodes=3, policy="uri-hash", datapath="bpf", node_datapath={name: "netfilter" for name in NETFILTER},
             family=request.param) as lab, contextlib.ExitStack() as stack:
        serve(lab, stack)
        lab.free_ports = {name: raw.ports(lab, name, 20000, "programs") for name in ALL}
        yield lab


def connect(lab, program):
    """A connection to that node's program."""
    return raw.connect(lab.client, at(lab), port=next(lab.free_ports[program]), timeout=20)


def handed_over(lab, program, target, uri="/1k"):
    """A connection that is with that node's server."""
    sock = connect(lab, program)
    sock.sendall(raw.head(uri, X_To=target))
    response = raw.receive(sock)
    assert response.status == 200 and response.node == target, (program, target, response.status, response.fields)
    return sock


def goes_on(sock, target):
    sock.sendall(raw.head("/100k"))
    response = raw.receive(sock)
    assert right(response) and response.node == target


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("program", ALL)
def test_each_to_each(lab, program, target):
    """Both ways, and what comes behind: 100 KB of it are with the kernel when the program hands over, more with the client."""
    made = lab.counters(target)["connection_rebuilt"]
    body = random.Random(program + target).randbytes(700_000)
    told = json.loads(ask(lab, "/upload", "POST", body, connect=connect(lab, program), X_To=target, X_Linger=50).text)
    assert told["bytes"] == len(body) and told["sha256"] == hashlib.sha256(body).hexdigest()
    assert right(ask(lab, "/1m", connect=connect(lab, program), X_To=target), "1m")
    with handed_over(lab, program, target) as sock:
        goes_on(sock, target)
    assert lab.counters(target)["connection_rebuilt"] == made + 3


def test_conntrack_that_is_flushed(lab):
    """Open connections go on, also such that another daemon has made: their translation is made again with their entries."""
    for program in ("n1", "n2"):
        with handed_over(lab, program, "n3") as sock, handed_over(lab, program, "n2") as other:
            for step in ("flushed", "by the next daemon", "flushed again"):
                if step.startswith("flushed"):
                    conntrack.flush(lab.node("n3"))
                else:
                    lab.node("n3").signal("earshotd", signal.SIGKILL)
                    goes_on(sock, "n3")  # nobody is needed for that
                    lab.node("n3").start("earshotd")
                goes_on(sock, "n3")
            goes_on(other, "n2")


def test_rules_that_are_flushed(lab):
    """With them goes what makes the kernel translate."""
    node = lab.node("n2")
    with handed_over(lab, "n1", "n2") as sock:
        node.exec(["nft", "flush", "ruleset"])
        wait_for(lambda: TABLE in node.exec(["nft", "list", "tables"]).stdout, "the table is there again")
        goes_on(sock, "n2")
    handed_over(lab, "n1", "n2").close()


def test_server_that_resets(lab):
    """Its client believes the RST, and nothing of the connection is left."""
    for program, target in itertools.product(ALL, NETFILTER):
        with handed_over(lab, program, target, "/1m") as sock:
            lab.node(target).exec(["ss", "-K", "-tn", f"dport = :{sock.getsockname()[1]}"])
            with pytest.raises(ConnectionResetError):
                sock.recv(1)


def test_path_mtu(lab):
    """What routers quote has the service's address, and the socket that must hear it another one."""
    for program, target in itertools.product(ALL, NETFILTER):
        with handed_over(lab, program, target) as sock:
            node, port = lab.node(target), sock.getsockname()[1]
            routers.say_too_big(lab, sock, 1300)
            wait_for(lambda node=node, port=port: "pmtu:1300" in node.exec(["ss", "-Htin", "dport", "=", f":{port}"]).stdout,
                     f"{target} hears", seen=lambda node=node, port=port: node.exec(["ss", "-Htin", "dport", "=", f":{port}"]).stdout)
            goes_on(sock, target)


def test_one_port_of_a_client_for_both(lab):
    """A client may have a connection to the program's service and one to the server's, by one port of its own."""
    port = next(lab.free_ports["n1"])
    with raw.connect(lab.client, at(lab), port=port, timeout=20) as program, \
            raw.connect(lab.client, (lab.net.vip, topology.PORT), port=port, timeout=20) as web:
        program.sendall(raw.head("/1k", X_To="n2"))
        assert raw.receive(program).node == "n2"
        served = set()
        for number in range(20):
            web.sendall(raw.head(f"/u/1k/{number}"))
            served.add(raw.receive(web).node)
            goes_on(program, "n2")
        assert len(served) == 1  # its first request has decided


def test_one_port_of_a_client_for_two_programs(lab):
    """Two services whose programs hand over to one server."""
    port = next(lab.free_ports["n2"])
    for _ in range(2):
        with raw.connect(lab.client, at(lab), port=port, timeout=20) as first, \
                raw.connect(lab.client, at(lab, "example"), port=port, timeout=20) as second:
            first.sendall(raw.head("/1k", X_To="n2"))
            assert raw.receive(first).node == "n2"
            second.sendall(raw.head("/upload", "POST", Content_Length=4) + b"body")
            assert raw.receive(second).node == "n2"
            goes_on(first, "n2")
            goes_on(second, "n2")
        time.sleep(0.3)


def test_ports_in_time_wait(lab):
    """A client comes again at once by the port of a connection that its server has just closed. Its SYN must not seem to be from before, and the
    sender, which may not have heard yet that the one before is over, hands over this one."""
    for program, target in itertools.product(NETFILTER, NETFILTER):
        port = next(lab.free_ports[program])
        for _ in range(3):
            with raw.connect(lab.client, at(lab), port=port, timeout=20) as sock:
                sock.sendall(raw.head("/100k", Connection="close", X_To=target))
                response = raw.receive(sock)
                assert right(response) and response.node == target, (program, target, response.status, response.fields)
                assert not sock.recv(1)
            assert lab.node(target).exec(["ss", "-Htn", "state", "time-wait", "dport", "=", f":{port}"]).stdout


def close(lab, port, target):
    """A request whose server closes the connection behind its response."""
    with raw.connect(lab.client, at(lab), port=port, timeout=20) as sock:
        sock.sendall(raw.head("/1k", Connection="close", X_To=target))
        response = raw.receive(sock)
        assert right(response, "1k") and response.node == target, (response.status, response.text)
        assert not sock.recv(1)


def test_ports_of_a_handover_that_is_not_over(lab):
    """The sender has not heard that its server has had it, and closed it: the client comes again by its ports, and is handed over."""
    node = lab.node("n2")
    for _ in range(3):
        port = next(lab.free_ports["n2"])
        # Of the target's answers, only that it is ready (kmod/core/handover.h: enum es_program_answer) leaves.
        node.exec(["nft", "table inet deaf { chain out { type filter hook output priority 0; oif lo udp sport 7350 @th,184,8 != 1 drop; }; }"])
        try:
            close(lab, port, "n2")
        finally:
            node.exec(["nft", "delete table inet deaf"])
        close(lab, port, "n2")


def test_connection_of_a_daemon_before(lab):
    """It is not known when its client's clock began, so it stays, and the program answers."""
    with connect(lab, "n2") as sock:
        sock.sendall(raw.head("/", X_Hello=10))
        assert raw.receive(sock).node == "program"
        lab.node("n2").signal("earshotd", signal.SIGKILL)
        lab.node("n2").start("earshotd")
        sock.sendall(raw.head("/1k", X_To="n3"))
        response = raw.receive(sock)
        assert response.status == 299 and json.loads(response.text) == [-errno.EAGAIN]
    handed_over(lab, "n2", "n3").close()


def test_load_is_seen(lab):
    """Connections that are handed over count as those of the program's service."""
    def seen():
        return {service["name"]: service["connections"] for service in lab.status("n2")["services"]}

    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(handed_over(lab, "n1", "n2"))
        wait_for(lambda: seen()["programs"] >= 20, "the load", seen=seen)


LISTENER = """
import socket, sys, time
with socket.create_server((sys.argv[1], int(sys.argv[2])), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET):
    time.sleep(300)
"""


def nothing_listens(lab, node):
    """Where `earshot check` misses a listening socket."""
    told = json.loads(lab.node(node).exec(["earshot", "--json", "check", "--config", lab.config_of(node)], check=False).stdout)
    return [finding["found"] for finding in told["findings"] if finding["id"] == "server.listen" and finding["severity"] != "ok"]


def test_server_on_a_loopback_address_alone(lab):
    """No connection from a wire comes there: the program hears it, and the check says where its server must listen."""
    port, everywhere, loopback = "8099", *{"4": ("0.0.0.0", "127.0.0.1"), "6": ("::", "::1")}[lab.options["family"]]
    node = lab.node("n2")
    path = pathlib.Path(lab.config_of("n2"))
    before = path.read_text(encoding="utf-8")
    try:
        path.write_text(before.replace(f"server_port = {topology.PORT}", f"server_port = {port}", 1), encoding="utf-8")
        node.exec(["earshot", "reload"])
        for address in (loopback, everywhere):
            with listening(node, address, port), connect(lab, "n1") as sock:
                missed = [text for text in nothing_listens(lab, "n2") if port in text]
                assert len(missed) == (address == loopback) and all(OWN[lab.options["family"]] in text for text in missed), missed
                sock.sendall(raw.head("/1k", X_To="n2"))
                if address == loopback:
                    assert json.loads(raw.receive(sock).text) == [-errno.ECONNREFUSED]
                else:  # it answers nothing
                    wait_for(lambda: established(node, port), "the server has it")
    finally:
        path.write_text(before, encoding="utf-8")
        node.exec(["earshot", "reload"])


def established(node, port):
    return node.exec(["ss", "-Htn", "state", "established", "sport", "=", f":{port}"]).stdout


@contextlib.contextmanager
def listening(node, address, port):
    child = node.popen([sys.executable, "-c", LISTENER, address, port])
    try:
        wait_for(lambda: f":{port} " in node.exec(["ss", "-Htln"]).stdout, "it listens")
        yield
    finally:
        child.kill()
        child.wait()


def test_in_a_conntrack_zone():
    with Lab(nodes=2, policy="wrr", datapath="netfilter") as lab, contextlib.ExitStack() as stack:
        conntrack.put_into_zone(lab)
        serve(lab, stack)
        for target in ("n1", "n2", "self"):
            body = random.Random(target).randbytes(300_000)
            told = json.loads(ask(lab, "/upload", "POST", body, X_To=target, X_Linger=20).text)
            assert told["sha256"] == hashlib.sha256(body).hexdigest()
            assert right(ask(lab, "/1m", X_To=target), "1m")


def test_stop_leaves_nothing(lab):
    """Neither the table nor the address on lo."""
    node = lab.node("n3")
    family = lab.options["family"]
    assert TABLE in node.exec(["nft", "list", "tables"]).stdout and OWN[family] in node.exec(["ip", "addr", "show", "lo"]).stdout
    node.exec(["earshot", "stop"])
    wait_for(lambda: "earshot" not in node.exec(["nft", "list", "tables"]).stdout, "the tables are gone")
    assert OWN[family] not in node.exec(["ip", "addr", "show", "lo"]).stdout
