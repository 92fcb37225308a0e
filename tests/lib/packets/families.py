# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests that clients of both families run: of IPv4, and of IPv6, for which the node's services get a second address. And those
where it matters by which of them the nodes talk to each other."""
import contextlib
import ctypes

import pytest

from packets import node as network, packet, tables

BOTH = pytest.mark.parametrize("family", [4, 6], ids=["v4", "v6"])

CLUSTERS = pytest.mark.parametrize("cluster_family", [4, 6], ids=["cluster4", "cluster6"])


@contextlib.contextmanager
def cluster(node, family):
    """The node's cluster address is of this family, for its datapath, and so are those of the model nodes."""
    node.at = network.CLUSTERS[family]
    try:
        if family == 4:
            yield
            return
        with node.tables() as found:
            found.configure(self_address=tables.Address((ctypes.c_uint8 * 16)(*packet.address(node.at[0]))))
            yield
    finally:
        node.at = network.CLUSTER


@contextlib.contextmanager
def dual_stack(node):
    """All services of the node have an IPv6 address, too."""
    address = tables.Address((ctypes.c_uint8 * 16)(*packet.address(network.VIP6)))
    with node.tables() as found:
        for index in network.SERVICE_INDEX.values():
            found.service(index, address6=address)
        for port in (network.WEB, network.BLIND, network.TURNS, network.EACH, network.PROGRAM,
                     network.SERVER):
            node.listener(port, 6)
        yield
