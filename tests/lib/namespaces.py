# SPDX-License-Identifier: GPL-2.0-or-later
"""Namespaces of a test run: PREFIXPID-..., and what has to be done inside them. The rest is the lab's netns.py."""
import contextlib
import ctypes
import fcntl
import itertools
import os
import re
import shutil
import signal
import socket
import struct
import tempfile

import node_logs
from earshotlab.netns import delete, in_namespace, namespaces

SIOCETHTOOL = 0x8946
# ETHTOOL_SRXCSUM, _STXCSUM, _STSO, _SGSO, _SGRO
OFFLOADS = (0x15, 0x17, 0x1F, 0x24, 0x2C)
_instances = itertools.count()
_libc = ctypes.CDLL(None)


class Site:
    """Namespaces PREFIXPID-K-NAME, and a directory for what is in them. A context manager: whatever happens, nothing is
    left. Who inherits has log_ends(), and a close() that ends what it has started before this one's."""

    def __init__(self, prefix, *names):
        name = f"{prefix}{os.getpid()}-{next(_instances)}"
        self.namespaces = [f"{name}-{each}" for each in names]
        self.directory = tempfile.mkdtemp(prefix=f"{name}-")

    @contextlib.contextmanager
    def setting_up(self):
        """What fails in this block leaves nothing, either."""
        try:
            yield
        except BaseException:
            self.close()
            raise
        node_logs.watch(self)

    def __enter__(self):
        return self

    def __exit__(self, _kind, error, _trace):
        node_logs.log_note(self, error)
        self.close()

    def close(self):
        for namespace in self.namespaces:
            delete(namespace)
        shutil.rmtree(self.directory, ignore_errors=True)


def die_with_test():
    """For a process of a namespace, before it begins."""
    _libc.prctl(1, signal.SIGKILL)


def listen(namespace, address, port, backlog=128, protocol=0, v6only=None):
    """A listening socket there."""
    def make():
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, protocol)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if v6only is not None:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, v6only)
        s.bind((address, port))
        s.listen(backlog)
        return s

    return in_namespace(namespace, make)


def delete_stale(prefix):
    """What runs that were killed have left, namespaces and temporary directories: names tell the process."""
    def stale(names):
        found = ((name, re.fullmatch(rf"{prefix}(\d+)-.*", name)) for name in names)
        return [name for name, match in found if match and not os.path.exists(f"/proc/{match[1]}")]

    for name in stale(namespaces()):
        delete(name)
    for name in stale(os.listdir(tempfile.gettempdir())):
        shutil.rmtree(os.path.join(tempfile.gettempdir(), name), ignore_errors=True)


def offloads_off(namespace, interface):
    """What leaves the interface is what goes over the wire: checksums filled in, one segment a frame."""
    def run():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for command in OFFLOADS:
                value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
                request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
                fcntl.ioctl(s, SIOCETHTOOL, request.ljust(40, b"\0"))

    in_namespace(namespace, run)


def hardware_address(namespace, interface):
    def run():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            reply = fcntl.ioctl(s, 0x8927, struct.pack("16s24x", interface.encode()))
            return reply[18:24].hex(":")

    return in_namespace(namespace, run)


def tcp_sockets(namespace, family=4):
    """[(local address, local port, remote address, remote port, state)] of /proc/net/tcp or tcp6; state is its number."""
    def endpoint(text):
        host, port = text.split(":")
        if family == 6:
            words = struct.unpack("<4I", bytes.fromhex(host))
            return socket.inet_ntop(socket.AF_INET6, struct.pack(">4I", *words)), int(port, 16)
        return socket.inet_ntoa(bytes.fromhex(host)[::-1]), int(port, 16)

    def read():
        with open(f"/proc/thread-self/net/tcp{'6' if family == 6 else ''}", encoding="ascii") as handle:
            rows = [line.split() for line in handle][1:]
        return [(*endpoint(row[1]), *endpoint(row[2]), int(row[3], 16)) for row in rows]

    return in_namespace(namespace, read)
