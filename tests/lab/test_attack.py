# SPDX-License-Identifier: GPL-2.0-or-later
"""Forged packets: they cost no memory, make no socket, and nobody else notices."""
import contextlib
import itertools
import json
import random
import socket
import struct
import subprocess
import time

import pytest

import tree
from cluster import floods, forged, vips
from earshotlab import Lab, daemon, in_namespace, topology, wait_for
from web import raw
from web.askers import clients, failed, served

pytestmark = pytest.mark.earshot

EACH = vips.each()
SYNS = 100000
HANDOVER_PORT = 7350
HEADER = 64  # of a handover message, the MAC at its end; behind it comes the client's packet


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="wrr", family=vips.FAMILY) as lab:
        for _ in range(50):
            assert lab.client.get("/1k")[0] == 200
        yield lab


def memory(lab):
    """Per node: (TCP sockets in use, orphans, half-open connections, KB of earshotd's own, without tables that it maps, whose size is
    fixed, tracked connections); `mem` would be the whole machine's."""
    found = {}
    for node in lab.nodes:
        words = node.exec(["grep", "^TCP:", "/proc/net/sockstat"]).stdout.split()
        stat = dict(zip(words[1::2], map(int, words[2::2])))
        pid = next(record["pid"] for record in lab.records
                   if (record["name"], record["machine"]) == ("earshotd", node.name))
        with open(f"/proc/{pid}/status", encoding="ascii") as handle:
            rss = next(int(line.split()[1]) for line in handle if line.startswith("RssAnon"))
        half = len(node.exec(["ss", "-Htan", "state", "syn-recv"]).stdout.splitlines())
        tracked = int(node.exec(["cat", "/proc/sys/net/netfilter/nf_conntrack_count"]).stdout)
        found[node.name] = (stat["inuse"], stat["orphan"], half, rss, tracked)
    return found


def total(lab):
    """All counters, of all nodes together."""
    counters = [lab.counters(node.name) for node in lab.nodes]
    return {name: sum(each[name] for each in counters) for name in counters[0]}


def risen(lab, before):
    now = total(lab)
    return {name: now[name] - before[name] for name in now if now[name] != before[name]}


def cluster_mac(lab):
    """The last bytes of the service's address, or of that of IPv4 if it has two."""
    return f"03:bf:{floods.packed(lab.net.vip)[-4:].hex(':')}"


def cluster_frame(lab, packet):
    return floods.frame(floods.mac(lab.net.link("client").mac), floods.mac(cluster_mac(lab)), packet)


def flood_of(lab, *options):
    """A flood from the client's cable, to each of the service's addresses in turn."""
    addresses = [word for vip in lab.net.vips for word in ("--vip", vip)]
    return lab.client.popen([*tree.module("cluster.floods"), "--interface", "eth0", "--source", lab.net.link("client").mac,
                             "--target", cluster_mac(lab), *addresses, *options], stdout=subprocess.PIPE)


def client_address(lab, vip):
    """The client's of the same family."""
    return (lab.net.client_addresses6 if ":" in vip else lab.net.client_addresses)[0]


