# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes with the netfilter datapath in one cluster with a BPF node: requests go from each kind to each, and connections outlive daemons."""
import contextlib
import errno
import hashlib
import itertools
import json
import pathlib
import random
import signal
import socket
import subprocess

import pytest

import tree
from cluster import conntrack
from earshotlab import Lab, families, netns, topology, wait_for
from web import raw, routers

pytestmark = pytest.mark.earshot

NETFILTER = ("n2", "n3")
TCP_REPAIR = 19
CLIENTS = {
    "plain": {"tcp_timestamps": 1, "tcp_sack": 1, "tcp_window_scaling": 1},
    "no-timestamps": {"tcp_timestamps": 0, "tcp_sack": 1, "tcp_window_scaling": 1},
    "nothing": {"tcp_timestamps": 0, "tcp_sack": 0, "tcp_window_scaling": 0},
}


def mixed_lab(family):
    """Of nodes with netfilter, and one with BPF."""
    return Lab(nodes=3, policy="uri-hash", datapath="bpf", node_datapath={name: "netfilter" for name in NETFILTER}, family=family)


@pytest.fixture(scope="module", name="lab", params=["4", "6"], ids=["v4", "v6"])
def _lab(request):
    with mixed_lab(request.param) as lab:
        lab.free_ports = {node.name: raw.ports(lab, node.name, first=20000) for node in lab.nodes}
        yield lab


def home(lab, uri):
    """The node that serves a URI now."""
    response = raw.ask(lab.client, raw.head(uri, Connection="close"))[0]
    assert response.status == 200
    return response.node


def uris(lab, file="1k", count=12):
    """URIs of that file, of each node some: {node: [URI, …]}."""
    found = {}
    for number in range(count):
        uri = f"/u/{file}/{number}"
        found.setdefault(home(lab, uri), []).append(uri)
    assert set(found) == {"n1", "n2", "n3"}
    return found


def from_to(lab, inspecting, serving, uri):
    """Ask for a URI from a port that one node inspects; the other serves it."""
    port = next(lab.free_ports[inspecting])
    with raw.connect(lab.client, port=port) as sock:
        sock.sendall(raw.head(uri))
        response = raw.receive(sock)
    assert raw.right(response, uri.split("/")[2]), (inspecting, serving)
    assert response.node == serving
    return port


def test_each_kind_hands_over_to_each(lab):
    homes = uris(lab)
    for inspecting, serving in itertools.product(homes, homes):
        port = from_to(lab, inspecting, serving, homes[serving][0])
        # To the server it is the client's own connection.
        log = pathlib.Path(lab.node(serving).directory, "access.log")
        wait_for(lambda: f"{lab.net.client_address}:{port} " in log.read_text(encoding="utf-8"),
                 f"{serving} has logged the client's own port")
    for node in lab.nodes:
        assert node.ask({"command": "status"})["datapath"]["type"] == ("netfilter" if node.name in NETFILTER else "bpf")
    assert raw.total(lab, "rebuild_refused", "handover_malformed", "handover_bad_mac", "answer_failed") == 0


@pytest.mark.parametrize("kind", CLIENTS)
def test_clients(lab, kind):
    """Short and long ones, up and down, on connections that last."""
    netns.set_sysctls(lab.net.client, {f"net.ipv4.{name}": value for name, value in CLIENTS[kind].items()})
    body = random.randbytes(3 << 20)
    try:
        for serving in NETFILTER:
            with contextlib.closing(raw.connect(lab.client, timeout=20)) as sock:
                first = uris(lab, "1m")[serving][0]
                for uri in [first, *["/u/1k/x"] * 20, first]:
                    sock.sendall(raw.head(uri))
                    response = raw.receive(sock)
                    assert raw.right(response, uri.split("/")[2])
                    assert response.node == serving
                assert raw.upload(sock, body)
    finally:
        netns.set_sysctls(lab.net.client, {f"net.ipv4.{name}": value for name, value in CLIENTS["plain"].items()})


def test_upload_in_the_first_request(lab):
    """Segments that overtake the making of their connection find it."""
    body = random.randbytes(2 << 20)
    for _ in range(6):
        with raw.connect(lab.client, timeout=20) as sock:
            assert raw.upload(sock, body)


