# SPDX-License-Identifier: GPL-2.0-or-later
"""The ring while machines die, are cut off, come and go: real corosync, real clients."""
import fcntl
import json
import re
import signal
import struct
import termios
import threading
import time

import pytest

from cluster import vips
from cluster.every import start_backends
from cluster.membership import ALL, DETECTED, TOKEN, hear, serving, settled
from cluster.witness import Witness
from earshotlab import Lab, daemon, families, topology, wait_for
from web import raw
from web.traffic import Traffic, distribution

pytestmark = [pytest.mark.earshot, pytest.mark.corosync]

HALF = b"x" * 50000  # of a request's body

# Without its daemon, a node of this datapath answers nothing but to clients that have acknowledged something, and is asked nothing
# (docs/netfilter.md).
NETFILTER = daemon.DATAPATH == "netfilter"


@pytest.fixture(scope="module", name="module_lab")
def _module_lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), family=vips.FAMILY) as lab:
        yield lab


@pytest.fixture(name="lab")
def _lab(module_lab):
    settled(module_lab)
    return module_lab


def others(node):
    return set(ALL) - {node}


def report(name, traffic, since):
    print(f"{name}: fresh connections took {distribution(traffic.slow(since))}, "
          f"failures: {len(traffic.failures('kept', since=since))} kept, {len(traffic.failures('fresh', since=since))} fresh")


def test_power_cut(lab):
    """Connections of other nodes go on; new ones work as soon as the failure is detected."""
    with Traffic(lab) as traffic:
        traffic.run(1.5)
        traffic.assert_whole()
        traffic.wait_nodes(ALL)
        cut = traffic.now()
        lab.kill("n2")
        traffic.run(DETECTED)
        works = traffic.now()
        traffic.run(2)
    assert not traffic.failures("kept", others("n2"))
    assert not [f for f in traffic.broken if f.began > works], traffic.broken[-3:]
    # A client whose SYN was lost sends it again after 1 s and 3 s; its request after 0.2, 0.4, 0.8, 1.6 s.
    report("power cut", traffic, cut)
    assert traffic.slow(works)[0] < 1
    lab.heal("n2")
    settled(lab)


def idle_connections(lab, count=24):
    """{socket: the node that serves it}, of connections that have had an answer and are kept open."""
    serving(lab)
    idle = {}
    for address, _ in zip(raw.services(lab), range(count)):
        sock = raw.connect(lab.client, address, timeout=8)
        sock.sendall(raw.head("/1k"))
        idle[sock] = raw.receive(sock).node
    assert set(idle.values()) == set(ALL)
    return idle


def is_acknowledged(sock):
    """Nothing that was sent is still to be."""
    return not struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]


def uploads(lab, count=24):
    """{socket: the node that serves it}, of requests of which a half is there: half the connections had another before."""
    serving(lab)
    begun = {}
    for address, number in zip(raw.services(lab), range(count)):
        sock = raw.connect(lab.client, address, timeout=20)
        if number % 4 > 1:
            sock.sendall(raw.head("/1k"))
            raw.receive(sock)
        sock.sendall(raw.head(f"/upload/{number}", method="PUT", Content_Length=2 * len(HALF)) + HALF)
        begun[sock] = raw.name(sock)
    wait_for(lambda: all(map(is_acknowledged, begun)), "the halves")
    # In TIME_WAIT there may be others, of connections that had the same ports before.
    open_ones = [(line.split()[-1], node.name) for node in lab.nodes for line in raw.sockets(node) if line.startswith("ESTAB")]
    held = {sock: [node for peer, node in open_ones if peer == name] for sock, name in begun.items()}
    assert all(len(nodes) == 1 for nodes in held.values()), held
    held = {sock: node for sock, (node,) in held.items()}
    assert set(held.values()) == set(ALL)
    return held


def go_on(connections, data):
    """What becomes of it when all clients send this: the node that answers, or an error's class; and the seconds that the
    slowest one took."""
    began = time.monotonic()
    outcome = {}
    for sock in connections:
        try:
            sock.sendall(data)  # which may wait for an acknowledgement, where there is no room for all of it
        except OSError as error:
            outcome[sock] = type(error)
    for sock in connections.keys() - outcome.keys():
        try:
            outcome[sock] = raw.receive(sock).node
        except OSError as error:
            outcome[sock] = type(error)
    return outcome, time.monotonic() - began


