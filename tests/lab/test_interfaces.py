# SPDX-License-Identifier: GPL-2.0-or-later
"""Interfaces that go and come again under the same name, late ones, and those with other names."""
import json
import os
import signal
import subprocess
import time

import pytest

from cluster.interfaces import link_of, make, remove
from cluster.membership import settled
from earshotlab import Lab, daemon, wait_for
from earshotlab.netns import ip, ip_batch
from web import raw

pytestmark = pytest.mark.earshot
THREE = ["n1", "n2", "n3"]
SETTINGS = {"service.inspect": "every"}
FILES = 60  # of these each node serves some


@pytest.fixture(scope="module", name="docroot")
def _docroot(tmp_path_factory):
    path = tmp_path_factory.mktemp("docroot")
    for i in range(FILES):
        (path / f"{i}").write_text("x" * 1000)
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module", name="lab")
def _lab(docroot):
    with Lab(nodes=3, membership="corosync", policy="uri-hash", token=500, settings=SETTINGS, docroot=docroot) as lab:
        settled(lab, THREE)
        yield lab


@pytest.fixture(scope="module", name="static")
def _static(docroot):
    with Lab(nodes=2, policy="uri-hash", settings=SETTINGS, docroot=docroot) as lab:
        yield lab


def served(lab):
    """By whom; all requests are answered."""
    nodes = []
    for i in range(FILES):
        status, headers, body = lab.client.get(f"/{i}")
        assert status == 200 and len(body) == 1000, (i, status)
        nodes.append(headers["X-Node"])
    return set(nodes)


def lines(lab, node, words):
    with open(os.path.join(lab.node_directory(node), "earshotd.log"), encoding="utf-8") as handle:
        return [line for line in handle if words in line]


@pytest.mark.corosync
@pytest.mark.parametrize("network, interface, kind", (("clu", "eth1", "cluster"), ("pub", "eth0", "public")))
def test_made_anew(lab, network, interface, kind):
    """While it is gone the node is out and says why, once; then it serves as before."""
    assert served(lab) == set(THREE)
    gone = f"silent: the {kind} interface {interface} is gone"
    before = len(lines(lab, "n3", gone))
    remove(lab, "n3", network)
    wait_for(lambda: lab.status("n3")["membership"]["silent"], "silence", 2)
    assert f"the {kind} interface {interface} is gone" in lab.status("n3")["membership"]["why"]
    settled(lab, ["n1", "n2"])
    assert served(lab) == {"n1", "n2"}
    # A reload cannot heal that, and does not say that it has.
    done = lab.node("n3").exec(["earshot", "--node", "n3", "reload"], check=False)
    assert done.returncode and f"the {kind} interface {interface} is gone" in done.stderr, done
    make(lab, "n3", network)
    settled(lab, THREE)
    assert served(lab) == set(THREE)
    assert len(lines(lab, "n3", gone)) == before + 1
    found = json.loads(lab.node("n3").exec(["earshot", "--json", "check", "--config", lab.config_file], check=False).stdout)
    assert not [f for f in found["findings"] if f["severity"] == "error" and f["id"].startswith("network.")], found


@pytest.mark.corosync
def test_gone_on_a_node_without_quorum(lab):
    """Of two reasons one is told, and not both in turn for as long as that lasts."""
    settled(lab, THREE)
    lab.node("n3").cut("cluster", silent=True)
    wait_for(lambda: "quorum" in lab.status("n3")["membership"]["why"], "silence", 10)
    before = len(lines(lab, "n3", "silent: "))
    remove(lab, "n3", "pub")
    time.sleep(1)  # fifty looks
    assert len(lines(lab, "n3", "silent: ")) < before + 5  # a busy machine's corosync may have more to say
    make(lab, "n3", "pub")
    lab.node("n3").mend("cluster")
    settled(lab, THREE)
    assert served(lab) == set(THREE)


def test_made_anew_static(static):
    """In one go, with both interfaces: what is said between the two does not matter."""
    assert served(static) == {"n1", "n2"}
    for network in ("clu", "pub"):
        remove(static, "n2", network)
        make(static, "n2", network)
    wait_for(lambda: len(lines(static, "n2", "attached again")) >= 1, "the datapath on the new interfaces")
    wait_for(lambda: served(static) == {"n1", "n2"}, "both nodes' answers")


def test_reload_attaches(static):
    """Somebody has taken the datapath off, which sends no message: a reload does what a start does."""
    node = static.node("n2")
    before = len(lines(static, "n2", "attached again"))
    hidden = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /run/earshot && exec earshot detach"]
    taken = node.exec(hidden).stdout  # where no daemon is seen to run
    assert "detached" in taken, taken
    node.ask({"command": "reload"})
    # The netfilter datapath hears of it, and has set its rules again by itself.
    assert len(lines(static, "n2", "attached again")) == before + (daemon.DATAPATH != "netfilter")
    assert served(static) == {"n1", "n2"}


