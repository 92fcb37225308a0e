# SPDX-License-Identifier: GPL-2.0-or-later
"""A node on which all is well, and then one real setting wrong after the other: just the check for it says so."""
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys

import pytest

import namespaces
import tcx
from earshotlab import in_namespace, netns, wait_for
from packets import packet
from site_of_two import CLUSTER_MAC, NOBODY, VIP, VIP6, Result
from tree import EARSHOT

IPPROTO_MPTCP = 262


def test_all_well(site):
    result = site.expect()
    assert result.report["node"] == "n1" and result.report["cluster"] == "site"
    assert sum(result.report["summary"].values()) == len(result.findings)
    for f in result.findings:
        assert f["found"] and f["why"].endswith("."), f
        assert f["action"] or f["severity"] not in ("error", "warning"), f


def test_all_well_with_daemon(site):
    site.start_daemon()
    result = site.expect()
    assert result.of("members.state")[0]["found"] == "earshotd is inspecting"
    assert "attached" in result.of("network.datapath")[0]["found"]


@pytest.mark.parametrize("name, value, severity", [
    ("tcp_syncookies", 0, "error"), ("tcp_rfc1337", 1, "error"), ("tcp_max_tw_buckets", 0, "error"),
    ("tcp_window_scaling", 0, "warning"), ("tcp_sack", 0, "warning"), ("tcp_timestamps", 0, "warning"),
    ("tcp_ecn", 0, "warning"), ("tcp_rmem", "4096 16384 6291456", "error")])


def test_tcp(site, name, value, severity):
    """And the action that it names cures it."""
    site.sysctl({f"net.ipv4.{name}": value})
    found = site.expect(f"kernel.{name} {severity}").of(f"kernel.{name}")[0]
    assert f"net.ipv4.{name}" in found["found"]
    subprocess.run(site.command(site.n1, "sh", "-c", found["action"]), check=True, capture_output=True)
    site.expect()


def test_window_scale(site):
    site.configure(datapath="receive_window_scale = 2")
    site.expect("kernel.window_scale warning")


def test_handover_port(site):
    site.sysctl({"net.ipv4.ip_local_port_range": "7000 60999"})
    site.expect("cluster.handover_port warning")


def test_conntrack(site):
    site.sysctl({"net.netfilter.nf_conntrack_tcp_loose": 0})
    site.expect("kernel.conntrack_loose warning")


def test_interface_missing(site):
    site.ip(site.n1, "link set eth0 down", "link set eth0 name eth7", "link set eth7 up")
    wrong = site.check().wrong()
    assert wrong["network.public"] == "error"
    for check in ("mtu", "cluster_mac", "datapath", "arp_ignore", "rp_filter_public"):
        assert wrong[f"network.{check}"] == "unchecked"


def test_interface_down(site):
    site.ip(site.n1, "link set eth0 down")
    wrong = site.check().wrong()
    assert wrong["network.public"] == "error" and wrong["neighbours.service_arp"] == "unchecked"


def test_no_carrier(site):
    site.ip(site.n2, "link set eth1 down")
    result = site.check()
    assert "no carrier" in result.of("network.private")[0]["found"]


def test_port_of_a_bridge(site):
    site.ip(site.n1, "link add br0 type bridge", "link set br0 up", "link set eth0 master br0")
    assert "bridge" in site.expect("network.public warning").of("network.public")[0]["found"]


def test_mtu(site):
    found = site.check().of("network.mtu")[0]
    assert found["severity"] == "info" and "at most 1368 bytes" in found["found"]
    for namespace in (site.n1, site.n2):
        site.ip(namespace, "link set eth1 mtu 1400")
    assert "at most 1268" in site.expect("network.mtu warning").of("network.mtu")[0]["found"]
    for namespace in (site.n1, site.n2):
        site.ip(namespace, "link set eth1 mtu 600")
    site.expect("network.mtu error")
    for namespace in (site.n1, site.n2):
        site.ip(namespace, "link set eth1 mtu 9000")
    assert "up to 1460 bytes" in site.expect().of("network.mtu")[0]["found"]


def test_path_mtu(site):
    """The NIC here carries more than the network: the classic of jumbo frames."""
    site.ip(site.n1, "link set eth1 mtu 9000")
    found = site.expect("neighbours.path_mtu error").of("neighbours.path_mtu")[0]["found"]
    assert found == "node n2 answers short packets at 10.78.0.2, but none of 9000 bytes"


