# SPDX-License-Identifier: GPL-2.0-or-later
"""What no node and no daemon would say, to a datapath that serves. EARSHOT_SEED: which of it; EARSHOT_FUZZ: how much.

The kernel's log is conftest's to judge; here it is whether each message was counted, and whether the node is as good
as before.
"""
import contextlib
import os
import random
import struct

import pytest

import ko
from earshotlab import netns
from packets import model, packet
from packets.client import LINUX, PLAIN, WINDOWS, Client
from packets.node import BLIND, CLUSTER, DEAD, EACH, HANDOVER_PORT, PEER_MAC, PREFIX, WEB, Node
from packets.packet import ACK, PSH
from packets.tables_module import (ATTR_CONFIG, ATTR_RING0, CMD_CONFIGURATION, CMD_CONFIGURE, RING_PARTS, Control,
                                   attribute)
from packets.wire import TIMEOUT_S

SEED = int(os.environ.get("EARSHOT_SEED") or 53)
COUNT = int(os.environ.get("EARSHOT_FUZZ") or 1200)
CMD_GET, CMD_NEW, CMD_COUNTERS, ATTR_ABI, ATTR_PARAMS, ATTR_COUNTERS = 1, 2, 6, 1, 3, 10
COMMANDS = range(12)
NESTED, NET_BYTE_ORDER = 0x8000, 0x4000
OWN = 0  # the node under test, as a sender
# What becomes of a message, and what may be counted beside it.
OUTCOMES = ("handover_", "connection_", "stay_", "end_", "drop_queue_full", "rebuild_refused")
BESIDE = ("rebuild_refused", "answer_failed")


@pytest.fixture
def chance():
    random.seed(SEED)  # the packet suite's choices too
    return random.Random(SEED)


@pytest.fixture
def node():
    """A node that serves; its daemon is gone afterwards, and the module can be unloaded."""
    with Node(datapath="module") as made:
        made.start()
        for port in (WEB, BLIND, EACH):
            made.listen(port)
        yield made
    assert ko.unload() == 0
    ko.load()


@contextlib.contextmanager
def control_of(node):
    control = netns.in_namespace(node.namespace, Control)
    try:
        yield control
    finally:
        control.close()


def bits(chance, data, at_most=8):
    """With some of its bits turned over."""
    data = bytearray(data)
    for _ in range(chance.randint(1, at_most)):
        bit = chance.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def integer(chance, width):
    """Of that many bits; often one at an edge."""
    top = (1 << width) - 1
    return chance.choice((0, 1, top, top >> 1, (top >> 1) + 1, chance.randint(0, top), chance.randint(0, top)))


class Messages:
    """Handover messages that are wrong. Each method returns a datagram's payload."""

    FIELDS = {"kind": 8, "target": 8, "epoch": 32, "service": 8, "attempt": 8, "nack": 8, "mss": 16, "snd_wscale": 8,
              "rcv_wscale": 8, "flags": 8, "reserved": 8, "requests": 32, "next_request_seq": 32, "moves": 16,
              "request_flags": 8, "pin": 8, "cost": 16, "content": 64, "version": 8, "packet_len": 16}

    def __init__(self, node, chance):
        self.node, self.chance = node, chance
        self.key = node.keys.handover[0]

    def handover(self, **packet_fields):
        """A right one, of a client of its own."""
        chance = self.chance
        c = Client(self.node, chance.choice((WEB, EACH, BLIND, DEAD)), owner=2,
                   offer=chance.choice((LINUX, WINDOWS, PLAIN)))
        c.forge()
        flags = packet_fields.pop("flags", ACK | PSH)
        original = c.ip_packet(flags, c.get() if chance.random() < .9 else b"", **packet_fields)
        h = c.handover(original, kind=chance.choice((1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9)), source=chance.choice((OWN, 1, 2)))
        # Streams that the daemon does not use; beyond the 16 there are, they fold.
        h.stream = chance.randrange(8, 14) + 16 * chance.choice((0, 0, 0, 1, 15))
        self.node.sequence += 1
        h.sequence = self.node.sequence
        return h

    def flipped(self):
        return bits(self.chance, self.handover().pack(self.key))

    def truncated(self):
        data = self.handover().pack(self.key)
        return data[:self.chance.randrange(len(data))]

    def rubbish(self):
        head = self.chance.choice((b"", b"ESH1", b"ESH1\x02", b"ESH1\x02\x01"))
        return head + self.chance.randbytes(self.chance.choice((0, 1, 58, 59, 60, self.chance.randrange(1400))))

    def lying(self):
        """The MAC is right, the header is not."""
        h = self.handover()
        for name in self.chance.sample(sorted(self.FIELDS), self.chance.randint(1, 4)):
            setattr(h, name, integer(self.chance, self.FIELDS[name]))
        if self.chance.random() < .1:
            h.source, h.stream = self.chance.randrange(256), 13
        return h.pack(self.key)

    def hollow(self):
        """The MAC and the length are right, the packet inside is damaged or cut off."""
        h = self.handover()
        h.packet = bits(self.chance, h.packet[:40] if self.chance.random() < .2 else h.packet)
        if self.chance.random() < .4:
            h.packet = h.packet[:self.chance.randrange(len(h.packet))]
        return h.pack(self.key)

    def crooked(self):
        """All sums are right; what the packet says makes no sense."""
        chance = self.chance
        fields = chance.sample((
            {"flags": chance.randrange(256)}, {"seq": integer(chance, 32)}, {"ack": integer(chance, 32)},
            {"options": chance.randbytes(4 * chance.randrange(11))}, {"doff": chance.randrange(16)},
            {"window": integer(chance, 16)}, {"total": integer(chance, 16)}, {"ihl": chance.randrange(16)},
            {"frag": integer(chance, 16)}), chance.randint(1, 3))
        return self.handover(**{key: value for field in fields for key, value in field.items()}).pack(self.key)

    def replayed(self):
        h = self.handover()
        h.sequence, h.stream = integer(self.chance, 64), 13
        return h.pack(self.key)

    def any(self):
        return self.chance.choice((self.flipped, self.truncated, self.rubbish, self.lying, self.lying, self.hollow,
                                   self.hollow, self.crooked, self.crooked, self.replayed))()

    def frame(self, data):
        """In its envelope, which is mostly right, too."""
        chance, source = self.chance, self.chance.choice((1, 2))
        length = chance.randrange(65536) if chance.random() < .03 else None
        datagram = packet.udp(CLUSTER[source], CLUSTER[0], 40000, HANDOVER_PORT, data, length=length)
        fields = {"frag": 0x2000} if chance.random() < .03 else {}
        return packet.eth(self.node.cluster.node_mac, PEER_MAC[source], packet.ETH_IP,
                          packet.ip(CLUSTER[source], CLUSTER[0], packet.UDP, datagram, **fields))