def uploads(lab, connections, count):
    """On each of these connections, and on as many new ones: requests of six full segments, by whom they are answered."""
    nodes, body = set(), b"c" * 8000
    for i in range(count):
        fresh = raw.http_connection(lab.client)
        for connection in (fresh, connections[i % len(connections)]):
            connection.request("POST", f"/upload?{i}", body, {"Host": raw.HOST})
            response = connection.getresponse()
            told = json.loads(response.read())
            assert (response.status, told["bytes"]) == (200, len(body)), (i, response.status, told)
            nodes.add(told["node"])
        fresh.close()
    return nodes


@pytest.mark.parametrize("which", (["n2"], THREE), ids=("one", "all"))
def test_mtu_changes(docroot, which):
    """The cluster network's, while requests come: no node is down, and no request is lost, on connections with the MSS before, too."""
    with Lab(nodes=3, policy="uri-hash", docroot=docroot,
             settings={**SETTINGS, "service.handover_cost": 0, "service.load_bound": 0}) as lab:
        connections = [raw.http_connection(lab.client) for _ in range(6)]
        for mtu in (1500, 1400, 1300, 1500):
            for node in which:
                ip("-n", lab.net.namespace(node), "link", "set", "eth1", "mtu", str(mtu))
            assert uploads(lab, connections, 24) == set(THREE)
            assert served(lab) == set(THREE)
            for node in THREE:
                assert {n["state"] for n in lab.status(node)["nodes"]} == {"up"}
                assert not lines(lab, node, "cannot serve") and not lines(lab, node, "too small")
            if mtu != 1500:
                for node in THREE:
                    wait_for(lambda node=node, mtu=mtu: lines(lab, node, f"packets of {mtu - 92} bytes"), f"{node} goes by it")
        for connection in connections:
            connection.close()


def started(lab, text, tmp_path, *options):
    """n2's daemon by hand, with another configuration."""
    config = tmp_path / "earshot.conf"
    config.write_text(text)
    namespace = lab.net.namespace("n2")
    log = open(tmp_path / "log", "w", encoding="utf-8")  # pylint: disable=consider-using-with
    command = daemon.command_line(str(config), "n2", daemon.control_path(namespace))
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command, *options], stdout=log, stderr=log)


def text_of(lab):
    with open(lab.config_file, encoding="utf-8") as handle:
        return handle.read()


def end(process):
    process.send_signal(signal.SIGTERM)
    process.wait(10)


@pytest.mark.parametrize("long", (False, True))
def test_alternative_and_own_names(static, tmp_path, long):
    """Nodes may name their interfaces differently, and by names that the kernel knows beside the first."""
    name = "client-side-" + "x" * 30 if long else "clients"
    static.stop("n2", "earshotd")
    namespace = static.net.namespace("n2")
    ip("-n", namespace, "link", "property", "add", "dev", "eth0", "altname", name)
    text = text_of(static).replace("node n2 {", f'node n2 {{\n    interface = "{name}"')
    process = started(static, text, tmp_path)
    try:
        wait_for(lambda: static.status("n2")["datapath"]["state"] == "inspecting", "the daemon",
                 seen=lambda: (tmp_path / "log").read_text())
        assert served(static) == {"n1", "n2"}
        config = str(tmp_path / "earshot.conf")
        found = json.loads(static.node("n2").exec(["earshot", "--json", "--node", "n2", "check", "--config", config],
                                                  check=False).stdout)
        assert not [f for f in found["findings"] if f["severity"] == "error" and f["id"].startswith("network.")], found
    finally:
        end(process)
        ip("-n", namespace, "link", "property", "del", "dev", "eth0", "altname", name)
        static.start("n2", "earshotd")


def test_waits_for_what_is_late(static, tmp_path):
    """At boot: first the interface is missing, then its address. Without --wait that is an error, which names what there is."""
    static.stop("n2", "earshotd")
    remove(static, "n2", "clu")
    log = tmp_path / "log"
    process = started(static, text_of(static), tmp_path)
    assert process.wait(10) and "no interface eth1 on this node: expected one of lo, eth0" in log.read_text()
    process = started(static, text_of(static), tmp_path, "--wait")
    try:
        wait_for(lambda: "waiting for the interface eth1" in log.read_text(), "a word about the interface")
        make(static, "n2", "clu", "eth9")
        ip_batch(static.net.namespace("n2"), ["address flush dev eth9", "link set eth9 down", "link set eth9 name eth1",
                                              "link set eth1 up"])
        wait_for(lambda: "waiting for the address 10.78.0.2 of node n2" in log.read_text(), "a word about the address")
        assert len(log.read_text().splitlines()) == 2, log.read_text()
        ip("-n", static.net.namespace("n2"), "address", "add", "10.78.0.2/24", "dev", "eth1")
        wait_for(lambda: static.status("n2")["datapath"]["state"] == "inspecting", "the daemon", seen=log.read_text)
        wait_for(lambda: served(static) == {"n1", "n2"}, "both nodes' answers")
    finally:
        end(process)
        static.start("n2", "earshotd")
