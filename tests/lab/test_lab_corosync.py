# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab with real corosyncs and pacemakers: does it form, does it break as told, is nothing left?"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import time

import pytest

from cluster.command import cli, network, traces
from earshotlab import Lab, LabError, corosync, process, state, switch, wait_for

TOKEN = 0.5  # seconds, the lab's default
NOTICED = 10 * TOKEN  # on a busy machine; a corosync with times of its own would take longer still
ALL = ["n1", "n2", "n3", "n4"]
pytestmark = pytest.mark.corosync


def cluster(nodes=4, **options):
    """A lab without earshotd, but with corosync."""
    return network(nodes, **{"membership": "corosync", "server": "none", **options})


@pytest.fixture(name="lab", scope="module")
def shared():
    """Four nodes for all tests that leave them as they found them."""
    with cluster(server="nginx") as lab:
        yield lab


@pytest.fixture(autouse=True)
def whole(request):
    """Tests of the shared lab begin with a whole cluster, also when the one before has failed."""
    if "lab" in request.fixturenames:
        lab = request.getfixturevalue("lab")
        lab.heal_partition()
        see(lab, ALL)


def see(lab, members, quorate=True, timeout=None):
    """Wait until these nodes see each other and nobody else."""
    for node in members:
        lab.node(node).corosync.wait_quorate(quorate, members, timeout)


def reaches(node, address):
    with contextlib.suppress(OSError):
        return node.get("/node", host=address, timeout=0.2)[0] == 200
    return False


def carrier(node, interface):
    return node.exec(["cat", f"/sys/class/net/{interface}/carrier"]).stdout.strip() == "1"


def shared_memory(pids):
    """What these processes have in the host's shared memory."""
    names = tuple(f"qb-{prefix}{pid}-" for pid in pids for prefix in ("", "corosync-"))
    return [file for file in os.listdir("/dev/shm") if file.startswith(names)]


# --- forming


def test_forms(lab):
    for number, node in enumerate(lab.nodes, 1):
        status = node.corosync.status()
        assert (status["quorate"], status["members"]) == (True, ALL)
        assert (status["expected"], status["total"], status["quorum"]) == (4, 4, 3)
        keys = node.corosync.cmap()
        assert keys["runtime.votequorum.this_node_id"] == str(number)
        assert keys[f"nodelist.node.{number - 1}.name"] == node.name
        assert keys["runtime.config.totem.token"] == "500"
        assert keys["totem.transport"] == "knet" and keys["totem.crypto_cipher"] == "aes256"
    assert node.corosync.cmap("totem.tok") == {"totem.token": "500", "totem.token_coefficient": "0"}
    assert node.corosync.cmap("no.such.") == {}


def test_a_node_has_files_of_its_own(lab):
    one, two = lab.node("n1"), lab.node("n2")
    assert one.exec(["hostname"]).stdout == "n1\n" and os.uname().nodename != "n1"
    run = one.exec(["ls", "/run"]).stdout.split()
    assert {"corosync.pid", "earshot", "earshot-lab", "lock"} <= set(run) and "netns" not in run
    one.exec(["sh", "-c", "echo 1 >/run/x; echo 1 >/dev/shm/x; echo 1 >/var/lib/corosync/x"])
    assert two.exec(["ls", "/run/x", "/dev/shm/x", "/var/lib/corosync/x"], check=False).stdout == ""
    assert not any(os.path.exists(f"{directory}/x") for directory in ("/run", "/dev/shm", "/var/lib/corosync"))
    assert "qb-" in one.exec(["ls", "/dev/shm"]).stdout
    assert not shared_memory([node.corosync.pid for node in lab.nodes])
    # Where the caller is, there the command is, too; and a directory that the node does not have is no obstacle.
    assert one.exec(["pwd"], cwd="/usr").stdout == "/usr\n"
    assert one.exec(["pwd"], cwd=lab.directory).stdout == f"{lab.directory}\n"
    assert one.exec(["pwd"], cwd="/run/netns").stdout == "/\n"


