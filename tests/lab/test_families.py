# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients of IPv4 and IPv6 of one service, at the same time: answered alike, and none by a way of its own.

The other suites run with clients of IPv6 alone where EARSHOT_FAMILY is 6 (CMakeLists.txt).
"""
import collections
import contextlib
import errno
import itertools
import json
import os
import re
import shutil
import socket

import pytest

from cluster import programs, vips
from earshotlab import Lab, daemon, families, netns, topology, wait_for
from web import pictures, raw, routers
from web.traffic import Traffic

pytestmark = pytest.mark.earshot

EACH = vips.each("46")


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="uri-hash", family="46", settings={"service.inspect": "every", "service.load_bound": 0}) as lab:
        yield lab


def connect(lab, vip, **options):
    return raw.connect(lab.client, (vip, topology.PORT), **options)


def seen(lab, vip):
    """Where the client's kernel sends what is for that address."""
    return [line for line in lab.client.exec(["ip", "neigh", "show", vip]).stdout.splitlines() if "lladdr" in line]


@EACH
def test_the_address_is_the_clusters(lab, vip):
    lab.client.get("/node", host=vip)
    lines = seen(lab, vip)
    assert len(lines) == 1 and "03:bf:0a:4d:00:64" in lines[0]
    assert raw.total(lab, "arp_answered" if vip == topology.VIP else "ndp_answered")


def test_a_target_has_one_home_for_all(lab):
    """The same targets are the same nodes', whoever asks: no family has a cache of its own."""
    for number in range(12):
        nodes = set()
        for vip in lab.net.vips:
            response = raw.ask(lab.client, raw.head(f"/u/1k/{number}", Connection="close"), address=(vip, topology.PORT))[0]
            assert raw.right(response, "1k")
            nodes.add(response.node)
        assert len(nodes) == 1, number


@EACH
def test_connections_move(lab, vip):
    """Request by request, from node to node and back; each answer is whole."""
    moved = raw.total(lab, "handover_rebuilt")
    with connect(lab, vip) as sock:
        nodes = []
        for number in range(12):
            sock.sendall(raw.head(f"/u/100k/{number}"))
            response = raw.receive(sock)
            assert raw.right(response, "100k")
            nodes.append(response.node)
    assert set(nodes) == {"n1", "n2", "n3"}
    assert raw.total(lab, "handover_rebuilt") >= moved + sum(a != b for a, b in zip(nodes, nodes[1:]))


@EACH
def test_upload(lab, vip):
    done = lab.client.exec(["curl", "-sS", "--max-time", "20", "--data-binary", "@-", "--globoff",
                            f"http://{families.in_url(vip)}/upload"], input="x" * 300_000)
    assert json.loads(done.stdout)["bytes"] == 300_000


def trouble(lab, node):
    return next(each for each in lab.status(node)["nodes"] if each["self"])["trouble"]


def curl(lab, *options):
    """By which address a client of both families gets its answer in the end (Happy Eyeballs, RFC 8305)."""
    name = f"site.example:{topology.PORT}:{','.join(reversed(lab.net.vips))}"
    done = lab.client.exec(["curl", "-sS", "--max-time", "10", "--resolve", name, "-o", "/dev/null",
                            "-w", "%{remote_ip} %{http_code} %header{x-node}", *options,
                            f"http://site.example:{topology.PORT}/1k"])
    address, status, node = done.stdout.split()
    assert status == "200" and node in lab.net.nodes, done.stdout
    return address


@contextlib.contextmanager
def black_hole(lab, vip):
    """What the client sends to that address comes to nobody."""
    lab.client.exec(["ip", "neigh", "replace", vip, "lladdr", lab.net.link("client").mac, "dev", "eth0", "nud", "permanent"])
    try:
        yield
    finally:
        lab.client.exec(["ip", "neigh", "del", vip, "dev", "eth0"])


