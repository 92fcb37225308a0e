# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource agent as Pacemaker would call it: in the namespace of one node, with a client that can be told lies.

The node is the packet suite's (tests/lib/packets/node.py): a network namespace with all that earshotd needs. The agent
starts the real daemon there. `client` is a script before the real one: it notes each call, and answers itself when
there is a file of the command's name in `answers`: that is sourced by the shell. Of the programs that the agent asks
about the cluster, crm_attribute and crm_node, there are copies that answer from files, too.
"""
import json
import os
import signal
import subprocess
import time

import node_logs
from earshotlab import netns, wait_for
from tree import EARSHOT, EARSHOTD, SOURCE

AGENT = os.path.join(SOURCE, "membership/ocf/earshotd")
OCF_ROOT = "/usr/lib/ocf"

SUCCESS, GENERIC, ARGS, UNIMPLEMENTED, INSTALLED, CONFIGURED, NOT_RUNNING = 0, 1, 2, 3, 5, 6, 7

CLIENT = """#!/bin/sh
echo "$*" >>{directory}/calls
for word; do
	case $word in
	--control | {control}) continue ;;
	esac
	[ ! -e {directory}/answers/$word ] || . {directory}/answers/$word
	break
done
exec {earshot} "$@"
"""

CRM_ATTRIBUTE = """#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--node) node=$2 ;;
	--name) name=$2 ;;
	--lifetime) lifetime=$2 ;;
	esac
	shift