def test_syn_flood(lab):
    # Warm up: what a few ordinary requests take is not the flood's.
    before, counters = memory(lab), total(lab)
    flood = flood_of(lab, "--count", str(SYNS))
    times, during = [], []
    addresses = raw.services(lab)
    while flood.poll() is None:
        begin = time.monotonic()
        response, _ = raw.ask(lab.client, raw.head("/13k", Connection="close"), address=next(addresses), timeout=5)
        assert raw.right(response, "13k")
        times.append(time.monotonic() - begin)
        if len(times) % 50 == 0:
            during.append(memory(lab))
    assert flood.returncode == 0
    report = json.loads(flood.stdout.read())
    print(report, f"{len(times)} requests meanwhile, the slowest took {max(times):.3f} s")
    assert report["sent"] == SYNS and len(times) > 100
    # Not one had to send its SYN or its request again.
    assert max(times) < 0.9, sorted(times)[-5:]
    up = risen(lab, counters)
    # The netfilter datapath's queue has an end.
    assert up["syn_answered"] >= (SYNS + len(times)) * (0.5 if daemon.DATAPATH == "netfilter" else 0.99), up
    assert up["inspect_requests"] == len(times) and not up.get("request_fallback")
    for each in (*during, memory(lab)):
        for node, (inuse, orphan, half, rss, tracked) in each.items():
            # A few of our own requests' are closing; the flood's would be thousands.
            assert inuse <= before[node][0] + 3 and orphan <= before[node][1] + 30 and half == 0, (before, each)
            assert rss <= before[node][3] + 2048, (before, each)
            # Where connections are tracked, as the netfilter datapath needs it, our own requests' stay for two minutes.
            assert tracked <= before[node][4] + 2 * len(times) + 10, (before, each)


def received(lab, links):
    """Bytes that the switch has got from the links."""
    stats = json.loads(subprocess.run(["ip", "-json", "-stats", "-netns", lab.net.switch, "link"], check=True,
                                      capture_output=True).stdout)
    return sum(link["stats64"]["rx"]["bytes"] for link in stats if link["ifname"] in links)


def told(lab, vip, count):
    """Clients go on with connections whose node has lost its power, and of which the others have heard the SYN: how often
    each has sent its request until it is told that there is no such connection."""
    address = client_address(lab, vip)
    packed, sent = floods.packed(address), {}
    family = socket.AF_INET6 if ":" in vip else socket.AF_INET
    head = 0 if ":" in vip else 20  # such a socket of IPv6 does not give the packet's header
    with in_namespace(lab.net.client, socket.socket, family, socket.SOCK_RAW, socket.IPPROTO_TCP) as answers, \
            floods.Tap(lab.net.client, "eth0", floods.ETH_P_ARP) as tap:
        answers.bind((address, 0))
        requests = {}
        for port in range(29000, 29000 + count):
            tap.send(cluster_frame(lab, floods.tcp(packed, port, random.randrange(1 << 32), 0, floods.SYN)))
            requests[port] = cluster_frame(lab, floods.tcp(packed, port, random.randrange(1 << 32), random.randrange(1 << 32),
                                                           floods.ACK | floods.PSH, raw.head("/1k", Cookie="x" * 100)))
        for number in range(1, 16):
            for frame in requests.values():
                tap.send(frame)
            deadline = time.monotonic() + floods.AGAIN_S
            while (left := deadline - time.monotonic()) > 0 and requests:
                answers.settimeout(left)
                with contextlib.suppress(socket.timeout):
                    data, sender = answers.recvfrom(2048)
                    port = int.from_bytes(data[head + 2:head + 4], "big")
                    if sender[0] == vip and data[head + 13] & floods.RST and requests.pop(port, None):
                        sent[port] = number
    assert not requests, f"{len(requests)} clients were not told; the others had sent so often: {sorted(sent.values())}"
    return sorted(sent.values())


@pytest.mark.parametrize("kind", ["strays", "syns-strays"])
def test_flood_of_strays(lab, kind):
    """Segments of connections that never were, repeated: all nodes are asked about them. That costs less on the cluster
    network than the flood on the public one, and clients of connections that were lost are told beside it."""
    clusters = [f"{node.name}-clu" for node in lab.nodes]
    before, attack, cost = total(lab), received(lab, ["client"]), received(lab, clusters)
    flood = flood_of(lab, "--count", "1000000", "--rate", "12000", "--kind", kind)
    try:
        wait_for(lambda: risen(lab, before).get("inspect_strays", 0) > 2000, "questions", 20)
        tries = {vip: told(lab, vip, 20) for vip in lab.net.vips}
        assert flood.poll() is None, "the clients were told after the flood"
        wait_for(lambda: received(lab, ["client"]) - attack > 4e6, "a flood", 60)
    finally:
        flood.terminate()
        flood.wait()
    time.sleep(1)  # the last questions
    attack, cost = received(lab, ["client"]) - attack, received(lab, clusters) - cost
    up = risen(lab, before)
    print(f"{kind}: {attack} bytes, on the cluster network {cost}: {cost / attack:.2f}; {up['inspect_strays']} questions, "
          f"{up.get('inspect_stray_limited', 0)} not asked; told after {tries}")
    assert cost <= attack


