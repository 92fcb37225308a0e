# SPDX-License-Identifier: GPL-2.0-or-later
"""Network namespaces: the `ip` command, and code that runs inside a namespace without a process of its own."""
import contextlib
import ctypes
import functools
import os
import platform
import shutil
import socket
import struct
import subprocess
import threading

from .errors import LabError

NETNS_DIR = "/run/netns"
CLONE_NEWNET = 0x40000000
BUCKETS = 8192
SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_PROG_DETACH, BPF_F_BEFORE, TCX = 9, 1 << 3, (46, 47)
_libc = ctypes.CDLL(None, use_errno=True)


def ip_command():
    """The path of `ip`, which is not in everybody's PATH."""
    return shutil.which("ip") or "/usr/sbin/ip"


def ip(*arguments, stdin=None):
    """Run `ip` and return its output; LabError if it fails."""
    done = subprocess.run([ip_command(), *arguments], input=stdin, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"ip {' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def ip_batch(namespace, commands):
    """Run many `ip` commands in a namespace at the price of one process; stops at the first that fails."""
    ip("-n", namespace, "-batch", "-", stdin="".join(f"{command}\n" for command in commands))


def tc(namespace, *arguments):
    """Run `tc` in a namespace; LabError if it fails."""
    command = [shutil.which("tc") or "/usr/sbin/tc", "-n", namespace, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")


def path(namespace):
    return os.path.join(NETNS_DIR, namespace)


def namespaces():
    """The names of all named namespaces of the machine."""
    try:
        return os.listdir(NETNS_DIR)
    except FileNotFoundError:
        return []


def exists(namespace):
    return os.path.exists(path(namespace))


def identity(namespace):
    """What `/proc/PID/ns/net` of the processes in it is: (device, inode), or None if there is no such namespace."""
    try:
        status = os.stat(path(namespace))
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


@functools.cache
def _parent():
    """An open namespace whose children have a TCP table each, of BUCKETS; its namespace's own is the machine's."""

    def make():
        if _libc.unshare(CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "unshare")
        with contextlib.suppress(FileNotFoundError):  # before Linux 6.1
            with open("/proc/sys/net/ipv4/tcp_child_ehash_entries", "w", encoding="ascii") as handle:
                handle.write(str(BUCKETS))
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    return _in_thread(make, "parent of namespaces")


def add(namespace):
    """Make it, with a TCP table of its own: the machine's is so large that a walk of it, which each daemon does many times a
    second, takes 4 ms of CPU time, be it empty. What the kernel derives from the table's size is as usual."""
    limits = {"net.ipv4.tcp_max_tw_buckets": 131072, "net.ipv4.tcp_max_syn_backlog": 2048}

    def make():
        _enter(_parent(), namespace)
        ip("netns", "add", namespace)

    _in_thread(make, f"parent of {namespace}")
    set_sysctls(namespace, limits)


def delete(namespace):
    """Remove the name. The namespace itself and its devices go when its last process has gone."""
    if exists(namespace):
        ip("netns", "del", namespace)


def detach_programs(namespace, interfaces):
    """Take all tcx programs off, which stay with an interface wherever it goes."""
    def detach():
        for index in map(socket.if_nametoindex, interfaces):
            for point in TCX:
                attributes = ctypes.create_string_buffer(struct.pack("IIIIIIQ", index, 0, point, BPF_F_BEFORE, 0, 0, 0))
                while not _libc.syscall(SYS_BPF[platform.machine()], BPF_PROG_DETACH, attributes, 32):
                    pass

    in_namespace(namespace, detach)


def in_namespace(namespace, function, *arguments, **keywords):
    """Call `function` inside the namespace and return its result; its exceptions pass through.

    A thread of its own enters the namespace and ends there: the caller's threads stay where they are. Sockets
    made inside belong to the namespace for good, wherever they are used afterwards; so do /proc/sys/net files.
    """

    def inside():
        with open(path(namespace), "rb") as handle:
            _enter(handle.fileno(), namespace)
        return function(*arguments, **keywords)

    return _in_thread(inside, f"in {namespace}")


def _enter(descriptor, what):
    """For this thread."""
    if _libc.setns(descriptor, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _in_thread(function, name):
    """Call it in a thread that ends there, and return its result or raise what it has raised."""
    outcome = {}

    def run():
        try:
            outcome["result"] = function()
        except BaseException as error:  # handed over to the caller's thread, whatever it is
            outcome["error"] = error

    thread = threading.Thread(target=run, name=name)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def set_sysctls(namespace, values):
    """Write {"net.ipv4.x": value}. Keys of IPv6 and br_netfilter are left out on a kernel without; others must exist."""

    def write():
        for key, value in values.items():
            file = "/proc/sys/" + key.replace(".", "/")
            if key.startswith(("net.ipv6.", "net.bridge.")) and not os.path.exists(file):
                continue
            try:
                with open(file, "w", encoding="ascii") as handle:
                    handle.write(str(value))
            except OSError as error:
                raise LabError(f"{namespace}: sysctl {key} = {value}: {error.strerror}") from error

    in_namespace(namespace, write)
