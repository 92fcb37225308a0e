# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections whose socket is on the node, whoever inspects their flow."""
import pytest

from packets.packet import ACK, PSH

OWNERS = pytest.mark.parametrize("owner", [1, 2], ids=["mine", "not-mine"])


def served(node, client, owner, **keywords):
    """A connection here. One of a flow that n2 inspects came in a handover message."""
    c = client(owner=owner, **keywords)
    return c.serve() if owner == 1 else by_message(node, c)


def by_message(node, c):
    """The client's connection here, which another node has decided about."""
    c.forge()
    text = c.get()
    node.message(c.handover(c.ip_packet(ACK | PSH, text)))
    c.sent(text)
    assert c.read(len(text)) == text
    return c