@EACH
@pytest.mark.parametrize("timestamps", [False, True], ids=["plain", "timestamps"])
def test_first_requests_with_bad_cookies(lab, timestamps, vip):
    """Nobody shook hands: no socket, no answer. With 10 bits of flow tag some look like later segments, at first."""
    count, target = 3000, floods.packed(vip)
    before, held = total(lab), {node.name: len(raw.sockets(node)) for node in lab.nodes}
    with floods.Tap(lab.net.client, "eth0") as tap:
        for number in range(count):
            options = struct.pack("!BBBBII", 1, 1, 8, 10, number, random.randrange(1 << 32)) if timestamps else b""
            payload = random.choice((raw.head("/1k"), b"G", bytes(1400)))
            tap.send(cluster_frame(lab, floods.tcp(
                floods.random_address(target), random.randrange(1024, 65536), random.randrange(1 << 32),
                random.randrange(1 << 32), floods.ACK | floods.PSH, payload, options)))
        up = wait_for(lambda: (now := risen(lab, before)).get("cookie_invalid", 0) >= count * 0.99 and now,
                      "counted as invalid", 5)
        time.sleep(0.4)  # longer than gather_timeout_ms
        assert not tap.frames(floods.is_from(vip))
    assert up["cookie_invalid"] <= count
    assert not {"handover_received", "handover_rebuilt", "request_queued", "inspect_requests"} & set(risen(lab, before))
    # One of an earlier connection may be gone.
    assert all(len(raw.sockets(node)) <= held[node.name] for node in lab.nodes), held


@EACH
def test_cookie_of_another_connection(lab, vip):
    """A cookie is good for its own flow and client ISN only."""
    service = vip, topology.PORT
    with raw.connect(lab.client, service) as idle, floods.Tap(lab.net.client, "eth0") as tap:
        address, idle_port = idle.getsockname()[:2]
        with raw.connect(lab.client, service) as sock:  # shows us what a real one looks like
            port = sock.getsockname()[1]
            sock.sendall(raw.head("/1k"))
            assert raw.right(raw.receive(sock), "1k")
        request = next(data for data in tap.frames(floods.is_from(address, topology.PORT, port), 1) if b"GET " in data)
        seq, ack = struct.unpack_from("!II", request, floods.segment_at(request) + 4)
        time.sleep(0.1)  # longer than race_window_ms
        before = total(lab)
        for other_port, other_seq in ((idle_port, seq), (port ^ 1, seq), (port, seq + 1), (port, seq - 1)):
            tap.send(cluster_frame(lab, floods.tcp(floods.packed(address), other_port, other_seq & 0xffffffff, ack,
                                                   floods.ACK | floods.PSH, b"GET /1k HTTP/1.1\r\n\r\n")))
        time.sleep(0.4)  # longer than gather_timeout_ms
        up = risen(lab, before)
        assert not {"request_queued", "inspect_requests", "handover_rebuilt"} & set(up), up
        idle.sendall(raw.head("/1k"))
        assert raw.right(raw.receive(idle), "1k")


def is_message(source):
    """For Tap.frames(): a handover message of that node. Told by its magic: the nodes' loads come to the same port."""
    begin = floods.packet_begin(floods.packed(source.cluster_address), floods.UDP)

    def matches(data):
        at = floods.segment_at(data)
        return begin(data) and data[at + 2:at + 4] == struct.pack("!H", HANDOVER_PORT) and data[at + 8:at + 12] == b"ESH1"
    return matches


