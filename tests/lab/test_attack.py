# SPDX-License-Identifier: GPL-2.0-or-later
"""Forged packets: they cost no memory, make no socket, and nobody else notices."""
import contextlib
import json
import random
import socket
import struct
import subprocess
import time

import pytest

import tree
from cluster import floods
from earshotlab import Lab, in_namespace, topology, wait_for
from web import raw

pytestmark = pytest.mark.earshot

CLUSTER_MAC = "03:bf:0a:4d:00:64"
SYNS = 100000
HANDOVER_PORT = 7350
# Where things are in a frame with a handover message, and in the message.
UDP_PAYLOAD = 14 + 20 + 8
HEADER = 56


@pytest.fixture(scope="module", name="lab")
def _lab():
    with Lab(nodes=3, policy="wrr") as lab:
        for _ in range(50):
            assert lab.client.get("/1k")[0] == 200
        yield lab


def memory(lab):
    """Per node: (TCP sockets in use, orphans, half-open connections, KB of earshotd); `mem` would be the whole machine's."""
    found = {}
    for node in lab.nodes:
        words = node.exec(["grep", "^TCP:", "/proc/net/sockstat"]).stdout.split()
        stat = dict(zip(words[1::2], map(int, words[2::2])))
        pid = next(record["pid"] for record in lab.records
                   if (record["name"], record["machine"]) == ("earshotd", node.name))
        with open(f"/proc/{pid}/status", encoding="ascii") as handle:
            rss = next(int(line.split()[1]) for line in handle if line.startswith("VmRSS"))
        half = len(node.exec(["ss", "-Htan", "state", "syn-recv"]).stdout.splitlines())
        found[node.name] = (stat["inuse"], stat["orphan"], half, rss)
    return found


def total(lab):
    """All counters, of all nodes together."""
    counters = [lab.counters(node.name) for node in lab.nodes]
    return {name: sum(each[name] for each in counters) for name in counters[0]}


def risen(lab, before):
    now = total(lab)
    return {name: now[name] - before[name] for name in now if now[name] != before[name]}


def cluster_frame(lab, packet):
    return floods.frame(floods.mac(lab.net.link("client").mac), floods.mac(CLUSTER_MAC), packet)


def test_syn_flood(lab):
    # Warm up: what a few ordinary requests take is not the flood's.
    before, counters = memory(lab), total(lab)
    flood = lab.client.popen([*tree.module("cluster.floods"), "--interface", "eth0", "--count", str(SYNS),
                              "--source", lab.net.link("client").mac, "--target", CLUSTER_MAC],
                             stdout=subprocess.PIPE)
    times, during = [], []
    while flood.poll() is None:
        begin = time.monotonic()
        response, _ = raw.ask(lab.client, raw.head("/13k", Connection="close"), timeout=5)
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
    assert up["syn_answered"] >= (SYNS + len(times)) * 0.99, up
    assert up["inspect_requests"] == len(times) and not up.get("request_fallback")
    for each in (*during, memory(lab)):
        for node, (inuse, orphan, half, rss) in each.items():
            # A few of our own requests' are closing; the flood's would be thousands.
            assert inuse <= before[node][0] + 3 and orphan <= before[node][1] + 30 and half == 0, (before, each)
            assert rss <= before[node][3] + 2048, (before, each)


def received(lab, links):
    """Bytes that the switch has got from the links."""
    stats = json.loads(subprocess.run(["ip", "-json", "-stats", "-netns", lab.net.switch, "link"], check=True,
                                      capture_output=True).stdout)
    return sum(link["stats64"]["rx"]["bytes"] for link in stats if link["ifname"] in links)


def told(lab, count):
    """Clients go on with connections whose node has lost its power, and of which the others have heard the SYN: how often
    each has sent its request until it is told that there is no such connection."""
    address = lab.net.client_addresses[0]
    packed, sent = socket.inet_aton(address), {}
    with in_namespace(lab.net.client, socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP) as answers, \
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
                    data = answers.recv(2048)
                    port = int.from_bytes(data[22:24], "big")
                    if data[12:16] == socket.inet_aton(topology.VIP) and data[33] & floods.RST and requests.pop(port, None):
                        sent[port] = number
    assert not requests, f"{len(requests)} clients were not told; the others had sent so often: {sorted(sent.values())}"
    return sorted(sent.values())


@pytest.mark.parametrize("kind", ["strays", "syns-strays"])
def test_flood_of_strays(lab, kind):
    """Segments of connections that never were, repeated: all nodes are asked about them. That costs less on the cluster
    network than the flood on the public one, and clients of connections that were lost are told beside it."""
    clusters = [f"{node.name}-clu" for node in lab.nodes]
    before, attack, cost = total(lab), received(lab, ["client"]), received(lab, clusters)
    flood = lab.client.popen([*tree.module("cluster.floods"), "--interface", "eth0", "--count", "1000000", "--rate", "12000",
                              "--kind", kind, "--source", lab.net.link("client").mac, "--target", CLUSTER_MAC],
                             stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: risen(lab, before).get("inspect_strays", 0) > 2000, "questions", 20)
        tries = told(lab, 20)
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


