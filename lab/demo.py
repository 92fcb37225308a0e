#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Three nodes on this machine serve one address, or one of each family. Every step says what it checks, and fails if it does not
hold. Also a test: exit status 0 means that everything held."""
import argparse
import collections
import contextlib
import glob
import hashlib
import itertools
import json
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from earshotlab import Lab, LabError, daemon, families, in_namespace, netns, server, tls, wait_for  # noqa: E402

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NODES = 3
FIRST_PORT = 40001
CONNECTIONS_SHOWN = 9
HTTPS_REQUESTS = 12
CONNECTIONS_MAX = 90  # every worker of every node takes its own turns, so it may take some until all have served
BYPASS_LIMIT = 0.05  # of the body: what an inspecting node may send to the client's network meanwhile


class Demo:
    """Tells, checks and remembers whether everything held."""

    def __init__(self, lab):
        self.lab = lab
        self.failed = 0
        self.steps = 0
        self.vips = itertools.cycle(lab.net.vips)
        self.ports = iter(range(FIRST_PORT, 65536))
        self.addresses = {}  # client port: the client's address
        self.served = {}  # client port: node

    # --- telling

    def step(self, text):
        self.steps += 1
        print(f"\n{self.steps}. {text}", flush=True)

    def check(self, holds, text):
        print(f"   {'OK    ' if holds else 'FAILED'}  {text}", flush=True)
        self.failed += not holds
        return holds

    # --- asking

    def inspector(self, port):
        """Which node inspects this port's connection, by the words of `earshot` on each node."""
        answers = set()
        for node in self.lab.nodes:
            done = node.exec(["earshot", "--json", "ring", "lookup", self.addresses[port], str(port), "--service", "web"])
            answers.add(json.loads(done.stdout)["lookup"]["node"])
        return answers.pop() if len(answers) == 1 else None

    def inspected(self):
        """How many first requests each node has given to its inspector."""
        return {node: self.lab.counters(node).get("request_queued", 0) for node in self.lab.net.nodes}

    def traffic(self):
        """{(node, interface): (bytes sent, packets sent)}."""
        def read():
            with open("/proc/thread-self/net/dev", encoding="ascii") as handle:
                rows = [re.split(r"[:\s]+", line.strip()) for line in handle.readlines()[2:]]
            return {row[0]: (int(row[9]), int(row[10])) for row in rows}

        return {(node.name, interface): value for node in self.lab.nodes
                for interface, value in in_namespace(node.namespace, read).items()}

    def curl(self, target):
        """GET by curl from a port of our choice, by the service's addresses in turn: (port, status, serving node, SHA-256 of
        the body)."""
        port, vip = next(self.ports), next(self.vips)
        net = self.lab.net
        self.addresses[port] = (net.client_addresses6 if ":" in vip else net.client_addresses)[0]
        url = f"http://{families.in_url(vip)}{target}"
        body = os.path.join(self.lab.directory, "demo-body")
        done = self.lab.client_run(
            ["curl", "-s", "--globoff", "--max-time", "10", "--local-port", str(port), "-H", "Connection: close", "-D", "-",
             "-o", body, "-w", "%{local_port} %{http_code}", url], check=False)
        if done.returncode:
            raise LabError(f"curl {url} from port {port} ended with {done.returncode}")
        node = re.search(r"(?im)^x-node: *(\S+)", done.stdout)
        used, status = done.stdout.split()[-2:]
        with open(body, "rb") as handle:
            digest = hashlib.sha256(handle.read()).hexdigest()
        return int(used), int(status), node[1] if node else "?", digest

    def wrk(self, url):
        """Requests/s and whether there was no error, 64 connections at a time, a new one for each request."""
        done = self.lab.client_run(["wrk", "-t2", "-c64", "-d3s", "--timeout", "5s", "-H", "Connection: close", url],
                                   check=False)
        rate = re.search(r"Requests/sec: *([0-9.]+)", done.stdout)
        clean = done.returncode == 0 and "Socket errors" not in done.stdout and "Non-2xx" not in done.stdout
        if not clean:
            print(done.stdout + done.stderr)
        return (float(rate[1]) if rate else 0.0), clean and rate is not None

    # --- the steps

    def cluster(self):
        lab = self.lab
        self.step(f"A cluster: {NODES} nodes with nginx and earshotd, a switch that floods, a client. "
                  f"All nodes have {' and '.join(lab.net.vips)}.")
        states = [lab.status(node) for node in lab.net.nodes]
        shares = ", ".join(f"{node['name']} {node['ring_share']:.0%}" for node in states[0]["nodes"])
        self.check(all(state["datapath"]["state"] == "inspecting" and state["ring"]["members"] == NODES
                       for state in states),
                   f"every node inspects, on a ring of {NODES} members (shares: {shares})")
        macs = [mac for vip in lab.net.vips
                for mac in re.findall(r"lladdr (\S+)", lab.client_run(["ip", "neigh", "show", vip]).stdout)]
        # A multicast group address: the switch sends it to everybody.
        self.check(len(macs) == len(lab.net.vips) and len(set(macs)) == 1 and int(macs[0][:2], 16) & 1 == 1,
                   f"the client's neighbour table has one MAC for {'both' if len(macs) > 1 else 'the'} "
                   f"address{'es' * (len(macs) > 1)}, of all nodes: {', '.join(set(macs)) or '-'}")

    def who_does_what(self):
        self.step("Who does what: connections of curl; the ring picks who inspects, the policy (wrr) who serves.")
        digest = hashlib.sha256(server.file_content("1k", server.FILES["1k"])).hexdigest()
        served, moved, right = collections.Counter(), 0, True
        before = self.inspected()
        for number in range(CONNECTIONS_MAX):
            if not right or (number >= CONNECTIONS_SHOWN and moved and len(served) == NODES):
                break
            port, status, node, got = self.curl("/1k")
            after = self.inspected()
            counted = [name for name in after if after[name] != before[name]]
            expected = self.inspector(port)
            held = status == 200 and got == digest and counted == [expected] and \
                after[expected] == before[expected] + 1
            if number < CONNECTIONS_SHOWN or not held:
                family = 6 if ":" in self.addresses[port] else 4
                print(f"           client port {port}, IPv{family}: ring says {expected}, inspected by {'+'.join(counted) or '?'}, "
                      f"served by {node}{'' if held else f'   <-- status {status}'}")
            right, before = held, after
            served[node] += 1
            moved += node != expected
            self.served[port] = node
        self.check(right, "every answer is 200 with the right body; "
                          "the node that the ring names inspected it, and no other")
        self.check(moved > 0, f"{moved} of {len(self.served)} connections were handed over to another node")
        self.check(set(served) == set(self.lab.net.nodes), "every node served: " + ", ".join(
            f"{node} {count}" for node, count in sorted(served.items())))

    def client_address(self):
        self.step("Servers see the client: what the nginx logs say.")

        def logged():
            return {line.split()[0]: node.name for node in self.lab.nodes for line in node.access_log()
                    if '"GET /1k ' in line and " 200 " in line}

        wanted = {f"{self.addresses[port]}:{port}": node for port, node in self.served.items()}
        with contextlib.suppress(LabError):
            wait_for(lambda: wanted.items() <= logged().items(), "access logs", 3)
        found = logged()
        client, node = list(wanted.items())[-1]
        self.check(wanted.items() <= found.items(),
                   f"all {len(wanted)} requests are logged with the client's address and port by the node that served "
                   f"(e.g. {node}: {client})")

    def bypass(self):
        self.step("Answers bypass the inspecting node: bytes that each node sends while 1 MB is fetched.")
        size = server.FILES["1m"]
        digest = hashlib.sha256(server.file_content("1m", size)).hexdigest()
        for _ in range(20):
            before = self.traffic()
            port, status, node, got = self.curl("/1m")
            after = self.traffic()
            inspecting = self.inspector(port)
            if node != inspecting:
                break
        else:
            self.check(False, "20 requests, and not one was served by another node")
            return
        sent = {key: (after[key][0] - before[key][0], after[key][1] - before[key][1]) for key in after}
        for name in self.lab.net.nodes:
            role = {inspecting: "inspects", node: "serves"}.get(name, "")
            print(f"           {name} {role:9} to the client {sent[name, 'eth0'][0]:>9,} bytes "
                  f"{sent[name, 'eth0'][1]:>4} packets   to other nodes {sent[name, 'eth1'][0]:>5,} bytes "
                  f"{sent[name, 'eth1'][1]:>2} packets")
        self.check(status == 200 and got == digest, f"{size:,} bytes arrived, SHA-256 right")
        self.check(sent[node, "eth0"][0] >= size, f"{node}, which serves, sent them all")
        self.check(0 < sent[inspecting, "eth0"][0] < size * BYPASS_LIMIT and
                   0 < sent[inspecting, "eth1"][0] < size * BYPASS_LIMIT,
                   f"{inspecting}, which inspects, sent the client its SYN-ACK and {node} one handover message")

    def https(self):
        self.step("HTTPS: earshot-tls on the ring's node ends TLS and reads the request; the connection moves with its keys.")
        if not self.lab.options["tls"]:
            print("           left out: earshot-tls is not installed")
            return
        net, digest = self.lab.net, hashlib.sha256(server.file_content("100k", server.FILES["100k"])).hexdigest()
        with open(self.lab.config_file, "a", encoding="utf-8") as config:
            config.writelines(f'rule to-{node} {{ service = https  header = "X-To: {node}"  nodes = {node} }}\n' for node in net.nodes)
        for node in self.lab.nodes:
            node.exec(["earshot", "reload"])
        print("           A rule for each node: requests with X-To: n1 go to n1.")
        authority = os.path.join(tls.directory(self.lab.directory), "ca.pem")
        body = os.path.join(self.lab.directory, "demo-body")
        right, placed, moved = 0, 0, []
        for number in range(1, HTTPS_REQUESTS + 1):
            target = net.nodes[number % NODES]
            port, vip = next(self.ports), next(self.vips)
            client = (net.client_addresses6 if ":" in vip else net.client_addresses)[0]
            done = self.lab.client_run(
                ["curl", "-s", "--globoff", "--max-time", "10", "--cacert", authority, "--local-port", str(port), "-D", "-", "-o", body,
                 "-H", f"X-To: {target}", f"https://{families.in_url(vip)}/100k"], check=False)
            node = re.search(r"(?im)^x-node: *(\S+)", done.stdout)
            lookup = {"address": client, "port": port, "service": "https"}
            reader = self.lab.nodes[0].ask({"command": "ring", "lookup": lookup})["lookup"]["node"]
            with open(body, "rb") as handle:
                right += done.returncode == 0 and hashlib.sha256(handle.read()).hexdigest() == digest
            placed += bool(node) and node[1] == target
            if node and node[1] != reader:
                moved.append(f"{reader} -> {node[1]}")
        self.check(right == HTTPS_REQUESTS, f"{right} of {HTTPS_REQUESTS} requests: certificate verified, SHA-256 right")
        self.check(placed == HTTPS_REQUESTS and len(moved) > 1, f"{placed} were answered by the node that its rule names, "
                   f"{len(moved)} of them after another had read them: {', '.join(sorted(set(moved)))}")

    def throughput(self):
        self.step("Throughput: wrk, 64 connections at a time, one request each (`./dev bench quick` is thorough).")
        netns.set_sysctls(self.lab.net.client, {"net.ipv4.tcp_tw_reuse": 1})  # or it runs out of ports
        direct, direct_clean = self.wrk(f"http://{self.lab.node('n1').public_address}/1k")
        before = self.inspected()
        cluster, cluster_clean = self.wrk(self.lab.url("/1k"))
        inspected = sum(self.inspected().values()) - sum(before.values())
        self.check(direct_clean and cluster_clean, "no request failed")
        self.check(cluster > 0 and inspected >= cluster,
                   f"1 KB from one node directly {direct:,.0f}/s; from the cluster, every connection inspected and "
                   f"handed over, {cluster:,.0f}/s = {cluster / max(direct, 1):.2f} x, on these {os.cpu_count()} CPUs")

    def run(self):
        for part in (self.cluster, self.who_does_what, self.client_address, self.bypass, self.https, self.throughput):
            try:
                part()
            except (LabError, OSError, LookupError, ValueError) as error:
                self.check(False, f"{type(error).__name__}: {error}")