def test_power_cut_with_open_connections(lab):
    """Who goes on with a connection of the node that is gone hears so, as from any host without that connection, and may
    connect anew; the others' connections go on."""
    def resets():
        return sum(lab.counters(node)["inspect_stray_resets"] for node in others("n2"))

    kinds = [(idle_connections(lab), raw.head("/1k")), (uploads(lab), HALF)]
    before = resets()
    lab.kill("n2")
    try:
        settled(lab, ["n1", "n3", "n4"])
        for connections, data in kinds:
            outcome, seconds = go_on(connections, data)
            assert outcome == {sock: ConnectionResetError if node == "n2" else node for sock, node in connections.items()}
            print(f"clients of n2 were told within {seconds:.1f} s")
        assert resets() - before == sum(list(connections.values()).count("n2") for connections, _ in kinds)
    finally:
        lab.heal("n2")
        for connections, _ in kinds:
            for sock in connections:
                sock.close()
    settled(lab)


def test_open_connections_of_a_node_that_is_cut_off(lab):
    """It goes on with what it has: nobody says that there is no such connection."""
    idle = idle_connections(lab)
    lab.node("n4").cut("cluster")
    try:
        settled(lab, ["n1", "n2", "n3"])
        for _ in range(2):
            assert go_on(idle, raw.head("/1k"))[0] == idle
            time.sleep(1)
    finally:
        lab.node("n4").mend("cluster")
        for sock in idle:
            sock.close()
    settled(lab)


def test_open_connections_of_a_node_that_does_not_answer(lab):
    """Its daemon has crashed, and nothing comes through its public cable for a while. Its kernel says that it has them; with
    netfilter nobody does, and who asks for them hears that they are nobody's."""
    def asked():
        return sum(lab.counters(node)["inspect_strays"] for node in others("n3"))

    idle = idle_connections(lab)
    before = asked()
    lab.node("n3").signal("earshotd", signal.SIGKILL)
    lab.node("n3").cut("public", silent=True)
    try:
        settled(lab, ["n1", "n2", "n4"])
        mending = threading.Timer(3, lab.node("n3").mend, ["public"])
        mending.start()
        outcome, seconds = go_on(idle, raw.head("/1k"))
        mending.join()
        assert outcome == {sock: ConnectionResetError if NETFILTER and node == "n3" else node for sock, node in idle.items()}
        assert NETFILTER or seconds > 3
        assert asked() - before >= list(idle.values()).count("n3")
    finally:
        lab.node("n3").mend("public")
        lab.start("n3", "earshotd")
        for sock in idle:
            sock.close()
    settled(lab)


@pytest.mark.parametrize("what", ["earshotd", "corosync"])
def test_killed_process(lab, what):
    """No client notices that a daemon or its corosync dies: what the node has goes on, the others take over the rest."""
    with Traffic(lab) as traffic:
        traffic.run(1)
        killed = traffic.now()
        lab.node("n3").signal(what, signal.SIGKILL)
        traffic.run(DETECTED)
        gone = traffic.now()
        traffic.run(1)
    report(f"{what} killed", traffic, killed)
    assert not traffic.failures("kept") and not [f for f in traffic.broken if f.kind == "fresh"], traffic.broken[:5]
    if what == "earshotd":
        assert "n3" not in {a.node for a in traffic.answers if a.began > gone and a.kind == "fresh"}
    else:
        wait_for(lambda: lab.status("n3")["membership"]["silent"], "silence")
        assert not lab.status("n3")["membership"]["connected"]
    lab.start("n3", what)
    settled(lab)


@pytest.mark.parametrize("silent", [False, True], ids=["carrier-lost", "frames-lost"])
@pytest.mark.parametrize("network", ["cluster", "public"])
def test_cable_pulled(lab, network, silent):
    """Or a switch that loses all frames of one port, which nobody tells the node."""
    with Traffic(lab) as traffic:
        traffic.run(1)
        cut = traffic.now()
        lab.node("n4").cut(network, silent=silent)
        traffic.run(DETECTED + silent)
        works = traffic.now()
        traffic.run(1.5)
        assert lab.status("n4")["membership"]["silent"]
        mended = traffic.now()
        lab.node("n4").mend(network)
        settled(lab)
        traffic.wait_nodes(ALL, traffic.now())
    report(f"{network} cable pulled", traffic, cut)
    assert not traffic.failures("kept", others("n4"))
    assert not [f for f in traffic.broken if f.kind == "fresh" and f.began > works], traffic.broken[-3:]
    assert "n4" not in {a.node for a in traffic.answers
                        if works < a.began and a.began + a.seconds < mended and a.kind == "fresh"}


