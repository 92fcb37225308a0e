# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab itself: does it build what it draws, break what it is told to, and leave nothing behind?"""
import contextlib
import hashlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time

import pytest

from cluster import interfaces
from cluster.command import SCRIPT, cli, network, traces
from earshotlab import Lab, daemon, families, in_namespace, netns, process, server, state, topology, wait_for
from tree import PYTHON_PATH, SOURCE

CLUSTER_MAC = bytes([0x03, 0xbf, 10, 77, 0, 100])


# --- up and down


def test_up_and_down_leave_nothing(name):
    assert f"{name}-n2" in cli("up", "--name", name, "--no-earshot", "--nodes", "2").stdout
    assert not {"brpub", "brclu", "client", "n1-pub", "n1-clu"} & set(os.listdir("/sys/class/net")), "on the host"
    assert set(netns.namespaces()) >= {f"{name}-client", f"{name}-sw", f"{name}-n1", f"{name}-n2"}
    assert name in cli("list").stdout
    cli("down", "--name", name)
    assert not traces(name)
    cli("down", "--name", name)  # again: nothing to do, no error


def test_context_manager_takes_the_lab_down_when_the_test_fails():
    with pytest.raises(ZeroDivisionError), network(1) as lab:
        lab.client.popen(["sleep", "60"])
        1 / 0  # pylint: disable=pointless-statement
    assert not traces(lab.name)


FAILING = """
import pytest
from cluster.command import network
from earshotlab import wait_for
from web.reader import Reader

@pytest.fixture(scope="module")
def lab():
    with network(1) as made:
        yield made

def ask(lab, target):
    return lab.client.get(target, host="10.77.0.1")[0]

def test_lab_of_a_fixture(lab):
    assert ask(lab, "/of-a-fixture") == 200

def test_lab_of_the_test():
    with network(1) as made:
        assert ask(made, "/of-the-test") == 200

def test_waits():
    wait_for(lambda: "", "the moon", 0.05, lambda: "only stars")

def test_assertion_in_the_library():
    reader = Reader(None)
    reader.data = b"more"
    reader.nothing()
"""


def test_what_a_failure_tells(tmp_path):
    """What was expected and seen, for how long it waited, and the ends of the nodes' logs."""
    (tmp_path / "test_failing.py").write_text(FAILING)
    tests = os.path.join(SOURCE, "tests")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-c", f"{tests}/pytest.ini", "-p", "conftest", tmp_path],
                          cwd=tests, env={**os.environ, "PYTHONPATH": PYTHON_PATH}, check=False, text=True,
                          capture_output=True, timeout=60)
    for told in ("4 failed", "assert 404 == 200", "/docroot/of-a-fixture", "/docroot/of-the-test",
                 "the moon: not within 0.05 s", "s, seen last: only stars", "assert b'more' == b''"):
        assert told in done.stdout, f"{told} is not in:\n{done.stdout}"
    assert "Nodes' logs" in done.stdout and "nginx of n1 (running)" in done.stdout


def test_a_process_has_nothing_open_of_who_started_the_lab(tmp_path):
    """`flock FILE ./dev lab up` gives the lock back when it returns."""
    with open(tmp_path / "lock", "wb") as lock:
        os.set_inheritable(lock.fileno(), True)
        record = process.spawn("sleep", "host", None, ["/bin/sleep", "60"], str(tmp_path / "log"), enter=["/usr/bin/env"])
        try:
            wait_for(lambda: os.readlink(f"/proc/{record['pid']}/exe").endswith("sleep"), "sleep")
            opened = {os.readlink(f"/proc/{record['pid']}/fd/{fd}") for fd in os.listdir(f"/proc/{record['pid']}/fd")}
        finally:
            os.kill(record["pid"], signal.SIGKILL)
            os.waitpid(record["pid"], 0)
    assert opened == {"/dev/null", str(tmp_path / "log")}


def test_two_labs_side_by_side():
    with network(1) as one, network(2) as two:
        assert one.name != two.name
        for lab in (one, two):
            status, headers, _ = lab.client.get("/1k", host="10.77.0.1")
            assert (status, headers["X-Node"]) == (200, "n1")
        one.kill("n1")
        assert two.client.get("/node", host="10.77.0.1")[2] == b"n1\n"
        one.down()
        assert two.client.get("/node", host="10.77.0.2")[2] == b"n2\n"
    assert not traces(one.name) and not traces(two.name)