def counters(control, names):
    """The datapath's own: the daemon's come behind them in its list."""
    values = dict(control.ask(CMD_COUNTERS))[ATTR_COUNTERS]
    return dict(zip(names, struct.unpack(f"={len(values) // 8}Q", values)))


def accept(c):
    """This client's connection; those of requests that the daemon found when it woke up are ended."""
    while True:
        connection, peer = c.node.listeners[c.service].accept()
        if peer == (c.ip, c.port):
            connection.settimeout(TIMEOUT_S)
            c.server = connection
            return
        connection.close()


def serves(node):
    """A first request inspected here, and one that another node has given away; their bytes arrive."""
    for port in node.listeners:
        node.pending(port)
    # Each of those that were closed has said so: more than the wire's socket holds.
    node.public.clear()
    node.settle()
    node.public.clear()
    node.cluster.clear()
    before = node.counters()
    try:
        c = Client(node).shake()
        text = c.get()
        c.request(text=text)
        accept(c)
        assert c.read(len(text)) == text
        c.abort()
    except AssertionError as error:
        after = node.counters()
        error.add_note(f"counted { {name: after[name] - before[name] for name in after if after[name] != before[name]} }")
        raise
    c = Client(node, owner=2)
    c.forge()
    text = c.get()
    node.message(c.handover(c.ip_packet(ACK | PSH, text), stream=0))
    c.sent(text)
    accept(c)
    assert c.read(len(text)) == text
    c.abort()


def test_messages(node, chance):
    """Each is counted once, by reason; nothing of what is not authentic goes further."""
    messages = Messages(node, chance)
    serves(node)
    names = [counter["name"] for counter in node.ask("counters")["counters"]]
    with control_of(node) as control:
        node.freeze()  # its own messages are not to be counted
        before = counters(control, names)
        loads = answers = 0
        for number in range(COUNT):
            data = messages.any()
            loads += data[:4] == model.LOADS_MAGIC  # a bit makes it one; those are the daemon's, and not counted
            answers += data[5:6] == b"\x09"  # authentic, to a program's question: received, and the daemon's too
            node.cluster.send(messages.frame(data))
            if number % 50 == 49:  # the backlog and the accept queues are short
                node.settle()
                node.public.clear()
                node.cluster.clear()
                for port in node.listeners:
                    node.pending(port)
        node.settle()
        after = counters(control, names)
    node.signal(18)  # SIGCONT: it gets the NACKs among them now
    risen = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    print(risen)
    for name in ("handover_malformed", "handover_bad_mac", "handover_replayed", "handover_wrong_target",
                 "handover_rebuilt", "handover_nacked", "handover_nack_received"):
        assert risen.get(name), f"{name}: none; counted {risen}"
    counted = sum(risen.get(name, 0) for name in names if name.startswith(OUTCOMES) and name != "handover_received")
    assert COUNT - loads - answers <= counted <= COUNT - loads + sum(risen.get(name, 0) for name in BESIDE), risen
    serves(node)
    assert node.daemon.poll() is None, node.log()