def is_told_too_big(site, own, other, mtu):
    """An ICMP error, which anybody could send, about a datagram that another program has sent to the other node."""
    family = socket.AF_INET6 if ":" in own else socket.AF_INET
    quoted = packet.datagram("02:00:00:00:00:01", "02:00:00:00:00:02", own, other, 5405, 5405, bytes(20))[14:]
    kind = packet.icmp6(other, own, 2, 0, struct.pack(">I", mtu), quoted) if ":" in own else \
        packet.icmp(3, 4, struct.pack(">HH", 0, mtu), quoted)
    with in_namespace(site.n1, socket.socket, family, socket.SOCK_DGRAM) as program, \
            in_namespace(site.n2, socket.socket, family, socket.SOCK_RAW,
                         socket.IPPROTO_ICMPV6 if ":" in own else socket.IPPROTO_ICMP) as router:
        program.bind((own, 5405))
        router.sendto(kind, (own, 0))
        wait_for(lambda: f"mtu {mtu}" in netns.ip("-netns", site.n1, "route", "get", other), "an exception of the route")


@pytest.mark.parametrize("family", [4, 6])
def test_route_mtu(site, family):
    own, other = ("10.78.0.1", "10.78.0.2") if family == 4 else ("fd00:78::1", "fd00:78::2")
    if family == 6:
        have_nodes_of_ipv6(site)
    is_told_too_big(site, own, other, 1300)
    found = site.expect("neighbours.route_mtu warning").of("neighbours.route_mtu")[0]
    assert f"node n2: an ICMP error has said that no packet of more than 1300 bytes reaches {other}" in found["found"]
    subprocess.run(site.command(site.n1, "sh", "-c", found["action"].split(";")[0]), check=True, capture_output=True)
    site.expect()


def test_mtu_larger_than_the_interfaces(site):
    site.configure(datapath="mtu = 9000")
    site.expect("network.mtu error", "neighbours.path_mtu error")


def test_service_address(site):
    site.ip(site.n1, f"addr del {VIP}/32 dev lo")
    site.expect("network.service_address error")
    site.ip(site.n1, f"addr add {VIP}/24 dev eth0")
    assert "is on eth0" in site.expect("network.service_address error").of("network.service_address")[0]["found"]
    site.ip(site.n1, f"addr del {VIP}/24 dev eth0", f"addr add {VIP}/24 dev lo")
    assert "/24 on lo" in site.check().of("network.service_address")[0]["found"]


def test_node_address(site):
    site.ip(site.n1, "addr del 10.78.0.1/24 dev eth1", "addr add 10.78.0.1/24 dev eth0")
    found = site.check().of("network.node_address")[0]
    assert found["severity"] == "error" and "is on eth0, and cluster_interface is eth1" in found["found"]
    assert "cluster_interface = eth0" in found["action"]


def test_no_node_address(site):
    site.ip(site.n1, "addr del 10.78.0.1/24 dev eth1")
    result = site.check()
    assert result.report["node"] is None
    assert "n1 (10.78.0.1), n2 (10.78.0.2)" in result.of("cluster.self")[0]["found"]
    assert result.wrong()["neighbours.nodes"] == "unchecked"
    named = site.check("--node", "n1")
    assert named.report["node"] == "n1" and named.wrong()["network.node_address"] == "error"


def test_nodes_near(site):
    site.ip(site.n1, "addr del 10.78.0.1/24 dev eth1", "addr add 10.78.0.1/32 dev eth1",
            "route add 10.78.0.2/32 dev eth1 src 10.78.0.1")
    site.expect("network.nodes_near warning")


@pytest.mark.parametrize("name", ["arp_ignore", "arp_announce"])
def test_arp_before_the_daemon(site, name):
    """The daemon would set it, but the node is on the network with the service's address already."""
    site.sysctl({f"net.ipv4.conf.eth0.{name}": 0})
    assert "until earshotd starts" in site.expect(f"network.{name} warning").of(f"network.{name}")[0]["found"]
    site.ip(site.n1, f"addr del {VIP}/32 dev lo")
    site.expect("network.service_address error")