def test_options():
    with cluster(2, transport="udpu", token=300, corosync={"totem.consensus": 400, "quorum.two_node": 1}) as lab:
        keys = lab.node("n1").corosync.cmap()
        assert keys["runtime.config.totem.token"] == "300" and keys["runtime.config.totem.consensus"] == "400"
        assert keys["totem.transport"] == "udpu" and keys["quorum.two_node"] == "1"
        lab.node("n2").corosync.kill()
        see(lab, ["n1"])  # two_node: still quorate


def test_quorum_device():
    """Two nodes that lose each other ask the device, which gives its vote to the one that its settings name."""
    with cluster(2, transport="udpu", device={"net.tie_breaker": 2}) as lab:
        keys = lab.node("n1").corosync.cmap("quorum.device")
        assert keys["quorum.device.timeout"] == "1250" and keys["quorum.device.net.host"] == "10.78.0.200"
        status = lab.node("n1").corosync.status()
        assert (status["members"], status["expected"], status["total"], status["device"]) == (["n1", "n2"], 3, 3, True)
        assert "Fifty-Fifty split" in lab.node("n2").qdevice.status()
        lab.partition([["n1"], ["n2"]])
        see(lab, ["n2"])
        see(lab, ["n1"], False)
        lab.heal_partition()
        see(lab, ["n1", "n2"])
        lab.kill("n2")
        see(lab, ["n1"])
        lab.cut("qnetd")
        lab.node("n1").qdevice.wait_vote(False)
        see(lab, ["n1"], False)
        lab.mend("qnetd")
        lab.heal("n2")
        for node in lab.nodes:
            node.qdevice.wait_vote()
        lab.stop("n2", "corosync")
        assert lab.pid("n2", "qdevice") is None
        assert lab.machine("qnetd").exec(["ip", "-br", "address", "show", "eth0"]).stdout.split()[2] == "10.78.0.200/24"
    assert not traces(lab.name)


def test_refusals(name):
    for options in ({"transport": "carrier-pigeon"}, {"corosync": {"token": 5}}, {"pacemaker": 1.5},
                    {"agents": "/nonexistent"}, {"autostart": ["corosync"]}):
        with pytest.raises(LabError):
            Lab(name, 1, membership="corosync", **options).up()
        assert not traces(name)
    with pytest.raises(LabError):
        Lab(name, 1, pacemaker=True).up()
    for groups in ([["n1", "n9"]], [["n1"], ["n1", "n2"]], [["n1", "n2"]]):
        with pytest.raises(LabError):
            switch.parse_groups(["n1", "n2"], groups)


def test_a_corosync_that_does_not_start_is_reported(name):
    started = time.monotonic()
    with pytest.raises(LabError) as caught:
        cluster(2, name=name, corosync={"totem.token": "soon"}).up()
    assert "corosync of n1" in str(caught.value) and "has ended" in str(caught.value)
    assert "totem.token" in str(caught.value), "the log's end"
    assert time.monotonic() - started < 10 and not traces(name)


def test_a_cluster_that_does_not_form_is_reported(name):
    with pytest.raises(LabError) as caught:
        cluster(2, name=name, timeout=1, corosync={"quorum.expected_votes": 9}).up()
    assert "corosync of n1" in str(caught.value) and "inquorate with n1" in str(caught.value)
    assert "[QUORUM]" in str(caught.value), "the log's end"
    assert not traces(name)


# --- breaking and mending


