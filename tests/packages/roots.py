# SPDX-License-Identifier: GPL-2.0-or-later
"""Minimal Debian systems: one base root, layers above it, and machines that run in them.

    base            mmdebstrap --variant=minbase, from the mirrors of this machine's apt; kept for a week in CACHE, and
                    so is what apt has downloaded into any layer
    layer           base + what was installed in it, in a chroot with this machine's network
    Machine         a layer + a disk of its own, in namespaces: mount, pid, uts, and a network of the lab

Nothing of the source tree is visible in a Machine. systemd does not run in it: `systemctl` is a script that does what the
real one does to the disk (enable, disable), and starts what the unit's ExecStart says. Nor does sshd: `scp` copies to the
other machine's disk.
"""
import contextlib
import glob
import hashlib
import os
import shutil
import subprocess
import time

import node_logs
from packages import run

CACHE = "/var/cache/earshot/roots"  # what all clones on this machine share
KEPT_S = 7 * 86400
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "dumb", "DEBIAN_FRONTEND": "noninteractive",
               "USER": "root"}

# The real systemctl does the links, if there is one: a minimal Debian has systemd only when somebody needs it.
SYSTEMCTL = """\
#!/bin/sh
# Stands in for systemd, which does not run here.
set -e
export SYSTEMD_OFFLINE=1
verb=$1
shift
now=
case $1 in --now) now=1; shift ;; esac
case $verb in
enable | disable)
	[ ! -x /usr/bin/systemctl ] || /usr/bin/systemctl -q "$verb" "$@"
	[ -n "$now" ] || exit 0
	;;
restart) "$0" stop "$@" ;;
stop) ;;
*) exit 1 ;;
esac
for unit in "$@"; do
	case $verb in
	restart)
		command=$(sed -n 's/^ExecStart=//p' "/lib/systemd/system/$unit.service")
		sh -c "exec setsid $command" </dev/null >"/var/log/$unit.out" 2>&1 &
		# Type=notify: it has started when it answers.
		[ "$unit" != corosync ] || until corosync-cmapctl >/dev/null 2>&1; do sleep 0.1; done
		;;
	*)
		program=$(sed -n 's/^ExecStart=\\([^ ]*\\).*/\\1/p' "/lib/systemd/system/$unit.service")
		pkill -x "$(basename "${program:-$unit}")" || continue
		while pgrep -x "$(basename "${program:-$unit}")" >/dev/null; do sleep 0.1; done
		;;
	esac
done
"""
SCP = """\
#!/bin/sh
# Stands in for scp: the disks of the other machines are below /srv/disks.
set -e
for last; do :; done
host=${last%%:*} directory=${last#*:}
while [ $# -gt 1 ]; do
	install -D -m "$(stat -c %a "$1")" -t "/srv/disks/$host$directory" "$1"
	shift
done
"""

_HOLDER = """\
set -eu
cd {root}
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 dev dev
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
ln -s /proc/self/fd dev/fd
mkdir dev/shm
mount -t tmpfs -o mode=1777 shm dev/shm
mount -t tmpfs -o mode=755 run run
mkdir -m 1777 run/lock
hostname {name}
exec chroot . /bin/sh -c 'mkdir /run/ready; while :; do wait; sleep 0.2; done'
"""