@contextlib.contextmanager
def without_listeners_of_ipv6(lab, nodes):
    """The nginx of these nodes listens for IPv4 only."""
    paths = {node: os.path.join(node.directory, "nginx.conf") for node in nodes}
    before = {}

    def write(node, text):
        with open(paths[node], "w", encoding="utf-8") as handle:
            handle.write(text)
        node.exec(["kill", "-HUP", str(lab.pid(node.name, "nginx"))])

    for node, path in paths.items():
        with open(path, encoding="utf-8") as handle:
            before[node] = handle.read()
    try:
        for node, text in before.items():
            write(node, re.sub(r"listen \[::\].*", "", text))
        yield
    finally:
        for node, text in before.items():
            write(node, text)


@EACH
def test_happy_eyeballs(lab, vip):
    """Where one family leads nowhere the client goes on with the other, and back to its favourite, IPv6."""
    other = next(each for each in lab.net.vips if each != vip)
    assert curl(lab) == families.VIP6
    assert curl(lab, f"-{6 if ':' in vip else 4}") == vip
    with black_hole(lab, vip):
        for delay_ms in (1, 50, 200):
            assert curl(lab, "--happy-eyeballs-timeout-ms", str(delay_ms)) == other
    assert curl(lab) == families.VIP6


@contextlib.contextmanager
def site_of_both(lab):
    """For the client's programs, site.example has both addresses."""
    directory = os.path.join("/etc/netns", lab.net.client)  # `ip netns exec` shows what is there as /etc
    os.makedirs(directory)
    try:
        with open(os.path.join(directory, "hosts"), "w", encoding="ascii") as handle:
            handle.writelines(f"{vip} site.example\n" for vip in lab.net.vips)
        yield
    finally:
        shutil.rmtree(directory)


def asked_by(lab, target):
    """{client's address: how many requests of targets that begin so} that the servers have answered."""
    found = collections.Counter()
    for node in lab.nodes:
        for line in node.access_log():
            client, _, rest = line.partition(" ")
            if rest.startswith(f'"GET {target}'):
                found[client.rpartition(":")[0]] += 1
    return found


def test_browser(lab, tmp_path):
    """A page whose pictures are at a name with both addresses, and at each of these: persistent connections of both families at
    once, which move."""
    count, hosts = 20, ["site.example", *map(families.in_url, lab.net.vips)]
    sources = [f"http://{host}/browser-{number}.png" for number in range(count) for host in hosts]
    made = []
    for name, content in [*((f"{number}.png", pictures.png(number)) for number in range(count)),
                          ("page.html", pictures.page(sources).encode())]:
        made.append(os.path.join(lab.docroot, f"browser-{name}"))
        with open(made[-1], "wb") as handle:
            handle.write(content)
    moved = raw.total(lab, "inspect_moved")
    with site_of_both(lab):
        seen = pictures.seen(lab.client, "http://site.example/browser-page.html", tmp_path / "profile")
    for path in made:
        os.unlink(path)
    assert seen == (len(sources), len(sources))
    asked = wait_for(lambda: sum((now := asked_by(lab, "/browser-")).values()) > len(sources) and now, "access logs")
    assert set(asked) == {lab.net.client_addresses[0], lab.net.client_addresses6[0]} and min(asked.values()) >= count, asked
    assert raw.total(lab, "inspect_moved") > moved


def test_one_node_without_a_listener_of_ipv6(lab):
    """The others serve its share of IPv6; no client falls back to IPv4, and none loses anything."""
    node = lab.node("n2")
    with without_listeners_of_ipv6(lab, [node]):
        wait_for(lambda: "nothing listens" in trouble(lab, "n2"), "n2 says so")
        for number in range(24):
            assert curl(lab, "--happy-eyeballs-timeout-ms", "1000") == families.VIP6
            for vip in lab.net.vips:
                status, fields, _ = lab.client.get(f"/u/1k/{number}", host=vip)
                assert status == 200 and (fields["X-Node"] != "n2" or vip == topology.VIP)
    wait_for(lambda: not trouble(lab, "n2"), "n2 can serve again", seen=lambda: trouble(lab, "n2"))