def test_three_against_one(lab):
    started = time.monotonic()
    lab.partition([["n1", "n2", "n3"], ["n4"]])
    see(lab, ["n4"], quorate=False)
    assert time.monotonic() - started < NOTICED
    see(lab, ["n1", "n2", "n3"])
    # Both networks are divided, and the client still reaches everyone.
    assert not reaches(lab.node("n1"), "10.77.0.4") and not reaches(lab.node("n4"), "10.78.0.1")
    assert reaches(lab.node("n1"), "10.77.0.2") and reaches(lab.node("n1"), "10.78.0.3")
    assert all(reaches(lab.client, node.public_address) for node in lab.nodes)
    assert "cluster network divided: n1,n2,n3 | n4" in lab.overview()
    lab.heal_partition()
    see(lab, ALL)
    wait_for(lambda: reaches(lab.node("n1"), "10.77.0.4"), "way over the switch")
    assert "divided" not in lab.overview()


def test_two_against_two_on_one_network(lab):
    started = time.monotonic()
    lab.partition([["n1", "n2"]], networks=["cluster"])
    for side in (["n1", "n2"], ["n3", "n4"]):
        see(lab, side, quorate=False)
    assert time.monotonic() - started < NOTICED
    assert reaches(lab.node("n1"), "10.77.0.4") and not reaches(lab.node("n1"), "10.78.0.4")
    lab.heal_partition()
    see(lab, ALL)


@pytest.mark.parametrize("silent", [False, True], ids=["unplugged", "silent"])
def test_cut_and_mend_a_network(lab, silent):
    node = lab.node("n4")
    started = time.monotonic()
    node.cut("cluster", silent=silent)
    assert carrier(node, "eth1") == silent and carrier(node, "eth0")
    see(lab, ["n4"], quorate=False)
    assert time.monotonic() - started < NOTICED
    see(lab, ["n1", "n2", "n3"])
    assert reaches(lab.client, "10.77.0.4") and not reaches(lab.node("n1"), "10.78.0.4")
    assert f"link n4-clu: {'loses all' if silent else 'cut'}" in lab.overview()
    node.cut(silent=silent)
    assert carrier(node, "eth0") == silent and not reaches(lab.client, "10.77.0.4")
    node.mend()
    see(lab, ALL)
    wait_for(lambda: reaches(lab.client, "10.77.0.4"), "way over the mended link")


def test_frames_lost_one_way(lab):
    node = lab.node("n4")
    node.cut("public", silent="out")
    assert carrier(node, "eth0") and not reaches(lab.client, "10.77.0.4")
    assert "link n4-pub: loses all out" in lab.overview()
    received = node.exec(["cat", "/sys/class/net/eth0/statistics/rx_packets"]).stdout
    lab.client.exec(["ping", "-q", "-c", "1", "-W", "1", "10.77.0.4"], check=False)
    assert node.exec(["cat", "/sys/class/net/eth0/statistics/rx_packets"]).stdout != received
    node.mend()
    assert "loses" not in lab.overview()
    wait_for(lambda: reaches(lab.client, "10.77.0.4"), "way over the mended link")


def test_corosync_dies_and_starts_again(lab):
    started = time.monotonic()
    lab.node("n4").corosync.kill()
    with pytest.raises(ConnectionError):
        lab.node("n4").corosync.status()
    assert "corosync not running" in lab.overview() and reaches(lab.client, "10.77.0.4")
    see(lab, ["n1", "n2", "n3"])
    assert time.monotonic() - started < NOTICED
    lab.node("n4").corosync.start()
    see(lab, ALL)


def test_corosync_freezes_and_leaves(lab):
    lab.node("n3").corosync.signal(signal.SIGSTOP)
    see(lab, ["n1", "n2", "n4"])
    lab.node("n3").corosync.signal(signal.SIGCONT)
    see(lab, ALL)
    started = time.monotonic()
    lab.node("n4").corosync.stop()
    see(lab, ["n1", "n2", "n3"])
    assert time.monotonic() - started < NOTICED
    lab.heal("n4")
    see(lab, ALL)


