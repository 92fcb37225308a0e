# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine of the lab, for tests: a node, or the client."""
import os
import signal
import subprocess

from . import daemon, netns, probe, process, topology


class Machine:
    """Where commands run and sockets are made."""

    def __init__(self, lab, name):
        self.lab = lab
        self.name = name
        self.namespace = lab.net.namespace(name)

    def environment(self):
        path = ":".join(filter(None, [daemon.BIN, os.environ.get("PATH"), "/usr/sbin:/sbin"]))
        return {**os.environ, "PATH": path}

    def argv(self, command):
        return [netns.ip_command(), "netns", "exec", self.namespace, *command]

    def exec(self, command, check=True, timeout=60, **keywords):
        """Run to the end; returns subprocess.CompletedProcess with text output."""
        keywords = {"capture_output": True, "text": True, "env": self.environment(), **keywords}
        return subprocess.run(self.argv(command), check=check, timeout=timeout, **keywords)

    def popen(self, command, **keywords):
        """Start; the lab kills it when it goes down, if it is still there."""
        keywords = {"text": True, "env": self.environment(), "start_new_session": True, **keywords}
        child = subprocess.Popen(self.argv(command), **keywords)
        self.lab.children.append(child)
        return child

    def socket(self, *arguments):
        """socket.socket(...) of this machine's network, usable in the calling thread."""
        return probe.sockets_in(self.namespace, *arguments)

    def get(self, target, host=topology.VIP, port=topology.PORT, timeout=5.0):
        """One HTTP GET: (status, headers, body)."""
        return probe.get(self.namespace, host, port, target, timeout)


class Node(Machine):
    """A node: a machine with a server and a daemon."""

    @property
    def public_address(self):
        return self.lab.net.public_address(self.name)

    @property
    def cluster_address(self):
        return self.lab.net.cluster_address(self.name)

    @property
    def directory(self):
        return self.lab.node_directory(self.name)

    def environment(self):
        return {**super().environment(), "EARSHOT_NODE": self.namespace}

    def ask(self, request):
        """A request to the daemon's control socket, e.g. {"command": "ring"}."""
        return daemon.ask(self.namespace, request)

    def signal(self, what="earshotd", number=signal.SIGKILL):
        """Signal "earshotd" or "nginx" and its children. SIGSTOP freezes, SIGCONT thaws, SIGKILL is a crash."""
        return self.lab.signal(self.name, what, number)

    def start(self, what="earshotd"):
        """Start what was ended, and wait until it answers."""
        return self.lab.start(self.name, what)

    def stop(self, what="earshotd"):
        """End it in an orderly way and wait for that."""
        return self.lab.stop(self.name, what)

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