done
cat {directory}/attributes/$node.$name.$lifetime 2>/dev/null
"""


class Result:
    """What an action gave: its code, its exit reason (the last, as Pacemaker shows it), and how long it took."""

    def __init__(self, done, seconds):
        self.rc, self.seconds, self.output = done.returncode, seconds, done.stdout
        reasons = [line for line in done.stderr.splitlines() if line.startswith("ocf-exit-reason:")]
        self.reason = reasons[-1].removeprefix("ocf-exit-reason:") if reasons else None
        self.errors = done.stderr

    def __repr__(self):
        return f"rc {self.rc} after {self.seconds:.1f} s, reason {self.reason!r}: {self.errors}"


class Agent:
    def __init__(self, node):
        self.node = node
        self.directory = os.path.join(node.directory, "ocf")
        for name in ("answers", "attributes", "bin"):
            os.makedirs(os.path.join(self.directory, name))
        self.pidfile = self.path("run/earshotd.pid")
        self.logfile = self.path("daemon.log")
        self.client = self._script("client", CLIENT.format(directory=self.directory, control=node.control,
                                                           earshot=EARSHOT))
        self._script("bin/crm_attribute", CRM_ATTRIBUTE.format(directory=self.directory))
        self._script("bin/crm_node", f"#!/bin/sh\ncat {self.directory}/attributes/quorum\n")
        self._script("bin/logger", f"#!/bin/sh\nexec cat >>{self.directory}/syslog\n")
        self.parameters = {"config": node.config_path, "binary": EARSHOTD, "client": self.client,
                           "control": node.control, "pidfile": self.pidfile, "logfile": self.logfile}
        self.write("attributes/quorum", "1\n")
        node_logs.watch(self)

    def log_ends(self):
        return node_logs.of_files("the agent", *map(self.path, ("daemon.log", "agent.log", "syslog")))

    def close(self):
        """Ends what the agent has left in the namespace, one by one."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        wait_for(lambda: not self.processes(), "an empty namespace", seen=self.processes)

    def processes(self):
        done = subprocess.run(["ip", "netns", "pids", self.node.namespace], capture_output=True, text=True, check=True)
        return [int(pid) for pid in done.stdout.split()]

    def path(self, name):
        return os.path.join(self.directory, name)

    def _script(self, name, text):
        self.write(name, text)
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def write(self, name, text):
        # As a whole: somebody may be reading.
        with open(self.path(name) + ".new", "w", encoding="utf-8") as handle:
            handle.write(text)
        os.rename(self.path(name) + ".new", self.path(name))

    def read(self, name):
        try:
            with open(self.path(name), encoding="utf-8") as handle:
                return handle.read()
        except FileNotFoundError:
            return ""

    # What the client and the cluster answer

    def answer(self, command, shell):
        """Have the client run this instead of the command; None: the real one again."""
        if shell is None:
            os.unlink(self.path(f"answers/{command}"))
        else:
            self.write(f"answers/{command}", shell + "\n")

    def answer_status(self, datapath="inspecting", refused="", other="up", **membership):
        """The daemon's status (docs/json.md), of a cluster of two nodes, with this membership."""
        status = {
            "version": "0.1.0", "cluster": "ocf", "node": "n1", "datapath": {"type": "bpf", "state": datapath},
            "uptime_s": 1.5, "ring": {"epoch": 3, "members": 2}, "workers": [{"id": 0}],
            "services": [{"name": "web", "address": "10.77.0.100", "port": 80, "policy": "wrr", "inspect": "every"}],
            "nodes": [{"name": name, "address": f"10.78.0.{name[1]}", "weight": 100, "state": state,
                       "self": name == "n1", "ring_share": 0.5, "member": True, "reason": "",
                       "refused": refused if name == "n1" else "", "since_s": 9.5, "connections": 0,
                       "settings": {"protocol": "1"}} for name, state in (("n1", "up"), ("n2", other))],
            "membership": {"provider": "corosync", "connected": True, "quorate": True, "silent": False, "why": "",
                           "epoch": 3, "phase": "stable", "phase_s": 2.5, "lease_ms": 1000, **membership}}
        # Only while there is a daemon: before, the agent looks whether another one answers.
        text = json.dumps(status, indent=2)
        self.answer("status", f"[ ! -s {self.pidfile} ] || {{ cat <<'END'\n{text}\nEND\nexit 0\n}}")

    def attribute(self, name, lifetime, value, node="n1"):
        self.write(f"attributes/{node}.{name}.{lifetime}", value + "\n")

    def calls(self, command=None):
        """The client's calls, without the option that names the socket."""
        calls = [line.replace(f"--control {self.node.control} ", "") for line in self.read("calls").splitlines()]
        return [call for call in calls if command is None or call.split()[0] == command]

    # Actions

    def environment(self, timeout_s=20, interval_s=10, level=0, meta=None, **parameters):
        settings = {**self.parameters, **parameters}
        environment = {
            "PATH": f"{self.path('bin')}:/usr/sbin:/usr/bin:/sbin:/bin", "OCF_ROOT": OCF_ROOT,
            "OCF_RA_VERSION_MAJOR": "1", "OCF_RA_VERSION_MINOR": "1", "OCF_RESOURCE_INSTANCE": "earshotd",
            "OCF_RESOURCE_TYPE": "earshotd", "OCF_RESOURCE_PROVIDER": "earshot", "OCF_CHECK_LEVEL": str(level),
            "OCF_RESKEY_CRM_meta_timeout": str(int(timeout_s * 1000)),
            "OCF_RESKEY_CRM_meta_interval": str(int(interval_s * 1000)), "OCF_RESKEY_CRM_meta_on_node": "n1",
            "HA_LOGFILE": self.path("agent.log"), "HA_LOGFACILITY": "none"}
        environment.update({f"OCF_RESKEY_{name}": str(value) for name, value in settings.items()
                            if value is not None})
        environment.update({f"OCF_RESKEY_CRM_meta_{name}": value for name, value in (meta or {}).items()})
        return environment

    def run(self, action, timeout_s=20, **settings):
        """Calls the action, and holds it to its timeout as Pacemaker does."""
        began = time.monotonic()
        done = subprocess.run(["nsenter", f"--net={netns.path(self.node.namespace)}", AGENT, action],
                              env=self.environment(timeout_s, **settings), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout_s, check=False)
        return Result(done, time.monotonic() - began)

    def probe(self, **settings):
        return self.run("monitor", interval_s=0, **settings)

    def start(self, **settings):
        result = self.run("start", **settings)
        assert result.rc == SUCCESS, result
        return self.pid()

    def pid(self):
        return int(self.read("run/earshotd.pid"))

    def runs(self):
        """Processes of the daemon's program in the namespace, but their keepers, which end a moment after them."""
        found = []
        for pid in self.processes():
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as handle:
                    is_keeper = handle.read() == "earshotd-keeper\n"
                if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(EARSHOTD) and not is_keeper:
                    found.append(pid)
            except OSError:
                pass  # it has ended
        return found

    def log(self):
        return self.read("agent.log")