def test_power_cut(lab):
    node = lab.node("n4")
    node.exec(["sh", "-c", "echo 1 >/run/memory; echo 1 >/var/lib/corosync/disk"])
    started = time.monotonic()
    lab.kill("n4")
    assert node.pids() == []
    with pytest.raises(LabError, match="no power"):
        node.exec(["true"])
    see(lab, ["n1", "n2", "n3"])
    assert time.monotonic() - started < NOTICED
    lab.heal("n4")
    see(lab, ALL)
    assert node.exec(["ls", "/run/memory", "/var/lib/corosync/disk"], check=False).stdout == "/var/lib/corosync/disk\n"


# --- with earshotd


@pytest.mark.earshot
def test_daemon_next_to_corosync(name):
    """The daemon of a node is found from the host and on the node, whoever starts it."""
    with Lab(name, 2, membership="corosync", settings={"cluster.membership": "static"}, autostart=["nginx"]) as lab:
        assert "earshotd not running" in lab.overview()
        lab.node("n1").start("earshotd")
        lab.node("n2").popen(["earshotd", "--config", lab.config_file, "--node", "n2"])  # as an agent would
        wait_for(lambda: lab.status("n2"), "answer of n2")
        lab.wait_serving()
        assert [lab.status(node)["node"] for node in ("n1", "n2")] == ["n1", "n2"]
        assert json.loads(lab.node("n2").exec(["earshot", "--json", "status"]).stdout)["node"] == "n2"
        lab.kill("n1")
        lab.heal("n1")
        lab.node("n1").start("earshotd")
        assert lab.status("n1")["node"] == "n1"
    assert not traces(name)


# --- pacemaker

_CLONE = """<clone id="copies"><primitive id="dummy" class="ocf" provider="earshot" type="earshotd">
    <operations><op id="dummy-monitor" name="monitor" interval="1s" timeout="20s"/></operations>
</primitive></clone>"""


@pytest.mark.pacemaker
def test_pacemaker(tmp_path):
    shutil.copy("/usr/lib/ocf/resource.d/pacemaker/Dummy", tmp_path / "earshotd")
    with cluster(3, transport="udpu", pacemaker={"no-quorum-policy": "stop"}, agents=str(tmp_path)) as lab:
        one, two, three = lab.nodes
        everyone = lab.net.nodes
        seen = one.pacemaker.state()
        assert seen["quorate"] and set(seen["nodes"].values()) == {"online"} and seen["dc"] in everyone
        assert not os.path.exists("/usr/lib/ocf/resource.d/earshot/earshotd"), "on the host"

        one.pacemaker.cibadmin(_CLONE)
        two.pacemaker.wait_resource("dummy", everyone)
        file = "/run/Dummy-dummy.state"
        two.exec(["rm", file])  # its failure
        wait_for(lambda: two.exec(["test", "-e", file], check=False).returncode == 0, "restart of the resource")
        two.pacemaker.wait_resource("dummy", everyone)

        two.pacemaker.standby()
        one.pacemaker.wait_resource("dummy", ["n1", "n3"])
        assert one.pacemaker.state()["nodes"]["n2"] == "standby"
        two.exec(["crm", "node", "online"])  # the shell knows by the host name where it is
        one.pacemaker.wait_resource("dummy", everyone)
        assert "Started: [ n1 n2 n3 ]" in two.exec(["crm_mon", "-1"]).stdout

        three.pacemaker.stop()  # stops its resource, too
        assert three.exec(["test", "-e", file], check=False).returncode and three.corosync.quorate()
        one.pacemaker.wait_online(["n1", "n2"])
        three.pacemaker.start()
        one.pacemaker.wait_resource("dummy", everyone)

        lab.kill("n3")
        one.pacemaker.wait_resource("dummy", ["n1", "n2"])
        lab.heal("n3")
        one.pacemaker.wait_resource("dummy", everyone)

        two.pacemaker.kill()
        assert two.pacemaker.pid is None and two.exec(["test", "-e", file]).returncode == 0
        two.pacemaker.start()
        two.pacemaker.wait_resource("dummy", everyone)

        # What a resource leaves running goes down with the lab.
        stray = one.exec(["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"]).stdout.strip()
    assert not traces(lab.name)
    assert not process.start_time(int(stray)) or not os.path.exists(f"/proc/{stray}/exe")


