# SPDX-License-Identifier: GPL-2.0-or-later
"""What fails, and what is changed while it works: servers, daemons, configurations, keys."""
import contextlib
import hashlib
import http.client
import itertools
import os
import re
import signal
import socket
import statistics
import subprocess
import threading
import time

import pytest

from earshotlab import Lab, families, netns, process, wait_for
from web import raw

pytestmark = pytest.mark.earshot

FALLBACK_S = 2.0  # within that a request is answered without the daemon, whatever happened to it
URIS = [f"/u/1k/{number}" for number in range(24)]


@pytest.fixture(name="lab")
def _lab():
    # Without a load bound: a URI's place does not depend on what another test's load left behind.
    with Lab(nodes=3, policy="uri-hash", settings={"service.load_bound": 0}) as lab:
        yield lab


_next_port = itertools.cycle(range(20000, 30000))  # what the kernel never chooses: topology.py


def ports(lab, node, count):
    """Fresh client ports whose connections that node inspects."""
    return list(itertools.islice((port for port in _next_port if raw.inspector(lab, port) == node), count))


def homes(lab):
    found = {uri: raw.ask(lab.client, raw.head(uri))[0].node for uri in URIS}
    assert set(found.values()) == {"n1", "n2", "n3"}
    return found


class Slow(threading.Thread):
    """A response that a client reads slowly, until told to hurry; it must come intact."""

    CHUNKS = 30000

    def __init__(self, lab, node):
        """One that `node` inspects and serves."""
        super().__init__(daemon=True)
        self.hurry = threading.Event()
        self.size = 0
        self.error = None
        for number in range(200):
            self.sock = raw.connect(lab.client, port=ports(lab, node, 1)[0], timeout=10)
            self.sock.sendall(raw.head(f"/chunked/{self.CHUNKS}?{number}"))
            self.response = http.client.HTTPResponse(self.sock)
            self.response.begin()
            if self.response.getheader("X-Node") == node:
                break
            raw.reset(self.sock)
        else:
            raise AssertionError(f"{node} serves nothing")
        self.start()

    def run(self):
        digest = hashlib.sha256()
        try:
            while piece := self.response.read(20000):
                digest.update(piece)
                self.size += len(piece)
                self.hurry.wait(0.05)  # 400 KB/s
        except (OSError, http.client.HTTPException) as error:
            self.error = error
        whole = hashlib.sha256(b"".join(b"%010d" % number * 100 for number in range(self.CHUNKS)))
        if not self.error and digest.digest() != whole.digest():
            self.error = ValueError(f"{self.size} bytes, not the right ones")
        self.sock.close()

    def check(self):
        assert self.is_alive(), self.error or "over too early"
        size = self.size
        wait_for(lambda: self.size > size, "progress of a slow transfer", 3)

    def finish(self):
        self.check()
        self.hurry.set()
        self.join(30)
        assert not self.is_alive() and self.error is None, self.error