def message_of(lab, tap, source, target, vip):
    """Make a real connection to that address that `source` hands over to `target`: (frame of the message, client socket)."""
    for port in raw.ports(lab, source, random.randrange(20000, 29000), client=client_address(lab, vip)):
        tap.frames(lambda data: False)
        sock = raw.connect(lab.client, (vip, topology.PORT), port=port)
        sock.sendall(raw.head("/1k"))
        response = raw.receive(sock)
        assert raw.right(response, "1k")
        if response.node == target:
            found = tap.frames(is_message(lab.node(source)), 1)
            assert len(found) == 1
            return found[0], sock
        sock.close()
    raise AssertionError("no connection was handed over")


def payload_of(data):
    """The message in a frame."""
    return data[floods.segment_at(data) + 8:]


def with_payload(data, payload):
    """The frame with another message, or with its own: it left its machine with the UDP checksum still to be made."""
    return floods.frame(data[6:12], data[:6], floods.udp(*floods.addresses(data), HANDOVER_PORT, HANDOVER_PORT, payload))


def altered(data, at, value):
    payload = payload_of(data)
    return with_payload(data, payload[:at] + value + payload[at + len(value):])


def wait_risen(lab, node, before, counter, by=1):
    """The node's counters that rose, once that one did."""
    def check():
        now = lab.counters(node)
        up = {name: now[name] - before[name] for name in now if now[name] != before[name]}
        return up.get(counter, 0) >= by and up
    return wait_for(check, f"{counter} of {node}", 3)


def nothing_made(up):
    return not {"handover_received", "handover_rebuilt", "handover_follow", "handover_duplicate", "handover_nacked",
                "handover_nack_received"} & set(up)


@EACH
def test_forged_handover_messages(lab, vip):
    """A real message with any of its bits altered has a wrong MAC, and makes nothing."""
    with floods.Tap(lab.net.switch, "n2-clu") as tap:
        data, sock = message_of(lab, tap, "n1", "n2", vip)
        payload = payload_of(data)
        port = sock.getsockname()[1]
        raw.reset(sock)
        wait_for(lambda: not raw.sockets(lab.node("n2"), port), "connection gone", 5)
        before = lab.counters("n2")
        assert payload[5] == 1  # a REQUEST
        client = HEADER + (23 if ":" in vip else 15)  # the last byte of its address
        fields = {"kind": (5, b"\x02"), "source": (6, b"\x02"), "epoch": (8, b"\x7f"), "stream": (13, b"\x0e"),
                  "sequence": (16, b"\x7f"), "options": (30, b"\x00"), "floor": (32, b"\x01"),
                  "content": (48, bytes([payload[48] ^ 1])),
                  "mac": (HEADER - 8, bytes([payload[HEADER - 8] ^ 1])), "no mac": (HEADER - 8, bytes(8)),
                  "client": (client, bytes([payload[client] ^ 1])), "last byte": (len(payload) - 1, b"\x00")}
        for at, value in fields.values():
            forged = altered(data, at, value)
            assert payload_of(forged) != payload
            tap.send(forged)
        up = wait_risen(lab, "n2", before, "handover_bad_mac", len(fields))
        assert up["handover_bad_mac"] == len(fields) and nothing_made(up), up
        # No message at all: other magic, other version, cut off, lengths that lie.
        before = lab.counters("n2")
        for forged in (altered(data, 0, b"X"), altered(data, 4, b"\x63"), altered(data, 24, b"\xff\xff"),
                       altered(data, 24, b"\0\0"), with_payload(data, b"ESH1"), with_payload(data, random.randbytes(500))):
            tap.send(forged)
        up = wait_for(lambda: (now := lab.counters("n2")) and now["handover_malformed"] + now["handover_bad_mac"] >=
                      before["handover_malformed"] + before["handover_bad_mac"] + 6 and
                      {name: now[name] - before[name] for name in now if now[name] != before[name]}, "counted", 3)
        assert nothing_made(up) and not raw.sockets(lab.node("n2"), port), up
    assert lab.client.get("/1k")[0] == 200