def test_leave_and_join(lab):
    """In order: not one request fails, and only the leaver's share changes hands."""
    networks = [network for network, vip in (("198.51.100.", topology.VIP), ("2001:db8::", families.VIP6)) if vip in lab.net.vips]
    flows = [(f"{networks[i % len(networks)]}{i % 250}", 1024 + 7 * i) for i in range(400)]

    def inspectors(node):
        return [lab.node(node).ask({"command": "ring", "lookup": {"address": address, "port": port}})["lookup"]["node"]
                for address, port in flows]

    before = inspectors("n1")
    with Witness(lab) as witness, Traffic(lab, kept=40, fresh=20) as traffic:
        for _ in range(3):
            traffic.run(0.5)
            lab.stop("n2", "earshotd")
            settled(lab, ["n1", "n3", "n4"])
            between = inspectors("n1")
            assert all(b == a for a, b in zip(before, between) if a != "n2") and "n2" not in between
            traffic.run(0.5)
            lab.start("n2", "earshotd")
            settled(lab)
            assert inspectors("n1") == before
        traffic.wait_nodes(ALL, traffic.now())
    traffic.assert_whole()
    print(f"{witness.assert_one_answer_each()} requests answered, once each; fresh connections took "
          f"{distribution(traffic.slow(0))}")


def test_suspended_daemon(lab):
    """One that hangs is left out, and comes back by itself."""
    with Traffic(lab) as traffic:
        traffic.run(0.5)
        lab.node("n1").signal("earshotd", signal.SIGSTOP)
        try:
            wait_for(lambda: "n1" not in {n["name"] for n in lab.status("n2")["nodes"] if n["member"]}, "exclusion", 10)
            settled(lab, ["n2", "n3", "n4"])
            since = traffic.now()
            traffic.run(1)
            assert not [f for f in traffic.broken if f.began > since]
        finally:
            lab.node("n1").signal("earshotd", signal.SIGCONT)
        settled(lab)
        traffic.wait_nodes(ALL, traffic.now())
    assert not traffic.failures("kept"), traffic.failures("kept")[:3]


def asked(lab, node):
    """A node's status, and how long it took to answer."""
    begun = time.monotonic()
    status = lab.status(node)
    return status, time.monotonic() - begun


def ended(lab, node):
    """End its daemon in order; returns how long that took."""
    begun = time.monotonic()
    lab.stop(node, "earshotd")
    return time.monotonic() - begun


def test_suspended_corosync(lab):
    """A daemon never waits for a corosync that hangs: it answers, says so, and ends, whether it was a member or starts.

    A call to a hanging corosync lasts as long as that hangs; an answer of the daemon is one turn of its loop."""
    def says_so():
        status, took = asked(lab, "n1")
        assert took < 2, f"status took {took:.1f} s"
        membership = status["membership"]
        return membership["silent"] and "does not answer" in membership["why"]

    with Traffic(lab) as traffic:
        traffic.run(0.5)
        lab.node("n1").signal("corosync", signal.SIGSTOP)
        try:
            wait_for(says_so, "the reason of its silence", 10)
            settled(lab, ["n2", "n3", "n4"])
            since = traffic.now()
            traffic.run(1)
            assert not [f for f in traffic.broken if f.began > since]
        finally:
            lab.node("n1").signal("corosync", signal.SIGCONT)
        settled(lab)
        traffic.wait_nodes(ALL, traffic.now())
    lab.node("n1").signal("corosync", signal.SIGSTOP)
    try:
        wait_for(says_so, "the reason of its silence", 10)
        # It may wait for the thread that waits for corosync for a second, and for its workers.
        took = ended(lab, "n1")
        assert took < 4, f"a member took {took:.1f} s to end"
        lab.start("n1", "earshotd")
        wait_for(says_so, "the reason of its silence", 10)
        took = ended(lab, "n1")
        assert took < 4, f"one that never was a member took {took:.1f} s to end"
    finally:
        lab.node("n1").signal("corosync", signal.SIGCONT)
    lab.start("n1", "earshotd")
    settled(lab)