@pytest.mark.parametrize("size", [1, 3000])
def test_head_in_pieces(lab, size):
    """The inspecting node asks for more of a head by packets of its own, which make no connection out of nothing."""
    homes = uris(lab)
    head = raw.head(homes["n3"][0], Cookie="c=" + "x" * (5000 if size > 1 else 50))
    for inspecting in homes:
        with raw.connect(lab.client, port=next(lab.free_ports[inspecting])) as sock:
            for at in range(0, len(head), size):
                sock.sendall(head[at:at + size])
            response = raw.receive(sock)
            assert raw.right(response, "1k") and response.node == "n3"


def _connect_again(lab, port):
    """A connection of that port; None while the last acknowledgement of the one before is on its way."""
    try:
        return raw.connect(lab.client, port=port)
    except OSError as failed:
        assert failed.errno == errno.EADDRNOTAVAIL, failed
        return None


def test_same_port_again(lab):
    """The server closes first, so its side waits; the next connection of these ports is made all the same."""
    homes = uris(lab)
    port = next(lab.free_ports["n2"])
    for _ in range(10):
        with wait_for(lambda: _connect_again(lab, port), "the client's ports are free", 10) as sock:
            sock.sendall(raw.head(homes["n3"][0], Connection="close"))
            assert raw.right(raw.receive(sock), "1k")
            assert sock.recv(1) == b""


@pytest.mark.parametrize("is_there", [True, False], ids=["server-waits", "server-gone"])
def test_client_that_forgot(lab, is_there):
    """As after its power was cut: its next connection of the same ports is served, whatever is left of the one before."""
    homes = uris(lab)
    for inspecting in homes:
        port = next(lab.free_ports[inspecting])
        for _ in range(2):
            with raw.connect(lab.client, port=port) as sock:
                sock.sendall(raw.head(homes["n3"][0]))
                assert raw.right(raw.receive(sock), "1k")
                sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)  # closed without a word
            if not is_there:
                lab.node("n3").exec(["ss", "-K", "-tn", f"dport = :{port}"])


def test_server_that_resets(lab):
    """Its client believes the RST, however much it has heard before."""
    homes = uris(lab, "1m")
    for inspecting, serving in itertools.product(homes, NETFILTER):
        port = next(lab.free_ports[inspecting])
        with raw.connect(lab.client, port=port) as sock:
            sock.sendall(raw.head(homes[serving][0]))
            assert raw.receive(sock).node == serving
            lab.node(serving).exec(["ss", "-K", "-tn", f"dport = :{port}"])
            with pytest.raises(ConnectionResetError):
                sock.recv(1)


LOST = """
table inet lost {
    chain in { type filter hook prerouting priority -400; tcp flags & rst == rst drop; }
}
"""


def test_a_reset_that_is_lost(lab):
    """The node that has sent it repeats it for the next segment, whoever inspects the connection; no node need be asked."""
    homes = uris(lab, "1m")
    for inspecting, serving in itertools.product(homes, NETFILTER):
        port = next(lab.free_ports[inspecting])
        before = lab.counters(serving)["reset_repeated"]
        with raw.connect(lab.client, port=port) as sock:
            sock.sendall(raw.head(homes[serving][0]))
            assert raw.receive(sock).node == serving
            lab.client.exec(["nft", "-f", "-"], input=LOST)
            lab.node(serving).exec(["ss", "-K", "-tn", f"dport = :{port}"])
            lab.client.exec(["nft", "delete", "table", "inet", "lost"])
            sock.sendall(raw.head("/u/1k/0"))
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
        assert lab.counters(serving)["reset_repeated"] > before, (inspecting, serving)


def test_server_that_is_down(lab):
    homes = uris(lab)
    lab.node("n2").stop("nginx")
    try:
        for inspecting in ("n1", "n2", "n3"):
            with raw.connect(lab.client, port=next(lab.free_ports[inspecting])) as sock:
                sock.sendall(raw.head(homes["n2"][0]))
                response = raw.receive(sock)
            assert raw.right(response, "1k") and response.node != "n2"
    finally:
        lab.node("n2").start("nginx")
    wait_for(lambda: any(home(lab, uri) == "n2" for uri in homes["n2"]), "n2 serves again")


