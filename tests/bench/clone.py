#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench clone: shares, and what a dead node costs, where nodes hash clients as an IPaddr2 clone does, and with Earshot (README.md)."""
import argparse
import contextlib
import json
import os
import random
import socket
import statistics
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
import paths  # noqa: E402, F401
import runs  # noqa: E402
from cluster import rules  # noqa: E402
from cluster.membership import serving, settled  # noqa: E402
from earshotlab import Lab, LabError, topology, wait_for  # noqa: E402
from packets.model import jhash  # noqa: E402
from web import raw  # noqa: E402

NODES = 3
SEED = 0x45415253  # of the hash; any
# The clients are behind the client's machine, as behind a router: a thousand in their own network would be more neighbours than the
# kernel keeps for all namespaces together.
NETWORK = "10.99.0.0/16"
CLIENTS = [f"10.99.{i // 200}.{1 + i % 200}" for i in range(1000)]
CONNECTIONS = {1: 60, 10: 6, 1000: 1}  # that each of so many clients makes
DRAWS = {1: 5, 10: 10, 1000: 1}  # of so many clients, out of all
MODEL_DRAWS = 2000
VICTIM = "n2"
GROUP_MAC = "03:bf:0a:4d:00:64"
LATE_S = 0.9  # a SYN that nobody answers is sent again after a second
QUIET_S = 3.5  # so long nothing may be late: a second SYN comes after one second, a third after three
PATIENCE_S = 20
START_S = 60  # of a cluster, on a busy machine
IDLE = 90  # connections that are open when a node dies, and of those made until it is back
EARSHOT = {  # policy, and what else the configuration says
    "earshot-ring": ("ring", ""),
    "earshot-wrr": ("wrr", ""),
    "earshot-source": ("wrr", "rule sticky { affinity = source }\n"),
}
CLUSTERS = ("nf_tables", *EARSHOT)
CLONE = """<clone id="shares">
  <meta_attributes id="shares-meta">
    <nvpair id="shares-unique" name="globally-unique" value="true"/>
    <nvpair id="shares-max" name="clone-max" value="{nodes}"/>
    <nvpair id="shares-node-max" name="clone-node-max" value="{nodes}"/>
    <nvpair id="shares-stickiness" name="resource-stickiness" value="0"/>
  </meta_attributes>
  <primitive id="share" class="ocf" provider="earshot" type="hashed">
    <instance_attributes id="share-parameters">
      <nvpair id="share-address" name="address" value="{address}"/>
      <nvpair id="share-seed" name="seed" value="{seed}"/>
    </instance_attributes>
    <operations>
      <op id="share-start" name="start" interval="0" timeout="20s"/>
      <op id="share-stop" name="stop" interval="0" timeout="20s"/>
      <op id="share-monitor" name="monitor" interval="5s" timeout="20s"/>
    </operations>
  </primitive>
</clone>"""


def parser():
    root = argparse.ArgumentParser(prog="./dev bench clone", description=__doc__)
    root.add_argument("--clusters", type=runs.choice_list(CLUSTERS), default=CLUSTERS, metavar="C,...",
                      help=f"of {', '.join(CLUSTERS)} (default: all)")
    root.add_argument("--rounds", type=int, default=3, metavar="N", help="deaths of a node in each cluster; default %(default)s")
    root.add_argument("--token", type=int, default=1000, metavar="MS", help="corosync's; default %(default)s")
    root.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    return root


# The hashes; a share is a number from 0. Ports, and IPaddr2's addresses, are hashed as they are in the packet on a little-endian machine.


def share(data):
    return jhash(data, SEED) * NODES >> 32


def share_nft(address):
    """`jhash ip saddr mod NODES seed SEED`"""
    return share(socket.inet_aton(address))


def share_source(address, _port):
    """CLUSTERIP, `--hashmode sourceip`; the address is a number."""
    return share(struct.pack("<I", address))


def share_source_port(address, port):
    """CLUSTERIP, `--hashmode sourceip-sourceport`"""
    return share(struct.pack("<II", address, socket.htons(port)))


MODELS = {"CLUSTERIP sourceip": share_source, "CLUSTERIP sourceip-sourceport": share_source_port}

# The clusters


def route(lab, nodes):
    """These nodes know the way to the clients, who are all on the client's machine."""
    lab.client.exec(["ip", "route", "replace", "local", NETWORK, "dev", "lo"])
    for node in nodes:
        lab.node(node).exec(["ip", "route", "add", NETWORK, "via", lab.net.client_address])