@pytest.mark.parametrize("name, value, check", [
    ("eth0.arp_ignore", 0, "arp_ignore"), ("eth0.arp_announce", 0, "arp_announce"), ("eth1.rp_filter", 1, "rp_filter"),
    ("lo.rp_filter", 1, "rp_filter"), ("lo.accept_local", 0, "accept_local")])


def test_undone_while_the_daemon_runs(site, name, value, check):
    """What the daemon has set, and somebody has undone; the action cures it."""
    site.sysctl({f"net.ipv4.conf.{name}": value})
    site.start_daemon()
    site.expect()
    site.sysctl({f"net.ipv4.conf.{name}": value})
    found = site.expect(f"network.{check} error").of(f"network.{check}")[0]
    subprocess.run(site.command(site.n1, "sh", "-c", found["action"]), check=True, capture_output=True)
    site.expect()


@pytest.mark.parametrize("interface", ["eth0", "eth1", "lo", None])
def test_packet_socket(site, interface):
    """A packet socket for IP, as a DHCP client has one; one for all protocols, as tcpdump's, does no harm."""
    def opened(protocol):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0 if interface else socket.htons(protocol))
        if interface:
            s.bind((interface, protocol))
        return s

    with netns.in_namespace(site.n1, opened, 0x0003):
        site.expect()
    with netns.in_namespace(site.n1, opened, 0x0800):
        result = site.expect("network.packet_sockets error")
    found, = result.of("network.packet_sockets")
    assert f"(process {os.getpid()}) has a packet socket for IP on {interface or 'all interfaces'}" in found["found"]
    assert str(os.getpid()) in found["action"]
    site.expect()


def test_rp_filter_public(site):
    site.sysctl({"net.ipv4.conf.eth0.rp_filter": 1})
    site.expect()
    site.ip(site.n1, "route del default", "route add default via 10.78.0.254")
    site.expect("network.rp_filter_public warning")


def test_cluster_mac(site):
    site.start_daemon()
    site.expect()
    site.ip(site.n1, f"maddress del {CLUSTER_MAC} dev eth0")
    found = site.expect("network.cluster_mac error").of("network.cluster_mac")[0]
    assert CLUSTER_MAC in found["found"] and f"ip maddress add {CLUSTER_MAC} dev eth0" in found["action"]
    subprocess.run([EARSHOT, "--control", site.control, "reload"], check=True,
                   capture_output=True)
    site.expect()


def test_cluster_mac_unicast(site):
    site.configure(datapath="mac_mode = unicast")
    site.start_daemon()
    site.expect()
    site.ip(site.n1, "link set eth0 promisc off")
    site.expect("network.cluster_mac error")


def test_datapath_gone(site):
    """Somebody has taken its programs off the interface."""
    site.start_daemon()
    in_namespace(site.n1, tcx.detach, "eth0")
    site.expect("network.datapath error")
    subprocess.run([EARSHOT, "--control", site.control, "reload"], check=True, capture_output=True)
    site.expect()


def test_interface_made_anew(site):
    """The programs went with the old one, and the daemon attaches them to the new one."""
    site.start_daemon()
    site.ip(site.n1, "link del eth0", f"link add eth0 type veth peer name eth0 netns {site.n2}", "link set eth0 up",
            "addr add 10.77.0.1/24 dev eth0", "route add default via 10.77.0.254")
    site.ip(site.n2, "link set eth0 up")
    site.sysctl({"net.ipv4.conf.eth0.arp_ignore": 1, "net.ipv4.conf.eth0.arp_announce": 2})
    wait_for(lambda: not {"network.datapath", "network.cluster_mac"} & set(site.check().wrong()), "the datapath",
             seen=lambda: site.check().wrong())


def test_own_address_twice(site):
    site.ip(site.n2, "addr add 10.78.0.1/24 dev eth1")
    mac = namespaces.hardware_address(site.n2, "eth1")
    result = site.check()
    assert result.of("neighbours.own_address")[0]["found"].startswith(f"{mac} has 10.78.0.1, too")


def test_others_answer_for_the_service(site):
    site.sysctl({"net.ipv4.conf.eth0.arp_ignore": 0}, site.n2)
    mac = namespaces.hardware_address(site.n2, "eth0")
    found = site.expect("neighbours.service_arp error").of("neighbours.service_arp")[0]
    assert found["found"] == f"service web: {mac} answers ARP for {VIP}"


