# SPDX-License-Identifier: GPL-2.0-or-later
"""./dev bench scale: what each role costs in labs, and what clusters of N nodes really take there (README.md).

    plain    n1 asked directly; n1..n3 behind haproxy and nginx on n4
    own      a cluster of one node: it inspects and serves
    roles    n1 inspects, n2 serves, n3..n6 hear: they have no points on the ring, and no part of the service. The switch
             leaves them out for the cost of the two alone
    N        a cluster as people have it, for the check

All are asked by CONNECTIONS for each node that serves: how much a process finds to do when it wakes is part of its cost.
"""
import contextlib
import statistics
import sys
import time

from earshotlab import LabError, netns

import load
import scale_model
import targets
import tasks

CONNECTIONS = 8
SIZES = {"close": "1k", "keep-alive": "1k", "large": "100k"}  # scale_model.CELLS
LISTENERS = range(3, 7)
SERVICE = {"service.nodes": "n2", **{f"node.n{number}.weight": 0 for number in (2, *LISTENERS)}}
DATAPATHS = {
    "bpf": {},
    "netfilter": {"datapath": "netfilter"},
    "netfilter-jhash": {"datapath": "netfilter", "settings": {"cluster.ring_hash": "jhash"}},
}


def cluster(datapath, nodes, **settings):
    """Options of a lab, as targets.Targets takes them."""
    of = DATAPATHS[datapath]
    return {"policy": "wrr", **of, "nodes": nodes, "settings": {**targets.WORKERS, **of.get("settings", {}), **settings}}


class World:
    """Labs that are up, and runs in them."""

    def __init__(self, docroot, seconds):
        self.docroot, self.seconds = docroot, seconds
        self.up = {}  # name: (Targets, Accounts, the datapath or None)
        self.warm = set()  # what has been asked before

    @contextlib.contextmanager
    def lab(self, name, datapath=None, options=None):
        """A lab of that name, up for as long as the block lasts; without options the plain one."""
        with contextlib.ExitStack() as stack:
            there = targets.Targets(stack, self.docroot, {name: options} if options else {}, shims=True)
            mode = name if options else "direct"
            accounts = tasks.Accounts(there.lab(mode), None if options else targets.PROXY)
            for target in (name,) if options else ("direct", *scale_model.PROXIES):
                there.check(target)
            self.up[name] = there, accounts, datapath
            stack.callback(self.up.pop, name)
            yield there

    def _idle(self, name, used):
        """Nanoseconds that a node of this lab's datapath took meanwhile that nobody asked."""
        found = [spent for other, (_, _, datapath) in self.up.items() if other != name and datapath and datapath == self.up[name][2]
                 for node, spent in used[other].items() if node != tasks.CLIENT]
        return statistics.median(found) if found else 0

    def run(self, name, mode, cell, servers=1, direct=0):
        """CPU microseconds for a request: {"processes": {node: ...}, "receiving": {thread: ...}, "idle": share of a CPU, "packets",
        "bytes"}. `direct`: the first so many nodes are asked at their own addresses. LabError if a client had an error."""
        there, accounts, datapath = self.up[name]
        lab = there.lab(mode)
        how = "close" if cell == "close" else "keep-alive"
        addresses = tuple(lab.node(f"n{number + 1}").public_address for number in range(direct))
        workload = load.Workload(how, [how], threads=max(2, direct), servers=addresses)
        connections = CONNECTIONS * max(servers, direct)
        if (accounts, mode, cell, direct) not in self.warm:
            workload.run(lab, there.url(mode), SIZES[cell], 1, connections)
            self.warm.add((accounts, mode, cell, direct))
        before = {other: of.used() for other, (_, of, _) in self.up.items()}
        heard, began = accounts.heard(), time.monotonic()
        result = workload.run(lab, there.url(mode), SIZES[cell], self.seconds, connections)
        seconds = time.monotonic() - began
        used = {other: {key: value - before[other][key] for key, value in of.used().items()} for other, (_, of, _) in self.up.items()}
        requests = result["requests"]
        if result["errors"] or not requests:
            raise LabError(f"{name}, {mode}, {cell}: {result['errors']} errors in {requests} requests; there must be none")
        idle = self._idle(name, used) if datapath else 0
        nodes = lab.net.nodes
        return {"processes": {node: (used[name][node] - idle) / 1e3 / requests for node in nodes},
                "receiving": {key: value / 1e3 / requests for key, value in used[name].items() if key not in nodes},
                "idle": idle / 1e9 / seconds, "requests_per_s": requests / seconds,
                **{what: (now - then) / requests for what, now, then in zip(("packets", "bytes"), accounts.heard(), heard)}}


def split(run):
    """{"processes", "receiving"}: of all."""
    return {what: sum(run[what].values()) for what in ("processes", "receiving")}


def _listen(lab, do):
    """Whether the switch gives the listeners' ports what is for the cluster."""
    for number in LISTENERS:
        netns.ip("-n", lab.net.switch, "link", "set", f"n{number}-pub", "type", "bridge_slave", "mcast_router", "2" if do else "0")


