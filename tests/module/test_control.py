# SPDX-License-Identifier: GPL-2.0-or-later
"""The control protocol (kmod/core/control.h) with what no daemon would say."""
import ctypes
import errno
import fcntl
import mmap
import os
import random
import socket
import struct
import subprocess
import traceback

import pytest

from earshotlab import netns
from module_control import FLOW, PAGE, RING_PART, abi, opened, params, refused
from packets import tables_module
from packets.tables_module import (ATTR_CONFIG, ATTR_FLOW, ATTR_PARAMS, ATTR_RING0, CMD_ATTACH, CMD_CONFIGURE,
                                   CMD_CONNECTION, CMD_COUNTERS, CMD_GET, CMD_NEW, CMD_REMOVE, DECISIONS, DOWNLOADS,
                                   IOC_TABLE, KEPT_BYTES, KEPT_SLOTS, KEPTS, RESPONSES, STATE, TABLES, Control, attribute)

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SYNS_BYTES = 262144 * 16  # ES_SYNS of them


def test_nothing_without_a_node(control, namespace):
    for command in (CMD_ATTACH, CMD_REMOVE, CMD_COUNTERS):
        refused(errno.ENOENT, control.ask, command)
    for command in (tables_module.CMD_FLOWS, tables_module.CMD_CONNECTIONS):
        refused(errno.ENOENT, control.ask, command, flags=tables_module.DUMP)
    refused(errno.ENOENT, control.ask, CMD_CONNECTION, FLOW)
    refused(errno.ENOENT, netns.in_namespace, namespace, opened, STATE)


def test_programs(control):
    """What is asked and said of programs' connections, where there is none."""
    control.ask(CMD_NEW, params(control))
    refused(errno.ENOENT, control.ask, CMD_CONNECTION, FLOW)  # no configuration, so no hash
    refused(errno.EINVAL, control.ask, CMD_CONNECTION)
    for size in (35, 40):
        refused(errno.ERANGE, control.ask, CMD_CONNECTION, attribute(ATTR_FLOW, bytes(size)))


def test_parameters_are_checked(control):
    refused(errno.EINVAL, control.ask, CMD_NEW)
    refused(errno.EPROTO, control.ask, CMD_NEW, params(control, version=abi(control) + 1))
    for wrong in ({"workers": 0}, {"workers": 9}, {"queue_bytes": 0}, {"queue_bytes": 5000}, {"queue_bytes": 1 << 30},
                  {"decision_sets": 0}, {"decision_sets": 1000}, {"decision_sets": 1 << 31}):
        refused(errno.EINVAL, control.ask, CMD_NEW, params(control, **wrong))
    refused(errno.ENOENT, control.ask, CMD_REMOVE)  # nothing was made


def test_namespaces_do_not_see_each_other(control):
    control.ask(CMD_NEW, params(control))
    other = Control()  # of the namespace that the test runs in
    try:
        refused(errno.ENOENT, other.ask, CMD_COUNTERS)
    finally:
        other.close()
    assert control.ask(CMD_COUNTERS)


def test_interfaces_are_checked(control):
    control.ask(CMD_NEW, params(control, public=4242))
    refused(errno.ENODEV, control.ask, CMD_ATTACH)


def test_attaches_to_interfaces_made_anew(control):
    """Another index than when the node was made, and the tables stay."""
    control.ask(CMD_NEW, params(control, public=4242))
    refused(errno.ENODEV, control.ask, CMD_ATTACH)
    control.ask(CMD_ATTACH, params(control))
    refused(errno.ENODEV, control.ask, CMD_ATTACH, params(control, public=4242))


def test_a_namespace_that_goes_takes_its_node_along(namespace):
    c = netns.in_namespace(namespace, Control)
    c.ask(CMD_NEW, params(c))
    c.ask(CMD_ATTACH)
    c.close()  # and the namespace at the fixture's end


def in_child(function):
    """The number that it returns in a process of its own."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writer, str(function() or 0).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as handle:
        result = handle.read()
    assert os.waitpid(pid, 0)[1] == 0, "it failed there"
    return int(result)


def test_not_for_a_user_namespace():
    """Anybody can be root in one, and have a network namespace there: the kernel's memory is not theirs to take."""
    def run():
        assert not ctypes.CDLL(None).unshare(CLONE_NEWUSER | CLONE_NEWNET)
        # Who is nobody outside may not have large buffers.
        tables_module.SO_SNDBUFFORCE, tables_module.SO_RCVBUFFORCE = socket.SO_SNDBUF, socket.SO_RCVBUF
        c = Control()
        assert abi(c)
        refused(errno.EPERM, c.ask, CMD_NEW, params(c))
        refused(errno.EPERM, c.ask, CMD_COUNTERS)

    in_child(run)


