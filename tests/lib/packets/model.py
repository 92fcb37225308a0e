# SPDX-License-Identifier: GPL-2.0-or-later
"""What a packet must look like, worked out without a line of Earshot's code.

Keys, flow hash, ring, cookies and handover messages, written from the comments of kmod/core/, ring/ring.h and
inspector/config/keyfile.h. What this file and the datapath disagree about is a bug in one of them.
"""
import bisect
import hashlib
import hmac
import itertools
import socket
import struct
import time
from dataclasses import dataclass, field

MASK64 = (1 << 64) - 1
MASK32 = (1 << 32) - 1


def _rol(x, n):
    return ((x << n) | (x >> (64 - n))) & MASK64


def siphash(key, data):
    """SipHash-2-4 of bytes under (k0, k1)."""
    k0, k1 = key
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    tail = len(data) // 8 * 8
    words = list(struct.unpack_from(f"<{tail // 8}Q", data))
    words.append(int.from_bytes(data[tail:], "little") | (len(data) & 0xFF) << 56)
    for index, word in enumerate([*words, None]):
        if word is None:
            v2 ^= 0xFF
        else:
            v3 ^= word
        for _ in range(4 if word is None else 2):
            v0 = (v0 + v1) & MASK64
            v1 = _rol(v1, 13) ^ v0
            v0 = _rol(v0, 32)
            v2 = (v2 + v3) & MASK64
            v3 = _rol(v3, 16) ^ v2
            v0 = (v0 + v3) & MASK64
            v3 = _rol(v3, 21) ^ v0
            v2 = (v2 + v1) & MASK64
            v1 = _rol(v1, 17) ^ v2
            v2 = _rol(v2, 32)
        if word is not None:
            v0 ^= word
    return v0 ^ v1 ^ v2 ^ v3


def jhash(data, seed):
    """Bob Jenkins' lookup3 of bytes, as the kernel has it: words are little endian."""
    a = b = c = (0xDEADBEEF + len(data) + seed) & MASK32

    def rol(x, n):
        return (x << n | x >> (32 - n)) & MASK32

    while len(data) > 12:
        k = struct.unpack_from("<3I", data)
        a, b, c = (a + k[0]) & MASK32, (b + k[1]) & MASK32, (c + k[2]) & MASK32
        for n in (4, 6, 8, 16, 19, 4):
            a = (a - c) & MASK32 ^ rol(c, n)
            c = (c + b) & MASK32
            a, b, c = b, c, a  # the next round is the same of the others
        data = data[12:]
    k = struct.unpack("<3I", data.ljust(12, b"\0"))
    a, b, c = (a + k[0]) & MASK32, (b + k[1]) & MASK32, (c + k[2]) & MASK32
    for n in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - rol(b, n)) & MASK32
        a, b, c = b, c, a
    # Seven rounds: what the last one has made is b by now.
    return b


def jhash_slot(seed, client, client_port):
    """nft's `jhash ip saddr . tcp sport mod 65536`; each part is padded to four bytes."""
    family = socket.AF_INET6 if ":" in client else socket.AF_INET
    return jhash(socket.inet_pton(family, client) + struct.pack(">H", client_port) + bytes(2), seed) >> 16


def hkdf_sha256(secret, info, length, salt=b""):
    """RFC 5869."""
    prk = hmac.new(salt or bytes(32), secret, hashlib.sha256).digest()
    out = block = b""
    for i in itertools.count(1):
        if len(out) >= length:
            return out[:length]
        block = hmac.new(prk, block + info + bytes([i]), hashlib.sha256).digest()
        out += block


def _sipkey(secret, use):
    return struct.unpack("<QQ", hkdf_sha256(secret, f"earshot {use}".encode(), 16))


def _seed(secret):
    """The lowest 16 bits of 64 that are not all zero."""
    words = struct.unpack_from("<4H", hkdf_sha256(secret, b"earshot ring jhash", 16))
    return next((word for word in words if word), 1)


