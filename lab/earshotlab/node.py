# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine of the lab, for tests: a node, the client, or that of the quorum device."""
import os
import signal
import subprocess

from . import daemon, probe, process, services, topology
from .corosync import Corosync
from .errors import LabError
from .pacemaker import Pacemaker
from .qdevice import Qdevice


class Machine:
    """Where commands run and sockets are made."""

    def __init__(self, lab, name):
        self.lab = lab
        self.name = name
        self.namespace = lab.net.namespace(name)

    def environment(self):
        path = ":".join(filter(None, [daemon.BIN, os.environ.get("PATH"), "/usr/sbin:/sbin"]))
        return {**os.environ, "PATH": path}

    def argv(self, command, cwd=None):
        return [*self.lab.enter(self.name, cwd), *command]

    def exec(self, command, check=True, timeout=60, **keywords):
        """Run to the end; returns subprocess.CompletedProcess with text output."""
        keywords = {"capture_output": True, "text": True, "env": self.environment(), **keywords}
        return subprocess.run(self.argv(command, keywords.get("cwd")), check=check, timeout=timeout, **keywords)

    def popen(self, command, **keywords):
        """Start; the lab kills it when it goes down, if it is still there."""
        keywords = {"text": True, "env": self.environment(), "start_new_session": True, **keywords}
        child = subprocess.Popen(self.argv(command, keywords.get("cwd")), **keywords)
        self.lab.children.append(child)
        return child

    def socket(self, *arguments):
        """socket.socket(...) of this machine's network, usable in the calling thread."""
        return probe.sockets_in(self.namespace, *arguments)

    def get(self, target, host=None, port=topology.PORT, timeout=5.0):
        """One HTTP GET: (status, headers, body). Without a host: of the service."""
        return probe.get(self.namespace, host or self.lab.net.vip, port, target, timeout)


class Node(Machine):
    """A node: a machine with a server and a daemon."""

    @property
    def public_address(self):
        return self.lab.net.public_address(self.name)

    @property
    def cluster_address(self):
        return self.lab.net.cluster_address(self.name)

    @property
    def public_address6(self):
        return self.lab.net.public_address6(self.name)

    @property
    def cluster_address6(self):
        return self.lab.net.cluster_address6(self.name)

    @property
    def directory(self):
        return self.lab.node_directory(self.name)

    def environment(self):
        """On a node with mounts of its own /run/earshot has this node's socket only; HOME is for what `crm` keeps."""
        if not services.has(self.lab, "machine"):
            return {**super().environment(), "EARSHOT_NODE": self.namespace}
        home = {"HOME": os.path.join(self.directory, "root")} if services.has(self.lab, "pacemaker") else {}
        return {**super().environment(), "EARSHOT_NODE": self.name, **home}

    @property
    def corosync(self):
        """Its corosync; the lab's membership must be that."""
        self._demand("corosync")
        return Corosync(self)

    @property
    def qdevice(self):
        """Its part of the quorum device, if the lab has one."""
        self._demand("qdevice")
        return Qdevice(self)

    @property
    def pacemaker(self):
        """Its pacemaker, if the lab has that."""
        self._demand("pacemaker")
        return Pacemaker(self)

    def _demand(self, what):
        if not services.has(self.lab, what):
            raise LabError(f"lab {self.lab.name} has no {what}")

    def ask(self, request):
        """A request to the daemon's control socket, e.g. {"command": "ring"}."""
        return daemon.ask(self.namespace, request)

    def signal(self, what="earshotd", number=signal.SIGKILL):
        """Signal "earshotd", "nginx", "corosync" with its children: SIGSTOP freezes, SIGCONT thaws, SIGKILL kills."""
        return self.lab.signal(self.name, what, number)

    def start(self, what="earshotd"):
        """Start what was ended, and wait until it answers."""
        return self.lab.start(self.name, what)

    def stop(self, what="earshotd"):
        """End it in an orderly way and wait for that."""
        return self.lab.stop(self.name, what)

    def cut(self, network=None, silent=False):
        """Pull its plug of "cluster" or "public" or both: it loses the carrier; silent: only the frames
        are lost, or ("in", "out") those of one direction."""
        self.lab.cut(self.name, network, silent)

    def mend(self, network=None):
        """Undo cut()."""
        self.lab.mend(self.name, network)

    def access_log(self):
        """The lines of nginx' access log so far; they come up to 100 ms late, so wait for those you expect."""
        try:
            with open(os.path.join(self.directory, "access.log"), encoding="utf-8") as handle:
                return handle.read().splitlines()
        except FileNotFoundError:
            return []

    def pids(self):
        """All processes on the machine."""
        return process.pids_in([self.namespace])