def test_a_name_is_used_once(name):
    cli("up", "--name", name, "--no-earshot", "--nodes", "1")
    second = cli("up", "--name", name, "--no-earshot", check=False)
    assert second.returncode == 1 and "exists already" in second.stderr
    assert Lab.attach(name).client.get("/node", host="10.77.0.1")[2] == b"n1\n"


def test_invocations_take_turns(name):
    """Of many at once exactly one brings the lab up, and the rest does not disturb it."""
    argv = [sys.executable, SCRIPT, "up", "--name", name, "--no-earshot", "--nodes", "2"]
    several = [subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
    assert sorted(child.wait(timeout=60) for child in several) == [0, 1, 1, 1]
    assert Lab.attach(name).client.get("/node", host="10.77.0.2")[2] == b"n2\n"


def test_refusals(name):
    for arguments in (["--nodes", "0"], ["--nodes", "100"], ["--wire", "n9-pub"], ["--config", "/nonexistent"],
                      ["--pacemaker"], ["--device"], ["--family", "64"], ["--corosync", "quorum.two_node=1"],  # without membership corosync
                      ["--set", "web.inspect=every"], ["--set", "node.n9.weight=1"], ["--client-addresses", "0"],
                      ["--client-addresses", "-1"], ["--timeout", "-3"], ["--token", "-1"], ["--wire-seed", "x"]):
        done = cli("up", "--name", name, "--no-earshot", *arguments, check=False)
        assert done.returncode and done.stderr and "Traceback" not in done.stderr, arguments
        assert not traces(name)
    for arguments in (["help"], ["help", "up"], ["-h"], ["logs", "-h"]):
        assert "usage: " in cli(*arguments).stdout, arguments
    for arguments in (["kill", "n1"], ["env"], ["exec", "n1", "--", "true"]):
        done = cli(arguments[0], "--name", name, *arguments[1:], check=False)
        assert done.returncode == 1 and "there is no lab" in done.stderr


# --- families


@pytest.mark.parametrize("family", ["4", "6", "46"])
def test_machines_reach_each_other_by_the_addresses_of_the_family(family):
    with network(2, family=family, client_addresses=2) as lab:
        lab.kill("n2")
        lab.heal("n2")  # its addresses come back with its power
        for each in ("pub", "clu"):  # and those of the other with its interfaces
            interfaces.remove(lab, "n1", each)
            interfaces.make(lab, "n1", each)
        one, two = lab.nodes
        client = [*(lab.net.client_addresses if "4" in family else []), *(lab.net.client_addresses6 if "6" in family else [])]
        for node in lab.nodes:
            for address in client:  # nobody listens there, which the client itself must say
                with pytest.raises(ConnectionRefusedError):
                    node.get("/", host=address, port=9)
        for fourth, sixth, asker in (("10.77.0.2", two.public_address6, lab.client), ("10.77.0.2", two.public_address6, one),
                                     ("10.78.0.2", two.cluster_address6, one)):
            for address, there in ((fourth, "4" in family), (sixth, "6" in family)):
                if there:
                    assert asker.get("/node", host=address)[2] == b"n2\n"
                else:
                    with pytest.raises(OSError):
                        asker.get("/node", host=address)
        assert one.get("/node")[2] == b"n1\n", "its own, by the service's address"


def test_the_service_address_of_ipv6_is_on_lo_and_nobody_answers_for_it():
    with network(2, family="46") as lab:
        for node in lab.nodes:
            assert node.get("/node", host=families.VIP6)[2] == f"{node.name}\n".encode()
            shown = json.loads(node.exec(["ip", "-j", "-6", "address", "show"]).stdout)
            held = {(link["ifname"], entry["local"]): entry for link in shown for entry in link["addr_info"]}
            assert ("lo", families.VIP6) in held
            assert not [address for address, entry in held.items() if entry.get("tentative") or entry.get("dadfailed")]
        with pytest.raises(OSError, match="No route to host|timed out"):
            lab.client.get("/node", host=families.VIP6)
        assert "lladdr" not in lab.client.exec(["ip", "-6", "neigh", "show", families.VIP6]).stdout
        assert lab.environment()["ES_VIP6"] == families.VIP6


@pytest.mark.earshot
@pytest.mark.parametrize("family", ["6", "46"])
def test_a_lab_serves_each_address_of_its_family(name, family):
    cli("up", "--name", name, "--family", family, "--nodes", "2")
    lab = Lab.attach(name)
    assert lab.net.vips == [*(["10.77.0.100"] if "4" in family else []), "fd00:77::100"]
    for vip in lab.net.vips:
        assert lab.client.get("/node", host=vip)[0] == 200
    assert "ES_VIP6=fd00:77::100" in cli("env", "--name", name).stdout
    assert lab.status("n1")["services"][0]["addresses"] == lab.net.vips


WITHOUT_IPV6 = """
mount -t tmpfs none /proc/sys/net/ipv6
"$@" up --name NAME --nodes 1 --no-earshot || exit
"$@" env --name NAME
"$@" exec --name NAME client -- curl -s http://10.77.0.1/node
"$@" down --name NAME
"""


def test_without_ipv6(name):
    """A kernel that has none: people get a lab of IPv4, and are told; whoever asks for IPv6 is told that there is none."""
    script = WITHOUT_IPV6.replace("NAME", name)
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, SCRIPT], capture_output=True, text=True,
                          env={key: value for key, value in os.environ.items() if key != "EARSHOT_FAMILY"}, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("IPv4 only: this kernel has no IPv6\n"), done.stdout
    assert "ES_FAMILY=4\n" in done.stdout and "ES_VIP6=''\n" in done.stdout and "\nn1\n" in done.stdout, done.stdout
    script = script.replace(" --nodes", " --family 6 --nodes")
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, SCRIPT], capture_output=True, text=True,
                          check=False)
    assert done.returncode and "family 6: this kernel has no IPv6" in done.stderr, done