@dataclass
class Keys:
    """Of one key file: `cookie` and `handover` hold the signing key first; `seed` is that of jhash, 0 where SipHash says whose a flow is."""
    ring: tuple
    cookie: list = field(default_factory=list)
    handover: list = field(default_factory=list)
    seed: int = 0

    @classmethod
    def load(cls, path, ring_hash="siphash"):
        keys = None
        secrets = []
        with open(path, encoding="ascii") as handle:
            for words in (line.split("#")[0].split() for line in handle):
                if words and words[0] == "ring":
                    keys = cls(_sipkey(bytes.fromhex(words[1]), "ring"))
                    if ring_hash == "jhash":
                        keys.seed = _seed(bytes.fromhex(words[1]))
                elif words and words[0] == "key":
                    secrets.append(bytes.fromhex(words[2]))
        for secret in secrets:
            keys.cookie.append(_sipkey(secret, "cookie"))
            keys.handover.append(_sipkey(secret, "handover"))
        return keys


def address(text):
    """An address in its 128-bit form."""
    if ":" in text:
        return socket.inet_pton(socket.AF_INET6, text)
    return bytes(10) + b"\xff\xff" + socket.inet_aton(text)


FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}


def family_of(text):
    """Of an address: 4 or 6."""
    return 6 if ":" in text else 4


def flow_hash(keys, client, client_port, service, service_port):
    hash_ = siphash(keys.ring, address(client) + address(service) + struct.pack(">HH", client_port, service_port))
    return hash_ & ~(0xFFFF << 48) | jhash_slot(keys.seed, client, client_port) << 48 if keys.seed else hash_


def address_hash(keys, client):
    return siphash(keys.ring, address(client))


class Ring:
    """Nodes are numbers in the order of the configuration."""

    def __init__(self, addresses, virtual_nodes=63):
        points = sorted((self._position(address(text) + struct.pack(">I", v)), node)
                        for node, text in enumerate(addresses) for v in range(virtual_nodes))
        self.positions = [p for p, _ in points]
        self.nodes = [n for _, n in points]

    @staticmethod
    def _position(key):
        return int.from_bytes(hashlib.md5(key).digest()[:8], "big")

    def at(self, position):
        return self.nodes[bisect.bisect_right(self.positions, position) - 1]

    def sampled(self, hash_):
        """As the datapath looks it up: by the upper 16 bits."""
        return self.at(hash_ & ~0xFFFFFFFFFFFF)

    def content(self, uri, host=""):
        return self.at(self._position((f"//{host}{uri}" if host else uri).encode()))

    def walk(self, position):
        """All nodes, in the order in which a key goes on to the next one."""
        start = bisect.bisect_right(self.positions, position) - 1
        return list(dict.fromkeys(self.nodes[start - i] for i in range(len(self.nodes))))


@dataclass(frozen=True)
class Options:
    """What a handshake agreed on."""
    mss: int = 536
    wscale: int = None  # the client's
    sack: bool = False
    ts: bool = False
    ecn: bool = False
    family: int = 4
    STEPS = {4: (536, 1300, 1440, 1460), 6: (1220, 1360, 1420, 1440)}

    def packed(self):
        mss_class = sum(self.mss >= step for step in self.STEPS[self.family][1:])
        return mss_class | (15 if self.wscale is None else self.wscale) << 2 | self.sack << 6 | self.ecn << 7

    def kept_mss(self):
        """What a node that sees only the cookie knows of the client's MSS."""
        return self.STEPS[self.family][self.packed() & 3]


SLOTS_VALID = 3


