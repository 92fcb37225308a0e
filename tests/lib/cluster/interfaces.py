# SPDX-License-Identifier: GPL-2.0-or-later
"""A node's interfaces, removed and made anew as a network service does when it is started again."""
from earshotlab import families
from earshotlab.netns import ip, ip_batch


def link_of(lab, node, network):
    return next(link for link in lab.net.node_links(node) if link.name.endswith(f"-{network}"))


def remove(lab, node, network):
    ip("-n", lab.net.switch, "link", "del", link_of(lab, node, network).name)


def make(lab, node, network, name=None):
    """The same again: with its name, MAC and address."""
    link = link_of(lab, node, network)
    address = {"pub": lab.net.public_address, "clu": lab.net.cluster_address}[network](node)
    interface = name or link.interface
    add = families.add(address, interface) if ":" in address else (
        f"address add {address}/{16 if network == 'pub' else 24} dev {interface}")
    ip_batch(lab.net.switch, [f"link add {link.name} mtu 1500 type veth peer name {interface} "
                              f"address {link.mac} netns {link.namespace}", *link.port_commands])
    ip_batch(link.namespace, [f"link set {interface} up", add])
