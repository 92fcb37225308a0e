# SPDX-License-Identifier: GPL-2.0-or-later
"""The control protocol (kmod/core/control.h) with what no daemon would say."""
import ctypes
import errno
import fcntl
import mmap
import os
import random
import struct

import pytest

import netns
import tables
import tables_module
from tables_module import ATTR_CONFIG, ATTR_RING0, IOC_TABLE, Control, attribute

CMD_GET, CMD_NEW, CMD_CONFIGURE, CMD_ATTACH, CMD_REMOVE, CMD_COUNTERS = 1, 2, 3, 4, 5, 6
CMD_CONNECTION = 12
ATTR_ABI, ATTR_PARAMS = 1, 3
ATTR_FLOW = 14
FLOW = attribute(ATTR_FLOW, bytes(36))
STATE, DECISIONS, RESPONSES, TABLES = 8, 9, 10, 11
PAGE = mmap.PAGESIZE
RING_PART = ctypes.sizeof(tables.Ring) // tables_module.RING_PARTS


def abi(control):
    return struct.unpack("=I", dict(control.ask(CMD_GET))[ATTR_ABI])[0]


def params(control, public=1, cluster=1, workers=1, queue_bytes=65536, decision_sets=1024, version=None):
    version = abi(control) if version is None else version
    return attribute(ATTR_PARAMS, struct.pack("=6I", version, public, cluster, workers, queue_bytes, decision_sets))


def refused(error, call, *arguments, **keywords):
    with pytest.raises(OSError) as info:
        call(*arguments, **keywords)
    assert info.value.errno == error, info.value


def opened(table):
    fd = os.open("/dev/earshot", os.O_RDWR)
    try:
        fcntl.ioctl(fd, IOC_TABLE, table)
    except OSError:
        os.close(fd)  # or the module stays in use
        raise
    return fd


def test_nothing_without_a_node(control, namespace):
    for command in (CMD_ATTACH, CMD_REMOVE, CMD_COUNTERS):
        refused(errno.ENOENT, control.ask, command)
    for command in (tables_module.CMD_FLOWS, tables_module.CMD_CONNECTIONS):
        refused(errno.ENOENT, control.ask, command, flags=tables_module.DUMP)
    refused(errno.ENOENT, control.ask, CMD_CONNECTION, FLOW)
    refused(errno.ENOENT, netns.inside, namespace, opened, STATE)


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


def test_a_namespace_that_goes_takes_its_node_along(namespace):
    c = netns.inside(namespace, Control)
    c.ask(CMD_NEW, params(c))
    c.ask(CMD_ATTACH)
    c.close()  # and the namespace at the fixture's end


def test_consumer_may_write_its_own_page_only(control, namespace):
    control.ask(CMD_NEW, params(control))
    for table in (0, RESPONSES):
        fd = netns.inside(namespace, opened, table)
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
    fd = netns.inside(namespace, opened, DECISIONS)
    with pytest.raises(OSError):
        mmap.mmap(fd, 1024 * 64 + PAGE)
    os.close(fd)
    refused(errno.EINVAL, netns.inside, namespace, opened, TABLES)
    refused(errno.ENOENT, netns.inside, namespace, opened, 1)  # there is one worker


def test_memory_outlives_its_node(control, namespace):
    control.ask(CMD_NEW, params(control))
    fds = [netns.inside(namespace, opened, table) for table in (0, STATE, DECISIONS)]
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