def test_nobody_listens_for_ipv6(lab):
    """All nodes say so; the client is told at once; and clients of IPv4 lose nothing."""
    missing = f"nothing listens on {families.VIP6} port {topology.PORT}"
    with without_listeners_of_ipv6(lab, lab.nodes):
        wait_for(lambda: all(missing in trouble(lab, node.name) for node in lab.nodes), "each node says so")
        with connect(lab, families.VIP6) as sock, pytest.raises(ConnectionResetError):
            sock.sendall(raw.head("/1k"))
            raw.receive(sock)
        for number in range(12):
            assert lab.client.get(f"/u/1k/{number}", host=topology.VIP)[0] == 200
    wait_for(lambda: not any(trouble(lab, node.name) for node in lab.nodes), "they listen again")
    wait_for(lambda: lab.client.get("/1k", host=families.VIP6)[0] == 200, "an answer")


@EACH
def test_an_address_is_missing(lab, vip):
    """A connection that were made there would never be heard of again, so the other nodes serve that family; the node goes on with the
    other one."""
    length = 32 if vip == topology.VIP else 128
    node = lab.node("n2")
    node.exec(["ip", "address", "del", f"{vip}/{length}", "dev", "lo"])
    try:
        wait_for(lambda: f"ip address add {vip}/{length} dev lo" in trouble(lab, "n2"), "n2 says so")
        wait_for(lambda: all(each["trouble"] for name in ("n1", "n3") for each in lab.status(name)["nodes"]
                             if each["name"] == "n2"), "the others hear of it")
        homes = {each: {lab.client.get(f"/u/1k/{number}", host=each)[1]["X-Node"] for number in range(24)} for each in lab.net.vips}
        assert homes.pop(vip) == {"n1", "n3"} and homes.popitem()[1] == {"n1", "n2", "n3"}
    finally:
        node.exec(["ip", "address", "add", f"{vip}/{length}", "dev", "lo"])
    wait_for(lambda: not trouble(lab, "n2"), "n2 can serve again", seen=lambda: trouble(lab, "n2"))


def test_check(lab):
    """`earshot check` finds what an address of IPv6 needs, and what is missing."""
    node = lab.node("n1")

    def findings():
        done = node.exec(["earshot", "check", "--json", "--config", lab.config_file, "--node", node.name, "--control",
                          daemon.control_path(node.namespace)], check=False)
        return {each["id"]: each for each in json.loads(done.stdout)["findings"]}

    found = findings()
    for name in ("network.service_address", "network.ipv6", "network.link_local", "network.solicited", "server.listen"):
        assert found[name]["severity"] == "ok", found[name]
    node.exec(["ip", "address", "del", f"{families.VIP6}/128", "dev", "lo"])
    try:
        missing = findings()["network.service_address"]
        assert missing["severity"] == "error" and missing["action"] == f"ip address add {families.VIP6}/128 dev lo"
    finally:
        node.exec(["ip", "address", "add", f"{families.VIP6}/128", "dev", "lo"])
    wait_for(lambda: not trouble(lab, "n1"), "n1 can serve again", seen=lambda: trouble(lab, "n1"))


@contextlib.contextmanager
def configured(lab, service="", behind=""):
    """All nodes' configuration has this in the section of the service, and this behind it."""
    with open(lab.config_file, encoding="utf-8") as handle:
        before = handle.read()

    def put(text):
        with open(lab.config_file, "w", encoding="utf-8") as handle:
            handle.write(text)
        for node in lab.nodes:
            node.exec(["earshot", "reload"])

    put(before.replace("service web {\n", f"service web {{\n{service}\n") + behind)
    try:
        yield
    finally:
        put(before)