def test_a_kernel_that_answers_with_cookies_alone(lab):
    """Its listening socket would forget the SYN, and with it what the client was promised: others serve, and the node says why."""
    homes = uris(lab)
    node = lab.node("n2")

    def trouble():
        return next(each for each in lab.status("n2")["nodes"] if each["self"])["trouble"]

    netns.set_sysctls(node.namespace, {"net.ipv4.tcp_syncookies": 2})
    try:
        wait_for(lambda: "tcp_syncookies is 2" in trouble(), "n2 says what is wrong", seen=trouble)
        wait_for(lambda: home(lab, homes["n2"][0]) != "n2", "others serve")
        checked = json.loads(node.exec(["earshot", "--json", "check", "--config", lab.config_of("n2")], check=False).stdout)
        said = {finding["id"]: finding for finding in checked["findings"]}
        assert (said["kernel.tcp_syncookies"]["severity"], said["kernel.tcp_syncookies"]["action"]) == \
            ("error", "sysctl -w net.ipv4.tcp_syncookies=1")
    finally:
        netns.set_sysctls(node.namespace, {"net.ipv4.tcp_syncookies": 1})
    wait_for(lambda: not trouble(), "n2 can serve again", seen=trouble)
    wait_for(lambda: any(home(lab, uri) == "n2" for uri in homes["n2"]), "n2 serves again")


def test_conntrack_that_is_flushed(lab):
    """As by `conntrack -F`: open connections go on, also those that another daemon has made."""
    homes = uris(lab)
    with raw.connect(lab.client, port=next(lab.free_ports["n1"]), timeout=20) as sock:
        for step in ("made", "flushed", "by the next daemon", "flushed again"):
            if step.startswith("flushed"):
                conntrack.flush(lab.node("n2"))
            if step == "by the next daemon":
                lab.node("n2").signal("earshotd", signal.SIGKILL)
                lab.node("n2").start("earshotd")
            sock.sendall(raw.head(homes["n2"][0]))
            assert raw.receive(sock).node == "n2", step


# ES_NF_LABEL_MAKING (netfilter/kernel/entry.h), on whatever comes from clients.
MAKING = """
table inet making {
    chain in { type filter hook prerouting priority -140; tcp dport 80 iifname "eth0" ct label set 124; }
}
"""


def test_connection_that_is_being_made_for_good(lab):
    """As one is whose SYN came in late: nothing that its server says leaves, until its client repeats itself."""
    homes = uris(lab)
    node = lab.node("n2")
    with raw.connect(lab.client, port=next(lab.free_ports["n1"]), timeout=20) as sock:
        sock.sendall(raw.head(homes["n2"][0]))
        assert raw.receive(sock).node == "n2"
        node.exec(["nft", "-f", "-"], input=MAKING)
        sock.sendall(raw.head(homes["n2"][0]))
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        node.exec(["nft", "delete", "table", "inet", "making"])
        sock.settimeout(20)
        assert raw.receive(sock).node == "n2"
        sock.sendall(raw.head(homes["n2"][0]))
        assert raw.receive(sock).node == "n2"


def tables(node, family):
    """What the node's kernel has of our tables: {name: its rules}; neither counts, nor what is in a set that rules fill."""
    names = [line.split()[2] for line in node.exec(["nft", "list", "tables", family]).stdout.splitlines() if "earshot" in line]
    return {name: node.exec(["nft", "-s", "-t", "list", "table", family, name], check=False).stdout for name in names}


def handle_of(node, *chain):
    """The handle of a chain's second rule; table and chain have some, too."""
    listed = node.exec(["nft", "-a", "list", "chain", *chain]).stdout
    return [line.split()[-1] for line in listed.splitlines() if "# handle" in line][3]


def queued(lab, name):
    """How many packets the kernel has given to that node's daemon so far."""
    lines = lab.node(name).exec(["cat", "/proc/net/netfilter/nfnetlink_queue"]).stdout.splitlines()
    return sum(int(line.split()[7]) for line in lines)