@pytest.mark.parametrize("timestamps", [False, True], ids=["plain", "timestamps"])
def test_first_requests_with_bad_cookies(lab, timestamps):
    """Nobody shook hands: no socket, no answer. With 10 bits of flow tag some look like later segments, at first."""
    count = 3000
    before, held = total(lab), {node.name: len(raw.sockets(node)) for node in lab.nodes}
    with floods.Tap(lab.net.client, "eth0") as tap:
        for number in range(count):
            options = struct.pack("!BBBBII", 1, 1, 8, 10, number, random.randrange(1 << 32)) if timestamps else b""
            payload = random.choice((raw.head("/1k"), b"G", bytes(1400)))
            tap.send(cluster_frame(lab, floods.tcp(
                floods.random_address(), random.randrange(1024, 65536), random.randrange(1 << 32),
                random.randrange(1 << 32), floods.ACK | floods.PSH, payload, options)))
        up = wait_for(lambda: (now := risen(lab, before)).get("cookie_invalid", 0) >= count * 0.99 and now,
                      "counted as invalid", 5)
        time.sleep(0.4)  # longer than gather_timeout_ms
        assert not tap.frames(floods.is_from(topology.VIP))
    assert up["cookie_invalid"] <= count
    assert not {"handover_received", "handover_rebuilt", "request_queued", "inspect_requests"} & set(risen(lab, before))
    assert {node.name: len(raw.sockets(node)) for node in lab.nodes} == held


def test_cookie_of_another_connection(lab):
    """A cookie is good for its own flow and client ISN only."""
    with raw.connect(lab.client) as idle, floods.Tap(lab.net.client, "eth0") as tap:
        address, idle_port = idle.getsockname()
        with raw.connect(lab.client) as sock:  # shows us what a real one looks like
            port = sock.getsockname()[1]
            sock.sendall(raw.head("/1k"))
            assert raw.right(raw.receive(sock), "1k")
        request = next(data for data in tap.frames(floods.is_from(address, topology.PORT, port), 1) if b"GET " in data)
        seq, ack = struct.unpack("!II", request[38:46])
        time.sleep(0.1)  # longer than race_window_ms
        before = total(lab)
        for other_port, other_seq in ((idle_port, seq), (port ^ 1, seq), (port, seq + 1), (port, seq - 1)):
            tap.send(cluster_frame(lab, floods.tcp(socket.inet_aton(address), other_port, other_seq & 0xffffffff, ack,
                                                   floods.ACK | floods.PSH, b"GET /1k HTTP/1.1\r\n\r\n")))
        time.sleep(0.4)  # longer than gather_timeout_ms
        up = risen(lab, before)
        assert not {"request_queued", "inspect_requests", "handover_rebuilt"} & set(up), up
        idle.sendall(raw.head("/1k"))
        assert raw.right(raw.receive(idle), "1k")


def message_of(lab, tap, source, target):
    """Make a real connection that `source` hands over to `target`: (frame of the message, client socket)."""
    address = socket.inet_aton(lab.node(source).cluster_address)
    for port in raw.ports(lab, source, random.randrange(20000, 29000)):
        tap.frames(lambda data: False)
        sock = raw.connect(lab.client, port=port)
        sock.sendall(raw.head("/1k"))
        response = raw.receive(sock)
        assert raw.right(response, "1k")
        if response.node == target:
            # Told by its magic: the nodes' loads come to the same port.
            found = tap.frames(lambda data: data[12:14] == b"\x08\x00" and data[23] == floods.UDP and
                               data[26:30] == address and data[36:38] == struct.pack("!H", HANDOVER_PORT) and
                               data[UDP_PAYLOAD:UDP_PAYLOAD + 4] == b"ESH1", 1)
            assert len(found) == 1
            return found[0], sock
        sock.close()
    raise AssertionError("no connection was handed over")


def without_checksum(data):
    """The frame left its machine with the UDP checksum still to be made; without one it is a valid datagram."""
    return data[:40] + b"\0\0" + data[42:]


def altered(data, at, value):
    at += UDP_PAYLOAD
    return without_checksum(data[:at] + value + data[at + len(value):])


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