def slot_of(slot_s, guard_s=0.1):
    """The wall clock's slot; waits out the end of one, so that it holds for a moment."""
    while True:
        now = time.time()
        if slot_s - now % slot_s > guard_s and now % slot_s > guard_s:
            return int(now // slot_s)
        time.sleep(guard_s / 10)


def _flow_tag(key, hash_, slot, packed):
    return siphash(key, struct.pack("<QIB", hash_, slot & MASK32, packed)) >> 54


def cookie(key, hash_, slot, isn, options):
    """(ISN, TSval) of the SYN-ACK."""
    packed = options.packed()
    mac = siphash(key, struct.pack("<QIIB", hash_, slot & MASK32, isn, packed))
    return (slot & 7) << 29 | (mac >> 53) << 18 | packed << 10 | _flow_tag(key, hash_, slot, packed), mac & MASK32


def named_slot(slot, number):
    """The slot around this one that a cookie names."""
    return next(s for s in range(slot + 1, slot - 7, -1) if s & 7 == number >> 29)


def is_of_flow(key, hash_, slot, number):
    """Has this number the tag of a cookie of the flow, of whichever slot around this one it names?"""
    return number & 0x3FF == _flow_tag(key, hash_, named_slot(slot, number), number >> 10 & 0xFF)


REQUEST, FOLLOW, NACK, STAY, END, GONE = 1, 2, 3, 4, 5, 12
CONNECTION, ASK, CANCEL, ANSWER, STRAY, STRAYS, STRAYS6, FATE = 6, 7, 8, 9, 10, 11, 13, 14
READY, HERE, OVER, CANCELLED, NO_LISTENER, FULL, UNSURE, OCCUPIED, REFUSED, SERVED = range(1, 11)
F_MOVED = 0x10
F_REPEAT = 0x20
F_UNSAFE = 0x40
PINS = ["pipelined", "upgrade", "connect", "tls", "http2", "not_http", "ambiguous", "truncated", "chunked", "length",
        "response_unclear", "until_close", "overlap", "half_closed", "uninspected", "unknown", "program"]  # from 1
NACK_NO_LISTENER, NACK_REFUSED, NACK_RETRY, NACK_SILENT = 1, 2, 3, 4
NACK_NOT_HERE, NACK_HERE, NACK_STRAYS, NACK_VANISHED = 5, 6, 7, 8
NACK_HEARD, NACK_UNHEARD, NACK_UNKNOWN, NACK_DOUBTFUL, NACK_BEYOND, NACK_MADE = 9, 10, 11, 12, 13, 14
FOLLOW_F_BACK = 0x80  # in request_flags of a FOLLOW
STREAM_DATAPATH, STREAM_PROGRAMS = 15, 14
REPLAY_WINDOW = 31 * 64
RESET_UNDER_WAY = 1 << 20
STRAY_AGAIN_S, STRAY_AGAIN_LATER_S, STRAY_ON_ITS_WAY_S = 0.5, 3, 5
STRAYS_MANY, STRAY_GATHER_S, STRAY_MEMBER_S = {4: 64, 6: 40}, 0.1, 1  # by family


@dataclass
class Handover:
    """A handover message. `options` and `packet` are the client's; the rest is the header's fields."""
    FORMAT = ">IBBBBIBBBBQHHBBBBIIHBBHHQ"
    SIZE = 64

    kind: int = REQUEST
    source: int = 1
    target: int = 0
    service: int = 0
    sequence: int = 0
    packet: bytes = b""
    mss: int = 1460
    snd_wscale: int = 0
    rcv_wscale: int = 0
    flags: int = 0
    epoch: int = 1
    stream: int = 0
    attempt: int = 0
    nack: int = 0
    magic: int = 0x45534831
    version: int = 2
    sent: float = None  # seconds of the wall clock; None: now; 0: of a version that does not tell
    requests: int = 0
    next_request_seq: int = 0
    moves: int = 0
    request_flags: int = 0
    pin: int = 0
    cost: int = 0
    content: int = 0
    packet_len: int = None
    mac: int = None

    def __post_init__(self):
        self.sent = time.time() if self.sent is None else self.sent

    def _body(self):
        length = len(self.packet) if self.packet_len is None else self.packet_len
        sent = int(self.sent) & 0xFFFFFF
        low = self.nack if self.kind in (NACK, ANSWER) else int(self.sent % 1 * 256)
        return struct.pack(self.FORMAT, self.magic, self.version, self.kind, self.source, self.target, self.epoch,
                           self.service, self.stream, self.attempt, low, self.sequence, length, self.mss,
                           self.snd_wscale, self.rcv_wscale, self.flags, sent >> 16, self.requests,
                           self.next_request_seq, self.moves, self.request_flags, self.pin, self.cost, sent & 0xFFFF,
                           self.content)

    def sign(self, key):
        return siphash(key, self._body() + self.packet)

    def pack(self, key):
        """The datagram's payload; `mac`, if it is set, stands in for the right one."""
        mac = self.sign(key) if self.mac is None else self.mac
        return self._body() + struct.pack(">Q", mac) + self.packet

    @classmethod
    def parse(cls, data):
        names = ("magic", "version", "kind", "source", "target", "epoch", "service", "stream", "attempt", "nack",
                 "sequence", "packet_len", "mss", "snd_wscale", "rcv_wscale", "flags", "sent_high", "requests",
                 "next_request_seq", "moves", "request_flags", "pin", "cost", "sent", "content")
        values = dict(zip(names, struct.unpack_from(cls.FORMAT, data)))
        values["sent"] |= values.pop("sent_high") << 16
        if values["kind"] not in (NACK, ANSWER):
            values["sent"] += values["nack"] / 256
            values["nack"] = 0
        return cls(**values, mac=int.from_bytes(data[56:64], "big"), packet=data[cls.SIZE:])

    def authentic(self, keys):
        return self.packet_len == len(self.packet) and any(self.sign(key) == self.mac for key in keys.handover)

    def set_options(self, options, rcv_wscale):
        """What the handshake agreed on, as the inspecting node tells it to the target."""
        self.mss = options.kept_mss()
        self.snd_wscale = options.wscale or 0
        self.rcv_wscale = 0 if options.wscale is None else rcv_wscale
        self.flags = ((options.wscale is not None) | options.sack << 1 | options.ts << 2 | options.ecn << 3)


@dataclass
class Strays:
    """What is behind the header of STRAYS, or STRAYS6: a service, and segments of its clients: (address, port, flags, seq, ack)."""
    service: str
    port: int
    segments: list
    count: int = None

    def pack(self):
        count = len(self.segments) if self.count is None else self.count
        family = family_of(self.service)
        head = struct.pack(">HH", self.port, count) + bytes(4 if family == 6 else 0)
        return socket.inet_pton(FAMILIES[family], self.service) + head + b"".join(
            socket.inet_pton(FAMILIES[family], client) + struct.pack(">HBBII", port, flags, 0, seq & MASK32, ack & MASK32)
            for client, port, flags, seq, ack in self.segments)

    @classmethod
    def parse(cls, data, family=4):
        size, head = (16, 24) if family == 6 else (4, 8)
        port, count = struct.unpack_from(">HH", data, size)
        assert len(data) == head + (size + 12) * count and not any(data[size + 4:head])
        found = [(socket.inet_ntop(FAMILIES[family], data[at:at + size]), *struct.unpack_from(">HBxII", data, at + size))
                 for at in range(head, len(data), size + 12)]
        return cls(socket.inet_ntop(FAMILIES[family], data[:size]), port, found, count)


LOADS_MAGIC = b"ESL1"
UNDERSTANDS_STRAYS = {4: 1, 6: 16}  # by family


@dataclass
class NumberAnswer:
    """What a node says to one whose load messages are numbered before those that it has heard."""
    source: int
    target: int
    number: int
    VERSION = 3

    def bytes(self, key):
        body = LOADS_MAGIC + struct.pack(">BBHQB39x", self.VERSION, self.source, 0, self.number, self.target)
        return body + struct.pack(">Q", siphash(key, body))

    @classmethod
    def parse(cls, data, keys):
        """Authentic ones only."""
        version, source, length, number, target = struct.unpack(">BBHQB", data[4:17])
        answer = cls(source, target, number)
        assert (version, length) == (cls.VERSION, 0) and any(answer.bytes(key) == data for key in keys.handover)
        return answer


UNDERSTANDS_TAKES = 32


@dataclass
class Takes:
    """What a node can receive, bytes of a client's packet in a handover message; and, which the length does not count as the version
    before takes no more, of what it makes connections, and for which services it has no server."""
    source: int
    sequence: int
    packet_max: int
    makes: int = 0
    lacks: int = 0
    VERSION, HANDSHAKES = 9, 1

    def bytes(self, key):
        words = self.packet_max, self.makes, self.lacks
        body = LOADS_MAGIC + struct.pack(">BBHQIIQ24x", self.VERSION, self.source, 4, self.sequence, *words)
        return body + struct.pack(">Q", siphash(key, body))

    @classmethod
    def parse(cls, data, keys):
        """Authentic ones only."""
        version, source, length, sequence, *words = struct.unpack(">BBHQIIQ", data[4:32])
        said = cls(source, sequence, *words)
        assert (version, length) == (cls.VERSION, 4) and any(said.bytes(key) == data for key in keys.handover)
        return said


@dataclass
class Evidence:
    """What an inspecting node tells another one of a request that it gave to it (inspector/peers/exchange.h)."""
    service: str
    address: int
    prefix: int
    request: int = 0  # 0: it was heard
    source: int = 1
    sequence: int = 0
    VERSION = 8

    def bytes(self, key):
        tag = siphash((0, 0), self.service.encode()) & 0xFFFFFFFF
        said = struct.pack(">QQQIB11x", self.address, self.prefix, self.request, tag, not self.request)
        body = LOADS_MAGIC + struct.pack(">BBHQ40s", self.VERSION, self.source, len(said), self.sequence, said)
        return body + struct.pack(">Q", siphash(key, body))


@dataclass
class Loads:
    """What a node says of itself to the others (inspector/peers/exchange.h)."""
    source: int = 1
    sequence: int = 0
    connections: int = 0
    cpu: int = 0
    active: int = 0
    load: int = 0
    mean_us: int = 0
    disk: int = 0
    is_new: bool = True
    version: int = 1
    magic: bytes = LOADS_MAGIC
    clock_ns: int = 0  # the sender's wall clock; 0: of a version that does not tell
    understands: int = 0  # 0 is not told
    state: int = 0
    trouble: int = 0  # 0 is not told
    SAID = ">QIHHBBIIIH"

    def _body(self):
        said = struct.pack(self.SAID, self.clock_ns, self.connections, self.cpu, 0, self.state, self.is_new, self.active, self.load, self.mean_us, self.disk)
        said += bytes([self.understands] if self.understands or self.trouble else [])
        said += bytes([self.trouble] if self.trouble else [])
        return self.magic + struct.pack(">BBHQ40s", self.version, self.source, len(said), self.sequence, said)

    def bytes(self, key):
        body = self._body()
        return body + struct.pack(">Q", siphash(key, body))

    @classmethod
    def parse(cls, data, keys):
        """Authentic ones only."""
        mac, = struct.unpack(">Q", data[-8:])
        assert len(data) == 64 and any(siphash(key, data[:-8]) == mac for key in keys.handover)
        version, source, length, sequence, said = struct.unpack(">BBHQ40s", data[4:-8])
        size = struct.calcsize(cls.SAID)
        assert length in (size + 1, size + 2) and version == 1
        clock_ns, connections, cpu, _, state, is_new, active, load, mean_us, disk = struct.unpack(cls.SAID, said[:size])
        return cls(source, sequence, connections, cpu, active, load, mean_us, disk, bool(is_new), version, data[:4],
                   clock_ns, said[size], state, said[size + 1])