def interrupted(number, _):
    """Ends in the orderly way, the labs too, and is not interrupted again."""
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def main():
    parser = argparse.ArgumentParser(prog="earshot-lab demo" if daemon.INSTALLED else "./dev demo", description=__doc__)
    parser.add_argument("--name", default="demo", help="of the lab; default demo")
    parser.add_argument("--keep", action="store_true", help="leave the lab up, to look around")
    arguments = parser.parse_args()
    for number in ENDING:
        signal.signal(number, interrupted)

    family, why = families.usual()
    if why:
        print(f"IPv4 only: {why}")
    with_tls = tls.is_there()
    settings = {"inspector.workers": 0, **({"https.inspect": "every"} if with_tls else {})}
    lab = Lab(arguments.name, NODES, policy="wrr", settings=settings, family=family, tls=with_tls)
    lab.up()
    demo = Demo(lab)
    try:
        demo.run()
    except BaseException:
        lab.down()
        raise
    if arguments.keep:
        print(f"\nThe lab stays: {daemon.COMMAND} exec --name {lab.name} client -- curl -si {lab.url('/node')}\n"
              f"               {daemon.COMMAND} down --name {lab.name}")
    else:
        lab.down()
        left = [name for name in lab.net.namespaces if netns.exists(name)]
        print()
        left += glob.glob(f"{daemon.CONTROL_DIR}/{lab.net.name}-*")
        demo.check(not left and not os.path.exists(lab.directory), "cleaned up: no namespace and no file is left")
    print(f"\n{'Everything held.' if not demo.failed else f'{demo.failed} checks FAILED.'}")
    return 1 if demo.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as problem:
        print(f"demo: {problem}", file=sys.stderr)
        sys.exit(1)