def test_all_at_once(lab):
    """Quorum lost everywhere, and found again."""
    lab.partition([["n1", "n2"], ["n3", "n4"]], networks=["cluster"])
    wait_for(lambda: all(lab.status(n)["membership"]["silent"] for n in ALL), "silence", 5)
    with pytest.raises(OSError):
        lab.client.get("/1k", timeout=1)
    lab.heal_partition()
    settled(lab)
    assert lab.client.get("/1k", timeout=5)[0] == 200


PARTITIONS = {"3/1": [["n1", "n2", "n3"], ["n4"]], "2/2": [["n1", "n2"], ["n3", "n4"]]}


@pytest.mark.wire
@pytest.mark.parametrize("sides", PARTITIONS)
def test_partition(sides):
    """All nodes hear the clients, whose cable is bad, but not each other. Never do two nodes answer one request."""
    majority = PARTITIONS[sides][0] if len(PARTITIONS[sides][0]) > 2 else []
    minority = [node for node in ALL if node not in majority]
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), wires=["client"]) as lab:
        settled(lab)
        lab.wire("client").set(loss=0.02, dup=0.01, reorder=0.01)
        with Witness(lab) as witness, Traffic(lab, kept=0, fresh=80, pause=0, patience=20) as traffic:
            while len(traffic.answers) < 4000:
                traffic.run(0.2)
            lab.partition(PARTITIONS[sides], networks=["cluster"])
            cut = traffic.now()
            wait_for(lambda: all(lab.status(n)["membership"]["silent"] for n in minority), "the minority's silence",
                     DETECTED)
            silent = traffic.now()
            traffic.run(3)
            if majority:
                settled(lab, majority)
            lab.heal_partition()
            healed = traffic.now()
            settled(lab)
            count = len(traffic.answers)
            while len(traffic.answers) < max(10000, count + 3000):
                traffic.run(0.2)
        answered = witness.assert_one_answer_each()
        print(f"{sides}: silent after {silent - cut:.2f} s, {answered} requests answered, once each; fresh connections took "
              f"{distribution(traffic.slow(cut))}")
        during = {a.node for a in traffic.answers if silent < a.began and a.began + a.seconds < healed}
        assert during == set(majority), during
        # An answer that the bad cable took just before its node's lease was over: the client is told, in seconds.
        told = [f for f in traffic.broken if isinstance(f.error, ConnectionResetError) and f.began < silent]
        assert len(told) == len(traffic.broken) <= 2 * len(minority), traffic.broken[:3]
        assert all(f.at < healed + 5 for f in told), told
        assert answered >= 10000


def test_drain():
    """500 persistent connections leave a node one by one with their next request, and none notices."""
    with Lab(nodes=4, membership="corosync", policy="uri-hash", token=int(TOKEN * 1000),
             settings={"service.inspect": "every", "service.load_bound": 0}) as lab:
        settled(lab)
        with Traffic(lab, kept=500, fresh=10, pause=0.5) as traffic:
            traffic.run(2)
            traffic.wait_nodes(ALL)
            done = lab.node("n1").exec(["earshot", "drain", "n3", "--wait=30"])
            print(done.stdout.strip())
            assert done.stdout.startswith("n3 is drained, after ")
            drained = traffic.now()
            traffic.run(1.5)
            assert "n3" not in traffic.nodes(drained)
            status = {n["name"]: n for n in lab.status("n2")["nodes"]}
            assert status["n3"]["state"] == "draining" and status["n3"]["connections"] == 0
            lab.node("n2").exec(["earshot", "undrain", "n3"])
            back = traffic.now()
            traffic.run(2)
            traffic.wait_nodes(ALL, back)
        traffic.assert_whole()


REFUSALS = {
    "service web": ("port = 80", "port = 8080", "service.0.web"),
    "lifetime": ("datapath {", "datapath {\n    cookie_lifetime_s = 600", "cookie_lifetime_s"),
    "window": ("datapath {", "datapath {\n    receive_window_scale = 7", "receive_window_scale"),
    "policy": ("policy = wrr", "policy = uri-hash", "service.0.web"),
}


