# SPDX-License-Identifier: GPL-2.0-or-later
"""The datapath's tables of one node, as its daemon has them: live words, configuration, ring, connections.

The structures are those of kmod/core/abi.h, the same for every datapath; where they are is the driver's business,
tables_DATAPATH.py. They are found from the kernel's side, so they are there with and without a daemon.

Driver(node, sizes), with the sizes that tables must have, has

    memory                   a writable buffer: State
    get(name, slot, size)    bytes of a table's slot: "es_configs", "es_rings"
    put(name, slot, value)   a ctypes structure into it
    settle()                 waits until the datapath has seen what has come
    iterate(name)            the bytes of "es_connections", or of "es_unproven_end", which ends what it lists
    close()
"""
import ctypes
import importlib
import struct
import time
from ctypes import Structure, c_uint8, c_uint16, c_uint32, c_uint64
from dataclasses import dataclass

SERVICES_MAX, WORKERS_MAX, NODES_MAX, RING_SLOTS = 64, 8, 128, 65536
NODE_NONE, RING_WAIT, RING_ANSWER = 0x3FFF, 0x4000, 0x8000
GUESSES_MAX = 1000
TICK_S = 0.02  # more than one of the clock that packets are judged by


class SipKey(Structure):
    _fields_ = [("k", c_uint64 * 2)]


class Address(Structure):
    _fields_ = [("bytes", c_uint8 * 16)]


class Service(Structure):
    _fields_ = [("address", Address), ("port", c_uint16), ("inspect", c_uint8), ("unsafe", c_uint8),
                ("server", Address), ("server_port", c_uint16), ("gives", c_uint8), ("survives", c_uint8), ("address6", Address),
                ("server6", Address)]


class Config(Structure):
    _fields_ = [
        ("abi", c_uint32), ("epoch", c_uint32), ("self", c_uint32), ("service_count", c_uint32), ("ring_key", SipKey),
        ("cookie_key", SipKey * 2), ("handover_key", SipKey * 2), ("key_count", c_uint16), ("ring_seed", c_uint16), ("slot_s", c_uint32),
        ("synack_window", c_uint32), ("decision_sets", c_uint32), ("workers", c_uint32), ("race_window_ms", c_uint32),
        ("fallback_after_ms", c_uint32), ("public_ifindex", c_uint32), ("cluster_ifindex", c_uint32), ("mss", c_uint16),
        ("handover_port", c_uint16), ("rcv_wscale", c_uint8), ("offer_wscale", c_uint8), ("offer_sack", c_uint8),
        ("offer_ts", c_uint8), ("offer_ecn", c_uint8), ("cluster_mac", c_uint8 * 6), ("public_mac", c_uint8 * 6),
        ("leased", c_uint8), ("reads_replies", c_uint8), ("pad", c_uint8), ("self_address", Address), ("service", Service * SERVICES_MAX)]


class State(Structure):
    _fields_ = [
        ("active", c_uint32), ("attached", c_uint32), ("wall_offset_ns", c_uint64), ("sequence", c_uint64),
        ("lease_ns", c_uint64), ("served_epoch", c_uint32), ("heard_slot_s", c_uint32),
        ("firm_ns", c_uint64), ("reset_ns", c_uint64), ("hears_ns", c_uint64), ("doubt_ns", c_uint64),
        ("guesses", c_uint64 * 2), ("began_ns", c_uint64), ("was_deaf", c_uint64),
        ("wall_before_ns", c_uint64), ("number_ns", c_uint64), ("wall_before_until_s", c_uint32), ("asked_until_s", c_uint32),
        ("worker", c_uint64 * 8 * WORKERS_MAX), ("mark", c_uint64 * 128 * WORKERS_MAX),
        ("poisons", c_uint64 * (8 + 6 * 32)), ("began", c_uint32 * NODES_MAX)]