def roles(world, datapath, cell):
    """{"own", "moved", "overhear": {"processes", "receiving"}, "inspector": of its processes, "idle", "packets", "bytes"}"""
    own = world.run(f"own {datapath}", f"own {datapath}", cell)
    name = f"roles {datapath}"
    lab = world.up[name][0].lab(name)
    _listen(lab, False)
    two = world.run(name, name, cell)
    _listen(lab, True)
    all_ = world.run(name, name, cell)
    listeners = [f"n{number}" for number in LISTENERS]
    overhear = {"processes": max(sum(all_["processes"][node] for node in listeners) / len(listeners), 0),
                "receiving": (sum(all_["receiving"].values()) - sum(two["receiving"].values())) / len(listeners)}
    moved = {"processes": sum(two["processes"][node] for node in ("n1", "n2")), "receiving": sum(two["receiving"].values())}
    return {"own": split(own), "moved": moved, "overhear": overhear, "inspector": two["processes"]["n1"],
            "idle": statistics.median((own["idle"], two["idle"], all_["idle"])), "packets": own["packets"], "bytes": own["bytes"]}


def plain(world, cell):
    """{"serve": us, proxy: {"proxy", "server"}}: of n1 asked directly, and of proxies and the servers behind them."""
    direct = world.run("plain", "direct", cell)
    found = {"serve": sum(split(direct).values())}
    for name in scale_model.PROXIES:
        run = world.run("plain", name, cell, servers=targets.NODES)
        proxy = run["processes"][targets.PROXY] + run["receiving"]["proxy"] + run["receiving"][tasks.CLIENT]
        found[name] = {"proxy": proxy, "server": sum(split(run).values()) - proxy}
    return found


def check(world, datapath, nodes, cells):
    """For each cell the roles of now, and beside them what a cluster of so many nodes takes, of the same minute."""
    name, found = f"{nodes} nodes {datapath}", []
    with world.lab(name, datapath, cluster(datapath, nodes)):
        for cell in cells:
            now = roles(world, datapath, cell)
            measured = world.run(name, name, cell, servers=nodes)
            one, many = (sum(world.run(name, name, cell, direct=direct)["processes"].values()) for direct in (1, nodes))
            background = nodes * measured["idle"] * 1e6 / measured["requests_per_s"]
            found.append({"datapath": datapath, "nodes": nodes, "cell": cell, "slower": many / one, **now, "background": background,
                          "measured": sum(split(measured).values()) + background, "requests_per_s": measured["requests_per_s"]})
    return found


def _median(found):
    """Of dictionaries with the same keys, the median of each value."""
    first = found[0]
    if isinstance(first, dict):
        return {key: _median([each[key] for each in found]) for key in first}
    return round(statistics.median(found), 4) if isinstance(first, (int, float)) else first


def measure(docroot, datapaths, nodes, rounds, seconds):
    """The inputs of scale_model, and "checks". LabError if a client had an error."""
    world, of_plain, of_roles, checks = World(docroot, seconds), [], [], []
    with contextlib.ExitStack() as stack:
        stack.enter_context(world.lab("plain"))
        for datapath in datapaths:
            stack.enter_context(world.lab(f"own {datapath}", datapath, cluster(datapath, 1)))
            stack.enter_context(world.lab(f"roles {datapath}", datapath, cluster(datapath, 2 + len(LISTENERS), **SERVICE)))
        for number in range(rounds):
            of_plain.append({cell: plain(world, cell) for cell in scale_model.CELLS})
            of_roles.append({datapath: {cell: roles(world, datapath, cell) for cell in scale_model.CELLS} for datapath in datapaths})
            for datapath in datapaths:
                for many in nodes:
                    checks += check(world, datapath, many, ("close", "keep-alive"))
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return _inputs(_median(of_plain), _median(of_roles)) | {"checks": _checks(checks)}


def _inputs(of_plain, of_roles):
    cells = scale_model.CELLS
    first = next(iter(of_roles.values()))
    return {
        "serve": {cell: of_plain[cell]["serve"] for cell in cells},
        "proxies": {name: {role: {cell: of_plain[cell][name][role] for cell in cells} for role in ("proxy", "server")}
                    for name in scale_model.PROXIES},
        "datapaths": {datapath: {
            **{role: {cell: round(sum(found[cell][role].values()), 4) for cell in cells} for role in ("own", "moved", "overhear")},
            "inspector": {cell: found[cell]["inspector"] for cell in cells},
            "background": round(statistics.median(found[cell]["idle"] for cell in cells), 4)} for datapath, found in of_roles.items()},
        "packets": {cell: first[cell]["packets"] for cell in cells},
        "bytes": {cell: first[cell]["bytes"] for cell in cells},
    }


def _checks(found):
    """For each datapath, N and cell the medians of the rounds. `slower` depends on the processors alone, so it is of all cells."""
    slower = {}
    for each in found:
        slower.setdefault((each["datapath"], each["nodes"]), []).append(each["slower"])
    groups = {}
    for each in found:
        each = each | {"slower": statistics.median(slower[each["datapath"], each["nodes"]])}
        groups.setdefault((each["datapath"], each["nodes"], each["cell"]), []).append(each)
    medians = []
    for group in groups.values():
        ratios = [scale_model.checked(each)[2] for each in group]
        medians.append({**_median(group), "nodes": group[0]["nodes"], "ratio": round(statistics.median(ratios), 3),
                        "ratio_range": [round(min(ratios), 3), round(max(ratios), 3)]})
    return medians