BY_NETWORK = {  # in n1 clients of IPv4 are served, in n2 those of IPv6
    "rule": ("", "rule four { client = 10.77.0.0/16  nodes = n1 }\nrule six { client = fd00:77::/64  nodes = n2 }\n"),
    "geo-cidr": ('plugin geo-cidr { file = "PLUGINS/geo-cidr.so"  config = "10.77.0.0/16 n1; fd00:77::/64 n2" '
                 'budget_us = 1000000 }', ""),
    "lua": ('plugin lua { file = "PLUGINS/lua.so"  config_file = "SCRIPT"  budget_us = 1000000 }', ""),
}
SCRIPT = "function route(req) return ({['CLIENT4'] = 'n1', ['CLIENT6'] = 'n2'})[req.client] end\n"


@pytest.mark.parametrize("by", BY_NETWORK)
def test_placed_by_the_clients_network(lab, tmp_path, by):
    """Rules and plugins see the address that the client has, as `earshot explain` shows it, for every request of a connection."""
    script = tmp_path / "route.lua"
    script.write_text(SCRIPT.replace("CLIENT4", lab.net.client_addresses[0]).replace("CLIENT6", lab.net.client_addresses6[0]))
    service, behind = BY_NETWORK[by]
    service = service.replace("SCRIPT", str(script)).replace("PLUGINS", os.path.join(daemon.BUILD, "plugins"))
    with configured(lab, service, behind):
        for vip, client, node in zip(lab.net.vips, (lab.net.client_addresses[0], lab.net.client_addresses6[0]), ("n1", "n2")):
            with connect(lab, vip) as sock:
                for number in range(6):
                    sock.sendall(raw.head(f"/u/1k/{number}"))
                    assert raw.receive(sock).node == node
            told = lab.node("n3").exec(["earshot", "explain", "/u/1k/1", "--json", "--client", f"{families.in_url(client)}:4000"])
            assert json.loads(told.stdout)["node"] == node


@EACH
def test_path_mtu(lab, vip):
    """Who has the connection hears that its segments are too large, whichever node that is; the rest of it is smaller."""
    for number in range(6):
        with connect(lab, vip) as sock:
            sock.sendall(raw.head(f"/u/1k/{number}"))
            node = lab.node(raw.receive(sock).node)
            routers.say_too_big(lab, sock, 1300)
            port = sock.getsockname()[1]
            wait_for(lambda: "pmtu:1300" in node.exec(["ss", "-Htin", "dport", "=", f":{port}"]).stdout, f"{node.name} hears",
                     seen=lambda: node.exec(["ss", "-Htin", "dport", "=", f":{port}"]).stdout)
            sock.sendall(raw.head(f"/u/1m/{number}"))
            assert raw.right(raw.receive(sock), "1m")


def test_all_at_once(lab):
    """Clients of both families, while a node's daemon is replaced: nothing fails."""
    with Traffic(lab, kept=10, fresh=6) as traffic:
        traffic.run(1)
        lab.stop("n2", "earshotd")
        lab.start("n2", "earshotd")
        traffic.run(1)
    assert not traffic.broken and not traffic.wrong
    assert len(traffic.answers) > 100


def test_programs(lab):
    """One socket of a program has clients of both families; each goes to the server of its own."""
    with contextlib.ExitStack() as stack:
        with open(lab.config_file, "a", encoding="utf-8") as handle:
            handle.write(programs.services(lab, ["programs"]))
        for node in lab.nodes:
            node.exec(["earshot", "reload"])
            programs.start_program(stack, node)
        built = raw.total(lab, "connection_rebuilt")
        for vip, target in itertools.product(lab.net.vips, ("n1", "n2", "n3")):
            with raw.connect(lab.client, (vip, programs.PORTS["programs"])) as sock:
                sock.sendall(raw.head("/100k", X_To=target, X_Read=40))
                response = raw.receive(sock)
                assert raw.right(response, "100k") and response.node == target
                sock.sendall(raw.head("/1k"))  # and it stays there
                assert raw.receive(sock).node == target
        assert raw.total(lab, "connection_rebuilt") == built + 6
        refuses_link_local(lab)
    assert not raw.total(lab, "handover_malformed")


