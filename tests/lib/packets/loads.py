# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages of how busy a node is: those that n1 sends, and those of the model nodes."""
import contextlib
import struct
import threading
import time

from packets import model
from packets.model import siphash
from packets.node import CLUSTER, HANDOVER_PORT


def said(node, since):
    """What n1 has told n2 after that sequence number."""
    node.cluster.fence()
    heard = [model.Loads.parse(f.udp.payload, node.keys) for f in node.cluster.loads
             if f.ip.dst == CLUSTER[1] and f.udp.payload[4] == 1]
    return [m for m in heard if m.sequence > since]


IDLE_VERSION = 7
UNDERSTANDS_IDLE = 32


def said_idle(node, target):
    """What n1 has told that node of connections on which nothing goes on."""
    node.cluster.fence()
    heard = [f.udp.payload for f in node.cluster.loads
             if f.ip.dst == CLUSTER[target - 1] and f.udp.payload[4] == IDLE_VERSION]
    for data in heard:
        assert len(data) == 64 and any(struct.pack(">Q", siphash(key, data[:-8])) == data[-8:] for key in node.keys.handover)
        assert data[5] == 0 and data[6:8] == b"\0\4"
    return [int.from_bytes(data[16:20], "big") for data in heard]


def tell_idle(node, source, idle):
    """The word of the node with that index."""
    body = model.LOADS_MAGIC + struct.pack(">BBHQ40s", IDLE_VERSION, source, 4, time.time_ns(), idle.to_bytes(4, "big"))
    tell(node, body + struct.pack(">Q", siphash(node.keys.handover[0], body)), source=source + 1)


def answers(node):
    """The numbers that n1 has told n2, as the last that it heard of it."""
    node.cluster.fence()
    heard = [model.NumberAnswer.parse(f.udp.payload, node.keys) for f in node.cluster.loads
             if f.ip.dst == CLUSTER[1] and f.udp.payload[4] == model.NumberAnswer.VERSION]
    assert all((answer.source, answer.target) == (0, 1) for answer in heard), heard
    return [answer.number for answer in heard]


def tell(node, message, source=2, port=HANDOVER_PORT):
    data = message if isinstance(message, bytes) else message.bytes(node.keys.handover[0])
    node.loads(data, source, port)


@contextlib.contextmanager
def others_serve(node, sources=(2, 3), understands=0):
    """The model nodes say all the time that they live and serve, so that n1 may be out."""
    is_over = threading.Event()

    def run():
        while not is_over.wait(0.3):
            for source in sources:
                tell(node, model.Loads(sequence=time.time_ns(), source=source - 1, clock_ns=time.time_ns(), understands=understands), source)
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
