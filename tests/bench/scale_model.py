# SPDX-License-Identifier: GPL-2.0-or-later
"""What N nodes would serve, from the measured CPU time of each role; no measuring, no printing (README.md, scale).

Every node hears every packet of every client. So a request costs the node that serves it, the node that inspects its connection, and
a little on each of the others: what all nodes together spend on it grows with N, and so does what they have.
"""
import math
import statistics
from dataclasses import dataclass

CELLS = ("close", "keep-alive", "large")  # measured: 1 KB on a connection of its own, on one that is kept, and LARGE_KB on one that is kept
SMALL_KB, LARGE_KB = 1, 100
NODES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
PROXIES = ("haproxy", "nginx-proxy")
PAYS = 0.5  # a node that adds less than this share of a node that is alone does not pay

# Bytes on a cable: Ethernet with preamble, checksum and gap; IP and TCP with timestamps; what a SYN has beyond that.
FRAME, HEADERS, SYN_OPTIONS, SEGMENT = 38, 52, 8, 1448
RESPONSE_HEAD = 250
CONNECTION_PACKETS = 4  # a client's SYN, its ACK, and two at the end


@dataclass(frozen=True)
class Workload:
    """Of one service. `app_us`: CPU microseconds that an application takes for a request, beside what serving a file takes. `pauses`:
    clients wait between requests, so that each response is acknowledged by a packet of its own; a client that sends its next request
    at once acknowledges by that."""

    body_kb: float = 1
    request_bytes: int = 500
    per_connection: float = 1
    app_us: float = 0
    pauses: bool = True

    @property
    def segments(self):
        """Of a response."""
        return math.ceil((self.body_kb * 1024 + RESPONSE_HEAD) / SEGMENT)

    @property
    def packets(self):
        """Clients' packets for each request: every second segment is acknowledged (RFC 9293, 3.8.6.3)."""
        pausing = (1 - 1 / self.per_connection) * self.pauses
        return CONNECTION_PACKETS / self.per_connection + math.ceil(self.request_bytes / SEGMENT) + self.segments // 2 + pausing

    @property
    def bytes_in(self):
        """On a cable, towards a node, for each request."""
        return self.packets * (FRAME + HEADERS) + self.request_bytes + SYN_OPTIONS / self.per_connection

    @property
    def bytes_out(self):
        return self.body_kb * 1024 + RESPONSE_HEAD + self.segments * (FRAME + HEADERS) + (FRAME + HEADERS) / self.per_connection


@dataclass(frozen=True)
class Machine:
    cores: float = 4
    link_gbit: float = 10

    @property
    def link_bytes(self):
        return self.link_gbit * 1e9 / 8


def fitted(by_cell, load):
    """CPU microseconds for a request of this workload: a part for each connection, one for each request, one for each KB. A part
    below nothing is noise."""
    per_kb = max((by_cell["large"] - by_cell["keep-alive"]) / (LARGE_KB - SMALL_KB), 0)
    request = max(by_cell["keep-alive"] - SMALL_KB * per_kb, 0)
    connection = max(by_cell["close"] - by_cell["keep-alive"], 0)
    return connection / load.per_connection + request + per_kb * load.body_kb


def together(own, moved, overhear, nodes):
    """What a request costs all nodes: one in N is served where it was inspected (`own`); of the others two nodes have the cost
    (`moved`). All that are left hear it."""
    return (own + (nodes - 1) * overhear) / nodes + (nodes - 1) / nodes * (moved + (nodes - 2) * overhear)


class Costs:
    """The inputs as a file has them, for one workload: CPU microseconds for a request by role."""

    def __init__(self, inputs, load):
        self.inputs, self.load = inputs, load
        # Clients of the lab acknowledge less, as all of a response is there at once. What others send more costs each that
        # hears it what overhearing it costs.
        self.more = max(load.packets - fitted(inputs["packets"], load), 0)

    def packet(self, datapath):
        """Of overhearing a packet: about the same in all cells."""
        overhear = self.inputs["datapaths"][datapath]["overhear"]
        return statistics.median(overhear[cell] / self.inputs["packets"][cell] for cell in CELLS)

    def of(self, datapath, role):
        packet = self.packet(datapath)
        if role == "overhear":
            return self.load.packets * packet
        heard = {"own": 1, "moved": 2}[role] * self.more * packet
        return fitted(self.inputs["datapaths"][datapath][role], self.load) + self.load.app_us + heard

    def proxy(self, name):
        """(of the proxy, of a server behind it)"""
        roles, packet = self.inputs["proxies"][name], min(map(self.packet, self.inputs["datapaths"]))
        return (fitted(roles["proxy"], self.load) + self.more * packet, fitted(roles["server"], self.load) + self.load.app_us)

    def cluster(self, datapath, nodes):
        """(of all nodes, of that for hearing what others serve)"""
        own, moved, overhear = (self.of(datapath, role) for role in ("own", "moved", "overhear"))
        # Of a request that was inspected elsewhere, the two are `moved`, and the others hear it.
        return together(own, moved, overhear, nodes), together(0, 0, overhear, nodes)


