# SPDX-License-Identifier: GPL-2.0-or-later
"""The BPF programs that are attached by tcx, by bpf(2) itself: bpftool and tc of Debian 12 are older than tcx."""
import ctypes
import os
import platform
import socket

_NR_BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_PROG_DETACH, _PROG_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD, _PROG_QUERY = 9, 13, 15, 16
_HOOKS = (46, 47)  # BPF_TCX_INGRESS, BPF_TCX_EGRESS
_MAX = 64
_libc = ctypes.CDLL(None, use_errno=True)


class _Query(ctypes.Structure):
    _fields_ = [("target", ctypes.c_uint32), ("hook", ctypes.c_uint32), ("query_flags", ctypes.c_uint32),
                ("attach_flags", ctypes.c_uint32), ("ids", ctypes.c_uint64), ("count", ctypes.c_uint32),
                ("pad", ctypes.c_uint32), ("prog_attach_flags", ctypes.c_uint64), ("link_ids", ctypes.c_uint64),
                ("link_attach_flags", ctypes.c_uint64), ("revision", ctypes.c_uint64)]


class _Id(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("next", ctypes.c_uint32), ("flags", ctypes.c_uint32)]


class _Detach(ctypes.Structure):
    _fields_ = [("target", ctypes.c_uint32), ("fd", ctypes.c_uint32), ("hook", ctypes.c_uint32), ("flags", ctypes.c_uint32)]


class _Info(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_uint32), ("length", ctypes.c_uint32), ("info", ctypes.c_uint64)]


def _bpf(command, attributes):
    result = _libc.syscall(_NR_BPF, command, ctypes.byref(attributes), ctypes.sizeof(attributes))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _name(number):
    """struct bpf_prog_info's name, which begins at byte 64."""
    fd = _bpf(_PROG_GET_FD_BY_ID, _Id(id=number))
    try:
        info = ctypes.create_string_buffer(128)
        _bpf(_OBJ_GET_INFO_BY_FD, _Info(fd=fd, length=len(info), info=ctypes.addressof(info)))
        return info.raw[64:80].split(b"\0")[0].decode()
    finally:
        os.close(fd)


def _attached(index, hook):
    """The programs' ids."""
    ids = (ctypes.c_uint32 * _MAX)()
    query = _Query(target=index, hook=hook, ids=ctypes.addressof(ids), count=_MAX)
    _bpf(_PROG_QUERY, query)
    return ids[:query.count]


def programs():
    """[(interface, program)] of the calling thread's network namespace."""
    return [(interface, _name(number)) for index, interface in socket.if_nameindex() for hook in _HOOKS
            for number in _attached(index, hook)]


def detach(interface):
    """Take all programs off an interface of the calling thread's network namespace, behind the back of who attached them."""
    index = socket.if_nametoindex(interface)
    for hook in _HOOKS:
        for number in _attached(index, hook):
            fd = _bpf(_PROG_GET_FD_BY_ID, _Id(id=number))
            try:
                _bpf(_PROG_DETACH, _Detach(target=index, fd=fd, hook=hook))
            finally:
                os.close(fd)