def test_others_answer_for_the_service_by_ipv6(site):
    """A machine on the network has the address on an interface; one that has it on lo does not answer. Nobody else hears
    what is asked or answered: this machine asks from an address."""
    site.have_ipv6()
    site.expect()
    site.ip(site.n2, f"addr del {VIP6}/128 dev lo", f"addr add {VIP6}/128 dev eth0 nodad")
    mac = namespaces.hardware_address(site.n2, "eth0")
    found = site.expect("neighbours.service_arp error").of("neighbours.service_arp")[0]
    assert found["found"] == f"service web: {mac} answers neighbours' solicitations for {VIP6}"
    site.ip(site.n2, f"addr del {VIP6}/128 dev eth0")
    site.expect()


def test_cluster_answers_for_the_service_by_ipv6(site, tmp_path):
    """The other node's daemon, whom its ring gives every question, answers with the cluster MAC, as it shall."""
    site.have_ipv6()
    alone = tmp_path / "alone.conf"
    with open(site.config, encoding="ascii") as handle:
        alone.write_text(handle.read().replace("node n1 {", "node n1 { weight = 0"))
    site.sockets.append(namespaces.listen(site.n2, "::", 80, v6only=0))
    site.start_daemon(site.n2, alone)
    site.expect()
    told = subprocess.run([EARSHOT, "--control", site.control + "2", "--json", "counters"], check=True, capture_output=True)
    counters = {counter["name"]: counter["value"] for counter in json.loads(told.stdout)["counters"]}
    assert counters["ndp_answered"] and not counters["ndp_not_mine"], counters


BEFORE_5_0 = """
import errno, os, seccomp, sys
rules = seccomp.SyscallFilter(seccomp.ALLOW)
rules.add_rule(seccomp.ERRNO(errno.ENOPROTOOPT), "setsockopt", seccomp.Arg(1, seccomp.EQ, 1), seccomp.Arg(2, seccomp.EQ, 62))
rules.load()
os.execv(sys.argv[1], sys.argv[1:])
"""  # SO_BINDTOIFINDEX


def test_kernel_before_5_0(site):
    """It binds sockets to an interface by its name only, and its neighbours are asked all the same."""
    site.have_ipv6()
    done = subprocess.run(site.command(site.n1, sys.executable, "-c", BEFORE_5_0, EARSHOT, "check", "--config", site.config,
                                       "--control", site.control, "--json"), capture_output=True, text=True, check=False)
    assert Result(done).of("neighbours.service_arp")[0]["severity"] == "ok"


def have_nodes_of_ipv6(site):
    """Nodes that have addresses of IPv6 alone."""
    site.have_ipv6()
    for number, namespace in enumerate((site.n1, site.n2), 1):
        site.ip(namespace, f"addr add fd00:78::{number}/64 dev eth1 nodad")
    site.configure(address6=VIP6, nodes=("fd00:78::1", "fd00:78::2"))


def test_own_address_twice_by_ipv6(site):
    have_nodes_of_ipv6(site)
    site.expect()
    site.ip(site.n2, "addr add fd00:78::1/64 dev eth1 nodad")
    mac = namespaces.hardware_address(site.n2, "eth1")
    assert site.check().of("neighbours.own_address")[0]["found"].startswith(f"{mac} has fd00:78::1, too")


def test_node_away(site):
    site.ip(site.n2, "addr del 10.78.0.2/24 dev eth1")
    site.expect("neighbours.nodes warning", "neighbours.path_mtu unchecked")


def test_server(site):
    site.listen("0.0.0.0")
    site.expect()
    site.listen("::", v6only=0)
    site.expect()
    site.listen("::", v6only=1)
    site.expect("server.listen error")
    site.listen("10.77.0.1")
    site.expect("server.listen error")
    site.listen(port=81)
    found = site.expect("server.listen error").of("server.listen")[0]
    assert found["found"] == f"service web: nothing listens on {VIP} port 80"
    site.listen(backlog=5)
    site.expect("server.backlog warning")


def test_mptcp(site):
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError:
        pytest.skip("this kernel has no MPTCP")
    site.listen(protocol=IPPROTO_MPTCP)
    site.expect("server.mptcp error")


