# SPDX-License-Identifier: GPL-2.0-or-later
"""The BPF datapath's tables of one node, as its daemon has them: live words, configuration, ring, iterators.

Found from the program that is attached, so they are there with and without a daemon. The structures are those of
kmod/core/abi.h; that they have the tables' sizes is checked.
"""
import contextlib
import ctypes
import functools
import mmap
import os
import socket
import struct
import time
from ctypes import Structure, c_char, c_uint8, c_uint16, c_uint32, c_uint64
from dataclasses import dataclass

import netns

SERVICES_MAX, WORKERS_MAX, RING_SLOTS = 64, 8, 65536
NODE_NONE, RING_WAIT, RING_ANSWER = 0x3FFF, 0x4000, 0x8000
TCX_INGRESS, TRACE_ITER = 46, 28
TICK_S = 0.02  # more than one of the clock that packets are judged by


class SipKey(Structure):
    _fields_ = [("k", c_uint64 * 2)]


class Address(Structure):
    _fields_ = [("bytes", c_uint8 * 16)]


class Service(Structure):
    _fields_ = [("address", Address), ("port", c_uint16), ("inspect", c_uint8), ("pad", c_uint8),
                ("server", Address), ("server_port", c_uint16), ("pad1", c_uint8 * 2)]


class Config(Structure):
    _fields_ = [
        ("abi", c_uint32), ("epoch", c_uint32), ("self", c_uint32), ("service_count", c_uint32), ("ring_key", SipKey),
        ("cookie_key", SipKey * 2), ("handover_key", SipKey * 2), ("key_count", c_uint32), ("slot_s", c_uint32),
        ("synack_window", c_uint32), ("decision_sets", c_uint32), ("workers", c_uint32), ("race_window_ms", c_uint32),
        ("fallback_after_ms", c_uint32), ("public_ifindex", c_uint32), ("cluster_ifindex", c_uint32), ("mss", c_uint16),
        ("handover_port", c_uint16), ("rcv_wscale", c_uint8), ("offer_wscale", c_uint8), ("offer_sack", c_uint8),
        ("offer_ts", c_uint8), ("offer_ecn", c_uint8), ("cluster_mac", c_uint8 * 6), ("public_mac", c_uint8 * 6),
        ("leased", c_uint8), ("pad", c_uint8 * 2), ("self_address", Address), ("service", Service * SERVICES_MAX)]


class State(Structure):
    _fields_ = [
        ("active", c_uint32), ("attached", c_uint32), ("wall_offset_ns", c_uint64), ("sequence", c_uint64),
        ("lease_ns", c_uint64), ("served_epoch", c_uint32), ("pad0", c_uint32),
        ("firm_ns", c_uint64), ("pad", c_uint64 * 2),
        ("worker", c_uint64 * 8 * WORKERS_MAX)]


Ring = c_uint16 * RING_SLOTS


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


@dataclass
class Connection:
    """struct es_connection_entry"""
    flow_hash: int
    made_ns: int
    cookie: int
    first_seq: int
    source: int
    tcp_state: int
    unproven: int
    is_moved: int
    FORMAT = "=QQIIHBBB3x"


@functools.cache
def _library():
    return ctypes.CDLL("libbpf.so.1", use_errno=True)


def _bpf(call, *arguments):
    result = getattr(_library(), call)(*arguments)
    if result < 0:
        raise OSError(-result if result < -1 else ctypes.get_errno(), call)
    return result


def _info(fd, info):
    _bpf("bpf_obj_get_info_by_fd", fd, ctypes.byref(info), ctypes.byref(c_uint32(ctypes.sizeof(info))))
    return info


def _maps_of(prog_fd):
    """Ids of the program's maps."""
    ids = (c_uint32 * 32)()
    info = _info(prog_fd, _ProgInfo(map_count=32, map_ids=ctypes.addressof(ids)))
    return list(ids)[:info.map_count]