@EACH
@pytest.mark.parametrize("end", ["open", "closed", "reset"])
def test_replayed_handover_messages(lab, end, vip):
    """Again the same message: while the connection lives, and after it."""
    with contextlib.ExitStack() as stack:
        tap = stack.enter_context(floods.Tap(lab.net.switch, "n2-clu"))
        client = stack.enter_context(floods.Tap(lab.net.client, "eth0"))
        data, sock = message_of(lab, tap, "n1", "n2", vip)
        port = sock.getsockname()[1]
        if end == "open":
            stack.callback(sock.close)
        elif end == "closed":
            sock.close()
        else:
            raw.reset(sock)
        gone = [] if end == "open" else wait_for(
            lambda: [len(raw.sockets(lab.node("n2"), port))] * (not any("ESTAB" in line for line in
                    raw.sockets(lab.node("n2"), port))), "connection over", 5)
        before = lab.counters("n2")
        client.frames(lambda data: False)
        for _ in range(5):
            tap.send(with_payload(data, payload_of(data)))
        up = wait_risen(lab, "n2", before, "handover_replayed", 5)
        assert up["handover_replayed"] == 5 and nothing_made(up), up
        assert not client.frames(floods.is_from(vip), 0.2)
        assert not gone or len(raw.sockets(lab.node("n2"), port)) <= gone[0]
        if end == "open":
            sock.sendall(raw.head("/13k"))
            assert raw.right(raw.receive(sock), "13k")


@EACH
def test_message_for_another_node(lab, vip):
    with floods.Tap(lab.net.switch, "n2-clu") as tap, floods.Tap(lab.net.switch, "n3-clu") as third:
        data, sock = message_of(lab, tap, "n1", "n2", vip)
        sock.close()
        before = lab.counters("n3")
        packet = floods.udp(floods.addresses(data)[0], floods.packed(lab.node("n3").cluster_address), HANDOVER_PORT,
                            HANDOVER_PORT, payload_of(data))
        third.send(floods.frame(data[6:12], floods.mac(lab.net.link("n3-clu").mac), packet))
        up = wait_risen(lab, "n3", before, "handover_wrong_target")
        assert nothing_made(up), up
        assert not raw.sockets(lab.node("n3"), sock_port(data))


def sock_port(data):
    """The client's port in the packet that a message carries."""
    packet = payload_of(data)[HEADER:]
    return struct.unpack_from("!H", packet, 40 if packet[0] >> 4 == 6 else 20)[0]


def test_replay_after_a_crash_of_the_target(lab):
    """The datapath stays when the daemon dies, and the new one takes over what it has seen."""
    with floods.Tap(lab.net.switch, "n2-clu") as tap:
        data, sock = message_of(lab, tap, "n1", "n2", lab.net.vips[-1])
        raw.reset(sock)
        lab.node("n2").signal("earshotd")
        lab.node("n2").start("earshotd")
        before = lab.counters("n2")
        tap.send(with_payload(data, payload_of(data)))
        up = wait_risen(lab, "n2", before, "handover_replayed")
        assert nothing_made(up) and not raw.sockets(lab.node("n2"), sock_port(data)), up
    wait_for(lambda: lab.status("n2")["datapath"]["state"] == "inspecting", "inspection")
    assert lab.client.get("/1k")[0] == 200


HONEST, BANNED = "10.77.1.1", "10.77.1.2"
# A ban as fail2ban makes it, in front of what most hosts have.
FILTER = f"""table inet host {{ chain in {{ type filter hook input priority 0;
    ip saddr {BANNED} tcp dport 80 drop
    ct state established,related accept
    iif lo accept
    ct state invalid drop
}}; }}"""
MARTIANS = ("0.1.2.3", "127.7.7.7", "224.1.1.1", "255.255.255.255", topology.VIP)