# --- several, and nothing left


def test_two_labs_side_by_side(name):
    cli("up", "--name", name, "--nodes", "3", "--no-earshot", "--server", "none", "--membership", "corosync",
        "--transport", "udpu", "--token", "400")
    one = Lab.attach(name)
    with cluster(3, transport="udpu") as two:
        assert one.node("n1").corosync.cmap("totem.token")["totem.token"] == "400"
        shown = cli("status", "--name", name).stdout
        assert shown.count("(quorate with n1,n2,n3)") == 3
        cli("partition", "--name", name, "n1,n2", "n3")
        cli("cut", "--name", name, "n1", "cluster", "--silent")
        see(one, ["n3"], quorate=False)
        see(one, ["n2"], quorate=False)
        see(two, two.net.nodes)
        cli("mend", "--name", name, "n1")
        cli("heal-partition", "--name", name)
        see(one, one.net.nodes)
        cli("cut", "--name", name, "n1", "public")
        assert "link n1-pub: cut" in cli("status", "--name", name).stdout
        cli("signal", "--name", name, "n2", "corosync", "KILL")
        see(one, ["n1", "n3"])
        cli("start", "--name", name, "n2", "corosync")
        see(one, one.net.nodes)
        assert "QUORUM" in cli("logs", "--name", name, "n2").stdout
        two.down()
        see(one, one.net.nodes)
        pids = [node.corosync.pid for node in one.nodes]
    cli("down", "--name", name)
    assert not traces(name) and not traces(two.name)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}/exe")]
    assert not shared_memory(pids)


def test_a_failing_test_leaves_nothing():
    with pytest.raises(ZeroDivisionError), cluster(2, transport="udpu") as lab:
        lab.node("n1").corosync.signal(signal.SIGSTOP)
        lab.node("n2").popen(["sleep", "60"])
        1 / 0  # pylint: disable=pointless-statement
    assert not traces(lab.name)


def test_forced_down_of_a_lab_without_state(name):
    cluster(2, name=name, transport="udpu").up()
    with open(f"{state.directory(name)}/state.json", "w", encoding="ascii") as file:
        file.write("{")
    cli("down", "--name", name, "--force")
    assert not traces(name)


def test_configuration_text(lab):
    text = corosync.config_text(lab.net, 700, "udpu", {"interface.mcastport": 5999})
    assert "    token: 700\n" in text and "        mcastport: 5999\n" in text and "crypto" not in text


@pytest.mark.earshot
def test_what_the_readme_says_works_in_the_lab_as_it_comes(name, tmp_path):
    """Without an option: corosync, and a file of each node's own; check, rollout, drain, undrain."""
    cli("up", "--name", name)
    lab = Lab.attach(name)

    def earshot(node, *arguments):
        return lab.node(node).exec(["earshot", *arguments], check=False)

    for node in lab.nodes:
        checked = earshot(node.name, "check")
        assert checked.returncode == 0, checked.stdout
    new = tmp_path / "new.conf"
    new.write_text(pathlib.Path(lab.config_of("n1")).read_text(encoding="utf-8") + 'rule x { path = "/x/" deny = yes }\n')
    done = earshot("n1", "rollout", str(new))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {pathlib.Path(lab.config_of(node.name)).read_text(encoding="utf-8") for node in lab.nodes} == {new.read_text()}
    assert lab.client.get("/x/1k")[0] == 403
    assert earshot("n1", "drain", "n2").returncode == 0
    wait_for(lambda: {each["name"]: each["state"] for each in lab.status("n3")["nodes"]}["n2"] == "draining", "n2 drains")
    assert earshot("n1", "undrain", "n2").returncode == 0
    wait_for(lambda: all(each["state"] == "up" for each in lab.status("n3")["nodes"]), "all nodes up")