class Hashed:
    """Three nodes that each take the packets of their share, by Pacemaker's word."""

    name = "nf_tables"

    def __init__(self, stack, token):
        agents = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agents")
        self.lab = stack.enter_context(Lab(
            name="bench-clone", nodes=NODES, earshot=False, membership="corosync", pacemaker=True, token=token, agents=agents,
            timeout=START_S))
        route(self.lab, self.lab.net.nodes)
        self.lab.client.exec(["ip", "neigh", "replace", topology.VIP, "lladdr", GROUP_MAC, "dev", "eth0", "nud", "permanent"])
        self.lab.node("n1").pacemaker.cibadmin(CLONE.format(nodes=NODES, address=topology.VIP, seed=SEED))
        self.whole()

    def places(self):
        """{share: its node}."""
        found = {}
        for node in self.lab.nodes:
            if node.name not in self.lab.dead:
                listed = node.exec(["nft", "list", "tables"]).stdout
                found.update({int(word.rpartition("_")[2]): node.name for word in listed.split() if word.startswith("share_")})
        return found

    def whole(self):
        """One share on each node."""
        wait_for(lambda: sorted(self.places()) == list(range(NODES)) and len(set(self.places().values())) == NODES,
                 "a share on each node", 90, self.places)


class Earshot:
    """Three nodes of Earshot with corosync."""

    def __init__(self, stack, name, token):
        self.name = name
        policy, more = EARSHOT[name]
        self.lab = stack.enter_context(Lab(
            name=f"bench-{name}", nodes=NODES, membership="corosync", token=token, policy=policy, timeout=START_S))
        route(self.lab, self.lab.net.nodes)
        rules.add(self.lab, more)
        self.whole()

    def whole(self):
        settled(self.lab, self.lab.net.nodes, 60)
        serving(self.lab)


# Clients


def connect(lab, address, timeout=PATIENCE_S):
    """A connection of a client, which has had one answer: (socket, node)."""
    sock = raw.connect(lab.client, timeout=timeout, before=lambda sock: sock.bind((address, 0)))
    return sock, ask(sock)


def ask(sock):
    """The node that answers."""
    sock.sendall(raw.head("/node"))
    return raw.receive(sock).node


def drawn(clients, number):
    """(address) of each connection of a draw, in turn; the same in each cluster."""
    rng = random.Random(f"{clients}/{number}")
    return rng.sample(CLIENTS, clients) * CONNECTIONS[clients]


def imbalance(counts):
    """The busiest node's connections to the mean of all."""
    return round(max(counts.values()) * NODES / sum(counts.values()), 2)


def spread(values):
    return {"median": round(statistics.median(values), 2), "least": min(values), "most": max(values)}


