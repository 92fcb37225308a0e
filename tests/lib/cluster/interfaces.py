# SPDX-License-Identifier: GPL-2.0-or-later
"""A node's interfaces, removed and made anew as a network service does when it is started again."""
from earshotlab.netns import ip, ip_batch


def link_of(lab, node, network):
    return next(link for link in lab.net.node_links(node) if link.name.endswith(f"-{network}"))


def remove(lab, node, network):
    ip("-n", lab.net.switch, "link", "del", link_of(lab, node, network).name)


def make(lab, node, network, name=None):
    """The same again: with its name, MAC and addresses of all families."""
    link = link_of(lab, node, network)
    interface = name or link.interface
    ip_batch(lab.net.switch, [f"link add {link.name} mtu 1500 type veth peer name {interface} "
                              f"address {link.mac} netns {link.namespace}", *link.port_commands])
    ip_batch(link.namespace, lab.net.interface_commands(node, link.interface, interface))
