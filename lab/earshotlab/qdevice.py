# SPDX-License-Identifier: GPL-2.0-or-later
"""A quorum device: corosync-qnetd on a machine of its own at the cluster network's switch, and corosync-qdevice on each node.

The machine is "qnetd", its cable the link "qnetd": it is lost with `lab cut qnetd`. They talk without TLS.
"""
import os
import shutil

from . import process
from .errors import LabError
from .wait import wait_for

MACHINE = "qnetd"  # and its process, and its link
NAME = "qdevice"  # the process on each node
TIMEOUT = 1250  # ms, the shortest that has an effect: docs/walkthrough.md
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
_RUN = "/run/corosync-qdevice"


def check():
    """LabError if this machine cannot have one."""
    for tool in ("corosync-qnetd", "corosync-qdevice"):
        if not shutil.which(tool, path=_PATH):
            raise LabError(f"{tool} is not installed: apt-get install {tool}")


def section(net, settings):
    """`device` of corosync.conf's quorum section. settings: more of it, "net.KEY" of its net section, or True."""
    more = dict(settings) if isinstance(settings, dict) else {}
    inner = {"host": net.device_address, "algorithm": "ffsplit", "tls": "off"}
    inner.update((key.removeprefix("net."), more.pop(key)) for key in list(more) if key.startswith("net."))
    return {"model": "net", "votes": 1, "timeout": TIMEOUT, **more, "net": inner}


def start_server(lab):
    """Start corosync-qnetd; returns its record."""
    directory = os.path.join(lab.directory, MACHINE)
    os.makedirs(directory)
    paths = f"lock_file={directory}/pid,local_socket_file={directory}/socket"
    argv = [shutil.which("corosync-qnetd", path=_PATH), "-f", "-s", "off", "-S", paths]
    return process.spawn(MACHINE, MACHINE, lab.net.namespace(MACHINE), argv, os.path.join(directory, f"{MACHINE}.log"))


def command_line():
    """On a node."""
    daemon = shutil.which("corosync-qdevice", path=_PATH)
    return ["/bin/sh", "-c", f"mkdir -p {_RUN} && exec {daemon} -f"]


class Qdevice:
    """The corosync-qdevice of one node."""

    def __init__(self, node):
        self.node = node

    def status(self):
        """What corosync-qdevice-tool says; ConnectionError if the daemon does not answer."""
        done = self.node.exec(["corosync-qdevice-tool", "-s"], check=False, timeout=5)
        if done.returncode:
            raise ConnectionError(f"corosync-qdevice of {self.node.name} does not answer: {done.stderr.strip()}")
        return done.stdout

    def has_vote(self):
        """Does corosync count the device's vote here?"""
        status = self.node.corosync.status()
        return status["device"] and status["quorate"] and status["total"] > len(status["members"])

    def wait_vote(self, has=True, timeout=None):
        """Wait until it does, or does not any more."""
        wait_for(lambda: self.has_vote() == has, f"quorum device of {self.node.name}: {'its vote' if has else 'no vote'}",
                 timeout or self.node.lab.options["timeout"])