def modelled(model):
    """{clients: the imbalance over many draws of addresses from all of IPv4's unicast, and of ports}."""
    rng, found = random.Random(1), {}
    for clients, connections in CONNECTIONS.items():
        values = []
        for _ in range(MODEL_DRAWS if clients < 1000 else MODEL_DRAWS // 20):
            counts = dict.fromkeys(range(NODES), 0)
            for _ in range(clients):
                address = rng.randrange(1 << 24, 224 << 24)
                for _ in range(connections):
                    counts[model(address, rng.randrange(32768, 61000))] += 1
            values.append(imbalance(counts))
        found[clients] = spread(values)
    return found


def shares(cluster):
    """{clients: the imbalance that was measured}; where shares are hashed, each connection is where the model says."""
    found, places = {}, cluster.places() if isinstance(cluster, Hashed) else {}
    for clients in CONNECTIONS:
        values = []
        for number in range(DRAWS[clients]):
            counts = dict.fromkeys(cluster.lab.net.nodes, 0)
            for address in drawn(clients, number):
                sock, node = connect(cluster.lab, address)
                if places and node != (owner := places[share_nft(sock.getsockname()[0])]):
                    raise LabError(f"{sock.getsockname()} is on {node}, by the model on {owner}")
                sock.close()
                counts[node] += 1
            values.append(imbalance(counts))
        found[clients] = spread(values)
        print(f"{cluster.name}: {clients} clients: {found[clients]}", file=sys.stderr, flush=True)
    return found


class Probes:
    """New connections of ever other clients, 20 a second, whatever becomes of those before."""

    def __init__(self, lab):
        self.lab, self.done, self.threads, self.ended = lab, [], [], threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        rng = random.Random(2)
        while not self.ended.wait(0.05):
            self.threads.append(threading.Thread(target=self._probe, args=(rng.choice(CLIENTS),)))
            self.threads[-1].start()

    def _probe(self, address):
        began = time.monotonic()
        node = None
        with contextlib.suppress(OSError, EOFError):
            sock, node = connect(self.lab, address)
            sock.close()
        self.done.append((began, time.monotonic() - began, node))  # without a node: it failed

    def quiet_since(self, moment):
        """Has nothing that began since then been late, for long enough, and has something been answered?"""
        late = [began for began, took, node in list(self.done) if took > LATE_S or not node]
        since = max([moment, *late])
        return time.monotonic() > since + QUIET_S and any(began > since for began, _, _ in list(self.done))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        for thread in self.threads:
            thread.join()


def opened(lab):
    """Open connections, each of another client: [(socket, node)]."""
    return [connect(lab, address) for address in random.Random(3).sample(CLIENTS, IDLE)]


def broken(connections):
    """How many end when their clients go on: {node: (of how many, how many ended)}."""
    found, results = {}, {}

    def go_on(sock):
        sock.settimeout(8)
        with contextlib.suppress(OSError, EOFError):
            results[sock] = bool(ask(sock))

    threads = [threading.Thread(target=go_on, args=(sock,)) for sock, _ in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for sock, node in connections:
        of, lost = found.get(node, (0, 0))
        found[node] = (of + 1, lost + (sock not in results))
        sock.close()
    return found


def death(cluster):
    """A node loses its power under a few clients, and comes back."""
    lab = cluster.lab
    before = opened(lab)
    with Probes(lab) as probes:
        time.sleep(1)
        lab.kill(VICTIM)
        cut = time.monotonic()
        wait_for(lambda: probes.quiet_since(cut), "answers to all new connections", 90)
    late = [(began, took) for began, took, node in probes.done if began + took > cut and (took > LATE_S or not node)]
    found = {
        "gap_s": round(max((began for began, _ in late), default=cut) - cut, 2),
        "longest_s": round(max((took for _, took in late), default=0), 2),
        "failed": sum(not node for _, _, node in probes.done),
        "broken": broken(before),
    }
    meanwhile = opened(lab)
    found["meanwhile"] = {node: sum(other == node for _, other in meanwhile) for node in lab.net.nodes}
    lab.heal(VICTIM)
    route(lab, [VICTIM])
    cluster.whole()
    found["broken_by_return"] = broken(meanwhile)
    print(f"{cluster.name}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


def total(deaths, key, nodes=None):
    """(of how many, how many ended) over all rounds, on these nodes."""
    pairs = [pair for each in deaths for node, pair in each[key].items() if nodes is None or node in nodes]
    return [sum(of for of, _ in pairs), sum(lost for _, lost in pairs)]


def summarise(name, balance, deaths):
    """A row of the table; of a model nobody dies."""
    row = {"cluster": name, "imbalance": balance}
    if deaths:
        row.update({
            "its": total(deaths, "broken", {VICTIM}),
            "others": total(deaths, "broken", {f"n{i}" for i in range(1, NODES + 1)} - {VICTIM}),
            "on_return": total(deaths, "broken_by_return"),
            "busiest_survivor": spread([round(max(each["meanwhile"].values()) / IDLE, 2) for each in deaths]),
            "gap_s": spread([each["gap_s"] for each in deaths]),
            "longest_s": spread([each["longest_s"] for each in deaths]),
            "failed": sum(each["failed"] for each in deaths),
        })
    return row


def table(rows):
    """Imbalance; how many connections ended; times."""
    lines = [("", "1 client", "10 clients", "1,000 clients", "its own", "others'", "on return", "busiest left", "gap s", "longest s")]
    for row in rows:
        spreads = [*row["imbalance"].values(), *(row[key] for key in ("busiest_survivor", "gap_s", "longest_s") if key in row)]
        cells = [f"{each['median']:.2f} ({each['least']:.2f}..{each['most']:.2f})" for each in spreads]
        ends = [f"{row[key][1]} of {row[key][0]}" for key in ("its", "others", "on_return") if key in row]
        lines.append((row["cluster"], *cells[:3], *(ends or ["-"] * 3), *(cells[3:] or ["-"] * 3)))
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines)


def main():
    arguments = parser().parse_args()
    rows = [summarise(f"{name} (model)", modelled(model), []) for name, model in MODELS.items()]
    measured = {}
    for name in arguments.clusters:
        with contextlib.ExitStack() as stack:
            cluster = Earshot(stack, name, arguments.token) if name in EARSHOT else Hashed(stack, arguments.token)
            balance = shares(cluster)
            measured[cluster.name] = [death(cluster) for _ in range(arguments.rounds)]
            rows.append(summarise(cluster.name, balance, measured[cluster.name]))
    print(table(rows))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as handle:
            json.dump({"rows": rows, "deaths": measured, "token_ms": arguments.token, "kernel": os.uname().release,
                       "cpus": os.cpu_count()}, handle, indent=1)
    earshot = [row for row in rows if row["cluster"] in EARSHOT]
    wrong = [row["cluster"] for row in earshot if row["failed"] or row["others"][1] or row["on_return"][1]]
    for name in wrong:
        print(f"FAILED: {name}: a connection that should have gone on has ended, or a new one was refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    runs.run("clone", main)
