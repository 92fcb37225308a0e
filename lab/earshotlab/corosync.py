# SPDX-License-Identifier: GPL-2.0-or-later
"""A real corosync per node, over the cluster network: its configuration, and questions to it.

Node I of the lab has the name nI and the node id I. `token_coefficient` is 0: the token timeout is what was asked for,
whatever the number of nodes. A dead node is out after about 2.2 tokens (token, and consensus of 1.2 tokens).
"""
import os
import re
import shutil
import signal
import subprocess

from .errors import LabError
from .wait import wait_for

TRANSPORTS = ("knet", "udpu")
SECTIONS = ("totem", "interface", "quorum", "logging", "system")
TOKEN = 500
_TOOLS = ("corosync", "corosync-quorumtool", "corosync-cmapctl")
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


def check(transport, settings):
    """LabError if this machine or these options are not enough for a corosync."""
    for tool in _TOOLS:
        if not shutil.which(tool, path=_PATH):
            raise LabError(f"{tool} is not installed: apt-get install corosync")
    if transport not in TRANSPORTS:
        raise LabError(f"corosync transport {transport!r}: {', '.join(TRANSPORTS)}")
    for name in settings:
        if name.partition(".")[0] not in SECTIONS or not name.partition(".")[2]:
            raise LabError(f"corosync setting {name}: {', '.join(f'{section}.KEY' for section in SECTIONS)}")


def config_text(net, token=TOKEN, transport="knet", settings=None, device=None):
    """corosync.conf, the same for all nodes. device: of the quorum device, if there is one (qdevice.py)"""
    interface = {"linknumber": 0}
    totem = {"version": 2, "cluster_name": net.name, "transport": transport, "token": token, "token_coefficient": 0}
    if transport == "knet":
        totem.update({"crypto_cipher": "aes256", "crypto_hash": "sha256"})
        interface["knet_ping_timeout"] = max(1500, token)  # a short stall is not to take the link down
    content = {
        "totem": totem, "interface": interface,
        "quorum": {"provider": "corosync_votequorum"},
        "logging": {"to_stderr": "yes", "to_syslog": "no", "to_logfile": "no", "timestamp": "hires"},
        "system": {"move_to_root_cgroup": "no"},
    }
    for name, value in (settings or {}).items():
        section, _, key = name.partition(".")
        content[section][key] = value
    if device:
        content["quorum"]["device"] = device
    nodes = {f"node {node}": {"ring0_addr": net.cluster_address(node), "name": node, "nodeid": number}
             for number, node in enumerate(net.nodes, 1)}
    lines = []
    for section in ("totem", "quorum", "logging", "system"):
        lines += [f"{section} {{", *_assignments(content[section])]
        if section == "totem":
            lines += ["    interface {", *_assignments(content["interface"], 8), "    }"]
        lines += ["}"]
    lines += ["nodelist {"]
    for values in nodes.values():
        lines += ["    node {", *_assignments(values, 8), "    }"]
    return "\n".join(lines + ["}"]) + "\n"


def _assignments(values, indent=4):
    lines = []
    for key, value in values.items():
        inner = isinstance(value, dict)
        lines += [" " * indent + (f"{key} {{" if inner else f"{key}: {value}")]
        lines += [*_assignments(value, indent + 4), " " * indent + "}"] if inner else []
    return lines


def install(mounts, text, key):
    """Put configuration and key where the node's corosync looks for them."""
    for name, content, mode in (("corosync.conf", text.encode(), 0o644), ("authkey", key, 0o400)):
        path = mounts.path(f"/etc/corosync/{name}")
        with open(path, "wb", opener=lambda file, flags, mode=mode: os.open(file, flags, mode)) as handle:
            handle.write(content)


def command_line():
    return [shutil.which("corosync", path=_PATH), "-f"]


class Corosync:
    """The corosync of one node. Questions are asked on the node; OSError if it does not answer."""

    def __init__(self, node):
        self.node = node

    def start(self):
        """Start it, and wait until it answers (see wait_quorate for more)."""
        self.node.start("corosync")

    def stop(self):
        """End it in an orderly way: the node leaves. Its pacemaker ends first."""
        self.node.stop("corosync")

    def kill(self):
        """SIGKILL: the others notice by the token. Returns when the process is gone."""
        self.node.lab.crash(self.node.name, "corosync")

    def signal(self, number=signal.SIGSTOP):
        """SIGSTOP freezes, SIGCONT thaws."""
        self.node.signal("corosync", number)

    @property
    def pid(self):
        """None if it is not running."""
        return self.node.lab.pid(self.node.name, "corosync")

    @property
    def log(self):
        return os.path.join(self.node.directory, "corosync.log")

    def status(self):
        """{"quorate", "members" (names, in order), "ring" ("1.2c"), "expected", "total", "quorum", "device" (a quorum
        device takes part)}."""
        done = self._ask(["corosync-quorumtool", "-s", "-o", "i"])
        fields = dict(re.findall(r"^([A-Z][A-Za-z ]*?):[ \t]+(.+)$", done.stdout, re.MULTILINE))
        if "Quorate" not in fields:
            why = (done.stderr or done.stdout).strip()
            raise ConnectionError(f"corosync of {self.node.name} does not answer: {why}")
        table = done.stdout.partition("Membership information")[2]
        ids = re.findall(r"^\s+([1-9]\d*)\s+\d+\s", table, re.MULTILINE)
        return {
            "quorate": fields["Quorate"] == "Yes",
            "members": [f"n{number}" for number in ids],
            "ring": fields.get("Ring ID", ""),
            "expected": int(fields.get("Expected votes", 0)),
            "total": int(fields.get("Total votes", 0)),
            "quorum": int(fields.get("Quorum", "0").split()[0]),
            "device": "Qdevice" in fields.get("Flags", ""),
        }

    def quorate(self):
        return self.status()["quorate"]

    def members(self):
        """The names of the nodes that this one sees, quorate or not."""
        return self.status()["members"]

    def cmap(self, prefix=""):
        """The keys of corosync's map that begin with the prefix: {key: value as text}."""
        done = self._ask(["corosync-cmapctl", *([prefix] if prefix else [])])
        if done.returncode and done.stderr.strip():  # without words: no such key
            raise ConnectionError(f"corosync of {self.node.name} does not answer: {done.stderr.strip()}")
        return dict(re.findall(r"^(\S+) \(\w+\) = (.*)$", done.stdout, re.MULTILINE))

    def _ask(self, command):
        if self.pid is None:
            raise ConnectionError(f"corosync of {self.node.name} is not running")
        try:
            return self.node.exec(command, check=False, timeout=5)
        except subprocess.TimeoutExpired as error:
            raise ConnectionError(f"{command[0]} on {self.node.name}: no answer in 5 s") from error

    def sees(self, quorate, members=None):
        """True if it is quorate (or is not), with exactly these members; an OSError tells what it sees instead."""
        status = self.status()
        if status["quorate"] != quorate or members is not None and sorted(status["members"]) != sorted(members):
            raise BlockingIOError(f"{'quorate' if status['quorate'] else 'inquorate'} with "
                                  f"{', '.join(status['members'])}")
        return True

    def wait_quorate(self, quorate=True, members=None, timeout=None):
        """Wait until the node is quorate (or is not any more) and sees exactly these members."""
        what = f"corosync of {self.node.name}: {'quorate' if quorate else 'inquorate'}"
        wait_for(lambda: self.sees(quorate, members), what + (f" with {', '.join(members)}" if members else ""),
                 timeout or self.node.lab.options["timeout"])
