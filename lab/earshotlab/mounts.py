# SPDX-License-Identifier: GPL-2.0-or-later
"""A node's own file system view and host name, for daemons whose paths are compiled in: corosync, pacemaker, agents.

A process holds the node's mount and UTS namespaces; whatever else runs on the node enters them:

    /run, /dev/shm                 memory, empty when the node starts: gone with the last process of the node
    /run/earshot                   where the node's earshotd has n1.sock, as on a machine of its own
    /etc/corosync, /var/lib/...    (PRIVATE) directories in NODE/root/, the node's disk: they survive a power cut
    /run/earshot-lab/NAME          the lab's directory, the same everywhere
    /usr/lib/ocf/resource.d        with the caller's agents added as provider "earshot"

All else is the host's. Nothing of this is mounted in the host's own namespace, so nothing has to be unmounted there.
There is no pid namespace: what looks for processes by name would see those of all nodes.
"""
import os
import shlex
import shutil

from . import process

STATE = "/var/lib/earshot"  # where a node's earshotd, and nobody else's, keeps what outlives it
# Of the host, those that exist. Ownership and mode are taken over, contents are not.
PRIVATE = (STATE, "/etc/corosync", "/var/lib/corosync", "/var/log/corosync", "/var/lib/pacemaker", "/var/log/pacemaker",
           "/var/lib/pcsd", "/var/log/pcsd", "/var/log/crmsh")
OCF_PROVIDERS = "/usr/lib/ocf/resource.d"
NAME = "machine"  # of the process

_SCRIPT = """\
set -eu
umask 022
mkdir -p {mnt}
mount -t tmpfs -o mode=755 run {mnt}
mkdir -p {mnt}{below_run} {mnt}/earshot {mnt}/log
mkdir -p -m 1777 {mnt}/lock {mnt}/resource-agents
mount --bind {lab} {mnt}{below_run}
mount --bind {root}/run/earshot {mnt}/earshot
mount --rbind {mnt} /run
mount -t tmpfs -o mode=1777 shm /dev/shm
{binds}
{agents}
hostname {node}
# Ready. Nobody ever writes, so this waits until it is killed, without a child.
mkfifo {ready}
read -r _ <{ready}
"""

# A mount point for one more provider, where the host's directory cannot get one.
_AGENTS = """\
mount -t tmpfs -o mode=755 providers {mnt}
for provider in {providers}/*/; do
    mkdir {mnt}/"$(basename "$provider")"
    mount --bind "$provider" {mnt}/"$(basename "$provider")"
done
mkdir -p {mnt}/earshot
mount --bind {agents} {mnt}/earshot
mount --rbind {mnt} {providers}
umount -R {mnt}"""


class Mounts:
    """The mount and UTS namespaces of a node."""

    def __init__(self, node, directory, lab_directory):
        self.node = node
        self.directory = directory
        self.lab_directory = lab_directory
        self.root = os.path.join(directory, "root")
        self._ready = os.path.join(directory, "machine.ready")

    def path(self, inside):
        """Where the host finds a private file of the node."""
        return self.root + inside

    def make_disk(self):
        """The node's private directories, as a new installation has them. What is there already stays."""
        os.makedirs(self.path("/run/earshot"), exist_ok=True)
        os.makedirs(STATE, exist_ok=True)  # to mount the node's own over it
        for directory in filter(os.path.isdir, PRIVATE):
            for source, _, _ in os.walk(directory):
                target = self.path(source)
                if not os.path.isdir(target):
                    os.makedirs(target)
                    status = os.stat(source)
                    os.chown(target, status.st_uid, status.st_gid)
                    shutil.copymode(source, target)

    def start(self, namespace, agents=None):
        """Start the holder; returns its record. Others may enter once `ready` is true."""
        self.make_disk()
        if self.ready():
            os.unlink(self._ready)
        mnt = os.path.join(self.directory, "mnt")
        binds = [f"mount --bind {shlex.quote(self.path(directory))} {directory}"
                 for directory in PRIVATE if os.path.isdir(self.path(directory))]
        quoted = {key: shlex.quote(value) for key, value in {
            "mnt": mnt, "lab": self.lab_directory, "below_run": self.lab_directory.removeprefix("/run"),
            "root": self.root, "ready": self._ready, "node": self.node}.items()}
        more = _AGENTS.format(mnt=mnt, providers=OCF_PROVIDERS, agents=shlex.quote(agents)) if agents else ""
        script = os.path.join(self.directory, "machine.sh")
        with open(script, "w", encoding="utf-8") as handle:
            handle.write(_SCRIPT.format(binds="\n".join(binds), agents=more, **quoted))
        return process.spawn(NAME, self.node, namespace, ["unshare", "--uts", "/bin/sh", script],
                             os.path.join(self.directory, f"{NAME}.log"))

    def ready(self):
        return os.path.exists(self._ready)


def enter(record, cwd=None):
    """The beginning of a command line that runs the rest of it where the holder is, in the same process."""
    cwd = cwd or os.getcwd()
    if cwd.startswith(("/run/", "/dev/shm/")) and not os.path.realpath(cwd).startswith("/run/earshot-lab/"):
        cwd = "/"  # not there
    return [shutil.which("nsenter") or "/usr/bin/nsenter", "--target", str(record["pid"]), "--mount", "--uts", "--net",
            f"--wdns={cwd}", "--"]