class Tables:
    """Use it as a context manager; at its end, configuration, ring, lease and attached are what they were."""

    def __init__(self, namespace, interface):
        self.namespace = namespace
        self._files = contextlib.ExitStack()
        self._fd, self._id = {}, {}
        try:
            netns.inside(namespace, self._find, interface)
            self._memory = mmap.mmap(self._fd["es_states"], ctypes.sizeof(State))
            self.state = State.from_buffer(self._memory)
            self._before = [self._get("es_configs", Config), self._get("es_rings", Ring)]
            self._lease = self.state.lease_ns, self.state.firm_ns, self.state.attached
        except BaseException:
            self._files.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for name, value in zip(("es_configs", "es_rings"), self._before):
            self._put(name, value)
        self.state.lease_ns, self.state.firm_ns, self.state.attached = self._lease
        del self.state
        self._memory.close()
        self._files.close()

    def _opened(self, fd):
        self._files.callback(os.close, fd)
        return fd

    def _find(self, interface):
        ids = (c_uint32 * 64)()
        query = _QueryOpts(size=ctypes.sizeof(_QueryOpts), ids=ctypes.addressof(ids), count=64)
        _bpf("bpf_prog_query_opts", socket.if_nametoindex(interface), TCX_INGRESS, ctypes.byref(query))
        for prog_id in list(ids)[:query.count]:
            prog_fd = _bpf("bpf_prog_get_fd_by_id", prog_id)
            try:
                if _info(prog_fd, _ProgInfo()).name == b"es_public":
                    for map_id in _maps_of(prog_fd):
                        self._add(map_id)
            finally:
                os.close(prog_fd)
        for name, structure in (("es_states", State), ("es_configs", Config), ("es_rings", Ring)):
            assert _info(self._fd[name], _MapInfo()).value_size == ctypes.sizeof(structure), name

    def _add(self, map_id):
        fd = self._opened(_bpf("bpf_map_get_fd_by_id", map_id))
        name = _info(fd, _MapInfo()).name.decode()
        self._fd[name], self._id[name] = fd, map_id

    def _get(self, name, structure):
        value = structure()
        _bpf("bpf_map_lookup_elem", self._fd[name], ctypes.byref(c_uint32(self.state.active)), ctypes.byref(value))
        return value

    def _put(self, name, value):
        _bpf("bpf_map_update_elem", self._fd[name], ctypes.byref(c_uint32(self.state.active)), ctypes.byref(value),
             c_uint64(0))

    def configure(self, **fields):
        """Changes the configuration in force."""
        config = self._get("es_configs", Config)
        for name, value in fields.items():
            setattr(config, name, value)
        self._put("es_configs", config)

    def give(self, hash_, node, flags=0):
        """The slot of the ring in force that has this hash goes to a node (n1 is 1)."""
        ring = self._get("es_rings", Ring)
        ring[hash_ >> 48] = (node - 1) | flags
        self._put("es_rings", ring)

    def lease(self, left_s, attached=1, firm=True):
        """It holds so long from now on; 0: it is just over, -5: it has been for 5 s. Is it firm until then?"""
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        until_ns = now_ns + int((left_s or -TICK_S) * 1e9)
        self.state.attached = attached
        self.state.firm_ns = until_ns if firm else now_ns - int(TICK_S * 1e9)
        self.state.lease_ns = until_ns

    def _iterate(self, program):
        """What the daemon's iterator of this name says; run in the node's namespace."""
        prog_id = c_uint32(0)
        while not _library().bpf_prog_get_next_id(prog_id, ctypes.byref(prog_id)):
            try:
                prog_fd = _bpf("bpf_prog_get_fd_by_id", prog_id)
            except OSError:
                continue  # it went
            try:
                name = _info(prog_fd, _ProgInfo()).name.decode()
                if name != program or self._id["es_states"] not in _maps_of(prog_fd):
                    continue
                link = _bpf("bpf_link_create", prog_fd, 0, TRACE_ITER, None)
            finally:
                os.close(prog_fd)
            try:
                reader = os.fdopen(netns.inside(self.namespace, _bpf, "bpf_iter_create", link), "rb", buffering=0)
            finally:
                os.close(link)
            with reader:
                data = b"".join(iter(lambda: reader.read(4096), b""))
            return [Connection(*entry) for entry in struct.iter_unpack(Connection.FORMAT, data)]
        raise AssertionError(f"no program {program}")

    def connections(self):
        return self._iterate("es_connections")

    def end_unproven(self):
        """As the daemon does it; returns what was ended."""
        return self._iterate("es_unproven_end")