def test_memory_is_charged(namespace, tmp_path):
    """To the group of who made the node: a container's limit is one for its tables, too."""
    group = tmp_path / "cgroup"
    group.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", group], check=True)
    inner = group / f"esmod{os.getpid()}"

    def run():
        (inner / "cgroup.procs").write_text(str(os.getpid()))
        before = int((inner / "memory.current").read_text())
        c = netns.in_namespace(namespace, Control)
        c.ask(CMD_NEW, params(c))
        return int((inner / "memory.current").read_text()) - before

    try:
        if "memory" not in (group / "cgroup.subtree_control").read_text():
            (group / "cgroup.subtree_control").write_text("+memory")
        inner.mkdir()
        charged = in_child(run)
    finally:
        if inner.exists():
            inner.rmdir()
        subprocess.run(["umount", group], check=True)
    assert charged > SYNS_BYTES, f"{charged} bytes were charged, and the SYNs alone are {SYNS_BYTES}"


def test_consumer_may_write_its_own_page_only(control, namespace):
    control.ask(CMD_NEW, params(control))
    for table in (0, RESPONSES, DOWNLOADS):
        fd = netns.in_namespace(namespace, opened, table)
        try:
            mmap.mmap(fd, PAGE).close()
            mmap.mmap(fd, 2 * PAGE, prot=mmap.PROT_READ, offset=PAGE).close()
            refused(errno.EPERM, mmap.mmap, fd, PAGE, offset=PAGE)
            refused(errno.EPERM, mmap.mmap, fd, 2 * PAGE)
            with pytest.raises(OSError):
                mmap.mmap(fd, 1 << 30, prot=mmap.PROT_READ)
            refused(errno.EBUSY, fcntl.ioctl, fd, IOC_TABLE, STATE)
        finally:
            os.close(fd)
    for table, size in ((DECISIONS, 1024 * 64), (KEPTS, KEPT_SLOTS * KEPT_BYTES)):
        fd = netns.in_namespace(namespace, opened, table)
        with pytest.raises(OSError):
            mmap.mmap(fd, size + PAGE)
        os.close(fd)
    refused(errno.EINVAL, netns.in_namespace, namespace, opened, TABLES)
    refused(errno.ENOENT, netns.in_namespace, namespace, opened, 1)  # there is one worker


def test_memory_outlives_its_node(control, namespace):
    control.ask(CMD_NEW, params(control))
    fds = [netns.in_namespace(namespace, opened, table) for table in (0, STATE, DECISIONS, KEPTS, DOWNLOADS)]
    maps = [mmap.mmap(fd, PAGE) for fd in fds]
    control.ask(CMD_REMOVE)
    for m in maps:
        m[:8] = b"still us"
    control.ask(CMD_NEW, params(control))
    for m, fd in zip(maps, fds):
        assert m[:8] == b"still us"
        m.close()
        os.close(fd)


def test_garbage(control):
    """A few thousand messages, each a valid one that was damaged: the kernel refuses or takes them, and stays well."""
    random.seed(53)
    control.ask(CMD_NEW, params(control))
    config = bytes(2048)
    for round_ in range(4000):
        command = random.choice((CMD_GET, CMD_NEW, CMD_CONFIGURE, CMD_ATTACH, CMD_REMOVE, CMD_COUNTERS, 7, 8, 9, 10, 11,
                                 CMD_CONNECTION, random.randrange(256)))
        body = bytearray(struct.pack("=BBH", command, 1, 0))
        for _ in range(random.randrange(6)):
            kind = random.choice((ATTR_PARAMS, ATTR_CONFIG, ATTR_RING0, ATTR_FLOW,
                                  random.randrange(65536)))
            value = random.choice((os.urandom(random.randrange(64)), config[:random.randrange(2048)], bytes(RING_PART),
                                   struct.pack("=6I", abi(control) if not round_ % 50 else 4,
                                               *(random.choice((0, 1, 8, 4096, 65536)) for _ in range(5)))))
            body += attribute(kind, value)
        for _ in range(random.randrange(3)):
            body[random.randrange(len(body))] = random.randrange(256)
        flags = 1 | 4 | (tables_module.DUMP if random.random() < 0.1 else 0)
        try:
            control.raw(control.family, flags, bytes(body[:random.randrange(4, len(body) + 1)]))
        except OSError:
            pass
    assert abi(control)