def test_what_is_anothers_is_asked_about_once(lab):
    """Of a flow its SYN, perhaps what came right behind that, and something four times a second; all else is dropped in the kernel, and counted."""
    homes = uris(lab)
    before, dropped = queued(lab, "n3"), lab.counters("n3")["drop_not_mine"]
    with raw.connect(lab.client, port=next(lab.free_ports["n1"]), timeout=20) as sock:
        for _ in range(200):
            sock.sendall(raw.head(homes["n2"][0]))
            assert raw.receive(sock).node == "n2"
    wait_for(lambda: lab.counters("n3")["drop_not_mine"] >= dropped + 200, "the packets are counted")
    # Of nodes' messages there are 30 a second.
    assert queued(lab, "n3") - before < 150


PIECES = {
    "all of our rules": "flush table {family} earshot-capture; flush table {family} earshot-rebuild",
    "the rules": "flush table {family} earshot-capture",
    "a chain": "flush chain {family} earshot-capture service",
    "the chain of answers": "flush chain {family} earshot-capture answers; delete chain {family} earshot-capture answers",
    "whose flows are others'": "flush chain {family} earshot-capture remember",
    "the hook": "flush table {family} earshot-rebuild",
    "what keeps handshakes quiet": "flush chain {family} earshot-rebuild handshake",
    "the table's use": "add table {family} earshot-capture {{ flags dormant; }}",
    "a rule": "delete rule {family} earshot-capture service handle {service}",
    "a rule, for another": "replace rule {family} earshot-capture service handle {service} counter accept",
    "order": "insert rule {family} earshot-capture capture counter accept",
}


@pytest.mark.parametrize("piece", PIECES)
def test_pieces_of_rules_that_are_taken_away(lab, piece):
    """The tables are there, and are not what they were: they are made whole."""
    homes = uris(lab)
    node, family = lab.node("n2"), {"4": "ip", "6": "ip6"}[lab.options["family"]]
    before = tables(node, family)
    assert set(before) == {"earshot-capture", "earshot-rebuild"}
    with raw.connect(lab.client, port=next(lab.free_ports["n1"]), timeout=20) as sock:
        sock.sendall(raw.head(homes["n2"][0]))
        assert raw.receive(sock).node == "n2"
        service = handle_of(node, family, "earshot-capture", "service")
        node.exec(["nft", PIECES[piece].format(family=family, service=service)])
        wait_for(lambda: tables(node, family) == before, "the tables are as they were", 10, lambda: tables(node, family))
        sock.sendall(raw.head(homes["n2"][0]))
        assert raw.receive(sock).node == "n2"
    from_to(lab, "n2", "n3", homes["n3"][0])
    from_to(lab, "n1", "n2", homes["n2"][0])


def test_rules_that_are_flushed(lab):
    """As a packet filter does that starts anew."""
    homes = uris(lab)
    node = lab.node("n2")
    with raw.connect(lab.client, port=next(lab.free_ports["n1"]), timeout=20) as sock:
        for _ in range(2):
            sock.sendall(raw.head(homes["n2"][0]))
            assert raw.receive(sock).node == "n2"
            node.exec(["nft", "flush", "ruleset"])
            wait_for(lambda: {"earshot-capture", "earshot-rebuild"} <= set(node.exec(["nft", "list", "tables"]).stdout.split()),
                     "the tables are there again")
        sock.sendall(raw.head(homes["n2"][0]))
        assert raw.receive(sock).node == "n2"
    from_to(lab, "n2", "n3", homes["n3"][0])
    from_to(lab, "n1", "n2", homes["n2"][0])


def test_daemon_that_dies(lab):
    """Its connections go on; what is its share waits, and comes through when the next daemon is there."""
    homes = uris(lab)
    with raw.connect(lab.client, port=next(lab.free_ports["n1"]), timeout=20) as sock:
        sock.sendall(raw.head(homes["n2"][0]))
        assert raw.receive(sock).node == "n2"
        before = lab.counters("n2")["handover_rebuilt"]
        lab.node("n2").signal("earshotd", signal.SIGKILL)
        for uri in ("/u/1k/x", "/u/1m/x"):
            sock.sendall(raw.head(uri))
            assert raw.right(raw.receive(sock), uri.split("/")[2])
        lab.node("n2").start("earshotd")
        from_to(lab, "n2", "n3", homes["n3"][0])
        from_to(lab, "n1", "n2", homes["n2"][0])
        assert lab.counters("n2")["handover_rebuilt"] > before  # of the tables that were taken over
        sock.sendall(raw.head("/u/1k/x"))
        assert raw.receive(sock).node == "n2"