@pytest.mark.parametrize("what", [*REFUSALS, "key"])
def test_refused(lab, what):
    """A node that is set up differently does not get in, and both sides say why."""
    node = lab.node("n3")
    config = lab.config_file
    with open(config, encoding="utf-8") as file:
        text = file.read()
    lab.stop("n3", "earshotd")
    try:
        if what == "key":
            name = "ring_secret"
            key = re.search(r'key_file = "?([^"\s]+)"?', text).group(1)
            other = f"{lab.directory}/other.key"
            node.exec(["earshot", "keygen", other])
            changed = text.replace(key, other)
        else:
            old, new, name = REFUSALS[what]
            changed = text.replace(old, new)
        assert changed != text
        with open(config, "w", encoding="utf-8") as file:
            file.write(changed)
        lab.start("n3", "earshotd")

        def refused(asked):
            nodes = {n["name"]: n for n in lab.status(asked)["nodes"]}
            return nodes["n3"].get("refused", "").startswith(name + " is ")

        wait_for(lambda: refused("n1") and refused("n3"), "the refusal on both sides", 10)
        assert lab.status("n3")["membership"]["silent"]
        for asked in ("n1", "n3"):
            assert {n["name"]: n["state"] for n in lab.status(asked)["nodes"]}["n3"] == "refused"
        print({n["name"]: n for n in lab.status("n1")["nodes"]}["n3"]["refused"])
        settled_without = {n["name"] for n in lab.status("n1")["nodes"] if n["state"] == "up"}
        assert settled_without == {"n1", "n2", "n4"}
        for _ in range(20):
            assert lab.client.get("/1k", timeout=5)[1]["X-Node"] != "n3"
    finally:
        with open(config, "w", encoding="utf-8") as file:
            file.write(text)
        lab.stop("n3", "earshotd")
        lab.start("n3", "earshotd")
    settled(lab)


def drifts(lab, asked):
    """{node: {setting: {other: its value}}}, as that node says."""
    return {n["name"]: {d["setting"]: d["others"] for d in n["drift"]} for n in lab.status(asked)["nodes"] if n.get("drift")}


def test_reload_on_one(lab):
    """All say which node has read what the others have not, before it costs it its place; when all have read it, nobody does."""
    config = lab.config_file
    with open(config, encoding="utf-8") as file:
        text = file.read()
    changed = text.replace("policy = wrr", "policy = uri-hash")
    assert changed != text
    setting = "service.0.web"

    def shown(asked):
        found = drifts(lab, asked)
        return set(found) == {"n3"} and set(found["n3"]) == {setting} and set(found["n3"][setting]) == others("n3")

    def check_of(node):
        done = lab.node(node).exec(["earshot", "--json", "check"], check=False)
        return [f for f in json.loads(done.stdout)["findings"] if f["id"] in ("members.drift", "members.settings")]

    try:
        with open(config, "w", encoding="utf-8") as file:
            file.write(changed)
        lab.node("n3").exec(["earshot", "reload"])
        for asked in ALL:
            wait_for(lambda node=asked: shown(node), f"{asked} shows what n3 has", seen=lambda node=asked: drifts(lab, node))
        assert all(node["member"] and not node["refused"] for node in lab.status("n1")["nodes"])
        for command in ("nodes", "status"):
            assert f"n3: setting {setting} differs" in lab.node("n2").exec(["earshot", command]).stdout
        found = [f for f in check_of("n1") if f["id"] == "members.drift"]
        assert [f["severity"] for f in found] == ["error"] and f"{setting}: n3 " in found[0]["found"], found
        for node in sorted(others("n3")):
            lab.node(node).exec(["earshot", "reload"])
        for asked in ALL:
            wait_for(lambda node=asked: not drifts(lab, node), f"{asked} shows no drift", seen=lambda node=asked: drifts(lab, node))
            assert not [f for f in check_of(asked) if f["severity"] == "error"]
    finally:
        with open(config, "w", encoding="utf-8") as file:
            file.write(text)
        for node in ALL:
            lab.node(node).exec(["earshot", "reload"])
    wait_for(lambda: not any(drifts(lab, node) for node in ALL), "no drift")