def test_key(site):
    os.chmod(site.key, 0o644)
    assert "mode 0644" in site.expect("server.key error").of("server.key")[0]["found"]
    os.chmod(site.key, 0o600)
    os.chown(site.key, NOBODY, NOBODY)
    assert f"belongs to user {NOBODY}" in site.expect("server.key error").of("server.key")[0]["found"]
    os.unlink(site.key)
    assert "earshot keygen" in site.expect("server.key error").of("server.key")[0]["action"]


def test_cluster(site):
    site.configure(more="node n3 { address = 10.78.0.3 weight = 0 }", cluster="virtual_nodes = 1")
    result = site.expect("cluster.virtual_nodes warning", "neighbours.nodes warning", "neighbours.path_mtu unchecked")
    assert "n3" in result.of("cluster.weights")[0]["found"]


def test_not_root(site):
    """What this user may not see is said, and nothing is taken for wrong."""
    os.chmod(site.directory, 0o755)
    os.chmod(site.config, 0o644)
    result = site.check(user=NOBODY)
    assert set(result.wrong().values()) == {"unchecked"}
    assert {"kernel.programs", "network.datapath", "neighbours.own_address", "neighbours.service_arp", "neighbours.nodes",
            "neighbours.path_mtu", "server.key", "members.daemon", "kernel.firewall",
            "kernel.translation"} == set(result.wrong())


def test_exit_status(site):
    assert site.run().returncode == 0
    assert site.run("--strict").returncode == 1  # the cluster is static
    site.sysctl({"net.ipv4.tcp_syncookies": 0})
    done = site.run()
    assert done.returncode == 1
    assert "error        tcp_syncookies  net.ipv4.tcp_syncookies = 0. " in done.stdout
    assert "Do: sysctl -w net.ipv4.tcp_syncookies=1\n" in done.stdout
    assert "\n  ok " not in done.stdout and "\n  ok " in site.run("--verbose").stdout
    done = site.run("--node", "n7")
    assert done.returncode == 2 and "no node named" in done.stderr
    site.configure(more="nonsense")
    done = site.run("--json")
    assert done.returncode == 2 and not done.stdout and site.config in done.stderr


def example():
    """The one of docs/json.md."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/json.md")
    with open(path, encoding="utf-8") as handle:
        text = handle.read()
    return json.loads(text.split("<!-- reply: check -->\n```json\n")[1].split("\n```")[0])


def test_schema(site):
    """The report has the members and types of the documentation's example, and no others."""
    def shape(value):
        if isinstance(value, dict):
            return {key: shape(member) for key, member in value.items()}
        return type(value).__name__

    documented, found = example(), site.check().report
    assert shape({**documented, "findings": 0}) == shape({**found, "findings": 0})
    shapes = [shape({**f, "action": ""}) for f in documented["findings"]]
    assert all(shape({**f, "action": ""}) == shapes[0] for f in found["findings"])
    assert all(f["action"] is None or isinstance(f["action"], str) for f in found["findings"])
    known = {f["id"]: f for f in found["findings"]}
    for f in documented["findings"]:
        assert f["id"] in known, f"{f['id']} is in docs/json.md only"
        assert f["why"] == known[f["id"]]["why"], f"docs/json.md is behind for {f['id']}"


def test_check_config_on_a_node(site):
    """What a reload would not find is an error on a node, all of it at once, and a warning elsewhere at most."""
    def check_config():
        return subprocess.run(site.command(site.n1, EARSHOT, "check-config", site.config), capture_output=True, text=True,
                              check=False)

    assert check_config().returncode == 0
    os.unlink(site.key)
    site.configure(more="service more { address = 10.77.0.101 port = 80 plugin no-such { } }")
    done = check_config()
    assert done.returncode == 1
    key, plugin = done.stderr.splitlines()
    assert f"{site.config}: cluster: key_file: {site.key}: " in key
    assert "plugin no-such: " in plugin and "no-such.so: cannot be opened: No such file" in plugin
    site.ip(site.n1, "addr del 10.78.0.1/24 dev eth1")
    done = check_config()
    assert done.returncode == 0, done.stderr
    site.configure(cluster="handover_port = 0 virtual_nodes = 0", more="rule r { cost = 0 nodes = n9 }")
    done = check_config()
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 4, done.stderr


