# SPDX-License-Identifier: GPL-2.0-or-later
"""What operators do to a node's connection tracking."""
import sys

# An nfnetlink message: IPCTNL_MSG_CT_DELETE, of all.
_FLUSH = """
import socket, struct
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as netlink:
    netlink.send(struct.pack("=IHHIIBBH", 20, 1 << 8 | 2, 5, 1, 0, 0, 0, 0))
    assert not struct.unpack_from("=i", netlink.recv(4096), 16)[0]
"""


def flush(node):
    """conntrack -F"""
    node.exec([sys.executable, "-c", _FLUSH])
