# SPDX-License-Identifier: GPL-2.0-or-later
"""ICMP errors about the nodes' messages that no router has sent: from the clients' network, to a node's cluster address."""
import time

import pytest

from cluster import floods, forged
from earshotlab import Lab, wait_for
from web import raw

pytestmark = pytest.mark.earshot

LONG = {4: 700, 6: 1220}  # bytes more than a head has: as a browser's with its cookies


def wrong(lab, family, count):
    """How many of so many long requests are not answered."""
    failed = 0
    for _ in range(count):
        try:
            response, _ = raw.ask(lab.client, raw.head("/1k", Cookie="x" * LONG[family]), address=(lab.net.vip, 80), timeout=2.5)
            failed += not raw.right(response, "1k")
        except (OSError, AssertionError):
            failed += 1
    return failed


@pytest.mark.parametrize("family", [4, 6])
def test_too_big(family):
    """One packet for each pair of nodes says that longer ones do not get through: nobody believes it."""
    with Lab(nodes=3, policy="wrr", family=str(family)) as lab:
        assert not wrong(lab, family, 12)
        source = floods.packed((lab.net.client_addresses if family == 4 else lab.net.client_addresses6)[0])
        before = {node.name: lab.counters(node.name) for node in lab.nodes}
        with floods.Tap(lab.net.client, "eth0") as tap:
            for victim in lab.nodes:
                for peer in lab.nodes:
                    tap.send(forged.frame(lab, victim, forged.too_big(family, *(floods.packed(node.cluster_address) for node in (victim, peer)), source)))
        time.sleep(0.2)
        for node in lab.nodes:
            others = [other for other in lab.nodes if other.name != node.name]
            assert not any("mtu" in node.exec(["ip", "route", "get", other.cluster_address]).stdout for other in others)
        assert not wrong(lab, family, 24)
        for node in lab.nodes:
            now = lab.counters(node.name)
            assert all(now[name] == before[node.name][name] for name in ("handover_malformed", "handover_partial"))


def asked(lab, seconds):
    """(how many requests, what became of those that were not answered)."""
    count, failed, end = 0, [], time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            response, _ = raw.ask(lab.client, raw.head("/1k"), address=(lab.net.vip, 80), timeout=3)
            failed += [] if raw.right(response, "1k") else [response.status]
        except (OSError, AssertionError) as why:
            failed.append(type(why).__name__)
        count += 1
    return count, failed


def total(lab, name):
    return sum(lab.counters(node.name)[name] for node in lab.nodes)


@pytest.mark.parametrize("side", ["public", "cluster"])
def test_sweep(side):
    """All ports that a worker of one node may send from, one after the other, as who knows none of them would try."""
    with Lab(nodes=3, policy="wrr", family="4") as lab:
        assert not asked(lab, 1)[1]
        victim = lab.nodes[0]
        low, high = (int(word) for word in victim.exec(["cat", "/proc/sys/net/ipv4/ip_local_port_range"]).stdout.split())
        own, *peers = (floods.packed(node.cluster_address) for node in lab.nodes)
        assert {port for port, _ in forged.senders(lab, victim)} <= set(range(low, high + 1))
        like = [forged.frame(lab, victim, forged.unreachable(4, own, low, peer, peer, 64), "eth0" if side == "public" else "eth1")
                for peer in peers]
        ends = [len(data) - len(forged.unreachable(4, own, low, peer, peer, 64)) for data, peer in zip(like, peers)]
        frames = [data[:end] + forged.unreachable(4, own, port, peer, peer, 64)
                  for port in range(low, high + 1) for data, end, peer in zip(like, ends, peers)]
        with floods.Tap(lab.net.client, "eth0") if side == "public" else floods.Tap(lab.net.switch, f"{victim.name}-clu") as tap:
            with forged.Flood([tap], frames, at_once=200) as flood:
                count, failed = asked(lab, 5)
                wait_for(lambda: flood.sent >= len(frames) or not flood.is_alive(), "all ports", 60, seen=lambda: flood.sent)
        print(f"{flood.sent} of {len(frames)} errors to ports {low} to {high}, {count} requests")
        assert count > 20 and not failed, failed
        assert all(row["state"] == "up" for node in lab.nodes for row in lab.status(node.name)["nodes"])
        if side == "cluster":
            assert total(lab, "inspect_errors_ignored") > 0
        assert not total(lab, "inspect_unreachable")


@pytest.mark.parametrize("side", ["public", "cluster"])
@pytest.mark.parametrize("family", [4, 6])
def test_unreachable(family, side):
    """Each of the nodes' sockets is told again and again that nobody takes what it sends, with its right port, which nobody
    should know: by the public interface, and as if it came from the cluster network. It quotes none of the messages."""
    with Lab(nodes=3, policy="wrr", family=str(family)) as lab:
        assert not asked(lab, 1)[1]
        interface = "eth0" if side == "public" else "eth1"
        links = ["client"] if side == "public" else [f"{node.name}-clu" for node in lab.nodes]
        taps = [floods.Tap(lab.net.client, "eth0") if side == "public" else floods.Tap(lab.net.switch, link) for link in links]
        rows = []  # for each tap, what it sends
        for node in lab.nodes:
            own, other = (floods.packed(one.cluster_address) for one in (node, next(n for n in lab.nodes if n.name != node.name)))
            rows.append([forged.frame(lab, node, forged.unreachable(family, own, port, peer, other), interface)
                         for port, peer in forged.senders(lab, node)])
        frames = [data for row in zip(*rows) for data in row]
        with forged.Flood(taps, frames) as flood:
            count, failed = asked(lab, 5)
        print(f"{flood.sent} errors to {len(frames)} sockets, {count} requests")
        assert flood.sent > 100 and count > 20 and not failed, failed
        assert all(state == "up" for node in lab.nodes for state in
                   (row["state"] for row in lab.status(node.name)["nodes"]))
        if side == "cluster":
            assert total(lab, "inspect_errors_ignored") > flood.sent / 2
        assert not total(lab, "inspect_unreachable")
        for tap in taps:
            tap.sock.close()
