# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands to earshot.ko by hand, right ones and wrong ones (kmod/core/control.h)."""
import ctypes
import fcntl
import mmap
import os
import struct

import pytest

from packets import tables, tables_module
from packets.tables_module import ATTR_ABI, ATTR_FLOW, ATTR_PARAMS, CMD_GET, IOC_TABLE, attribute

FLOW = attribute(ATTR_FLOW, bytes(36))
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