def with_options(sock):
    """Each segment has a header with options, which say nothing, between those of IPv6 and TCP."""
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, bytes([0, 0, 1, 4, 0, 0, 0, 0]))


def test_both_families():
    """A target has one home for all, though some of its clients have IPv6, and the nodes among themselves IPv4."""
    body = random.randbytes(1 << 20)
    with mixed_lab("46") as lab:
        homes = {}
        clients = [(topology.VIP, None), (families.VIP6, None), (families.VIP6, with_options)]
        for number, (vip, before) in itertools.product(range(12), clients):
            response, _ = raw.ask(lab.client, raw.head(f"/u/100k/{number}", Connection="close"), address=(vip, topology.PORT),
                                  before=before)
            assert raw.right(response, "100k")
            homes.setdefault(number, set()).add(response.node)
        assert all(len(nodes) == 1 for nodes in homes.values()) and set.union(*homes.values()) == {"n1", "n2", "n3"}
        for vip in lab.net.vips:
            head = raw.head("/upload", "POST", Content_Length=len(body), Connection="close")
            response, _ = raw.ask(lab.client, head + body, address=(vip, topology.PORT))
            assert json.loads(response.text)["sha256"] == hashlib.sha256(body).hexdigest()
        assert raw.total(lab, "rebuild_refused", "handover_malformed", "handover_bad_mac", "answer_failed") == 0


def test_in_a_conntrack_zone():
    with Lab(nodes=2, policy="wrr", datapath="netfilter") as lab:
        conntrack.put_into_zone(lab)
        for _ in range(4):
            with raw.connect(lab.client, timeout=20) as sock:
                for uri in ("/u/1k/0", "/u/1m/0"):
                    sock.sendall(raw.head(uri))
                    assert raw.right(raw.receive(sock), uri.split("/")[2])
                assert raw.upload(sock, random.randbytes(1 << 20))
        assert raw.total(lab, "rebuild_refused") == 0


def test_neighbours_ask(lab):
    """Whoever asks for the service's address is told the cluster's, by one node, which is always the same for one who asks."""
    answered = "ndp_answered" if ":" in lab.net.vip else "arp_answered"
    before = {node.name: lab.counters(node.name)[answered] for node in lab.nodes}
    for _ in range(3):
        lab.client.exec(["ip", "neigh", "flush", "to", lab.net.vip])
        home(lab, "/u/1k/0")
        assert "lladdr 03:bf:" in lab.client.exec(["ip", "neigh", "show", lab.net.vip]).stdout
    rows = {name: lab.counters(name)[answered] - count for name, count in before.items()}
    assert sorted(bool(count) for count in rows.values()) == [False, False, True], rows
    assert max(rows.values()) >= 3


def test_path_mtu(lab):
    """Whose segments are too large for the way to the client hears that, and the rest of the answer is smaller."""
    homes = uris(lab)
    for inspecting, serving in itertools.product(homes, NETFILTER):
        port, node = next(lab.free_ports[inspecting]), lab.node(serving)
        with raw.connect(lab.client, port=port) as sock:
            sock.sendall(raw.head(homes[serving][0]))
            assert raw.receive(sock).node == serving
            routers.say_too_big(lab, sock, 1300)
            wait_for(lambda: "pmtu:1300" in node.exec(["ss", "-Htin", "dport", "=", f":{port}"]).stdout, f"{serving} hears",
                     seen=lambda: node.exec(["ss", "-Htin", "dport", "=", f":{port}"]).stdout)
            sock.sendall(raw.head("/u/1m/x"))
            assert raw.right(raw.receive(sock), "1m")


SWALLOWED = "table inet swallowed { chain in { type filter hook input priority 0; iif != lo tcp dport 80 drop; }; }"