# --- failing


@pytest.fixture
def fake_build(tmp_path):
    """A build directory with an `earshotd` as the test wants it."""

    def make(script):
        binaries = tmp_path / "bin"
        binaries.mkdir()
        for program, text in (("earshotd", script), ("earshot", "exit 0")):
            (binaries / program).write_text(f"#!/bin/sh\n{text}\n")
            (binaries / program).chmod(0o755)
        return tmp_path

    return make


def test_a_daemon_that_dies_is_reported(name, fake_build):
    build = fake_build("echo the moon is in the wrong phase >&2; exit 1")
    started = time.monotonic()
    done = cli("up", "--name", name, "--nodes", "2", build=build, check=False)
    assert done.returncode == 1
    assert "control socket of n1" in done.stderr and "has ended" in done.stderr
    assert "the moon is in the wrong phase" in done.stderr
    assert time.monotonic() - started < 10, "it waited for a dead daemon"
    assert not traces(name)


def test_a_daemon_that_does_not_answer_is_reported(name, fake_build):
    done = cli("up", "--name", name, "--nodes", "1", "--timeout", "0.5",
               build=fake_build("echo thinking; exec sleep 1000"), check=False)
    assert done.returncode == 1
    assert "control socket of n1" in done.stderr and "not within 0.5 s" in done.stderr and "thinking" in done.stderr
    assert not traces(name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_up_is_interrupted(name, fake_build, number):
    env = {**os.environ, "EARSHOT_BUILD": str(fake_build("exec sleep 1000"))}
    child = subprocess.Popen([sys.executable, SCRIPT, "up", "--name", name], env=env,
                             stderr=subprocess.DEVNULL)
    # The daemons run: `up` waits for a control socket that never comes.
    wait_for(lambda: len((state.load(name) or {"processes": []})["processes"]) == 7, "all processes started")
    child.send_signal(number)
    assert child.wait(timeout=20)
    if number == signal.SIGKILL:  # nobody could clean up
        assert traces(name)
        cli("down", "--name", name)
    assert not traces(name)


def test_down_copes_with_half_a_lab(name):
    cli("up", "--name", name, "--no-earshot", "--nodes", "3")
    netns.delete(f"{name}-n2")
    netns.delete(f"{name}-sw")
    cli("down", "--name", name)
    assert not traces(name)


def test_down_copes_with_spoilt_state(name):
    cli("up", "--name", name, "--no-earshot", "--nodes", "1")
    with open(os.path.join(state.directory(name), "state.json"), "w", encoding="ascii") as handle:
        handle.write("{")
    done = cli("down", "--name", name, check=False)
    assert done.returncode == 1 and "--force" in done.stderr
    cli("down", "--name", name, "--force")
    assert not traces(name)


def test_a_dead_tests_lab_is_removed(name):
    cli("up", "--name", name, "--no-earshot", "--nodes", "1")
    saved = state.load(name)
    saved["options"]["owner"] = {"pid": os.getpid(), "start": 1}  # the pid is ours now, but not that process
    state.save(name, saved)
    assert f"lab {name} removed" in cli("down", "--stale").stdout
    assert not traces(name)


def test_only_its_own_processes_are_killed():
    with network(1) as lab, subprocess.Popen(["sleep", "60"]) as bystander, \
            subprocess.Popen(lab.client.argv(["sleep", "60"])) as guest:
        record = lab.records[-1]
        # The same pid as a lab's process had once, and a later process in its place:
        lab.records.append({**record, "pid": bystander.pid, "start": 1})
        assert not process.alive(lab.records[-1])
        lab._save()  # pylint: disable=protected-access
        lab.down()
        assert bystander.poll() is None and guest.poll() is None
        bystander.kill()
        guest.kill()


# --- the network


def test_addresses():
    with network(2, client_addresses=300) as lab:
        own = lab.node("n2").exec(["ip", "-br", "-4", "address"]).stdout
        assert "10.77.0.100/32" in own and "10.77.0.2/16" in own and "10.78.0.2/24" in own
        assert len(lab.net.client_addresses) == 300 == len(set(lab.net.client_addresses))
        with lab.client.socket() as connection:
            connection.bind((lab.net.client_addresses[-1], 0))
            connection.settimeout(5)
            connection.connect((lab.node("n1").public_address, 80))


def test_nobody_answers_arp_for_the_service_without_the_daemon():
    with network(2) as lab:
        with pytest.raises(OSError):
            lab.client.get("/node", timeout=0.3)
        assert "10.77.0.100" not in lab.client.exec(["ip", "neigh", "show", "nud", "reachable"]).stdout


def test_a_frame_to_the_cluster_mac_reaches_every_node():
    with network(3) as lab, contextlib.ExitStack() as stack:
        ears = []
        for node in lab.nodes:
            ear = stack.enter_context(node.socket(socket.AF_PACKET, socket.SOCK_RAW))
            ear.bind(("eth0", 0x88b5))
            ear.settimeout(5)
            ears.append(ear)
        with lab.client.socket(socket.AF_PACKET, socket.SOCK_RAW) as mouth:
            mouth.bind(("eth0", 0))
            for _ in range(3):
                mouth.send(CLUSTER_MAC + bytes.fromhex("02e501000001") + b"\x88\xb5" + bytes(50))
        for ear in ears:
            for _ in range(3):
                assert ear.recv(100)[:6] == CLUSTER_MAC


def test_shell_interface(name):
    cli("up", "--name", name, "--no-earshot", "--nodes", "2")
    shown = dict(word.split("=", 1) for word in shlex.split(cli("env", "--name", name).stdout))
    assert shown["ES_VIP"] == "10.77.0.100" and shown["ES_VIP6"] == "fd00:77::100" and shown["ES_FAMILY"] == "46"
    assert shown["ES_PORT"] == "80" and shown["ES_STATUS_PORT"] == "7351"
    assert shown["ES_CLIENT"] == f"{name}-client" and shown["ES_NODES"] == f"{name}-n1 {name}-n2"
    assert shown["ES_SWITCH"] == f"{name}-sw" and shown["ES_BRIDGE"] == "brpub"
    netns.ip("-n", shown["ES_SWITCH"], "link", "show", shown["ES_BRIDGE"])
    done = cli("exec", "--name", name, "n2", "--", "sh", "-c", "echo $EARSHOT_NODE:$PATH; exit 3", check=False)
    assert done.returncode == 3 and done.stdout.startswith(f"{name}-n2:") and "/bin:" in done.stdout
    assert "nginx" in cli("status", "--name", name).stdout


# --- the servers


def test_pages():
    with network(2) as lab:
        def get(target, node="n2"):
            return lab.client.get(target, host=lab.node(node).public_address)

        for file, size in server.FILES.items():
            status, headers, body = get(f"/{file}")
            assert (status, body) == (200, server.file_content(file, size))
            assert headers["X-Node"] == "n2" and headers["ETag"] == get(f"/{file}", "n1")[1]["ETag"]
            assert get(f"/u/{file}/any/thing?x=1")[2] == body
        assert get("/")[0] == 200 and get("/node")[2] == b"n2\n" and get("/nothing")[0] == 404
        assert [get(f"/status/{code}")[0] for code in (204, 304)] == [204, 304]
        assert get("/slow/1")[2] == b"n2\n" and len(get("/chunked/7")[2]) == 7000
        wait_for(lambda: [line for line in lab.node("n2").access_log()
                          if line.startswith("10.77.1.1:") and line.endswith('"GET /1k HTTP/1.1" 200 1024')],
                 "line in the access log")


def test_uploads(tmp_path):
    body = os.urandom(3_000_000)
    (tmp_path / "body").write_bytes(body)
    with network(1) as lab:
        base = "http://10.77.0.1/upload"
        for how in (["--data-binary"], ["-H", "Transfer-Encoding: chunked", "--data-binary"]):
            reply = json.loads(lab.client_run(["curl", "-sS", *how, f"@{tmp_path}/body", base]).stdout)
            assert reply == {"node": "n1", "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        lab.client_run(["curl", "-sSf", "-T", f"{tmp_path}/body", f"{base}/kept"])
        assert lab.client.get("/upload/kept", host="10.77.0.1")[2] == body


def test_close_and_upgrade():
    with network(1) as lab, lab.client.socket() as plain, lab.client.socket() as upgraded:
        for connection in (plain, upgraded):
            connection.settimeout(5)
            connection.connect(("10.77.0.1", 80))
        plain.sendall(b"GET /close/1k HTTP/1.1\r\nHost: x\r\n\r\n")
        with plain.makefile("rb") as reader:
            assert reader.read().endswith(server.file_content("1k", 1024))  # to the end of the connection
        upgraded.sendall(b"GET /upgrade HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n")
        with upgraded.makefile("rb") as reader:
            assert b" 101 " in reader.readline()
            while reader.readline() != b"\r\n":
                pass
            upgraded.sendall(b"hello\n")
            assert reader.readline() == b"hello\n"


# --- breaking and mending


def test_kill_and_heal():
    with network(2) as lab, lab.client.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        node = lab.node("n1")
        ear.bind(("10.77.1.1", 9999))
        chatter = node.popen(["bash", "-c", "while echo x >/dev/udp/10.77.1.1/9999; do sleep 0.001; done"],
                             stderr=subprocess.DEVNULL)
        ear.settimeout(5)
        assert ear.recv(10) == b"x\n"
        with lab.client.socket() as connection:
            connection.settimeout(5)
            connection.connect((node.public_address, 80))
            lab.kill("n1")
            assert chatter.wait(timeout=5) and node.pids() == []
            ear.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    ear.recv(10)
            connection.settimeout(0.3)
            connection.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            with pytest.raises(TimeoutError):  # neither answer, nor FIN, nor RST of the dying server
                connection.recv(1)
            with pytest.raises(BlockingIOError):
                ear.recv(10)
            assert lab.client.get("/node", host="10.77.0.2")[2] == b"n2\n"
            assert "no power" in lab.overview()

            lab.heal("n1")
            assert lab.client.get("/node", host="10.77.0.1")[2] == b"n1\n"
            connection.settimeout(10)
            with pytest.raises(ConnectionResetError):  # the machine has started anew: it knows no connection
                connection.recv(1)
        lab.heal("n1")  # again: nothing to do, no error


def test_heal_starts_what_has_ended():
    with network(1) as lab:
        lab.node("n1").signal("nginx", signal.SIGKILL)
        wait_for(lambda: not lab.node("n1").pids(), "end of nginx")
        lab.heal("n1")
        assert lab.client.get("/node", host="10.77.0.1")[2] == b"n1\n"
        lab.node("n1").stop("nginx")
        with pytest.raises(ConnectionRefusedError):
            lab.client.get("/node", host="10.77.0.1")
        lab.node("n1").start("nginx")
        assert lab.client.get("/node", host="10.77.0.1")[2] == b"n1\n"


def test_cut_and_mend(name):
    cli("up", "--name", name, "--no-earshot", "--nodes", "2")
    lab = Lab.attach(name)

    def reachable(address):
        with contextlib.suppress(OSError):
            return lab.node("n2").get("/node", host=address, timeout=0.3)[0] == 200
        return False

    assert reachable("10.77.0.1") and reachable("10.78.0.1")
    cli("cut", "--name", name, "n1-clu")
    assert reachable("10.77.0.1") and not reachable("10.78.0.1")
    assert "link n1-clu: cut" in cli("status", "--name", name).stdout
    cli("mend", "--name", name, "n1-clu")
    wait_for(lambda: reachable("10.78.0.1"), "way over the mended link")


# --- with daemons


@pytest.mark.earshot
def test_cluster_serves():
    with Lab(nodes=3) as lab:
        status, headers, body = lab.client.get("/1k")
        assert (status, body) == (200, server.file_content("1k", 1024)) and headers["X-Node"] in lab.net.nodes
        for node in lab.net.nodes:
            assert lab.status(node)["node"] == node
            assert lab.counters(node)
            shown = lab.node(node).exec(["earshot", "--json", "status"]).stdout
            assert json.loads(shown)["node"] == node
    assert not traces(lab.name)


@pytest.mark.earshot
def test_wrong_policy_is_reported(name):
    done = cli("up", "--name", name, "--nodes", "1", "--policy", "no-such-policy", check=False)
    assert done.returncode == 1 and "no-such-policy" in done.stderr
    assert not traces(name)


@pytest.mark.earshot
@pytest.mark.parametrize("family", ["4", "46"])
def test_own_configuration(name, tmp_path, family):
    """The lab has the families that it has."""
    text = daemon.config_text(topology.Topology(name, 2, family=family), f"{state.directory(name)}/cluster.key",
                              settings={"service.inspect": "never", "node.n1.weight": 50})
    (tmp_path / "conf").write_text(text)
    told = cli("up", "--name", name, "--nodes", "2", "--config", str(tmp_path / "conf")).stdout
    assert ("IPv4 only: " in told) == (family == "4")
    lab = Lab.attach(name)
    assert lab.status("n2")["services"][0]["inspect"] == "never" and lab.net.vips == topology.vips_of(family)


def test_own_configuration_that_is_not_there(name, tmp_path):
    done = cli("up", "--name", name, "--config", str(tmp_path / "conf"), check=False)
    assert done.returncode == 1 and done.stderr == f"{tmp_path}/conf: No such file or directory\n"


@pytest.mark.earshot
def test_daemon_crash_and_restart():
    with Lab(nodes=2) as lab:
        lab.node("n1").signal("earshotd", signal.SIGKILL)
        wait_for(lambda: not [pid for pid in lab.node("n1").pids() if "earshotd" in _command(pid)], "end of earshotd")
        with pytest.raises(OSError):
            lab.status("n1")
        lab.node("n1").start("earshotd")
        assert lab.status("n1")["node"] == "n1"
        lab.wait_serving()


@pytest.mark.earshot
def test_killed_node_serves_again_after_heal():
    with Lab(nodes=2) as lab:
        lab.kill("n2")
        lab.heal("n2")
        lab.wait_serving()
        assert lab.status("n2")["node"] == "n2"
        with open(os.path.join(lab.node("n2").directory, "earshotd.log"), encoding="utf-8") as log:
            assert "took over a running datapath" not in log.read(), "its kernel still knows what it knew before"


def _command(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as handle:
        return handle.read()
    return ""


def test_in_namespace_leaves_the_caller_where_it_is():
    with network(1) as lab:
        before = os.stat("/proc/thread-self/ns/net").st_ino
        inside = in_namespace(lab.net.client, lambda: os.stat("/proc/thread-self/ns/net").st_ino)
        assert inside != before == os.stat("/proc/thread-self/ns/net").st_ino
        with pytest.raises(ZeroDivisionError):
            in_namespace(lab.net.client, lambda: 1 / 0)
        assert topology.VIP in lab.node("n1").exec(["ip", "address", "show", "lo"]).stdout
