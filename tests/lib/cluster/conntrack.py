# SPDX-License-Identifier: GPL-2.0-or-later
"""What operators do to a node's connection tracking."""
import pathlib
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


# As an operator has it whose interfaces are separate networks, maybe with the same addresses.
_ZONE = """
table inet zones {
    chain in { type filter hook prerouting priority raw; iifname "eth0" ct zone set 7; }
    chain out { type filter hook output priority raw; oifname "eth0" ct zone set 7; }
}
"""


def put_into_zone(lab):
    """All that comes and goes on the public network, on all nodes, as their configuration says."""
    config = pathlib.Path(lab.config_file)
    config.write_text(config.read_text(encoding="utf-8").replace("datapath {", "datapath {\n    conntrack_zone = 7"), encoding="utf-8")
    for node in lab.nodes:
        node.stop()
        node.exec(["nft", "-f", "-"], input=_ZONE)
        node.start()