@pytest.mark.wire
@pytest.mark.parametrize("how", ["leave", "daemon", "power"])
def test_request_under_way(how):
    """The ring changes while answers are lost: each repeated request goes to the node that has it, whoever inspects now."""
    count = 300
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), wires=["client"]) as lab:
        settled(lab)
        connections = [raw.connect(lab.client, address) for address, _ in zip(raw.services(lab), range(count))]
        ports = [connection.getsockname()[:2] for connection in connections]
        asked = [lab.node("n1").ask({"command": "ring", "lookup": {"address": a, "port": p}}) for a, p in ports]
        of_n2 = sum(answer["lookup"]["node"] == "n2" for answer in asked)
        assert of_n2 > count / 10
        with Witness(lab) as witness:
            lab.wire("client").set("in", loss=1)
            began = time.monotonic()
            for number, connection in enumerate(connections):
                connection.sendall(f"GET /1k?{number} HTTP/1.1\r\nHost: lab\r\n\r\n".encode())
            wait_for(lambda: sum(n["connections"] for n in lab.status("n1")["nodes"]) >= count, "the sockets", 5)
            assert not witness.seen
            if how == "leave":
                lab.stop("n2", "earshotd")
            elif how == "daemon":
                lab.node("n2").signal("earshotd", signal.SIGKILL)
            else:
                lab.kill("n2")
            settled(lab, ["n1", "n3", "n4"])
            def repeated():
                return sum(lab.counters(node)["inspect_repeated"] for node in ("n1", "n3", "n4"))

            before = repeated()

            wait_for(lambda: repeated() > before + count / 2, "retransmissions under the new ring, without an answer", 15)
            lab.wire("client").set("in", loss=0)
            silence = time.monotonic() - began
            nodes = []
            for connection, (_, port) in zip(connections, ports):
                # Whoever retransmits waits as long again as it has waited in all, or less.
                connection.settimeout(15 + silence)
                data = b""
                while b"X-Node: " not in data or len(data) < 1024:
                    try:
                        data += connection.recv(65536)
                    except TimeoutError:
                        pytest.fail(f"port {port}: {len(data)} bytes, after {silence:.1f} s of loss; {raw.states(lab, port)}")
                nodes.append(re.search(rb"X-Node: (\S+)", data).group(1).decode())
        assert witness.assert_one_answer_each() == count
        print(f"{how}: {of_n2} of {count} requests inspected by n2, {nodes.count('n2')} answered by n2")
        if how == "leave":
            assert nodes.count("n2") > count / 10  # what it has, it keeps
        else:
            assert "n2" not in nodes


def test_killed_while_the_server_thinks():
    """A client that knows that its request arrived does not repeat it: who cannot be answered any more is told so, by the kernel,
    or with netfilter by the next daemon."""
    think_ms = 2500
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), server="none") as lab:
        start_backends(lab)
        settled(lab)
        connections = [raw.connect(lab.client, address) for address, _ in zip(raw.services(lab), range(80))]
        for number, connection in enumerate(connections):
            connection.sendall(f"GET /slow/{think_ms}?{number} HTTP/1.1\r\nHost: lab\r\n\r\n".encode())
        wait_for(lambda: sum(n["connections"] for n in lab.status("n1")["nodes"]) >= len(connections), "the sockets", 2)
        lab.node("n3").signal("earshotd", signal.SIGKILL)
        asked = time.monotonic()
        if NETFILTER:
            settled(lab, sorted(others("n3")))
            lab.start("n3", "earshotd")
        answered, told = hear(connections)
        print(f"{len(answered)} answered, {told} told after at most {time.monotonic() - asked:.1f} s")
        assert set(answered) == others("n3")
        assert 10 < told < 30


def test_layer_4():
    """Without inspection the datapath serves by itself, but not when its daemon is dead and others have taken over. With netfilter,
    a client whose request it had acknowledged but not answered hears from its next daemon that it waits in vain."""
    with Lab(nodes=4, membership="corosync", policy="ring", token=int(TOKEN * 1000),
             settings={"service.inspect": "never"}) as lab:
        settled(lab)
        with Witness(lab) as witness, Traffic(lab) as traffic:
            traffic.run(0.5)
            killed = traffic.now()
            lab.node("n1").signal("earshotd", signal.SIGKILL)
            dead = traffic.now()
            traffic.run(DETECTED)
            gone = traffic.now()
            traffic.run(0.5)
            lab.start("n1", "earshotd")
            settled(lab)
            back = traffic.now()
            traffic.wait_nodes(ALL, back)
        told = [f for f in traffic.broken
                if NETFILTER and isinstance(f.error, ConnectionResetError) and f.began < dead and not f.node]
        print(f"killed {killed:.3f}, gone {gone:.3f}, back {back:.3f}; {len(told)} told")
        assert traffic.broken == told and not traffic.wrong, (traffic.broken[:5], traffic.wrong[:5])
        assert {a.node for a in traffic.answers if a.kind == "fresh" and gone < a.began < back - 2} <= others("n1")
        witness.assert_one_answer_each()
