# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the BPF datapath keeps its tables (tables.py): maps, found from the attached program, and iterators."""
import contextlib
import ctypes
import functools
import mmap
import os
import socket
from ctypes import Structure, c_char, c_uint8, c_uint32, c_uint64

from earshotlab import netns

TCX_INGRESS, TRACE_ITER = 46, 28


class _ProgInfo(Structure):
    _fields_ = [("type", c_uint32), ("id", c_uint32), ("tag", c_uint8 * 8), ("jited_len", c_uint32),
                ("xlated_len", c_uint32), ("jited", c_uint64), ("xlated", c_uint64), ("load_time", c_uint64),
                ("uid", c_uint32), ("map_count", c_uint32), ("map_ids", c_uint64), ("name", c_char * 16)]


class _MapInfo(Structure):
    _fields_ = [("type", c_uint32), ("id", c_uint32), ("key_size", c_uint32), ("value_size", c_uint32),
                ("max_entries", c_uint32), ("flags", c_uint32), ("name", c_char * 16)]


class _QueryOpts(Structure):
    _fields_ = [("size", c_uint64), ("query_flags", c_uint32), ("attach_flags", c_uint32), ("ids", c_uint64),
                ("count", c_uint32), ("attach_flags_of", c_uint64)]


@functools.cache
def _library():
    return ctypes.CDLL("libbpf.so.1", use_errno=True)


def bpf(call, *arguments):
    result = getattr(_library(), call)(*arguments)
    if result < 0:
        raise OSError(-result if result < -1 else ctypes.get_errno(), call)
    return result


def _info(fd, info):
    bpf("bpf_obj_get_info_by_fd", fd, ctypes.byref(info), ctypes.byref(c_uint32(ctypes.sizeof(info))))
    return info


def _maps_of(prog_fd):
    """Ids of the program's maps."""
    ids = (c_uint32 * 32)()
    info = _info(prog_fd, _ProgInfo(map_count=32, map_ids=ctypes.addressof(ids)))
    return list(ids)[:info.map_count]


class Driver:
    """The tables of the programs on the node's public interface. sizes: what the named maps' values must have."""

    def __init__(self, node, sizes):
        self.namespace = node.namespace
        self._files = contextlib.ExitStack()
        self._fd, self._id = {}, {}
        try:
            netns.in_namespace(self.namespace, self._find, node.settings["interface"], sizes)
            self.memory = mmap.mmap(self._fd["es_states"], sizes["es_states"])
        except BaseException:
            self._files.close()
            raise

    def settle(self):
        """Whatever has come was dealt with at once."""

    def close(self):
        self.memory.close()
        self._files.close()

    def _opened(self, fd):
        self._files.callback(os.close, fd)
        return fd

    def _find(self, interface, sizes):
        ids = (c_uint32 * 64)()
        query = _QueryOpts(size=ctypes.sizeof(_QueryOpts), ids=ctypes.addressof(ids), count=64)
        bpf("bpf_prog_query_opts", socket.if_nametoindex(interface), TCX_INGRESS, ctypes.byref(query))
        for prog_id in list(ids)[:query.count]:
            prog_fd = bpf("bpf_prog_get_fd_by_id", prog_id)
            try:
                if _info(prog_fd, _ProgInfo()).name == b"es_public":
                    for map_id in _maps_of(prog_fd):
                        self._add(map_id)
            finally:
                os.close(prog_fd)
        for name, size in sizes.items():
            assert _info(self._fd[name], _MapInfo()).value_size == size, name

    def _add(self, map_id):
        fd = self._opened(bpf("bpf_map_get_fd_by_id", map_id))
        name = _info(fd, _MapInfo()).name.decode()
        self._fd[name], self._id[name] = fd, map_id

    def map_id(self, name):
        """The kernel's number of the map."""
        return self._id[name]

    def get(self, name, slot, size):
        value = ctypes.create_string_buffer(size)
        bpf("bpf_map_lookup_elem", self._fd[name], ctypes.byref(c_uint32(slot)), value)
        return value.raw

    def put(self, name, slot, value):
        bpf("bpf_map_update_elem", self._fd[name], ctypes.byref(c_uint32(slot)), ctypes.byref(value), c_uint64(0))

    def iterate(self, program):
        """What the daemon's iterator of this name says; run in the node's namespace."""
        prog_id = c_uint32(0)
        while not _library().bpf_prog_get_next_id(prog_id, ctypes.byref(prog_id)):
            try:
                prog_fd = bpf("bpf_prog_get_fd_by_id", prog_id)
            except OSError:
                continue  # it went
            try:
                name = _info(prog_fd, _ProgInfo()).name.decode()
                if name != program or self._id["es_states"] not in _maps_of(prog_fd):
                    continue
                link = bpf("bpf_link_create", prog_fd, 0, TRACE_ITER, None)
            finally:
                os.close(prog_fd)
            try:
                reader = os.fdopen(netns.in_namespace(self.namespace, bpf, "bpf_iter_create", link), "rb", buffering=0)
            finally:
                os.close(link)
            with reader:
                return b"".join(iter(lambda: reader.read(4096), b""))
        raise AssertionError(f"no program {program}")