class Load:
    """wrk from the client, until the block ends; then not one request may have failed, except as many as are allowed
    to be reset."""

    def __init__(self, lab, target="/1k", connections=16, url=None, resets=0):
        self.lab = lab
        self.resets = resets
        self.argv = ["wrk", "-t1", f"-c{connections}", "-d60s", "--timeout", "8s", "-H", "Connection: close",
                     url or lab.url(target)]
        self.requests = 0

    def __enter__(self):
        self.child = self.lab.client.popen(self.argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        time.sleep(0.5)
        return self

    def __exit__(self, kind, *_):
        time.sleep(0.5)
        self.child.send_signal(signal.SIGINT)
        text = self.child.communicate(timeout=20)[0]
        if kind is None:
            errors = re.search(r"Socket errors: connect 0, read (\d+), write 0, timeout 0", text)
            assert ("Socket errors" not in text or int(errors[1]) <= self.resets) and "Non-2xx" not in text, text
            self.requests = int(re.search(r"(\d+) requests in", text)[1])
            assert self.requests > 100, text


def running(lab, node):
    """Whether the node's earshotd is running."""
    return process.alive(next(record for record in lab.records
                              if (record["name"], record["machine"]) == ("earshotd", node)))


def counter_rises(lab, node, name, by=1):
    """For wait_for(): ask the service until the node's counter rose."""
    before = lab.counters(node)[name]

    def check():
        raw.ask(lab.client, raw.head("/1k"), port=ports(lab, node, 1)[0])
        return lab.counters(node)[name] >= before + by
    return check



# --- servers


def test_server_of_one_node_down(lab):
    home = homes(lab)
    lab.node("n2").stop("nginx")
    for _ in range(2):
        for uri in URIS:
            response, seconds = raw.ask(lab.client, raw.head(uri, Connection="close"), timeout=5)
            assert raw.right(response, "1k") and response.node != "n2" and seconds < 1, (uri, seconds)
            assert home[uri] == "n2" or response.node == home[uri], "the others' URIs stay where they are"
    assert lab.counters("n2")["handover_nacked"] > 0
    # Its node inspects all the same.
    for port in ports(lab, "n2", 5):
        response, seconds = raw.ask(lab.client, raw.head("/1k"), port=port)
        assert raw.right(response, "1k") and response.node != "n2" and seconds < 1
    with Load(lab):
        pass
    lab.node("n2").start("nginx")
    wait_for(lambda: all(raw.ask(lab.client, raw.head(uri))[0].node == home[uri] for uri in URIS), "old places", 5)


def test_server_goes_and_comes_under_load(lab):
    """nginx resets what it has at hand when it is terminated, with or without a cluster: at most that, and no more
    while its port is closed."""
    with Load(lab, "/u/1k/0", resets=16 * 2), Load(lab, "/u/1k/5", resets=16 * 2):
        for node in ("n1", "n2", "n3"):
            lab.node(node).stop("nginx")
            time.sleep(0.5)
            lab.node(node).start("nginx")
            time.sleep(1.5)


def test_all_servers_down(lab):
    for node in lab.nodes:
        node.stop("nginx")
    for number in range(20):
        begin = time.monotonic()
        with raw.connect(lab.client, timeout=5) as sock:
            sock.sendall(raw.head(f"/u/1k/{number}"))
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
        assert time.monotonic() - begin < 1
    for node in lab.nodes:
        node.start("nginx")
    wait_for(lambda: {raw.ask(lab.client, raw.head(uri))[0].node for uri in URIS} == {"n1", "n2", "n3"}, "service", 5)


@pytest.mark.parametrize("membership", ["static", pytest.param("corosync", marks=pytest.mark.corosync)])
def test_service_address_goes_and_comes(membership):
    """A connection that is made without it is never heard of again: the others serve until it is there again."""
    def answers():
        return [raw.ask(lab.client, raw.head(uri), timeout=5) for uri in URIS]

    def seen(by):
        return next(node for node in lab.status(by)["nodes"] if node["name"] == "n2")

    with Lab(nodes=3, policy="uri-hash", membership=membership, settings={"service.load_bound": 0}) as lab:
        home = homes(lab)
        address = ["ip", "address", "del", f"{lab.net.vip}/{128 if ':' in lab.net.vip else 32}", "dev", "lo"]
        lab.node("n2").exec(address)
        wait_for(lambda: (seen("n1")["state"], seen("n1")["trouble"]) == ("down", "service web: the service address is missing"),
                 "n2 is down", 4, seen=lambda: seen("n1"))
        assert lab.net.vip in seen("n2")["trouble"]
        for (response, seconds), uri in zip(answers(), URIS):
            assert raw.right(response, "1k") and response.node != "n2" and seconds < 1, (uri, seconds)
            assert home[uri] == "n2" or response.node == home[uri], "the others' URIs stay where they are"
        address[2] = "add"
        lab.node("n2").exec(address)
        wait_for(lambda: [response.node for response, _ in answers()] == list(home.values()), "old places", 5)


# --- daemons


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_daemon_is_gone(lab, how):
    """Killed, or hanging: what is established goes on, what comes is served by the node that should have inspected."""
    slow = Slow(lab, "n1")
    before = lab.counters("n1")
    fresh = ports(lab, "n1", 60)
    answers = []

    def request(port):
        try:
            response, seconds = raw.ask(lab.client, raw.head(f"/u/1k/{port}"), port=port)
            answers.append((port, raw.right(response, "1k"), response.node, seconds))
        except (OSError, EOFError) as error:
            answers.append((port, False, repr(error), 0))

    with Load(lab):
        lab.node("n1").signal("earshotd", signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        # From the very first moment on; one thread each, since the first ones wait.
        threads = [threading.Thread(target=request, args=(port,)) for port in fresh[:40]]
        for thread in threads:
            thread.start()
            time.sleep(0.05)
        for thread in threads:
            thread.join()
        print("slowest:", sorted(answers, key=lambda answer: -answer[3])[:3])
        assert all(right and seconds < FALLBACK_S for _, right, _, seconds in answers), answers
        # Once the datapath knows, nothing is slow any more, and everything stays where it is.
        answers.clear()
        for port in fresh[40:50]:
            request(port)
        assert all(right and node == "n1" for _, right, node, _ in answers), answers
        assert statistics.median(seconds for *_, seconds in answers) < 0.15, answers
        slow.check()
        if how == "killed":
            lab.node("n1").start("earshotd")
        else:
            lab.node("n1").signal("earshotd", signal.SIGCONT)
        wait_for(lambda: lab.status("n1")["datapath"]["state"] == "inspecting", "inspection", 5)
        assert lab.counters("n1")["request_fallback"] >= before["request_fallback"] + 10
        wait_for(counter_rises(lab, "n1", "request_queued", 5), "n1 inspects again", 5)
        slow.check()
    slow.finish()


def test_restart_breaks_nothing(lab):
    """Orderly: SIGTERM and a new start, as an upgrade does."""
    with contextlib.ExitStack() as stack:
        slow = [Slow(lab, node.name) for node in lab.nodes]
        idle = [stack.enter_context(raw.connect(lab.client)) for _ in range(30)]
        with Load(lab):
            for node in lab.nodes:
                node.stop("earshotd")
                time.sleep(0.3)
                node.start("earshotd")
                wait_for(counter_rises(lab, node.name, "request_queued", 3), "inspection", 5)
        for sock in idle:
            sock.sendall(raw.head("/1k"))
            assert raw.right(raw.receive(sock), "1k")
        for each in slow:
            each.finish()


def test_stop_detaches(lab):
    """`earshot stop`: the node answers nothing any more; its own connections go on in its kernel."""
    own, others = ports(lab, "n1", 5), ports(lab, "n2", 5)
    slow = Slow(lab, "n2")
    assert lab.node("n1").exec(["earshot", "stop"]).returncode == 0
    wait_for(lambda: not running(lab, "n1"), "daemon gone", 5)
    with pytest.raises(OSError):
        lab.status("n1")
    assert lab.node("n1").exec(["earshot", "status"], check=False).returncode == 2
    for port in own:
        with pytest.raises(socket.timeout):
            raw.connect(lab.client, port=port, timeout=0.2)
    for port in others:
        with raw.connect(lab.client, port=port, timeout=2):
            pass
    assert lab.client.get("/node", host=lab.node("n1").public_address)[0] == 200
    slow.finish()
    lab.node("n1").start("earshotd")
    wait_for(lambda: raw.ask(lab.client, raw.head("/1k"), port=own[0])[0].status == 200, "n1 is back", 5)


def test_stopped_node_is_left_out(lab):
    """The others ask a node without datapath in vain once in a while; that client's retransmission goes elsewhere."""
    home = homes(lab)
    fresh = ports(lab, "n2", 8)
    lab.node("n1").exec(["earshot", "stop"])
    wait_for(lambda: not running(lab, "n1"), "daemon gone", 5)
    for port, uri in zip(fresh, (uri for uri in URIS if home[uri] == "n1")):
        response, seconds = raw.ask(lab.client, raw.head(uri), port=port, timeout=3)
        assert raw.right(response, "1k") and response.node != "n1" and seconds < 1


# --- reload


def config(lab, change=None):
    """The configuration's text, changed if asked for."""
    with open(lab.config_file, encoding="utf-8") as handle:
        text = handle.read()
    if change:
        text = change(text)
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(text)
    return text


def reload(node, by="command"):
    if by == "command":
        return node.exec(["earshot", "reload"], check=False)
    epoch = node.ask({"command": "status"})["ring"]["epoch"]
    node.signal("earshotd", signal.SIGHUP)
    return wait_for(lambda: node.ask({"command": "status"})["ring"]["epoch"] > epoch, "reload by SIGHUP", 5)


def log(lab, node):
    with open(os.path.join(lab.node_directory(node), "earshotd.log"), encoding="utf-8") as handle:
        return handle.read()


OTHER_DATAPATH = "bpf" if os.environ.get("EARSHOT_DATAPATH") == "module" else "module"
BROKEN = {
    "syntax": (lambda text: text + "service {\n", "earshot.conf:"),
    "unknown key": (lambda text: text.replace("workers =", "wrokers ="), "wrokers"),
    "value": (lambda text: text.replace("inspector {", "inspector {\n gather_timeout_ms = 0"), "gather_timeout_ms"),
    "second section": (lambda text: text + "inspector { workers = 1 }\n", "expected one inspector section"),
    "key file": (lambda text: re.sub(r"key_file = .*", 'key_file = "/nonexistent/key"', text), "/nonexistent/key"),
    "interface": (lambda text: text.replace("interface = eth0", "interface = eth7"), "interface"),
    # What runs goes on as it is, so a file that asks for something else must not be "reloaded".
    "another datapath": (lambda text: re.sub(r"datapath \{(\s+type = \w+)?", f"datapath {{ type = {OTHER_DATAPATH}", text),
                         "datapath: type cannot change"),
    "tables of another size": (lambda text: text.replace("datapath {", "datapath { cookie_lifetime_s = 3599"), "cookie_lifetime_s"),
    "group": (lambda text: text.replace("inspector {", "inspector { program_group = nogroup"), "program_group cannot change"),
    "no nodes": (lambda text: re.sub(r'"node n\d" \{.*?\}|node n\d \{.*?\}', "", text, flags=re.S), "node"),
}


def test_broken_configuration_is_refused(lab):
    good = config(lab)
    status = lab.status("n1")
    with Load(lab):
        for what, (change, said) in BROKEN.items():
            assert config(lab, change) != good
            done = reload(lab.node("n1"))
            print(what, "->", done.stderr.strip())
            assert done.returncode == 1 and said in done.stderr, (what, done)
            before = len(log(lab, "n1"))
            lab.node("n1").signal("earshotd", signal.SIGHUP)
            wait_for(lambda: said in log(lab, "n1")[before:], f"{what} in the log", 5)
            config(lab, lambda _: good)
            now = lab.status("n1")
            assert now["ring"] == status["ring"] and now["services"][0]["policy"] == status["services"][0]["policy"]
            for node, before_node in zip(now["nodes"], status["nodes"], strict=True):
                assert all(node[key] == before_node[key] for key in ("name", "address", "weight", "state", "ring_share")), node
            assert raw.right(raw.ask(lab.client, raw.head("/1k"), port=ports(lab, "n1", 1)[0])[0], "1k")


@pytest.mark.parametrize("by", ["command", "signal"])
def test_changed_weights(lab, by):
    """A node that gets less, then nothing, then its share again, under load."""
    def shares():
        return [{node["name"]: node["ring_share"] for node in lab.status(each.name)["nodes"]} for each in lab.nodes]

    with Load(lab), Load(lab, "/u/1k/3"):
        before = shares()
        for weight in (25, 0, 100):
            config(lab, lambda text: re.sub(r"(node n3 \{\n +address = \S+)(\n +weight = \d+)?",
                                            rf"\1\n    weight = {weight}", text))
            for node in lab.nodes:
                done = reload(node, by)
                assert by == "signal" or done.returncode == 0, done
                time.sleep(0.2)
            now = shares()
            assert now[0] == now[1] == now[2]
            assert abs(now[0]["n3"] - {25: before[0]["n3"] / 3, 0: 0, 100: before[0]["n3"]}[weight]) < 0.08, now
            if not weight:
                time.sleep(0.2)
                assert "n3" not in {raw.ask(lab.client, raw.head(uri))[0].node for uri in URIS}
        assert now == before
        assert set(homes(lab).values()) == {"n1", "n2", "n3"}


def test_key_rotation(lab):
    """As `earshot keygen --help` says it, twice: no request fails, no idle connection is lost."""
    key = os.path.join(lab.directory, "cluster.key")

    def step(option):
        lab.nodes[0].exec(["earshot", "keygen", option, key])
        for node in lab.nodes:
            done = reload(node)
            assert done.returncode == 0, done
            time.sleep(0.3)

    slow = Slow(lab, "n2")
    with Load(lab), Load(lab, "/u/1k/3"):
        for _ in range(2):
            with contextlib.ExitStack() as stack:
                idle = [stack.enter_context(raw.connect(lab.client)) for _ in range(40)]
                step("--stage")
                staged = [stack.enter_context(raw.connect(lab.client)) for _ in range(40)]
                step("--rotate")
                for sock in (*idle, *staged):  # these have cookies of the key that is the previous one now
                    sock.sendall(raw.head("/1k"))
                    assert raw.right(raw.receive(sock), "1k")
    slow.finish()
    assert raw.total(lab, "handover_bad_mac", "cookie_expired") == 0


# --- several services


def test_two_services(lab):
    """Another address, and another port of the same, with policies of their own, added by a reload."""
    blind, anywhere = (lab.net.vip, 8080), "::" if families.has6(lab.net.family) else "0.0.0.0"
    second = "fd00:77::101" if ":" in lab.net.vip else "10.77.0.101"
    for node in lab.nodes:
        netns.ip_batch(node.namespace, [families.add(second, "lo") if ":" in second else f"address add {second}/32 dev lo"])
        node.popen(["/usr/bin/python3", "-m", "http.server", "8080", "--bind", anywhere, "--directory", lab.docroot],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda address=node.public_address: lab.client.get("/1k", host=address, port=8080), "second server")
    config(lab, lambda text: text + f"""
service turns {{ address = "{second}" port = 80 policy = wrr }}
service blind {{ address = "{lab.net.vip}" port = 8080 inspect = never }}
""")
    for node in lab.nodes:
        done = reload(node)
        assert done.returncode == 0, done
    assert [service["name"] for service in lab.status("n1")["services"]] == ["web", "turns", "blind"]
    with Load(lab), Load(lab, url=f"http://{families.in_url(second)}/1k"):
        assert raw.right(raw.ask(lab.client, raw.head("/1k"), address=blind)[0], "1k")
    home = homes(lab)
    for uri in URIS[:6]:
        assert {raw.ask(lab.client, raw.head(uri))[0].node for _ in range(6)} == {home[uri]}
    found = [raw.ask(lab.client, raw.head(URIS[0]), address=(second, 80))[0].node for _ in range(40)]
    assert set(found) == {"n1", "n2", "n3"}

    def made():
        """By the handshake's ACK; or by what the client sends next, if that overtakes it between two CPUs."""
        return {node: sum(lab.counters(node)[name] for name in ("handshake_blind", "request_blind")) for node in lab.net.nodes}

    before = made()
    expected = dict(before)
    for port in itertools.islice(_next_port, 20):
        assert raw.right(raw.ask(lab.client, raw.head("/1k"), address=blind, port=port)[0], "1k")
        expected[raw.inspector(lab, port, service="blind")] += 1
    assert made() == expected != before