def test_configurations(node, chance):
    """A daemon's configuration with wrong bits in it is refused or taken; packets go through it, and nothing breaks."""
    messages = Messages(node, chance)
    taken = 0
    with control_of(node) as control:
        right = dict(control.ask(CMD_CONFIGURATION))
        ring = b"".join(attribute(ATTR_RING0 + i, right[ATTR_RING0 + i]) for i in range(RING_PARTS))
        node.freeze()
        for number in range(COUNT // 4):
            config = bits(chance, right[ATTR_CONFIG], 12)
            wrong = ring
            if number % 5 == 4:
                wrong = b"".join(attribute(ATTR_RING0 + i, chance.randbytes(len(right[ATTR_RING0 + i])))
                                 for i in range(RING_PARTS))
            with contextlib.suppress(OSError):
                control.ask(CMD_CONFIGURE, attribute(ATTR_CONFIG, config) + wrong)
                taken += 1
            c = Client(node, chance.choice((WEB, EACH, BLIND)))
            node.public.send(c.syn_frame())
            c.forge()
            c.send(ACK | PSH, c.get())
            node.cluster.send(messages.frame(messages.handover().pack(messages.key)))
            if number % 20 == 19:
                for wire in (node.public, node.cluster):
                    with contextlib.suppress(AssertionError):  # under a wrong address it says other things
                        wire.clear()
        control.ask(CMD_CONFIGURE, attribute(ATTR_CONFIG, right[ATTR_CONFIG]) + ring)
    assert taken > COUNT // 40, "nearly all were refused: nothing was tested"
    node.signal(18)
    with contextlib.suppress(AssertionError):
        node.public.clear()
    serves(node)


def broken(chance, attributes):
    """Attributes (type, value) as a payload that is wrong in one of the ways in which lengths and lists can be."""
    attributes = list(attributes)
    way = chance.randrange(8)
    if way == 0 and attributes:  # missing
        attributes.pop(chance.randrange(len(attributes)))
    if way == 1 and attributes:  # doubled, with another value or the same
        kind, value = chance.choice(attributes)
        attributes.insert(chance.randrange(len(attributes) + 1), (kind, chance.choice((value, bytes(len(value))))))
    if way == 2 and attributes:  # too long, too short
        at = chance.randrange(len(attributes))
        kind, value = attributes[at]
        attributes[at] = (kind, chance.choice((value[:-1], value[:-4], value + b"\0", value + bytes(4), b"")))
    if way == 3:  # deep
        value = chance.randbytes(chance.randrange(64))
        for _ in range(chance.randrange(1, 200)):
            value = attribute(chance.randrange(14) | NESTED, value)
        attributes.append((chance.randrange(16) | NESTED, value))
    if way == 4 and attributes:  # flags that are not for it
        at = chance.randrange(len(attributes))
        attributes[at] = (attributes[at][0] | chance.choice((NESTED, NET_BYTE_ORDER, NESTED | NET_BYTE_ORDER)),
                          attributes[at][1])
    if way == 5:  # types that do not exist
        attributes.append((chance.choice((0, 14, 15, 255, 0x3FFF)), chance.randbytes(8)))
    payload = b"".join(attribute(kind, value) for kind, value in attributes)
    if way == 6 and payload:  # a length that leads out of the message
        return struct.pack("=H", chance.choice((0, 1, 3, min(len(payload) + 1, 65535)))) + payload[2:]
    if way == 7:
        return payload[:chance.randrange(len(payload) + 1)]
    return payload


def test_control(node, chance):
    """Every command with attributes that are wrong, and parameters that are huge, beside a node that serves."""
    refused = 0
    empty = f"{PREFIX}{os.getpid()}-empty"
    netns.ip("netns", "add", empty)
    try:
        control = netns.in_namespace(empty, Control)
        abi = struct.unpack("=I", dict(control.ask(CMD_GET))[ATTR_ABI])[0]
        with control_of(node) as other:
            right = dict(other.ask(CMD_CONFIGURATION))
        whole = [(kind, right[kind]) for kind in (ATTR_CONFIG, *(ATTR_RING0 + i for i in range(RING_PARTS)))]
        for number in range(COUNT):
            huge = chance.random() < .5
            params = struct.pack("=6I", abi, *(integer(chance, 32) if huge else 1 << chance.randrange(13) for _ in range(5)))
            attributes = chance.choice(([], [(ATTR_PARAMS, params)], [(ATTR_PARAMS, params)], whole if number % 8 == 0 else []))
            body = struct.pack("=BBH", chance.choice(COMMANDS), chance.choice((1, 1, 1, 0, 255)), 0)
            try:
                control.raw(control.family, 1 | 4 | (0x300 if chance.random() < .1 else 0), body + broken(chance, attributes))
            except OSError:
                refused += 1
        control.ask(CMD_GET)
        control.close()
    finally:
        netns.delete(empty)
    assert refused > COUNT // 4
    serves(node)


def test_the_seed_decides():
    """The same seed makes the same damage: a failure can be had again."""
    first, second = (bits(random.Random(SEED), bytes(100)) for _ in range(2))
    assert first == second != bytes(100)