def test_forged_handover_messages(lab):
    """A real message with any of its bits altered has a wrong MAC, and makes nothing."""
    with floods.Tap(lab.net.switch, "n2-clu") as tap:
        data, sock = message_of(lab, tap, "n1", "n2")
        port = sock.getsockname()[1]
        raw.reset(sock)
        wait_for(lambda: not raw.sockets(lab.node("n2"), port), "connection gone", 5)
        before = lab.counters("n2")
        assert data[UDP_PAYLOAD + 5] == 1  # a REQUEST
        fields = {"kind": (5, b"\x02"), "source": (6, b"\x02"), "epoch": (8, b"\x7f"), "stream": (13, b"\x0e"),
                  "sequence": (16, b"\x7f"), "options": (30, b"\x00"), "floor": (32, b"\x01"),
                  "mac": (48, bytes([data[UDP_PAYLOAD + 48] ^ 1])), "no mac": (48, bytes(8)),
                  "client": (HEADER + 15, bytes([data[UDP_PAYLOAD + HEADER + 15] ^ 1])),
                  "last byte": (len(data) - UDP_PAYLOAD - 1, b"\x00")}
        for at, value in fields.values():
            forged = altered(data, at, value)
            assert forged != without_checksum(data)
            tap.send(forged)
        up = wait_risen(lab, "n2", before, "handover_bad_mac", len(fields))
        assert up["handover_bad_mac"] == len(fields) and nothing_made(up), up
        # No message at all: other magic, other version, cut off, lengths that lie.
        before = lab.counters("n2")
        for forged in (altered(data, 0, b"X"), altered(data, 4, b"\x63"), altered(data, 24, b"\xff\xff"),
                       altered(data, 24, b"\0\0"), floods.frame(data[6:12], data[:6], floods.udp(
                           data[26:30], data[30:34], HANDOVER_PORT, HANDOVER_PORT, b"ESH1")),
                       floods.frame(data[6:12], data[:6], floods.udp(data[26:30], data[30:34], HANDOVER_PORT,
                                                                     HANDOVER_PORT, random.randbytes(500)))):
            tap.send(forged)
        up = wait_for(lambda: (now := lab.counters("n2")) and now["handover_malformed"] + now["handover_bad_mac"] >=
                      before["handover_malformed"] + before["handover_bad_mac"] + 6 and
                      {name: now[name] - before[name] for name in now if now[name] != before[name]}, "counted", 3)
        assert nothing_made(up) and not raw.sockets(lab.node("n2"), port), up
    assert lab.client.get("/1k")[0] == 200


@pytest.mark.parametrize("end", ["open", "closed", "reset"])
def test_replayed_handover_messages(lab, end):
    """Again the same message: while the connection lives, and after it."""
    with contextlib.ExitStack() as stack:
        tap = stack.enter_context(floods.Tap(lab.net.switch, "n2-clu"))
        client = stack.enter_context(floods.Tap(lab.net.client, "eth0"))
        data, sock = message_of(lab, tap, "n1", "n2")
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
            tap.send(without_checksum(data))
        up = wait_risen(lab, "n2", before, "handover_replayed", 5)
        assert up["handover_replayed"] == 5 and nothing_made(up), up
        assert not client.frames(floods.is_from(topology.VIP), 0.2)
        assert not gone or len(raw.sockets(lab.node("n2"), port)) <= gone[0]
        if end == "open":
            sock.sendall(raw.head("/13k"))
            assert raw.right(raw.receive(sock), "13k")


def test_message_for_another_node(lab):
    with floods.Tap(lab.net.switch, "n2-clu") as tap, floods.Tap(lab.net.switch, "n3-clu") as third:
        data, sock = message_of(lab, tap, "n1", "n2")
        sock.close()
        before = lab.counters("n3")
        packet = floods.udp(data[26:30], socket.inet_aton(lab.node("n3").cluster_address), HANDOVER_PORT, HANDOVER_PORT,
                            data[UDP_PAYLOAD:])
        third.send(floods.frame(data[6:12], floods.mac(lab.net.link("n3-clu").mac), packet))
        up = wait_risen(lab, "n3", before, "handover_wrong_target")
        assert nothing_made(up), up
        assert not raw.sockets(lab.node("n3"), sock_port(data))


def sock_port(data):
    """The client's port in the packet that a message carries."""
    return struct.unpack("!H", data[UDP_PAYLOAD + HEADER + 20:][:2])[0]


def test_replay_after_a_crash_of_the_target(lab):
    """The datapath stays when the daemon dies, and the new one takes over what it has seen."""
    with floods.Tap(lab.net.switch, "n2-clu") as tap:
        data, sock = message_of(lab, tap, "n1", "n2")
        raw.reset(sock)
        lab.node("n2").signal("earshotd")
        lab.node("n2").start("earshotd")
        before = lab.counters("n2")
        tap.send(without_checksum(data))
        up = wait_risen(lab, "n2", before, "handover_replayed")
        assert nothing_made(up) and not raw.sockets(lab.node("n2"), sock_port(data)), up
    wait_for(lambda: lab.status("n2")["datapath"]["state"] == "inspecting", "inspection")
    assert lab.client.get("/1k")[0] == 200