@pytest.mark.parametrize("family, words", [("4", ["nft", SWALLOWED]), ("6", ["ip", "-6", "route", "del", "fd00:77::/64", "dev", "eth0"])],
                         ids=["rule", "no-way-back"])
def test_no_connection_can_be_made(family, words):
    """Another node gets the requests, but for those that must not be executed twice, and then all: the node is down."""
    with Lab(nodes=2, policy="wrr", datapath="netfilter", family=family) as lab, contextlib.ExitStack() as stack:
        lab.node("n2").exec(words)
        socks = [stack.enter_context(raw.connect(lab.client, timeout=20)) for _ in range(16)]
        for sock in socks:
            sock.sendall(raw.head("/node"))
        assert {raw.receive(sock).node for sock in socks} == {"n1"}
        assert lab.counters("n2")["handover_vanished"] >= 3 and lab.counters("n2")["handover_rebuilt"] == 0
        wait_for(lambda: "not heard of again" in lab.status("n1")["nodes"][1]["trouble"], "n2 is down",
                 seen=lambda: lab.status("n1")["nodes"])
        for _ in range(8):
            response, seconds = raw.ask(lab.client, raw.head("/node"))
            assert response.node == "n1" and seconds < 2
        # What is left of the attempts is nothing to the next daemon.
        lab.node("n2").stop()
        lab.node("n2").start()
        wait_for(lambda: lab.status("n1")["nodes"][1]["state"] == "up", "n2 is up", seen=lambda: lab.status("n1")["nodes"])


LATE = ["PREROUTING", "-i", "earshot-nf", "-p", "tcp", "-j", "NFQUEUE", "--queue-num", "7"]


@pytest.mark.parametrize("family, tables", [("4", "iptables"), ("6", "ip6tables")], ids=["v4", "v6"])
def test_what_makes_connections_comes_late(family, tables):
    """Later than anybody waits for it, and than its client repeats its request. No connection is made of it then; whichever node has the
    requests in the end, each is executed once, and nobody is told anything wrong meanwhile."""
    with Lab(nodes=2, policy="wrr", datapath="netfilter", family=family) as lab, contextlib.ExitStack() as stack:
        node = lab.node("n2")
        late = stack.enter_context(node.popen([*tree.module("cluster.late"), "7", "0.3"], stdout=subprocess.PIPE, text=True))
        stack.callback(late.kill)
        assert late.stdout.readline() == "ready\n"
        node.exec([tables, "-t", "raw", "-A", *LATE])
        socks = [stack.enter_context(raw.connect(lab.client, timeout=20)) for _ in range(8)]
        for number, sock in enumerate(socks):
            sock.sendall(raw.head(f"/u/1k/{number}"))
        wait_for(lambda: lab.counters("n2")["rebuild_refused"] >= 6, "they are tried again", seen=lambda: lab.counters("n2"))
        late.send_signal(signal.SIGUSR1)
        answers = [raw.receive(sock) for sock in socks]
        assert all(raw.right(answer, "1k") for answer in answers)
        logs = [pathlib.Path(each.directory, "access.log") for each in lab.nodes]
        wait_for(lambda: [sum(log.read_text(encoding="utf-8").count(f"/u/1k/{number} ") for log in logs) for number in range(8)] == [1] * 8,
                 "each was executed once", seen=lambda: [log.read_text(encoding="utf-8") for log in logs])


def test_stop_leaves_nothing(lab):
    """Neither table nor device; and the check says which datapath it would be, and that it can."""
    node = lab.node("n3")
    checked = json.loads(node.exec(["earshot", "--json", "check", "--config", lab.config_of("n3")], check=False).stdout)
    said = {finding["id"]: finding for finding in checked["findings"]}
    assert "netfilter" in said["kernel.reqsk"]["found"] and said["kernel.programs"]["severity"] == "ok"
    assert "earshot-capture" in node.exec(["nft", "list", "tables"]).stdout
    node.exec(["earshot", "stop"])
    wait_for(lambda: "earshot" not in node.exec(["nft", "list", "tables"]).stdout, "the tables are gone")
    wait_for(lambda: "earshot-nf" not in node.exec(["ip", "link"]).stdout, "the device is gone")