class Ring(Structure):
    _fields_ = [("node", c_uint16 * RING_SLOTS), ("answered", c_uint64 * (RING_SLOTS // 64))]


class Kept(Structure):
    """struct es_kept_slot"""
    _fields_ = [("flow_hash", c_uint64), ("seq", c_uint32), ("is_heard", c_uint8), ("is_orphan", c_uint8), ("is_asked", c_uint8),
                ("pad", c_uint8)]
    SLOTS = 262144


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


class Tables:
    """Use it as a context manager; at its end, configuration, ring and the state's words are what they were."""

    WORDS = "lease_ns", "firm_ns", "attached", "hears_ns", "doubt_ns", "began_ns", "asked_until_s"

    def __init__(self, datapath, node):
        driver = importlib.import_module(f"packets.tables_{datapath}").Driver
        self._driver = driver(node, {
            "es_states": ctypes.sizeof(State), "es_configs": ctypes.sizeof(Config), "es_rings": ctypes.sizeof(Ring)})
        try:
            self.state = State.from_buffer(self._driver.memory)
            self._before = [self._get("es_configs", Config), self._get("es_rings", Ring)]
            self._left_out = set()
            self._words = {name: getattr(self.state, name) for name in self.WORDS}
        except BaseException:
            self._driver.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for name, value in zip(("es_configs", "es_rings"), self._before):
            self._put(name, value)
        for name, value in self._words.items():
            setattr(self.state, name, value)
        del self.state
        self._driver.close()

    def _get(self, name, structure):
        return structure.from_buffer_copy(self._driver.get(name, self.state.active, ctypes.sizeof(structure)))

    def _put(self, name, value):
        self._driver.put(name, self.state.active, value)

    def configure(self, **fields):
        """Changes the configuration in force."""
        config = self._get("es_configs", Config)
        for name, value in fields.items():
            setattr(config, name, value)
        self._put("es_configs", config)

    def be_another_version(self):
        """As if another version had left them; for tables without a daemon."""
        if hasattr(self._driver, "be_another_version"):
            self._driver.be_another_version()
            return
        for self.state.active in (1, 0):  # both versions of the configuration
            self.configure(abi=999)

    def give(self, hash_, node, flags=0):
        """The slot of the ring in force that has this hash goes to a node (n1 is 1)."""
        ring = self._get("es_rings", Ring)
        slot, bit = hash_ >> 48, 1 << (hash_ >> 48) % 64
        ring.node[slot] = (node - 1) | flags
        ring.answered[slot // 64] &= ~bit
        if node - 1 == self._get("es_configs", Config).self or flags & RING_ANSWER:
            ring.answered[slot // 64] |= bit
        self._put("es_rings", ring)

    def lease(self, left_s, attached=1, firm=True):
        """It holds so long from now on; 0: it is just over, -5: it has been for 5 s. Is it firm until then?"""
        self._driver.settle()
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        until_ns = now_ns + int((left_s or -TICK_S) * 1e9)
        self.state.attached = attached
        self.state.firm_ns = until_ns if firm else now_ns - int(TICK_S * 1e9)
        self.state.lease_ns = until_ns

    def service(self, index, **fields):
        """Changes a service of the configuration in force."""
        config = self._get("es_configs", Config)
        for name, value in fields.items():
            setattr(config.service[index], name, value)
        self._put("es_configs", config)

    def keep(self, hash_, seq, is_orphan=0, is_asked=0):
        """Another node has told that this connection is idle, and its next request begins there. Is its client asked whether it waits?"""
        self._driver.put("es_kepts", hash_ >> 20 & Kept.SLOTS - 1, Kept(hash_, seq, 0, is_orphan, is_asked))

    def asks(self, left_s):
        """So long, clients may answer that were asked."""
        self.state.asked_until_s = int(time.clock_gettime(time.CLOCK_MONOTONIC) + left_s)

    def kept(self, hash_):
        return Kept.from_buffer_copy(self._driver.get("es_kepts", hash_ >> 20 & Kept.SLOTS - 1, ctypes.sizeof(Kept)))

    def doubt(self, left_s):
        """A node was lost: so long, what it had may come again."""
        self.state.doubt_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) + int(left_s * 1e9)

    def hears(self, since_s):
        """Since so long, all that comes on the public network was heard."""
        self.state.hears_ns = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - int(since_s * 1e9)) % (1 << 64)

    @staticmethod
    def _coarse_s():
        """The second that it is, or was until a moment ago, by the clock that packets are judged by."""
        return int(time.clock_gettime(time.CLOCK_MONOTONIC) - TICK_S)

    def guess(self, count=GUESSES_MAX + 1):
        """From now on, and for two seconds at least, so many segments a second guess cookies; more than may."""
        now = self._coarse_s()
        for second in (now, now + 1):
            self.state.guesses[second & 1] = second << 32 | count

    def guesses(self):
        """How many guesses this second and the one before have had."""
        now = self._coarse_s()
        return sum(word & 0xFFFFFFFF for word in self.state.guesses if now - (word >> 32) < 2)

    def many_guesses(self):
        now = self._coarse_s()
        return any(word & 0xFFFFFFFF > GUESSES_MAX for word in self.state.guesses if now - (word >> 32) < 2)

    def began(self, ago_s):
        """So long ago, the node began to take messages, with empty windows. What stamps the clocks showed then stays."""
        self.state.began_ns = (time.clock_gettime_ns(time.CLOCK_MONOTONIC) - int(ago_s * 1e9)) % (1 << 64)

    def leave_out(self):
        """connections() and end_unproven() do not list what is there now: other tests' connections, whose FIN the node repeats
        for minutes."""
        self._left_out = {entry.flow_hash for entry in self.connections()}

    def _connections(self, name):
        self._driver.settle()
        found = (Connection(*entry) for entry in struct.iter_unpack(Connection.FORMAT, self._driver.iterate(name)))
        return [entry for entry in found if entry.flow_hash not in self._left_out]

    def connections(self):
        return self._connections("es_connections")

    def end_unproven(self):
        """As the daemon does it; returns what was ended."""
        return self._connections("es_unproven_end")