def _mirrors():
    """What this machine's apt reads, of Debian itself, as lines of sources.list."""
    text = run("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
    lines = [f"deb {line}" for line in sorted(set(text.splitlines())) if " bookworm" in line and line.endswith(" main")]
    assert lines, "this machine's apt knows no Debian 12; apt-get update?"
    return lines


def _replace(made, path):
    """Another clone may make the same file at the same time."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    try:
        made(temporary)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _forget_old(directory):
    for path in glob.glob(f"{directory}/*"):
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_mtime < time.time() - KEPT_S:
                os.unlink(path)


def make_base(directory):
    """A minimal Debian 12."""
    mirrors = _mirrors()
    tarball = os.path.join(CACHE, f"base-{hashlib.sha256(' '.join(mirrors).encode()).hexdigest()[:16]}.tar")
    _forget_old(CACHE)
    if not os.path.exists(tarball):
        _replace(lambda path: run(
            "mmdebstrap", "--variant=minbase", "--mode=root", "--format=tar", "--skip=cleanup/apt/lists",
            '--aptopt=Acquire::Check-Valid-Until "false"', '--aptopt=Binary::apt::APT::Keep-Downloaded-Packages "true"',
            "bookworm", path, *mirrors), tarball)
    os.makedirs(directory)
    run("tar", "xf", tarball, "-C", directory, "--xattrs", "--xattrs-include=*", "--numeric-owner")
    return directory


@contextlib.contextmanager
def overlay(root, lower, disk):
    """Mount the lower directories, the last one at the bottom, with `disk` above, at `root`."""
    for path in (root, disk, disk + ".work"):
        os.makedirs(path, exist_ok=True)
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={':'.join(lower)},upperdir={disk},workdir={disk}.work",
        root)
    try:
        yield root
    finally:
        run("umount", "-R", root)


def in_chroot(root, script, cwd="/"):
    """Run a script there, in a mount and pid namespace of its own and the network of this machine."""
    shutil.copy("/etc/resolv.conf", os.path.join(root, "etc/resolv.conf"))
    policy = os.path.join(root, "usr/sbin/policy-rc.d")  # no server starts by being installed
    with open(policy, "w", encoding="ascii") as handle:
        handle.write("#!/bin/sh\nexit 101\n")
    os.chmod(policy, 0o755)
    try:
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc",
                   f"mount -t proc proc {root}/proc; mount --rbind /dev {root}/dev; mount --rbind /sys {root}/sys; "
                   f"mount -t tmpfs run {root}/run; "
                   # Not chroot: whoever enters this mount namespace, as the lab does, would find itself outside of it.
                   f'cd {root}; pivot_root . .; umount -l .; cd /; exec sh -euc "cd {cwd}; $1"', "sh", script,
                   env=ENVIRONMENT)
    finally:
        os.unlink(policy)


def apt(root, script, cwd="/"):
    """in_chroot() for a script that installs packages: what has been downloaded before is not downloaded again."""
    kept, archives = os.path.join(CACHE, "archives"), os.path.join(root, "var/cache/apt/archives")
    os.makedirs(kept, exist_ok=True)
    os.makedirs(archives, exist_ok=True)
    _forget_old(kept)
    for path in glob.glob(f"{kept}/*.deb"):
        with contextlib.suppress(FileNotFoundError):  # another clone forgets it just now
            shutil.copy2(path, archives)
    said = in_chroot(root, f"apt-get -q update\n{script}", cwd)  # the base's lists may be a week old
    for path in glob.glob(f"{archives}/*.deb"):
        if not os.path.exists(os.path.join(kept, os.path.basename(path))):
            os.utime(path)
            _replace(lambda to, path=path: shutil.copy2(path, to), os.path.join(kept, os.path.basename(path)))
    shutil.rmtree(archives)
    return said


class Machine:
    """One node's system, running in a network namespace."""

    def __init__(self, name, namespace, directory, lower):
        self.name = name
        self.namespace = namespace
        self.disk = os.path.join(directory, f"{name}.disk")
        self.root = os.path.join(directory, name)
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(overlay(self.root, lower, self.disk))
        self._holder = None
        self.pid = None
        node_logs.watch(self)

    def write(self, path, text, mode=0o755):
        path = self.root + path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)
        os.chmod(path, mode)

    def start(self, machines):
        """Switch it on; its `scp` reaches the other machines."""
        self.write("/usr/local/sbin/systemctl", SYSTEMCTL)
        self.write("/usr/local/bin/scp", SCP)
        self.write("/etc/hostname", f"{self.name}\n", 0o644)
        for machine in machines:
            os.makedirs(f"{self.root}/srv/disks/{machine.name}", exist_ok=True)
        binds = "".join(f"mount --bind {machine.root} {self.root}/srv/disks/{machine.name}\n" for machine in machines
                        if machine is not self)
        self._holder = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, "unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child",
             "sh", "-c", binds + _HOLDER.format(root=self.root, name=self.name)], stdin=subprocess.DEVNULL)

    def find(self):
        """True when it is up."""
        assert self._holder.poll() is None, f"{self.name} does not come up"
        with open(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children", encoding="ascii") as handle:
            self.pid = handle.read().strip()
        return bool(self.pid) and os.path.exists(f"/proc/{self.pid}/root/run/ready")

    def run(self, script, check=True, timeout=60, cwd="/"):
        """Run a shell script on it; returns the completed process, with all output in stdout."""
        done = subprocess.run(
            ["nsenter", "--target", self.pid, "--mount", "--pid", "--uts", "--net", "--root", f"--wd={self.root}",
             "/bin/bash", "-ec", f"cd {cwd}\n{script}"], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)
        assert not check or done.returncode == 0, f"{self.name}: {script}\n{done.returncode}: {done.stdout[-4000:]}"
        return done

    def files(self):
        """Everything on its disk, but what apt, dpkg and logs keep of all packages."""
        return set(self.run(
            "find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /srv -o "
            "-path /var/log -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /root "
            "-o -name __pycache__ \\) -prune -o -print").stdout.splitlines())

    def log_ends(self):
        """What it has logged to files, which are on its disk."""
        return node_logs.of_files(self.name, f"{self.disk}/var/log/pacemaker/*.log", f"{self.disk}/var/log/earshot*",
                                  f"{self.disk}/var/log/corosync/*.log", f"{self.disk}/var/log/nginx/error.log")

    def close(self):
        """Switch it off. The kernel kills what runs in it."""
        if self._holder:
            self._holder.kill()
            self._holder.wait()
        self._stack.close()
