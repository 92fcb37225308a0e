# SPDX-License-Identifier: GPL-2.0-or-later
"""Where earshot.ko keeps its tables: commands over generic netlink and mapped memory (kmod/core/control.h, tables.py)."""
import fcntl
import mmap
import os
import socket
import struct

from earshotlab import netns

NETLINK_GENERIC = 16
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
REQUEST, ACK, DUMP = 1, 4, 0x300
ERROR, DONE = 2, 3
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
CMD_GET, CMD_NEW, CMD_CONFIGURE, CMD_ATTACH, CMD_REMOVE, CMD_COUNTERS = 1, 2, 3, 4, 5, 6
CMD_FLOWS, CMD_CONNECTIONS, CMD_END_UNPROVEN, CMD_CONFIGURATION, CMD_CONNECTION = 8, 9, 10, 11, 12
ATTR_ABI, ATTR_PARAMS, ATTR_CONFIG, ATTR_RING0, ATTR_ENTRIES, ATTR_COUNT, ATTR_FLOW = 1, 3, 5, 6, 12, 13, 14
RING_PARTS = 4
IOC_TABLE = 0x6553
STATE, DECISIONS, RESPONSES, KEPTS, DOWNLOADS, TABLES = 8, 9, 10, 11, 12, 13
ENTRY_BYTES = 32  # struct es_connection_entry
KEPT_SLOTS, KEPT_BYTES = 262144, 16  # struct es_kept_slot


def _attributes(data):
    """(type, value) of each."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3:]


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


class Control:
    """Commands to the module in this thread's network namespace."""

    def __init__(self):
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_GENERIC)
        self._socket.bind((0, 0))
        self._socket.settimeout(10)
        for buffer in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):  # a ring is one message
            self._socket.setsockopt(socket.SOL_SOCKET, buffer, 1 << 20)
        self._sequence = 0
        answer = self._transact(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, attribute(CTRL_ATTR_FAMILY_NAME, b"earshot\0"))
        self._family = struct.unpack("=H", dict(answer)[CTRL_ATTR_FAMILY_ID])[0]

    def close(self):
        self._socket.close()

    def raw(self, kind, flags, payload):
        """Sends a message as it is; returns its (type, value) attributes. Raises OSError for what the kernel refuses."""
        self._sequence += 1
        self._socket.send(struct.pack("=IHHII", 16 + len(payload), kind, flags, self._sequence, 0) + payload)
        found = []
        while True:
            data = self._socket.recv(1 << 18)
            while data:
                length, answer, _, sequence, _ = struct.unpack_from("=IHHII", data)
                body, data = data[16:length], data[(length + 3) & ~3:]
                if sequence != self._sequence:
                    continue
                if answer in (ERROR, DONE):
                    error = struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
                    if error:
                        raise OSError(-error, os.strerror(-error))
                    return found
                found += _attributes(body[4:])

    def _transact(self, kind, command, version, payload=b"", flags=ACK):
        return self.raw(kind, REQUEST | flags, struct.pack("=BBH", command, version, 0) + payload)

    def ask(self, command, payload=b"", flags=ACK):
        return self._transact(self._family, command, 1, payload, flags)

    @property
    def family(self):
        return self._family


class Driver:
    """The tables of the module's node. sizes: what the named tables' values must have."""

    def __init__(self, node, sizes):
        self._control = netns.in_namespace(node.namespace, Control)
        self._sizes = sizes
        self._namespace = node.namespace
        self.memory = netns.in_namespace(node.namespace, self._map, STATE, sizes["es_states"])
        self._kepts = None

    @staticmethod
    def _map(table, size):
        fd = os.open("/dev/earshot", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(fd, IOC_TABLE, table)
            return mmap.mmap(fd, size)
        finally:
            os.close(fd)

    def _kept_slot(self, slot):
        """Where it is. Mapped only by who asks: that a table was asked for means something to the module."""
        if not self._kepts:
            self._kepts = netns.in_namespace(self._namespace, self._map, KEPTS, KEPT_SLOTS * KEPT_BYTES)
        return slice(slot * KEPT_BYTES, (slot + 1) * KEPT_BYTES)

    def settle(self):
        """Whatever has come was dealt with at once."""

    def close(self):
        self.memory.close()
        if self._kepts:
            self._kepts.close()
        self._control.close()

    def _read(self):
        answer = dict(self._control.ask(CMD_CONFIGURATION))
        found = {"es_configs": answer[ATTR_CONFIG],
                 "es_rings": b"".join(answer[ATTR_RING0 + i] for i in range(RING_PARTS))}
        assert all(len(found[name]) == self._sizes[name] for name in found)
        return found

    def get(self, name, slot, _size):
        """There is one version, whatever the slot: configuration and ring are replaced together."""
        if name == "es_kepts":
            at = self._kept_slot(slot)
            return self._kepts[at]
        return self._read()[name]

    def put(self, name, slot, value):
        if name == "es_kepts":
            at = self._kept_slot(slot)
            self._kepts[at] = bytes(value)
            return
        version = self._read()
        version[name] = bytes(value)
        part = len(version["es_rings"]) // RING_PARTS
        payload = attribute(ATTR_CONFIG, version["es_configs"])
        for i in range(RING_PARTS):
            payload += attribute(ATTR_RING0 + i, version["es_rings"][i * part:(i + 1) * part])
        self._control.ask(CMD_CONFIGURE, payload)

    def _connections(self):
        answer = self._control.ask(CMD_CONNECTIONS, flags=DUMP)
        return b"".join(value for kind, value in answer if kind == ATTR_ENTRIES)

    def _entries(self):
        found = self._connections()
        return [found[i:i + ENTRY_BYTES] for i in range(0, len(found), ENTRY_BYTES)]

    def iterate(self, name):
        """The module counts what it ends, and does not list it: what is missing afterwards has ended."""
        if name == "es_connections":
            return self._connections()
        before = self._entries()
        count = struct.unpack("=I", dict(self._control.ask(CMD_END_UNPROVEN))[ATTR_COUNT])[0]
        left = {entry[:8] for entry in self._entries()}  # the first word is the flow's hash
        ended = [entry for entry in before if entry[:8] not in left]
        assert len(ended) == count, f"{count} ended, {len(ended)} are missing"
        return b"".join(ended)
