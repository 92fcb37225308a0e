# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of others on the node's interfaces: tcx programs and tc filters (clsact) that drop one client's packets."""
import contextlib
import ctypes
import socket
import struct
from ctypes import Structure, c_char_p, c_int, c_size_t, c_uint32

from earshotlab import netns
from packets import tables_bpf

SCHED_CLS = 3
TCX = {"ingress": 46, "egress": 47}
TC = {"ingress": 1, "egress": 2}  # enum bpf_tc_attach_point
ADDRESS = {"ingress": 26, "egress": 30}  # the offset in the frame of the client's address
TC_ACT_SHOT, TC_ACT_UNSPEC = 2, -1


class _Hook(Structure):
    _fields_ = [("size", c_size_t), ("ifindex", c_int), ("point", c_int), ("parent", c_uint32)]


class _Opts(Structure):
    _fields_ = [("size", c_size_t), ("fd", c_int), ("flags", c_uint32), ("id", c_uint32), ("handle", c_uint32),
                ("priority", c_uint32)]


def _insn(code, dst=0, src=0, off=0, imm=0):
    return struct.pack("=BBhi", code, src << 4 | dst, off, imm)


def _load(way, client):
    """A program that drops what comes from, or goes to, this client, and has nothing to say about the rest."""
    address, = struct.unpack("!i", socket.inet_aton(client))
    code = b"".join((
        _insn(0xbf, dst=6, src=1),  # r6 = context, for the next one
        _insn(0x20, imm=ADDRESS[way]),  # r0 = the address, or the program ends with 0
        _insn(0xbc, dst=0, src=0),
        _insn(0x56, dst=0, off=2, imm=address),  # if another one
        _insn(0xb7, dst=0, imm=TC_ACT_SHOT),
        _insn(0x95),
        _insn(0xb7, dst=0, imm=TC_ACT_UNSPEC),
        _insn(0x95)))
    return tables_bpf.bpf("bpf_prog_load", c_int(SCHED_CLS), c_char_p(b"foreign"), c_char_p(b"GPL"), code,
                          c_size_t(len(code) // 8), None)


@contextlib.contextmanager
def drops(node, client, way="ingress", kind="tcx", interface="eth0"):
    """While inside, another program on the interface drops this client's packets. It is behind those that are there."""
    def attach():
        prog, index = _load(way, client), socket.if_nametoindex(interface)
        hook = _Hook(size=ctypes.sizeof(_Hook), ifindex=index, point=TC[way])
        if kind == "tcx":
            tables_bpf.bpf("bpf_prog_attach_opts", c_int(prog), c_int(index), c_int(TCX[way]), None)
            return lambda: tables_bpf.bpf("bpf_prog_detach2", c_int(prog), c_int(index), c_int(TCX[way]))
        tables_bpf.bpf("bpf_tc_hook_create", ctypes.byref(hook))
        tables_bpf.bpf("bpf_tc_attach", ctypes.byref(hook), ctypes.byref(_Opts(
            size=ctypes.sizeof(_Opts), fd=prog, handle=1, priority=1)))
        both = _Hook(size=ctypes.sizeof(_Hook), ifindex=index, point=TC["ingress"] | TC["egress"])
        return lambda: tables_bpf.bpf("bpf_tc_hook_destroy", ctypes.byref(both))

    detach = netns.in_namespace(node.namespace, attach)
    try:
        yield
    finally:
        netns.in_namespace(node.namespace, detach)
