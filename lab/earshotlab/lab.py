# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab as a whole: bringing it up, breaking it, mending it, taking it down."""
import contextlib
import glob
import itertools
import os
import signal
import sys
import weakref

from . import (corosync, daemon, environment, families, needs, netns, overview, probe, process, qdevice, server, services, state, switch,
               tls, topology)
from .errors import LabError
from .node import Machine, Node
from .topology import Topology
from .wait import TIMEOUT, wait_for
from .wire import Wire, set_segmentation

_numbers = itertools.count(1)


class Lab:
    """One cluster with its switch and client.

    As a context manager it is up inside the block and gone after it. Without a name it gets one of its own. Every
    method that changes something holds the lab's lock and leaves the state on disk, so that `lab.py` and several
    processes can work on the same lab.

    policy      of the service; None leaves it to earshotd
    settings    further configuration: {"service.inspect": "every", "inspector.workers": 1, "node.n1.weight": 50}
    config      a configuration file to use as it is, instead
    own_files   each node's generated configuration is a name of its own of one file, until `earshot rollout` replaces it
    earshot     False: no daemons, only network and servers
    datapath    "bpf", "module" or "netfilter"; None: $EARSHOT_DATAPATH, or "bpf"
    node_datapath  of nodes that have another one: {"n2": "netfilter"}
    membership  "static"; "corosync": a real corosync on each node (corosync.py), also without earshotd
    pacemaker   True, or a dict of cluster properties: with corosync, a real pacemaker on each node (pacemaker.py)
    token       corosync's, in milliseconds; transport: "knet" or "udpu"
    corosync    more of corosync.conf: {"totem.consensus": 600, "quorum.two_node": 1, "interface.mcastport": 5410}
    device      True, or more of its section, {"timeout": 10000, "net.tie_breaker": 2}: with corosync, a quorum device (qdevice.py)
    agents      a directory of OCF agents, which the nodes see as provider "earshot"; with corosync only
    autostart   which of "nginx" and "earshotd" a node starts by itself; others wait for start(), or for pacemaker
    server      "nginx" or "none"
    tls         True: a service https with earshot-tls on each node, and a certificate (tls.py)
    docroot     what nginx serves; None: generated files (server.py)
    wires       links with a shim ("client", "n1-pub", "n1-clu", ..., "all"), to be impaired with wire(LINK).set()
    wire_seed   of the shims' random numbers; None: a new one each time (in the shim's log and stats)
    segment     True: no super-frames on the wired links, so that one loss is the loss of one segment
    family      "4", "6" or "46": of which the machines, and the service, have addresses (families.py); None: $EARSHOT_FAMILY, or "4"
    """

    up_here = weakref.WeakSet()  # the labs that this process has brought up and not taken down

    def __init__(self, name=None, nodes=3, *, policy="uri-hash", membership="static", datapath=None, server="nginx",
                 docroot=None, config=None, settings=None, earshot=True, wires=(), wire_seed=None, segment=False,
                 client_addresses=1, timeout=TIMEOUT, pacemaker=False, token=corosync.TOKEN, transport="knet",
                 corosync=None, agents=None, autostart=services.OPTIONAL, family=None,
                 node_datapath=None, own_files=False, tls=False, device=False):
        owner = None
        if name is None:
            name = f"t{os.getpid()}-{next(_numbers)}"
            owner = {"pid": os.getpid(), "start": process.start_time(os.getpid())}
        self.options = {
            "name": name, "nodes": nodes, "policy": policy, "membership": membership,
            "datapath": datapath or daemon.DATAPATH, "node_datapath": dict(node_datapath or {}),
            "own_files": own_files,
            "server": server, "docroot": docroot, "config": config, "settings": dict(settings or {}),
            "earshot": earshot, "wires": list(wires), "wire_seed": wire_seed, "segment": segment,
            "client_addresses": client_addresses, "timeout": timeout, "owner": owner, "pacemaker": pacemaker,
            "token": token, "transport": transport, "corosync": dict(corosync or {}), "agents": agents,
            "autostart": list(autostart), "tls": tls, "device": device, "family": family or families.DEFAULT}
        self.net = Topology(name, nodes, wires, client_addresses, self.options["family"], bool(device))
        self.children = []  # started by Machine.popen()
        self.daemons = {}  # node: the earshotd that it starts, if not this tree's; for tests
        self.dead = []  # nodes without power
        self.faults = {"partition": {}, "losing": {}}  # of the switch, see switch.py
        self.records = []  # processes, see process.py
        self.busy = False  # being changed: what is here is newer than what is on disk

    # --- finding and remembering

    @classmethod
    def attach(cls, name="lab"):
        """A lab that is up already; LabError if there is none of that name."""
        saved = state.load(name)
        if saved is None:
            others = ", ".join(state.labs())
            raise LabError(f"there is no lab {name}" + (f" (there are: {others})" if others else ""))
        options = dict(saved["options"])
        owner = options.pop("owner")
        lab = cls(**options)
        lab.options["owner"] = owner
        lab._take(saved)
        return lab

    def _load(self):
        saved = state.load(self.name)
        if saved is None:
            raise LabError(f"lab {self.name} is not up")
        self._take(saved)

    def _take(self, saved):
        self.dead, self.faults, self.records = saved["dead"], saved["faults"], saved["processes"]

    def _save(self):
        state.save(self.name, {"options": self.options, "dead": self.dead, "faults": self.faults,
                               "processes": self.records})

    @contextlib.contextmanager
    def _changing(self):
        with state.lock(self.name):
            self._load()
            self.busy = True
            try:
                yield
            finally:
                self.busy = False
                self._save()

    @property
    def name(self):
        return self.options["name"]

    @property
    def directory(self):
        return state.directory(self.name)

    def node_directory(self, node):
        self.net.namespace(node)  # is there such a node?
        return os.path.join(self.directory, node)

    @property
    def docroot(self):
        """What the servers serve."""
        return self.options["docroot"] or os.path.join(self.directory, "docroot")

    @property
    def origin(self):
        """The socket of the server behind nginx (origin.py)."""
        return os.path.join(self.directory, "origin.sock")

    @property
    def config_file(self):
        return self.options["config"] or os.path.join(self.directory, "earshot.conf")

    def config_of(self, node):
        """The file that a node's daemon reads: what a test has put into the node's directory, or one of its own if it has
        another datapath than the others, or if all have."""
        own = os.path.join(self.node_directory(node), "earshot.conf")
        if os.path.exists(own):
            return own
        if node in self.options["node_datapath"] and not self.options["config"]:
            return os.path.join(self.directory, f"earshot-{node}.conf")
        return self._own_file(node) if self.options["own_files"] else self.config_file

    def _own_file(self, node):
        return os.path.join(self.node_directory(node), "etc", "earshot.conf")

    @property
    def owner_is_gone(self):
        """Whether a test made this lab and did not live to take it down."""
        owner = self.options["owner"]
        return bool(owner) and process.start_time(owner["pid"]) != owner["start"]

    # --- up and down

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, _kind, error, _trace):
        if error:
            error.add_note(self.log_ends())
        self.down()

    def up(self):
        """Returns when the cluster serves. If it does not come to that, nothing is left behind."""
        with state.lock(self.name):
            if os.path.exists(self.directory):
                raise LabError(f"lab {self.name} exists already: `./dev lab down --name {self.name}` removes it")
            with self.step("what is needed"):
                needs.check(self)
            try:
                self.busy = True
                self._build()
            except BaseException:
                self._tear_down()
                raise
            finally:
                self.busy = False
        self.up_here.add(self)

    def tls_sections(self):
        """Of the generated configuration; None without TLS."""
        return tls.sections(self.directory, self.net.vips) if self.options["tls"] else None

    def _build(self):
        self._save()
        with self.step("network"):
            self.net.create()
        with self.step("wires"):
            self._start_wires()
        with self.step("files"):
            self._write_files()
        if self.net.device:
            self._remember(qdevice.start_server(self))
        for what in ("machine", "corosync", qdevice.NAME, "pacemaker"):
            if services.has(self, what):
                for node in self.net.nodes:
                    self._start(node, what)
                for node in self.net.nodes:
                    services.wait(self, node, what)
                if what != "machine":
                    services.form(self, what)
        for node in self.net.nodes:
            self._start_all(node)
        for node in self.net.nodes:
            self._wait_all(node)
        if self.options["server"] == "nginx":
            with self.step("origin"):
                services.wait_running(self, lambda: probe.connects(self.origin), "connection", "origin", "switch")
        if all(services.automatic(self, what) for what in services.OPTIONAL):
            with self.step(f"request of the client to {' and '.join(map(self._node_url, self.net.vips))}"):
                self.wait_serving()

    @contextlib.contextmanager
    def step(self, what):
        """Tells which step of bringing up failed, with the ends of the logs."""
        try:
            yield
        except (LabError, OSError) as error:
            raise LabError(f"lab {self.name}: {what}: {error}", self.log_ends()) from error

    def log_ends(self):
        """The ends of the logs of what has ended, and of all else that has logged something."""
        ends = []
        for name, machine, paths, condition in self._logs():
            text = "\n".join(filter(None, map(process.log_tail, paths)))
            if text or condition == "has ended":
                ends += [f"--- {name} of {machine} ({condition}):", text or "(logged nothing)"]
        return "\n".join(ends)

    def _logs(self):
        """(process, machine, paths, condition) of each process that was started, also on nodes that have no power now."""
        for record in self.records:
            paths = [record["log"]]
            if record["name"] == "pacemaker":
                disk = os.path.join(self.node_directory(record["machine"]), "root")
                paths += sorted(glob.glob(f"{disk}/var/log/pacemaker/*.log"))
            if record["name"] == "nginx":
                paths += [os.path.join(self.node_directory(record["machine"]), "error.log")]
            yield record["name"], record["machine"], paths, "running" if process.alive(record) else "has ended"
        for node in self.dead:
            for name in ("corosync", qdevice.NAME, "pacemaker", "earshotd", tls.NAME):
                yield name, node, [os.path.join(self.node_directory(node), f"{name}.log")], "without power"

    def _write_files(self):
        for node in self.net.nodes:
            os.makedirs(self.node_directory(node), exist_ok=True)
        if services.has(self, "machine"):
            services.install(self)
        if self.options["server"] == "nginx":
            if not self.options["docroot"]:
                server.make_docroot(self.docroot)
            script = os.path.join(os.path.dirname(__file__), "origin.py")
            self._remember(process.spawn("origin", "switch", self.net.switch,
                                         [sys.executable, "-I", script, self.origin],
                                         os.path.join(self.directory, "origin.log")))
        if self.options["earshot"]:
            key = os.path.join(self.directory, "cluster.key")
            daemon.make_key(key)
            if self.options["tls"]:
                tls.make_files(self.directory, self.net.vips)
            if not self.options["config"]:
                options = {option: self.options[option] for option in ("policy", "datapath", "membership", "settings")}
                options["tls"] = self.tls_sections()
                files = {self.config_file: options["datapath"]}
                files.update((self.config_of(node), kind) for node, kind in self.options["node_datapath"].items())
                for path, kind in files.items():
                    with open(path, "w", encoding="utf-8") as handle:
                        handle.write(daemon.config_text(self.net, key, **{**options, "datapath": kind}))
                if self.options["own_files"]:
                    for node in self.net.nodes:
                        os.makedirs(os.path.dirname(self._own_file(node)))
                        os.link(self.config_file, self._own_file(node))

    def _start_wires(self):
        wired = [link for link in self.net.links.values() if link.wired]
        for number, link in enumerate(wired):
            seed = self.options["wire_seed"]
            self.records.append(self.wire(link.name).start(self.net.wire, None if seed is None else seed + number))
            self._save()
        for link in wired:
            services.wait_running(self, self.wire(link.name).answers, f"shim of link {link.name}", f"wire-{link.name}",
                                  "wire")
            if self.options["segment"]:
                set_segmentation(link, self.net.switch, True)

    def _remember(self, record):
        self.records.append(record)
        self._save()

    def record(self, name, machine):
        """The record of a process of that machine, running or not; None if none was started."""
        for record in self.records:
            if (record["name"], record["machine"]) == (name, machine):
                return record
        return None

    def is_running(self, name, machine):
        """Whether it is (frozen counts as running)."""
        record = self.record(name, machine)
        return record is not None and process.alive(record)

    def pid(self, node, what):
        """The process id, or None if it is not running."""
        record = self.running_record(what, self._node(node))
        return record and record["pid"]

    def running_record(self, what, machine):
        """Its record, which another process may have made meanwhile; None if it is not running."""
        if not self.is_running(what, machine):
            saved = None if self.busy else state.load(self.name)
            if saved:
                self._take(saved)
        return self.record(what, machine) if self.is_running(what, machine) else None

    def _start_all(self, node):
        for what in services.ORDER:
            if services.automatic(self, what) and not self.is_running(what, node):
                self._start(node, what)
                if what in ("machine", "corosync"):  # what comes next needs it
                    services.wait(self, node, what)

    def _start(self, node, what):
        stale = self.record(what, node)
        if stale:
            process.kill_records([stale])  # what an ended leader may have left
            self.records.remove(stale)
        with self.step(f"{what} of {node}"):
            self._remember(services.start(self, node, what))

    def _wait_all(self, node):
        for what in services.ORDER:
            if services.automatic(self, what):
                services.wait(self, node, what)

    def wait_serving(self):
        """Wait until requests from the client to each address of the service are answered."""
        for vip in self.net.vips:
            wait_for(lambda vip=vip: probe.receives(self.net.client, vip, topology.PORT), f"answer of {self._node_url(vip)}",
                     self.options["timeout"])
        wait_for(lambda: all(self._has_checked(node) for node in self.net.nodes), "the first check of each server", self.options["timeout"])

    def _has_checked(self, node):
        """Does the node know of no server that is still to be checked? Until then, others get what is its node's. One without a daemon
        knows nothing."""
        try:
            known = self.status(node)["nodes"]
        except (LabError, OSError):
            return True
        return not any(each.get("failing") and not each.get("trouble") for each in known)

    def down(self):
        """Remove the lab, in whatever condition it is; nothing happens if there is none."""
        with state.lock(self.name):
            saved = state.load(self.name)
            if saved:
                self._take(saved)
            self._tear_down()
        self.up_here.discard(self)

    def _tear_down(self):
        for child in self.children:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        self.children.clear()
        if not os.path.exists(self.directory):
            return
        services.end_all(self)
        self.records = []
        others = process.pids_in(self.net.namespaces)
        if others:
            print(f"lab {self.name}: still running in its namespaces, not started by the lab: "
                  f"{' '.join(map(str, others))}", file=sys.stderr)
        self.net.delete()
        for node in self.net.nodes:
            services.remove_control(self, node)
        state.remove(self.name)

    # --- breaking and mending

    def kill(self, node):
        """The node loses its power: not one packet more leaves it, no process survives."""
        with self._changing():
            namespace = self.net.namespace(self._node(node))
            self.net.set_links([link.name for link in self.net.node_links(node)], "down")
            process.kill_namespaces([namespace])
            process.kill_records([record for record in self.records if record["machine"] == node])
            self.records = [record for record in self.records if record["machine"] != node]
            self.dead = sorted({*self.dead, node})

    def heal(self, node):
        """The node starts up again with its processes, as an empty machine if it was without power; waits for them."""
        with self._changing():
            namespace = self.net.namespace(self._node(node))
            if node in self.dead:
                process.kill_namespaces([namespace])
                self.net.replace_node(node)
                self.dead.remove(node)
            links = [link.name for link in self.net.node_links(node)]
            self.net.set_links(links, "up")
            self._set_losing(links, None)
            self._start_all(node)
            self._wait_all(node)

    def cut(self, what, network=None, silent=False):
        """Pull a link's plug out of the switch, or a node's ("cluster", "public", None: both): no carrier any more.

        silent: the plug stays in and the carrier up, but the switch loses all frames; or only those "in" to the machine,
        or "out" of it.
        """
        with self._changing():
            if silent not in (False, True, "in", "out"):
                raise LabError(f"silent={silent!r}: True, in or out")
            links = self._links(what, network)
            if silent:
                self._set_losing(links, "both" if silent is True else silent)
            else:
                self.net.set_links(links, "down")

    def mend(self, what, network=None):
        """Undo cut(), both kinds."""
        with self._changing():
            links = self._links(what, network)
            self.net.set_links(links, "up")
            self._set_losing(links, None)

    def _links(self, what, network):
        if what in self.net.nodes:
            return [switch.link_name(what, name) for name in ([network] if network else switch.NETWORKS)]
        if network:
            raise LabError(f"network {network} of link {what}: name a node, or only the link")
        return [self.net.link(what).name]

    def _set_losing(self, links, direction):
        before = self.faults["losing"]
        after = {link: lost for link, lost in before.items() if link not in links}
        if direction:
            after.update(dict.fromkeys(links, direction))
        if after != before:
            self._set_faults({**self.faults, "losing": after})

    def _set_faults(self, faults):
        switch.apply(self.net.switch, faults["partition"], faults["losing"])
        self.faults = faults

    def partition(self, groups, networks=switch.NETWORKS):
        """Divide the nodes: the switch passes nothing between the sides, and all to and from the client.

        Replaces an earlier partition. Nodes that are not named are on one more side.
        """
        with self._changing():
            sides = switch.parse_groups(self.net.nodes, groups)
            self._set_faults({**self.faults, "partition": {network: sides for network in networks}})

    def heal_partition(self):
        """The switch is whole again. What was cut is still cut."""
        with self._changing():
            self._set_faults({**self.faults, "partition": {}})

    def signal(self, node, what, number):
        """Signal a node's "earshotd", "nginx", "corosync", "qdevice" or "pacemaker" with its children; after SIGKILL they are gone."""
        if number == signal.SIGKILL:
            return self.crash(node, what)
        with self._changing():
            process.send(self._started(node, what), number)

    def crash(self, node, what):
        """SIGKILL it and its children, and wait until they are gone."""
        with self._changing():
            self._started(node, what)
            services.crash(self, node, what)

    def stop(self, node, what):
        """End it in an orderly way (SIGTERM), and wait for that. Before corosync end its pacemaker and qdevice."""
        with self._changing():
            record = self._started(node, what)
            for above in ("pacemaker", qdevice.NAME) if what == "corosync" else ():
                if self.is_running(above, node):
                    services.stop(self, node, above)
            services.stop(self, node, what)
            self.records.remove(record)

    def start(self, node, what):
        """Start it and wait until it answers; corosync too, if that is what it stands on and does not run."""
        with self._changing():
            if what not in services.FOR_PEOPLE or not services.has(self, what):
                raise LabError(f"lab {self.name} has no {what}: "
                               f"{', '.join(other for other in services.FOR_PEOPLE if services.has(self, other))}")
            if self._node(node) in self.dead:
                raise LabError(f"{node} has no power: heal it")
            for each in (["corosync"] if what in ("pacemaker", qdevice.NAME) else []) + [what]:
                if not self.is_running(each, node):
                    self._start(node, each)
                services.wait(self, node, each)

    def _node(self, node):
        if node not in self.net.nodes:
            raise LabError(f"no node {node!r} in lab {self.name}: {', '.join(self.net.nodes)}")
        return node

    def _started(self, node, what):
        record = self.record(what, self._node(node))
        if record is None:
            raise LabError(f"no {what} was started on {node}")
        return record

    # --- using it

    @property
    def client(self):
        """The client machine."""
        return Machine(self, "client")

    def node(self, name):
        """A node, by its name."""
        return Node(self, self._node(name))

    @property
    def nodes(self):
        """All nodes, dead ones too."""
        return [self.node(name) for name in self.net.nodes]

    def machine(self, name):
        """A node, or "client", "switch", "wire" or "qnetd"."""
        return Machine(self, name) if name in ("client", "switch", "wire", qdevice.MACHINE) else self.node(name)

    def enter(self, machine, cwd=None):
        """The beginning of a command line that runs the rest on the machine."""
        return services.enter(self, machine, cwd)

    def client_run(self, command, **keywords):
        """Run a command at the client; see Machine.exec()."""
        return self.client.exec(command, **keywords)

    @staticmethod
    def _node_url(vip):
        return f"http://{families.in_url(vip)}:{topology.PORT}/node"

    def url(self, target="/"):
        """The service's URL of a target."""
        return f"http://{families.in_url(self.net.vip)}{target}"

    def wire(self, link):
        """The shim of a link."""
        return Wire(self.net.link(link), self.directory)

    def status(self, node):
        """What `earshot --json status` prints on that node (docs/json.md)."""
        return self.node(node).ask({"command": "status"})

    def counters(self, node):
        """The node's counters: {name: value}."""
        reply = self.node(node).ask({"command": "counters"})
        return {counter["name"]: counter["value"] for counter in reply["counters"]}

    def environment(self):
        """The shell variables of `lab env`."""
        return environment.variables(self)

    def overview(self):
        """A few lines for a person: each machine's processes and links."""
        return overview.text(self)


def clean_up(name):
    """Remove a lab of which not even the state can be read: its namespaces by name, and its directory."""
    with state.lock(name):
        nodes = {f"{name}-n{i}" for i in range(1, topology.NODES_MAX + 1)}
        present = {f"{name}-{suffix}" for suffix in ("client", "sw", "wire", qdevice.MACHINE)} | nodes
        present &= set(netns.namespaces())
        process.kill_namespaces(present)
        for namespace in present:
            netns.delete(namespace)
        for namespace in present & nodes:
            daemon.remove_files(namespace)
        state.remove(name)
