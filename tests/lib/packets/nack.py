# SPDX-License-Identifier: GPL-2.0-or-later
"""Handovers that the target refuses."""
from packets import model, packet
from packets.node import CLUSTER, HANDOVER_PORT, PEER_MAC

NACKED = dict(handover_received=1, handover_nack_received=1)


def handed_over(node, client, target=2, service=None):
    """(client, message): a request that n1 gave to a model node."""
    c = client(*([service] if service else []))
    c.shake()
    c.request(target=target)
    return c, node.taken(target, model.REQUEST)


def refuse(node, message, reason=model.NACK_NO_LISTENER, source=None, **fields):
    """What the target's datapath makes of the message; to the worker's port, from the handover port."""
    nack = model.Handover.parse(b"".join([message._body(), bytes(8), message.packet]))
    nack.kind, nack.nack, nack.mac = model.NACK, reason, None
    nack.source, nack.target, nack.stream, nack.sequence = message.target, 0, model.STREAM_DATAPATH, 0
    for name, value in fields.items():
        setattr(nack, name, value)
    source = source or message.target + 1
    node.sequence += 1
    nack.sequence = fields.get("sequence", node.sequence)
    src, dst = CLUSTER[source - 1], CLUSTER[0]
    node.cluster.send(packet.eth(node.cluster.node_mac, PEER_MAC[source - 1], packet.ETH_IP, packet.ip(
        src, dst, packet.UDP, packet.udp(src, dst, HANDOVER_PORT, message.ports[0], nack.pack(node.keys.handover[0])))))
    return nack