def forged_errors(lab):
    """For each node: its messages are too long for their way, and nobody takes them."""
    found = []
    for node in lab.nodes:
        own, other = (floods.packed(one.cluster_address) for one in (node, next(n for n in lab.nodes if n.name != node.name)))
        for port, peer in forged.senders(lab, node):
            found += [forged.too_big(4, own, peer, floods.packed(HONEST)), forged.unreachable(4, own, port, peer, other)]
    return [forged.frame(lab, node, packet) for packet in found for node in lab.nodes if packet[16:20] == floods.packed(node.cluster_address)]


def martians():
    return [floods.tcp(floods.packed(source), 1024 + number, 1000, 0, floods.SYN, options=floods.SYN_OPTIONS)
            for number, source in enumerate(MARTIANS)]


def pins(port):
    """Urgent data in somebody else's connection, in each quarter of the numbers, as its sender knows none."""
    base = random.randrange(1 << 32)
    return [floods.tcp(floods.packed(HONEST), port, (base + (quarter << 30)) % (1 << 32), random.randrange(1 << 32), 0x20 | floods.ACK, b"!")
            for quarter in range(4)]


def closes_at_once(lab):
    """A connection without a request is closed, and the server says goodbye."""
    with raw.connect(lab.client, timeout=5, before=lambda s: s.bind((HONEST, 0))) as sock:
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""


def asks_with_fin(lab):
    """The request and the FIN in one segment."""
    with raw.connect(lab.client, timeout=5, before=lambda s: s.bind((HONEST, 0))) as sock:
        sock.send(raw.head("/node", Connection="close"), socket.MSG_MORE)
        sock.shutdown(socket.SHUT_WR)
        assert raw.receive(sock).status == 200


def test_all_at_once():
    """A banned client that goes on, ICMP errors that nobody has sent, martians, FINs with requests and without, forged segments in an open
    connection: beside these, no honest client's request fails, no node is down, and the open connection still goes where it should."""
    settings = {"service.inspect": "every", "service.handover_cost": 0, "service.load_bound": 0}
    with Lab(nodes=3, policy="uri-hash", family="4", client_addresses=2, settings=settings) as lab, contextlib.ExitStack() as stack:
        for node in lab.nodes:
            node.exec(["nft", FILTER])
        before = total(lab)
        kept = stack.enter_context(raw.connect(lab.client, timeout=5, before=lambda s: s.bind((HONEST, 0))))
        tap = stack.enter_context(floods.Tap(lab.net.client, "eth0"))
        frames = forged_errors(lab) + [cluster_frame(lab, packet) for packet in martians() + pins(kept.getsockname()[1])]
        with forged.Flood([tap], frames) as flood, clients(lab, HONEST, 3, 3) as honest, clients(lab, BANNED, 9, 6) as banned:
            nodes, numbers, end = set(), itertools.count(), time.monotonic() + 14
            while time.monotonic() < end:
                closes_at_once(lab)
                asks_with_fin(lab)
                kept.sendall(raw.head(f"/u/1k/{next(numbers)}"))
                nodes.add(raw.receive(kept).node)
                time.sleep(0.1)  # no more than the lab's tables are made for
                assert all(row["state"] == "up" for node in lab.nodes for row in lab.status(node.name)["nodes"])
        rise = risen(lab, before)
        assert flood.sent > 3 * len(frames) and not served(banned)
        assert served(honest) and not failed(honest), failed(honest)
        assert nodes == {"n1", "n2", "n3"} and not rise.get("pin_ambiguous") and not rise.get("inspect_unreachable"), rise
        assert all(rise.get(name, 0) > 0 for name in ("drop_martian", "inspect_own_affair")), rise
