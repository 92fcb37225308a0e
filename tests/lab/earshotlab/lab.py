# SPDX-License-Identifier: GPL-2.0-or-later
"""A lab as a whole: bringing it up, breaking it, mending it, taking it down."""
import contextlib
import itertools
import os
import shutil
import signal
import sys

from . import daemon, netns, probe, process, server, state, topology
from .errors import LabError
from .node import Machine, Node
from .topology import Topology
from .wait import wait_for
from .wire import Wire, set_segmentation

_numbers = itertools.count(1)
TIMEOUT = 20.0


class Lab:
    """One cluster with its switch and client.

    As a context manager it is up inside the block and gone after it. Without a name it gets one of its own. Every
    method that changes something holds the lab's lock and leaves the state on disk, so that `lab.py` and several
    processes can work on the same lab.

    policy      of the service; None leaves it to earshotd
    settings    further configuration: {"service.inspect": "every", "inspector.workers": 1, "node.n1.weight": 50}
    config      a configuration file to use as it is, instead
    earshot     False: no daemons, only network and servers
    server      "nginx" or "none"
    docroot     what nginx serves; None: generated files (server.py)
    wires       links with a shim ("client", "n1-pub", "n1-clu", ..., "all"), to be impaired with wire(LINK).set()
    wire_seed   of the shims' random numbers; None: a new one each time (in the shim's log and stats)
    segment     True: no super-frames on the wired links, so that one loss is the loss of one segment
    """

    def __init__(self, name=None, nodes=3, *, policy="uri-hash", membership="static", datapath="bpf", server="nginx",
                 docroot=None, config=None, settings=None, earshot=True, wires=(), wire_seed=None, segment=False,
                 client_addresses=1, timeout=TIMEOUT):
        if membership == "corosync":
            raise LabError("membership corosync is not available yet")
        owner = None
        if name is None:
            name = f"t{os.getpid()}-{next(_numbers)}"
            owner = {"pid": os.getpid(), "start": process.start_time(os.getpid())}
        self.options = {
            "name": name, "nodes": nodes, "policy": policy, "membership": membership, "datapath": datapath,
            "server": server, "docroot": docroot, "config": config, "settings": dict(settings or {}),
            "earshot": earshot, "wires": list(wires), "wire_seed": wire_seed, "segment": segment,
            "client_addresses": client_addresses, "timeout": timeout, "owner": owner}
        self.net = Topology(name, nodes, wires, client_addresses)
        self.children = []  # started by Machine.popen()
        self.dead = []  # nodes without power
        self.records = []  # processes, see process.py

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
        lab.dead, lab.records = saved["dead"], saved["processes"]
        return lab

    def _load(self):
        saved = state.load(self.name)
        if saved is None:
            raise LabError(f"lab {self.name} is not up")
        self.dead, self.records = saved["dead"], saved["processes"]

    def _save(self):
        state.save(self.name, {"options": self.options, "dead": self.dead, "processes": self.records})

    @contextlib.contextmanager
    def _changing(self):
        with state.lock(self.name):
            self._load()
            try:
                yield
            finally:
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
    def _origin(self):
        return os.path.join(self.directory, "origin.sock")

    @property
    def config_file(self):
        return self.options["config"] or os.path.join(self.directory, "earshot.conf")

    @property
    def owner_is_gone(self):
        """Whether a test made this lab and did not live to take it down."""
        owner = self.options["owner"]
        return bool(owner) and process.start_time(owner["pid"]) != owner["start"]

    # --- up and down

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def up(self):
        """Returns when the cluster serves. If it does not come to that, nothing is left behind."""
        with state.lock(self.name):
            if os.path.exists(self.directory):
                raise LabError(f"lab {self.name} exists already: `./dev lab down --name {self.name}` removes it")
            with self._step("what is needed"):
                self._check()
            try:
                self._build()
            except BaseException:
                self._tear_down()
                raise

    def _check(self):
        if os.geteuid():
            raise LabError("network namespaces take root")
        for key in ("config", "docroot"):
            if self.options[key]:
                self.options[key] = os.path.abspath(self.options[key])
                if not os.path.exists(self.options[key]):
                    raise LabError(f"{self.options[key]}: no such {key}")
        if self.options["server"] not in ("nginx", "none"):
            raise LabError(f"server {self.options['server']}: nginx or none")
        if self.options["server"] == "nginx":
            server.command()
        if self.options["earshot"]:
            daemon.binary("earshotd")
            daemon.binary("earshot")
        if self.options["wires"]:
            daemon.binary("earshot-wire")
        if self.options["segment"] and not shutil.which("ethtool", path="/usr/sbin:/sbin:/usr/bin"):
            raise LabError("ethtool is not installed: apt-get install ethtool")
        if self.options["config"] and self.options["settings"]:
            raise LabError("settings go into the generated configuration: not together with a configuration file")
        daemon.config_text(self.net, "", settings=self.options["settings"])

    def _build(self):
        self._save()
        with self._step("network"):
            self.net.create()
        with self._step("wires"):
            self._start_wires()
        with self._step("files"):
            self._write_files()
        for node in self.net.nodes:
            self._start_all(node)
        for node in self.net.nodes:
            self._wait_node(node)
        if self.options["server"] == "nginx":
            with self._step("origin"):
                self._wait(lambda: probe.connects(self._origin), "connection", "origin", "switch")
        if self.options["earshot"] and self.options["server"] != "none":
            with self._step(f"request of the client to http://{topology.VIP}:{topology.PORT}/node"):
                self.wait_serving()

    @contextlib.contextmanager
    def _step(self, what):
        """Tells which step of bringing up failed, with the ends of the logs."""
        try:
            yield
        except (LabError, OSError) as error:
            raise LabError(f"lab {self.name}: {what}: {error}", self._log_ends()) from error

    def _log_ends(self):
        ends = []
        for record in self.records:
            if process.alive(record) and record["name"] != "earshotd":
                continue
            logs = [record["log"]]
            if record["name"] == "nginx":
                logs += [os.path.join(self.node_directory(record["machine"]), "error.log")]
            condition = "running" if process.alive(record) else "has ended"
            text = "\n".join(filter(None, (process.log_tail(log) for log in logs)))
            ends += [f"--- {record['name']} of {record['machine']} ({condition}):", text or "(logged nothing)"]
        return "\n".join(ends)

    def _write_files(self):
        for node in self.net.nodes:
            os.makedirs(self.node_directory(node), exist_ok=True)
        if self.options["server"] == "nginx":
            if not self.options["docroot"]:
                server.make_docroot(self.docroot)
            script = os.path.join(os.path.dirname(__file__), "origin.py")
            self._spawn("origin", "switch", [sys.executable, "-I", script, self._origin], self.directory)
        if self.options["earshot"]:
            key = os.path.join(self.directory, "cluster.key")
            daemon.make_key(key)
            if not self.options["config"]:
                with open(self.config_file, "w", encoding="utf-8") as handle:
                    handle.write(daemon.config_text(self.net, key, **{
                        option: self.options[option] for option in ("policy", "datapath", "membership", "settings")}))

    def _start_wires(self):
        wired = [link for link in self.net.links.values() if link.wired]
        for number, link in enumerate(wired):
            seed = self.options["wire_seed"]
            self.records.append(self.wire(link.name).start(self.net.wire, None if seed is None else seed + number))
            self._save()
        for link in wired:
            self._wait(self.wire(link.name).answers, f"shim of link {link.name}", f"wire-{link.name}", "wire")
            if self.options["segment"]:
                set_segmentation(link, self.net.switch, True)

    def _spawn(self, name, machine, argv, directory):
        record = process.spawn(name, machine, self.net.namespace(machine), argv, os.path.join(directory, f"{name}.log"))
        self.records.append(record)
        self._save()

    def _record(self, name, machine):
        for record in self.records:
            if (record["name"], record["machine"]) == (name, machine):
                return record
        return None

    def _is_running(self, name, machine):
        record = self._record(name, machine)
        return record is not None and process.alive(record)

    def _has(self, what):
        return {"nginx": self.options["server"] == "nginx", "earshotd": self.options["earshot"]}.get(what, False)

    def _start_all(self, node):
        for what in ("nginx", "earshotd"):
            if self._has(what) and not self._is_running(what, node):
                self._start(node, what)

    def _start(self, node, what):
        stale = self._record(what, node)
        if stale:
            process.kill_records([stale])  # what an ended leader may have left
            self.records.remove(stale)
        directory = self.node_directory(node)
        with self._step(f"{what} of {node}"):
            if what == "nginx":
                argv = server.configure(directory, node, self.docroot, self._origin)
            else:
                control = daemon.control_path(self.net.namespace(node))
                os.makedirs(daemon.CONTROL_DIR, exist_ok=True)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(control)
                self._link_control(node)
                argv = daemon.command_line(self.config_file, node, control)
            self._spawn(what, node, argv, directory)

    def _wait(self, condition, what, process_name, machine):
        """wait_for(), but not in vain for a process that has ended."""

        def checked():
            if not self._is_running(process_name, machine):
                raise LabError(f"{process_name} of {machine} has ended")
            return condition()

        wait_for(checked, what, self.options["timeout"])

    def _wait_node(self, node):
        namespace = self.net.namespace(node)
        if self._has("nginx"):
            with self._step(f"nginx of {node}"):
                address = self.net.public_address(node)
                self._wait(lambda: probe.receives(namespace, address, topology.PORT), "answer", "nginx", node)
        if self._has("earshotd"):
            with self._step(f"control socket of {node}"):
                self._wait(lambda: daemon.ask(namespace, {"command": "status"}), "answer", "earshotd", node)

    def wait_serving(self):
        """Wait until a request from the client to the service is answered."""
        wait_for(lambda: probe.receives(self.net.client, topology.VIP, topology.PORT), "answer",
                 self.options["timeout"])

    def _link_control(self, node, remove=False):
        """For the lab named "lab", `earshot --node n1` is enough."""
        if self.name != "lab":
            return
        link = daemon.control_path(node)
        target = os.path.basename(daemon.control_path(self.net.namespace(node)))
        if os.path.islink(link) and os.readlink(link) == target:
            if remove:
                os.unlink(link)
        elif not remove and not os.path.lexists(link):
            os.symlink(target, link)

    def down(self):
        """Remove the lab, in whatever condition it is; nothing happens if there is none."""
        with state.lock(self.name):
            saved = state.load(self.name)
            if saved:
                self.dead, self.records = saved["dead"], saved["processes"]
            self._tear_down()

    def _tear_down(self):
        for child in self.children:
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        self.children.clear()
        if not os.path.exists(self.directory):
            return
        shims = [record for record in self.records if record["machine"] == "wire"]
        process.end([record for record in self.records if record not in shims])
        process.end(shims)
        self.records = []
        others = process.pids_in(self.net.namespaces)
        if others:
            print(f"lab {self.name}: still running in its namespaces, not started by the lab: "
                  f"{' '.join(map(str, others))}", file=sys.stderr)
        self.net.delete()
        for node in self.net.nodes:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(daemon.control_path(self.net.namespace(node)))
            self._link_control(node, remove=True)
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
            self.net.set_links([link.name for link in self.net.node_links(node)], "up")
            self._start_all(node)
            self._wait_node(node)

    def cut(self, link):
        """Pull the link's plug out of the switch."""
        with self._changing():
            self.net.set_links([link], "down")

    def mend(self, link):
        """Put it in again."""
        with self._changing():
            self.net.set_links([link], "up")

    def signal(self, node, what, number):
        """Signal a node's "earshotd" or "nginx" with its children."""
        with self._changing():
            process.send(self._running(node, what), number)

    def stop(self, node, what):
        """End a node's "earshotd" or "nginx" in an orderly way (SIGTERM), and wait for that."""
        with self._changing():
            record = self._running(node, what)
            process.end([record])
            self.records.remove(record)

    def start(self, node, what):
        """Start it and wait until it answers."""
        with self._changing():
            if not self._has(what):
                raise LabError(f"lab {self.name} has no {what}: earshotd or nginx, as given to `lab up`")
            if node in self.dead:
                raise LabError(f"{node} has no power: heal it")
            if not self._is_running(what, self._node(node)):
                self._start(node, what)
            self._wait_node(node)

    def _node(self, node):
        if node not in self.net.nodes:
            raise LabError(f"no node {node!r} in lab {self.name}: {', '.join(self.net.nodes)}")
        return node

    def _running(self, node, what):
        record = self._record(what, self._node(node))
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
        """A node or the client."""
        return self.client if name == "client" else self.node(name)

    def client_run(self, command, **keywords):
        """Run a command at the client; see Machine.exec()."""
        return self.client.exec(command, **keywords)

    def url(self, target="/"):
        """The service's URL of a target."""
        return f"http://{topology.VIP}{target}"

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
        return {
            "ES_NAME": self.name,
            "ES_VIP": topology.VIP,
            "ES_PORT": str(topology.PORT),
            "ES_CLIENT": self.net.client,
            "ES_NODES": " ".join(self.net.namespace(node) for node in self.net.nodes),
            "ES_NODE_NAMES": " ".join(self.net.nodes),
            "ES_SWITCH": self.net.switch,
            "ES_BRIDGE": topology.PUBLIC_BRIDGE,
            "ES_CLUSTER_BRIDGE": topology.CLUSTER_BRIDGE,
            "ES_RUNDIR": self.directory,
            "ES_CONFIG": self.config_file if self.options["earshot"] else "",
            "ES_DOCROOT": self.docroot if self.options["server"] == "nginx" else "",
        }

    def overview(self):
        """A few lines for a person: each machine's processes and links."""
        lines = [f"lab {self.name}: service {topology.VIP}:{topology.PORT}, client {self.net.client}, "
                 f"files in {self.directory}"]
        for node in self.net.nodes:
            parts = [f"{node:4} {self.net.namespace(node)}"]
            if node in self.dead:
                parts += ["no power"]
            for what in ("nginx", "earshotd"):
                if self._has(what) and node not in self.dead:
                    running = self._is_running(what, node)
                    parts += [f"{what} {self._record(what, node)['pid'] if running else 'not running'}"]
            if self._is_running("earshotd", node):
                parts += [self._daemon_summary(node)]
            lines += ["  ".join(parts)]
        for link in self.net.links.values():
            notes = ([] if self.net.link_is_up(link.name) else ["cut"]) + (["shim"] if link.wired else [])
            if notes:
                lines += [f"link {link.name}: {', '.join(notes)}"]
        return "\n".join(lines)

    def _daemon_summary(self, node):
        try:
            status = self.status(node)
        except (OSError, LabError) as error:
            return f"does not answer: {error}"
        ring = status.get("ring", {})
        return (f"{status.get('datapath', {}).get('state', '?')}, ring epoch {ring.get('epoch', '?')} "
                f"with {ring.get('members', '?')} members")


def clean_up(name):
    """Remove a lab of which not even the state can be read: its namespaces by name, and its directory."""
    with state.lock(name):
        suffixes = ("client", "sw", "wire", *(f"n{i}" for i in range(1, topology.NODES_MAX + 1)))
        present = {f"{name}-{suffix}" for suffix in suffixes} & set(netns.namespaces())
        process.kill_namespaces(present)
        for namespace in present:
            netns.delete(namespace)
        state.remove(name)