def test_daemon_that_hangs_or_died(site):
    """Status 1, with what is the matter; one that was never started or has been stopped is none."""
    def members():
        result = Result(site.run("--json"))
        found, = result.of("members.daemon")
        assert result.status == 1 and found["severity"] == "error" and found["action"], found
        return found["found"]

    daemon = site.start_daemon()
    site.expect()
    daemon.send_signal(signal.SIGSTOP)
    try:
        assert members() == f"earshotd hangs: it has control socket {site.control} and does not answer"
        waiting = []
        with contextlib.ExitStack() as stack:  # its queue is full: not even a connection comes about
            with contextlib.suppress(BlockingIOError):
                while len(waiting) < 1000:
                    waiting.append(stack.enter_context(socket.socket(socket.AF_UNIX)))
                    waiting[-1].setblocking(False)
                    waiting[-1].connect(site.control)
            assert "earshotd hangs" in members()
    finally:
        daemon.send_signal(signal.SIGCONT)
    wait_for(lambda: site.run("--json").returncode == 0, "the daemon's answers")
    daemon.kill()
    daemon.wait()
    assert members() == f"earshotd died: nobody has its control socket {site.control} any more"
    os.unlink(site.control)
    assert Result(site.run("--json")).of("members.daemon")[0]["severity"] == "unchecked"


def test_configuration_of_the_daemon(site):
    """Without --config it is the running daemon's."""
    def config(*arguments):
        done = subprocess.run(site.command(site.n1, EARSHOT, "--json", "check", "--control", site.control, *arguments),
                              capture_output=True, text=True, check=False)
        return json.loads(done.stdout)["config"] if done.stdout else done.stderr

    if os.path.exists("/etc/earshot/earshot.conf"):
        assert config() == "/etc/earshot/earshot.conf"
    else:
        assert "/etc/earshot/earshot.conf: cannot be opened" in config()
    site.start_daemon()
    assert config() == site.config
    other = site.config + ".other"
    shutil.copy(site.config, other)
    assert config("--config", other) == other


def test_fix(site):
    """It prints what is safe, sysctls first, and changes nothing; --yes runs it, and then all is well."""
    def fix(*arguments):
        done = site.run("--fix", *arguments)
        lines = done.stdout.splitlines()
        return done.returncode, [x for x in lines if x[0] != "#"], [x for x in lines if x.startswith("# by hand: ")]

    assert fix()[:2] == (0, [])
    site.sysctl({"net.ipv4.tcp_syncookies": 0, "net.ipv4.tcp_rmem": "4096 16384 6291456"})
    site.ip(site.n1, f"addr del {VIP}/32 dev lo")
    for _ in range(2):
        status, commands, _ = fix()
        assert status == 1 and commands[-1] == f"ip address add {VIP}/32 dev lo"
        assert sorted(commands[:-1]) == ["sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'",
                                         "sysctl -w net.ipv4.tcp_syncookies=1"]
    # With the address, this machine would answer ARP requests for it: that is for people, then.
    site.sysctl({"net.ipv4.conf.eth0.arp_ignore": 0})
    status, commands, others = fix()
    assert len(commands) == 2 and any("ip address add" in x for x in others)
    site.sysctl({"net.ipv4.conf.eth0.arp_ignore": 1})
    status, ran, _ = fix("--yes")
    assert status == 0 and "net.ipv4.tcp_syncookies = 1" in ran
    site.expect()
    # A list of ports may have others' in it, and what somebody must choose is no command.
    site.sysctl({"net.ipv4.ip_local_port_range": "7000 60999", "net.netfilter.nf_conntrack_tcp_loose": 0})
    status, commands, others = fix("--yes")
    assert status == 0 and not commands
    assert any("cluster.handover_port" in x for x in others) and any("kernel.conntrack_loose" in x for x in others)
    assert site.run("--yes").returncode == 64 and site.run("--fix", "--json").returncode == 64


@pytest.mark.parametrize("path", ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/games", "PATH=", "-uPATH"])
def test_fix_without_sbin(site, path):
    """As after `su`, from cron, or by ssh with a command: what it runs is in sbin."""
    site.sysctl({"net.ipv4.tcp_syncookies": 0})
    command = site.command(site.n1, "/usr/bin/env", path, EARSHOT, "check", "--config", site.config, "--control", site.control, "--fix", "--yes")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "net.ipv4.tcp_syncookies = 1" in done.stdout, done
    site.expect()