def refuses_link_local(lab):
    """A program hears of a client whose address holds on its link only that its connection cannot move, and answers itself. With the
    netfilter datapath, it hears nothing of it."""
    lab.client.exec(["ip", "address", "add", "fe80::77/64", "dev", "eth0", "nodad"])
    try:
        with netns.in_namespace(lab.net.client, socket.socket, socket.AF_INET6, socket.SOCK_STREAM) as sock:
            sock.settimeout(20)
            index = json.loads(lab.client.exec(["ip", "-j", "link", "show", "dev", "eth0"]).stdout)[0]["ifindex"]
            sock.bind(("fe80::77", 0, 0, index))
            if daemon.DATAPATH == "netfilter":
                with pytest.raises(ConnectionRefusedError):
                    sock.connect((families.VIP6, programs.PORTS["programs"]))
                return
            sock.connect((families.VIP6, programs.PORTS["programs"]))
            sock.sendall(raw.head("/1k", X_To="n2"))
            response = raw.receive(sock)
            assert response.status == 299 and json.loads(response.text) == [-errno.EOPNOTSUPP]
    finally:
        lab.client.exec(["ip", "address", "del", "fe80::77/64", "dev", "eth0"])


def subscribed(lab, group):
    """The switch's ports behind which somebody has joined that group."""
    shown = json.loads(lab.machine("switch").exec(["bridge", "-j", "mdb", "show", "dev", topology.PUBLIC_BRIDGE]).stdout)
    return {entry["port"] for entry in shown[0].get("mdb", []) if entry["grp"] == group}


def snoop(lab, nodes_are_routers):
    """The switch snoops MLD, asks who has joined what, and sends a group's frames nowhere else. Of version 2, by which all say
    that they leave, and not only who spoke last. What no group is meant by, as the cluster MAC, goes to routers' ports."""
    switch = lab.machine("switch")
    netns.set_sysctls(switch.namespace, {f"net.ipv6.conf.{topology.PUBLIC_BRIDGE}.disable_ipv6": 0})
    netns.ip_batch(switch.namespace, [
        f"link set {topology.PUBLIC_BRIDGE} type bridge mcast_mld_version 2",
        f"address add fe80::1/64 dev {topology.PUBLIC_BRIDGE} nodad",
        *(f"link set {link.name} type bridge_slave mcast_router {2 if nodes_are_routers and link.name != 'client' else 0}"
          for link in lab.net.links.values() if link.bridge == topology.PUBLIC_BRIDGE),
        *(f"link set {topology.PUBLIC_BRIDGE} type bridge mcast_querier {on}" for on in (0, 1))])


@pytest.mark.bpf("the bridge of 6.1, on which the module is tested, keeps a group that was left for minutes")
@pytest.mark.parametrize("mode, mac", [("unicast", "02:bf:00:00:01:00"), ("multicast", "03:bf:00:00:01:00")])
def test_switch_that_snoops_mld(mode, mac):
    """Solicitations reach all nodes, for as long as their daemons run: each joins the address's group. Nobody can join the
    cluster MAC, so the switch is told where the nodes are."""
    group = "ff02::1:ff00:100"
    with Lab(nodes=2, family="6", settings={"datapath.mac_mode": mode}) as lab:
        snoop(lab, mode == "multicast")
        wait_for(lambda: subscribed(lab, group) == {"n1-pub", "n2-pub"}, "the nodes join", seen=lambda: subscribed(lab, group))
        for number in range(8):  # from several addresses, so that either node is to answer
            source = f"fd00:77::2:{number:x}"
            lab.client.exec(["ip", "address", "add", f"{source}/64", "dev", "eth0", "nodad"])
            lab.client.exec(["ip", "neigh", "flush", "dev", "eth0"])
            done = lab.client.exec(["curl", "-sS", "--max-time", "5", "--globoff", "--interface", source, lab.url("/node")])
            assert done.stdout in ("n1\n", "n2\n")
            assert mac in seen(lab, families.VIP6)[0]
        assert all(lab.counters(node.name)["ndp_answered"] for node in lab.nodes)
        lab.stop("n1", "earshotd")
        wait_for(lambda: subscribed(lab, group) == {"n2-pub"}, "n1 leaves", seen=lambda: subscribed(lab, group))
        lab.start("n1", "earshotd")
        wait_for(lambda: subscribed(lab, group) == {"n1-pub", "n2-pub"}, "and joins", seen=lambda: subscribed(lab, group))


