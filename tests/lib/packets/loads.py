# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages of how busy a node is: those that n1 sends, and those of the model nodes."""
from packets import model
from packets.node import CLUSTER, HANDOVER_PORT


def said(node, since):
    """What n1 has told n2 after that sequence number."""
    node.cluster.fence()
    heard = [model.Loads.parse(f.udp.payload, node.keys) for f in node.cluster.loads if f.ip.dst == CLUSTER[1]]
    return [m for m in heard if m.sequence > since]


def tell(node, message, source=2, port=HANDOVER_PORT):
    data = message if isinstance(message, bytes) else message.bytes(node.keys.handover[0])
    node.loads(data, source, port)
