# SPDX-License-Identifier: GPL-2.0-or-later
"""Idle connections of a service that survives, as daemons of different versions leave them.

What stands still without a lease, if its daemon tells other nodes of it: ../datapath/test_ceded.py.
"""
import ctypes
import os
import signal
import struct

import pytest

from earshotlab import netns
from module_control import opened, params
from packets.client import Client
from packets.leases import OK, stands
from packets.node import EACH, SERVICE_INDEX, Node
from packets.packet import ACK, PSH
from packets.tables import Config
from packets.tables_module import (ATTR_CONFIG, ATTR_RING0, CMD_ATTACH, CMD_CONFIGURATION, CMD_CONFIGURE, CMD_GET, CMD_NEW,
                                   CMD_REMOVE, KEPTS, RING_PARTS, Control, attribute)

ATTR_STATUS = 2
STOP_S = 60


class Bare:
    """A node whose daemon has stopped, and of whose tables nobody has asked for any but its state."""

    def __init__(self, node):
        self.node = node
        with node.tables() as tables:
            self._state = bytes(tables.state)
        node.signal(signal.SIGTERM)
        assert node.daemon.wait(STOP_S) == 0
        self._control = netns.in_namespace(node.namespace, Control)
        self._version = dict(self._control.ask(CMD_CONFIGURATION))
        _, *self._interfaces, _ = struct.unpack("=4I", dict(self._control.ask(CMD_GET))[ATTR_STATUS])
        self.make()

    def close(self):
        self._control.close()

    def make(self):
        """A new one in its place: nothing is known of what was before."""
        config = Config.from_buffer_copy(self._version[ATTR_CONFIG])
        self._control.ask(CMD_REMOVE)
        self._control.ask(CMD_NEW, params(self._control, *self._interfaces, config.workers, decision_sets=config.decision_sets))
        self._control.ask(CMD_CONFIGURE, b"".join(
            attribute(kind, self._version[kind]) for kind in (ATTR_CONFIG, *range(ATTR_RING0, ATTR_RING0 + RING_PARTS))))
        self._control.ask(CMD_ATTACH)

    def leased(self):
        """The tables of the node that is there now; a context manager."""
        found = self.node.tables()
        ctypes.memmove(ctypes.addressof(found.state), self._state, len(self._state))  # what messages are judged by
        ctypes.memset(ctypes.addressof(found.state.worker), 0, ctypes.sizeof(found.state.worker))  # nobody inspects
        found.configure(leased=1, epoch=1)
        found.lease(3600)
        found.service(SERVICE_INDEX[EACH], survives=1)
        return found

    def ask_for_the_table(self):
        os.close(netns.in_namespace(self.node.namespace, opened, KEPTS))

    def idle(self):
        """A connection whose request another node has handed over, between two requests."""
        c = Client(self.node, EACH, owner=2)
        c.forge()
        text = c.get()
        packet = c.ip_packet(ACK | PSH, text)
        c.sent(text)
        self.node.message(c.handover(packet, next_request_seq=c.next))
        assert c.read(len(text)) == text
        c.answer(OK)
        return c


@pytest.fixture(name="bare")
def _bare():
    with Node(datapath="module") as node:
        node.start()
        node.listen(EACH)
        bare = Bare(node)
        yield bare
        bare.close()


def goes_on(c):
    text = c.get()
    c.request(text=text)
    assert c.read(len(text)) == text
    c.answer(OK)


def stands_still(bare, c):
    c.send(ACK | PSH, c.get())
    stands(bare.node, c)


def test_goes_on_until_the_table_is_asked_for(bare):
    """A daemon of a version before tells nobody of its connections, so nobody else can go on with them."""
    with bare.leased() as tables:
        goes, waits = bare.idle(), bare.idle()
        tables.lease(0)
        goes_on(goes)
        bare.ask_for_the_table()
        stands_still(bare, waits)


def test_what_is_forgotten_may_have_been_told(bare):
    """The module was loaded anew, or knew too many: other nodes may go on with what it does not know any more."""
    with bare.leased():
        waits, goes = bare.idle(), bare.idle()
    bare.make()
    with bare.leased() as tables:
        bare.ask_for_the_table()
        tables.lease(0)
        stands_still(bare, waits)
        tables.service(SERVICE_INDEX[EACH], survives=0)
        goes_on(goes)
