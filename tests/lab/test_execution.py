# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that are executed, and whose node is lost before their clients have heard the answer: what is not safe is not
executed again when it comes again, and nothing is refused for that but what the lost node has executed (docs/failures.md).
"""
import collections
import re

import pytest

from cluster.membership import ALL, TOKEN, settled
from earshotlab import Lab, wait_for
from web import raw

pytestmark = [pytest.mark.earshot, pytest.mark.corosync, pytest.mark.wire]

COUNT = 160  # clients; every other one has a POST


class Client:
    """One connection with one request, which its TCP repeats."""

    def __init__(self, lab, number):
        self.method = ("GET", "POST")[number % 2]
        self.target = f"/1k?{self.method}-{number}"
        self.sock = raw.connect(lab.client)

    def send(self):
        body = "Content-Length: 4\r\n\r\nid=1" if self.method == "POST" else "\r\n"
        self.sock.sendall(f"{self.method} {self.target} HTTP/1.1\r\nHost: lab\r\n{body}".encode())

    def hear(self, patience):
        """The node that answers, or None for a RST."""
        self.sock.settimeout(patience)
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                piece = self.sock.recv(65536)
                assert piece, f"{self.target}: the connection ended after {data!r}"
                data += piece
        except ConnectionResetError:
            return None
        return re.search(rb"X-Node: (\S+)", data).group(1).decode()


def executions(lab):
    """{target: the nodes whose servers have executed it}"""
    found = collections.defaultdict(list)
    for node in lab.nodes:
        for line in node.access_log():
            target = line.split('"')[1].split()[1]
            if "-" in target:  # no other clients'
                found[target].append(node.name)
    return found


def comes_again(lab, names):
    """How often a request has come to these nodes to inspect, with doubts or without."""
    return sum(lab.counters(name)[counter] for name in names for counter in ("request_doubtful", "request_queued"))


@pytest.fixture(name="lab")
def _lab():
    with Lab(nodes=4, membership="corosync", policy="wrr", token=int(TOKEN * 1000), wires=["client"]) as lab:
        settled(lab)
        yield lab


def all_executed(lab):
    """Clients whose requests have been executed, and who hear nothing any more; {target: its node}."""
    clients = [Client(lab, number) for number in range(COUNT)]
    lab.wire("client").set("in", loss=1)
    for client in clients:
        client.send()
    wait_for(lambda: all(client.target in executions(lab) for client in clients), "the executions", 10)
    return clients, {target: nodes[0] for target, nodes in executions(lab).items()}


def judge(lab, clients, first, lost):
    """They hear again. `lost` are the nodes that have nothing any more of what they have executed."""
    lab.wire("client").set("in", loss=0)
    heard = {client.target: client.hear(30) for client in clients}
    refused = {target for target, node in heard.items() if node is None}
    of_lost = {target for target, node in first.items() if node in lost and "POST" in target}

    def written():  # access logs are late
        found = executions(lab)
        return found if all(node in found[target] for target, node in heard.items() if node) else None

    executed = wait_for(written, "what the answers say in the logs")
    print(f"{'+'.join(sorted(lost))} executed {len(of_lost)} POSTs; {len(refused)} clients got a RST")
    twice = {target: nodes for target, nodes in executed.items() if "POST" in target and len(nodes) > 1}
    assert not twice, f"executed twice: {twice}"
    needless = {target: first[target] for target in refused - of_lost}
    assert not needless, f"refused, though a node that is there has executed it, or it is safe: {needless}"
    assert of_lost, first


def test_node_is_lost_and_comes_back(lab):
    """With nothing of what it knew."""
    others = [name for name in ALL if name != "n2"]
    clients, first = all_executed(lab)
    lab.kill("n2")
    settled(lab, others)
    before = comes_again(lab, others)
    wait_for(lambda: comes_again(lab, others) > before + COUNT / 8, "requests that come again", 20)
    lab.heal("n2")
    settled(lab)
    wait_for(lambda: comes_again(lab, ["n2"]) > COUNT / 16, "requests that come again to the node that is back", 20)
    judge(lab, clients, first, {"n2"})


def test_node_that_was_away_when_another_was_lost(lab):
    """It has heard the requests, and not seen that the one that has executed them is lost: the members tell it."""
    others = [name for name in ALL if name != "n4"]
    lab.kill("n4")
    lab.partition([others, ["n4"]], networks=["cluster"])
    settled(lab, others)
    lab.heal("n4")
    assert lab.status("n4")["membership"]["silent"]
    clients, first = all_executed(lab)
    lab.node("n1").cut("public")
    settled(lab, ["n2", "n3"])
    lab.heal_partition()
    settled(lab, ["n2", "n3", "n4"])
    wait_for(lambda: comes_again(lab, ["n4"]) > 10, "requests that come again to the node that was away", 20)
    judge(lab, clients, first, {"n1"})


def test_ended_by_a_node_that_nobody_has_seen_go(lab):
    """The cluster loses its quorum and finds itself again, without n4: n1 and n2 end what they have executed, unheard. n3, whose
    daemon starts meanwhile, has just been told that they have it, and gives them what comes again."""
    lab.kill("n4")
    settled(lab, ["n1", "n2", "n3"])
    lab.node("n3").signal("earshotd")
    settled(lab, ["n1", "n2"])
    clients, first = all_executed(lab)
    assert set(first.values()) <= {"n1", "n2"}
    lab.node("n1").cut("cluster")
    wait_for(lambda: all(lab.status(name)["membership"]["phase"] == "out" for name in ("n1", "n2")), "the quorum's loss", 10)
    lab.node("n3").start("earshotd")
    lab.node("n1").mend("cluster")
    settled(lab, ["n1", "n2", "n3"], timeout=30)
    wait_for(lambda: comes_again(lab, ["n3"]) > COUNT / 16, "requests that come again to n3", 30)
    judge(lab, clients, first, {"n1", "n2"})
    assert sum(lab.counters(name)["handover_doubtful"] for name in ("n1", "n2")) > 0
