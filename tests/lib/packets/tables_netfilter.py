# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the netfilter datapath keeps its tables (tables.py): live words are in a file below /run, which is there with and
without a daemon (netfilter/node/memory.h). What is in force is in the daemon's own memory, and goes with it; the daemon of these
tests, which is earshotd but for one command, reads and writes it (tests/datapath/tables_command.c)."""
import mmap
import struct

from earshotlab import netns

MAGIC, PAGE = 0x45534e46, mmap.PAGESIZE
ABI_AT = 8  # in the header: magic, layout, ABI
ENTRY_BYTES = 32  # struct es_connection_entry


def path(namespace):
    """Of the tables of a network namespace, which is numbered."""
    return f"/run/earshot/netfilter-{netns.identity(namespace)[1]}.tables"


class Driver:
    """The tables of the node. sizes: what the named tables' values must have."""

    def __init__(self, node, sizes):
        self._node, self._sizes = node, sizes
        with open(path(node.namespace), "r+b") as file:
            assert struct.unpack("=I", file.read(4)) == (MAGIC,)
            # Behind the page of the header; all other tables begin behind these words' last page.
            self.memory = mmap.mmap(file.fileno(), sizes["es_states"], offset=PAGE)

    def settle(self):
        """What the daemon has not seen yet came while that was in force, and held, which holds now."""
        self._node.queues.drain()

    def be_another_version(self):
        with open(path(self._node.namespace), "r+b") as file:
            file.seek(ABI_AT)
            file.write(struct.pack("=I", 999))

    def close(self):
        self.memory.close()

    def _ask(self, do, **arguments):
        return self._node.ask("tables", do=do, **arguments)

    def _read(self):
        if self._node.is_gone():
            return {name: bytes(self._sizes[name]) for name in ("es_configs", "es_rings")}
        answer = self._ask("get")
        found = {"es_configs": bytes.fromhex(answer["config"]), "es_rings": bytes.fromhex(answer["ring"])}
        assert all(len(found[name]) == self._sizes[name] for name in found)
        return found

    def get(self, name, _slot, _size):
        """There is one version, whatever the slot: configuration and ring are replaced together."""
        return self._read()[name]

    def put(self, name, _slot, value):
        if self._node.is_gone() or not any(bytes(value)):  # then nothing is, or was, in force
            return
        version = self._read()
        version[name] = bytes(value)
        self._ask("put", config=version["es_configs"].hex(), ring=version["es_rings"].hex())

    def _entries(self):
        found = bytes.fromhex(self._ask("connections")["entries"])
        return [found[i:i + ENTRY_BYTES] for i in range(0, len(found), ENTRY_BYTES)]

    def iterate(self, name):
        """What is ended is counted, and not listed: what is missing afterwards has ended. Among it are connections that nobody had noted,
        as another test may have left them."""
        before = self._entries()
        if name == "es_connections":
            return b"".join(before)
        count = self._ask("end_unproven")["count"]
        left = {entry[:8] for entry in self._entries()}  # the first word is the flow's hash
        ended = [entry for entry in before if entry[:8] not in left]
        assert len(ended) <= count, f"{count} ended, {len(ended)} are missing"
        return b"".join(ended)