def _least(limits):
    """(requests a second, what limits them)"""
    name = min(limits, key=limits.get)
    return limits[name], name


def cluster_rate(costs, machine, datapath, nodes):
    """(requests a second of N nodes, what limits them). Inbound, each cable carries what all clients send."""
    total, _ = costs.cluster(datapath, nodes)
    return _least({"CPU": nodes * (machine.cores - costs.inputs["datapaths"][datapath]["background"]) * 1e6 / total,
                   "inbound": machine.link_bytes / costs.load.bytes_in,
                   "outbound": nodes * machine.link_bytes / costs.load.bytes_out})


def proxies_rate(costs, machine, name, machines, proxies):
    """The same of as many machines, of which some are proxies and have no servers; None if none is left. As nodes, a proxy has a cable on
    either side; all that its clients send and are sent passes both."""
    servers = machines - proxies
    if servers < 1:
        return None
    proxy, server = costs.proxy(name)
    return _least({"proxy's CPU": proxies * machine.cores * 1e6 / proxy, "servers' CPU": servers * machine.cores * 1e6 / server,
                   "proxy's cable": proxies * machine.link_bytes / max(costs.load.bytes_in, costs.load.bytes_out)})


def rows(inputs, load, machine, nodes=NODES):
    """A dictionary for each datapath and N: what is printed, plotted and tested."""
    costs, found = Costs(inputs, load), []
    for datapath in inputs["datapaths"]:
        alone = cluster_rate(costs, machine, datapath, 1)[0]
        for number in nodes:
            rate, limit = cluster_rate(costs, machine, datapath, number)
            before = cluster_rate(costs, machine, datapath, number - 1)[0] if number > 1 else 0
            total, heard = costs.cluster(datapath, number)
            beside = {f"{name} x{proxies}": proxies_rate(costs, machine, name, number, proxies) for name in PROXIES for proxies in (1, 2)}
            found.append({
                "datapath": datapath, "nodes": number, "requests_per_s": rate, "limit": limit, "cpu_us": total,
                "speedup": rate / alone, "last_node": (rate - before) / alone, "overhearing": heard / total,
                "inbound_mbit": rate * load.bytes_in * 8 / 1e6,
                "proxies": {key: {"requests_per_s": value[0], "limit": value[1]} for key, value in beside.items() if value}})
    return found


def stops_paying(inputs, load, machine, datapath, most=256):
    """The last N whose last node still adds PAYS of one that is alone; `most` if there is no end before."""
    for row in rows(inputs, load, machine, range(2, most + 1)):
        if row["datapath"] == datapath and row["last_node"] < PAYS:
            return row["nodes"] - 1
    return most


def proxies_ahead(inputs, load, machine, datapath, proxies, most=64):
    """The numbers of machines, up to `most`, that serve more with so many of the better proxy in front."""
    found = []
    for row in rows(inputs, load, machine, range(1, most + 1)):
        rates = [of["requests_per_s"] for key, of in row["proxies"].items() if key.endswith(f"x{proxies}")]
        if row["datapath"] == datapath and rates and max(rates) > row["requests_per_s"]:
            found.append(row["nodes"])
    return found


def dts(inputs, datapath, nodes, free=False):
    """DTS' Figs. 6 and 7 for N nodes: (speed-up with N inspectors, with one), over one node. The one inspector hears all and serves its Nth
    part; its kernel's share of a handover counts as hearing a connection. The paper's server echoes what it is sent, and ours is
    nginx; `free`: one that costs nothing."""
    own, moved, overhear, inspector = (inputs["datapaths"][datapath][role]["close"] for role in ("own", "moved", "overhear", "inspector"))
    served = inputs["serve"]["close"] if free else 0
    own, moved, inspect = own - served, moved - served, inspector + overhear
    busiest = max(own + (nodes - 1) * inspect, (moved - inspect + (nodes - 1) * overhear) * (nodes > 1)) / nodes
    return nodes * own / together(own, moved, overhear, nodes), own / busiest


def checked(check):
    """Of one comparison with the lab: (predicted, measured, ratio). The processes of N nodes take each other's caches on the lab's few
    processors, as those on machines of their own do not: `slower` is what N servers take there beside one, asked directly. What
    daemons take while nobody asks is `background`, a part of both."""
    predicted = check["background"] + sum(slower * together(*(check[role][part] for role in ("own", "moved", "overhear")), check["nodes"])
                    for part, slower in (("processes", check["slower"]), ("receiving", 1)))
    return predicted, check["measured"], check["measured"] / predicted