@pytest.fixture(scope="module", name="alone")
def _alone():
    """Nodes that have no address of IPv4, and move connections."""
    with Lab(nodes=3, policy="uri-hash", family="6", settings={"service.inspect": "every", "service.load_bound": 0}) as lab:
        yield lab


def test_nodes_of_ipv6_move_connections(alone):
    """What nodes tell each other is of IPv6: handovers, refusals, and how busy they are."""
    assert ":" in alone.node("n1").cluster_address
    test_connections_move(alone, families.VIP6)
    wait_for(lambda: all(alone.status(node.name)["loads"]["received"] for node in alone.nodes), "loads of each other")
    for name in ("handover_malformed", "handover_bad_mac", "handover_public", "answer_failed"):
        assert not raw.total(alone, name), name
    alone.stop("n2", "nginx")  # it refuses what it is given
    try:
        for number in range(24):
            assert alone.client.get(f"/u/1k/r{number}")[1]["X-Node"] in ("n1", "n3")
    finally:
        alone.start("n2", "nginx")
    wait_for(lambda: not trouble(alone, "n2"), "n2 can serve again", seen=lambda: trouble(alone, "n2"))


def test_full_segments_between_nodes_of_ipv6(alone):
    """A message is longer by 20 bytes than with IPv4, so segments are shorter by as many; an upload of full ones arrives."""
    with connect(alone, families.VIP6) as sock:
        # Of an Ethernet frame: IPv6, UDP, the message's header, and the client's own 40 bytes.
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) <= 1500 - 40 - 8 - 64 - 40
    test_upload(alone, families.VIP6)


def test_status_of_a_node_of_ipv6(alone):
    """Another node asks for it at the cluster address."""
    url = f"http://{families.in_url(alone.node('n1').cluster_address)}:{topology.STATUS_PORT}/metrics"
    done = alone.node("n2").exec(["curl", "-sSf", "--max-time", "5", "--globoff", url])
    assert "earshot_" in done.stdout


def test_check_of_a_cluster_of_ipv6(alone):
    node = alone.node("n1")
    done = node.exec(["earshot", "check", "--json", "--config", alone.config_file, "--node", node.name, "--control",
                      daemon.control_path(node.namespace)], check=False)
    found = {each["id"]: each for each in json.loads(done.stdout)["findings"]}
    for name in ("network.node_address", "network.nodes_near", "neighbours.nodes", "neighbours.path_mtu"):
        assert found[name]["severity"] == "ok", found[name]


@pytest.mark.corosync
def test_a_cluster_of_ipv6_alone():
    """With membership: a node that loses its power is replaced, and comes back; each client gets an answer at last."""
    with Lab(nodes=3, family="6", policy="uri-hash", membership="corosync") as lab:
        with Traffic(lab, kept=6, fresh=6) as traffic:
            traffic.run(1)
            lab.kill("n2")
            wait_for(lambda: lab.status("n1")["ring"]["members"] == 2, "a ring without n2")
            began = traffic.now()
            traffic.run(3)
            lab.heal("n2")
            wait_for(lambda: lab.status("n1")["ring"]["members"] == 3, "a ring with n2")
            traffic.run(1)
        assert not traffic.wrong
        late = [answer for answer in traffic.answers if answer.began > began]
        assert {answer.node for answer in late} == {"n1", "n2", "n3"}
        assert not [failure for failure in traffic.broken if failure.began > began + 1], traffic.broken
