# SPDX-License-Identifier: GPL-2.0-or-later
"""The attached BPF programs: run by hand (BPF_PROG_TEST_RUN), and what the kernel says of the time that they take."""
import contextlib
import ctypes
import os
import platform
import struct
import time

_NR_BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_PROG_LOAD, _PROG_TEST_RUN, _PROG_GET_NEXT_ID, _PROG_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD, _ENABLE_STATS = 5, 10, 11, 13, 15, 32
_SCHED_CLS = 3
_INFO_SIZE, _MAP_IDS_MAX = 208, 64
_THRASH = bytearray(16 << 20)
_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command, attributes):
    """bpf(2) with a mutable buffer of attributes; returns its result."""
    buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
    result = _libc.syscall(_NR_BPF, command, buffer, len(attributes))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"bpf({command}): {os.strerror(number)}")
    return result


def _address(buffer):
    return ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))


def _info(fd):
    """struct bpf_prog_info: (name, ids of the maps, nanoseconds run, times run)."""
    ids, info = bytearray(4 * _MAP_IDS_MAX), bytearray(_INFO_SIZE)
    struct.pack_into("<IQ", info, 52, _MAP_IDS_MAX, _address(ids))
    _bpf(_OBJ_GET_INFO_BY_FD, bytearray(struct.pack("<IIQ", fd, len(info), _address(info))))
    count = struct.unpack_from("<I", info, 52)[0]
    return (bytes(info[64:80]).split(b"\0")[0].decode(), struct.unpack_from(f"<{count}I", ids),
            *struct.unpack_from("<QQ", info, 192))


class Program:
    """One program: a descriptor of it that the owner closes."""

    def __init__(self, fd):
        self.fd = fd

    def close(self):
        os.close(self.fd)

    def run(self, frame, repeat=1, ifindex=0):
        """Run it with a frame as if that came in on the interface. Returns nanoseconds a run, whole ones. The repetitions
        have one buffer: what the program writes, its next run reads."""
        data, context = bytearray(frame), bytearray(struct.pack("<10II", *[0] * 10, ifindex))
        call = bytearray(80)
        struct.pack_into("<IIIIQQIIIIQQ", call, 0, self.fd, 0, len(data), 0, _address(data), 0, repeat, 0, len(context), 0,
                         _address(context), 0)
        _bpf(_PROG_TEST_RUN, call)
        return struct.unpack_from("<I", call, 36)[0]

    def ran(self):
        """(nanoseconds, runs) since it was loaded, of the time in which the kernel counted them."""
        return _info(self.fd)[2:]


def empty():
    """A program that does nothing: what a measurement itself costs."""
    code = bytearray(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0))  # r0 = 0; exit
    license_ = bytearray(b"GPL\0")
    load = bytearray(72)
    struct.pack_into("<IIQQ", load, 0, _SCHED_CLS, 2, _address(code), _address(license_))
    return Program(_bpf(_PROG_LOAD, load))


def of_map(map_id, names):
    """{name: Program} of the programs of these names that use the map. They must all be there."""
    found, request = {}, bytearray(struct.pack("<III", 0, 0, 0))
    while True:
        try:
            _bpf(_PROG_GET_NEXT_ID, request)
        except OSError:
            break  # there is no further one
        following = struct.unpack_from("<I", request, 4)[0]
        struct.pack_into("<I", request, 0, following)
        try:
            fd = _bpf(_PROG_GET_FD_BY_ID, bytearray(struct.pack("<III", following, 0, 0)))
        except OSError:
            continue  # it went
        name, ids = _info(fd)[:2]
        if name in names and map_id in ids and name not in found:
            found[name] = Program(fd)
        else:
            os.close(fd)
    missing = set(names) - set(found)
    if missing:
        raise OSError(f"the programs {', '.join(sorted(missing))} are not loaded")
    return found


@contextlib.contextmanager
def stats():
    """The kernel counts and times all programs' runs meanwhile. Yields whether it can."""
    try:
        fd = _bpf(_ENABLE_STATS, bytearray(4))
    except OSError:
        yield False
        return
    try:
        time.sleep(0.01)  # other CPUs see it
        yield True
    finally:
        os.close(fd)


def chill():
    """Drive the program and its tables out of the processor's caches."""
    ctypes.memset((ctypes.c_char * len(_THRASH)).from_buffer(_THRASH), 1, len(_THRASH))
