# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's network: names, addresses, and how it is made.

                  namespace NAME-client
                   eth0 10.77.1.1/16 (and more addresses on request)
                     |
                     |  link "client"
     ----------------+---------------------------------------------  bridge brpub, in namespace NAME-sw:
       |  link "n1-pub"    |  "n2-pub"         |  "n3-pub"           no multicast snooping, so frames to the
       |                   |                   |                     cluster MAC go out of every port
     eth0 10.77.0.1/16   eth0 10.77.0.2/16   eth0 10.77.0.3/16
     lo   10.77.0.100/32 lo   10.77.0.100/32 lo   10.77.0.100/32     the service IP, the same on every node
     NAME-n1             NAME-n2             NAME-n3                 one namespace per node
     eth1 10.78.0.1/24   eth1 10.78.0.2/24   eth1 10.78.0.3/24
       |                   |                   |
       |  link "n1-clu"    |  "n2-clu"         |  "n3-clu"
     ----------------+---------------------------------------------  bridge brclu, in NAME-sw too

A link is a veth pair; in NAME-sw its end has the link's name. A link that is "wired" leads through an earshot-wire
process in namespace NAME-wire, which can lose, double, reorder and delay frames (wire.py):

     brpub -- n1-pub ==veth== n1-pub-a [earshot-wire] n1-pub-b ==veth== eth0 of n1

A lab with a quorum device (qdevice.py) has one more machine, "qnetd" in namespace NAME-qnetd, eth0 10.78.0.200/24, whose
link "qnetd" leads to brclu.

Nothing is shared between labs, so all have the same addresses; nothing appears in the host's own namespace. Those of
IPv6, in labs that have them: families.py.
"""
import re
from dataclasses import dataclass

from . import families, netns, qdevice
from .errors import LabError

VIP = "10.77.0.100"
PORT = 80
STATUS_PORT = 7351  # of each node's metrics, at its cluster address
PUBLIC_BRIDGE = "brpub"
CLUSTER_BRIDGE = "brclu"
DEVICE_NUMBER = 200  # of the quorum device's machine in the cluster network
NODES_MAX = 99  # 10.77.0.100 is the service IP
CLIENT_ADDRESSES_MAX = 200 * 200

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")

# How every machine of the lab is set up.
_COMMON_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": 1,
    "net.ipv6.conf.default.disable_ipv6": 1,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.tcp_rmem": "4096 131072 33554432",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.ipv4.tcp_window_scaling": 1,
    "net.ipv4.tcp_sack": 1,
    "net.ipv4.tcp_timestamps": 1,
    "net.ipv4.tcp_ecn": 2,
}
NODE_SYSCTLS = {
    **_COMMON_SYSCTLS,
    "net.ipv4.conf.all.arp_ignore": 1,
    "net.ipv4.conf.all.arp_announce": 2,
    "net.ipv4.tcp_syncookies": 1,
    "net.ipv4.tcp_max_syn_backlog": 4096,
    "net.core.somaxconn": 4096,
    # A small machine's 8,192 are used up in seconds; then clients' last FINs find no TIME_WAIT and are not answered.
    "net.ipv4.tcp_max_tw_buckets": 131072,
}
# A switch has no firewall: on by default, the bridge would take every frame through iptables' hooks, once per port.
_SWITCH_SYSCTLS = {
    **_COMMON_SYSCTLS,
    "net.bridge.bridge-nf-call-arptables": 0,
    "net.bridge.bridge-nf-call-ip6tables": 0,
    "net.bridge.bridge-nf-call-iptables": 0,
}
# Where nobody has joined a group and there is a querier, a bridge sends what is for the group to the ports that are said to
# lead to routers: here to all, like a switch that floods. Otherwise it takes a copy of each frame to the service itself, as
# if it were a host, too. It believes in its own querier after the response interval, in 10 ms.
_MULTICAST = "mcast_snooping 1 mcast_query_response_interval 10 mcast_router 0"
_CLIENT_SYSCTLS = {
    **_COMMON_SYSCTLS,
    "net.ipv4.ip_local_port_range": "1024 65535",
    # Never chosen by the kernel, so that a test that picks a port by its node finds it free.
    "net.ipv4.ip_local_reserved_ports": "20000-29999",
}


@dataclass(frozen=True)
class Link:
    """One cable: from a port of a bridge to an interface of a node or of the client."""

    name: str
    bridge: str
    namespace: str
    interface: str
    mac: str
    wired: bool

    @property
    def wire_interfaces(self):
        """The shim's two interfaces: the switch's side ("a") and the machine's side ("b")."""
        return f"{self.name}-a", f"{self.name}-b"

    @property
    def port_commands(self):
        """What makes the interface in the switch's namespace, which is there, one of its ports."""
        router = f"link set {self.name} type bridge_slave mcast_router 2"
        return [f"link set {self.name} master {self.bridge} up", *([router] if self.bridge == PUBLIC_BRIDGE else [])]

    @property
    def parked(self):
        """The interface's name in NAME-sw while its machine is being replaced."""
        return f"{self.name}-p"


def vips_of(family):
    """The service's addresses in labs of that family, that of IPv4 first."""
    return [address for address, there in ((VIP, families.has4(family)), (families.VIP6, families.has6(family))) if there]


class Topology:
    """Which namespaces, links and addresses a lab of that name and size has. Knows everything, keeps no state."""

    def __init__(self, name, nodes, wires=(), client_addresses=1, family=families.DEFAULT, device=False):
        if not NAME_PATTERN.fullmatch(name):
            raise LabError(f"lab name {name!r}: up to 24 lower-case letters, digits and hyphens")
        if not 1 <= nodes <= NODES_MAX:
            raise LabError(f"{nodes} nodes: from 1 to {NODES_MAX}")
        if not 1 <= client_addresses <= CLIENT_ADDRESSES_MAX:
            raise LabError(f"{client_addresses} client addresses: from 1 to {CLIENT_ADDRESSES_MAX}")
        self.name = name
        self.nodes = [f"n{i}" for i in range(1, nodes + 1)]
        self.client = f"{name}-client"
        self.switch = f"{name}-sw"
        self.wire = f"{name}-wire"
        self.device = f"{name}-{qdevice.MACHINE}" if device else None
        self.family = family
        self.client_addresses = [f"10.77.{1 + i // 200}.{1 + i % 200}" for i in range(client_addresses)]
        self.client_addresses6 = [families.client_address6(i) for i in range(client_addresses)]

        names = ["client"] + [f"{node}-{net}" for node in self.nodes for net in ("pub", "clu")]
        names += [qdevice.MACHINE] if device else []
        for wire in wires:
            if wire != "all" and wire not in names:
                raise LabError(f"no link {wire!r}: all, {', '.join(names)}")
        wired = set(names if "all" in wires else wires)
        self.links = {"client": Link("client", PUBLIC_BRIDGE, self.client, "eth0", "02:e5:01:00:00:01",
                                     "client" in wired)}
        if device:
            self.links[qdevice.MACHINE] = Link(qdevice.MACHINE, CLUSTER_BRIDGE, self.device, "eth0", "02:e5:01:00:00:02",
                                               qdevice.MACHINE in wired)
        for number, node in enumerate(self.nodes, 1):
            for net, bridge, interface in (("pub", PUBLIC_BRIDGE, "eth0"), ("clu", CLUSTER_BRIDGE, "eth1")):
                link = f"{node}-{net}"
                mac = f"02:e5:00:00:{interface[-1:]:0>2}:{number:02x}"
                self.links[link] = Link(link, bridge, self.namespace(node), interface, mac, link in wired)

    # --- who is where

    def namespace(self, machine):
        """The namespace of a node ("n1"), of "client", "switch", "wire" or "qnetd"; LabError for anything else."""
        others = {"client": self.client, "switch": self.switch, "wire": self.wire}
        if self.device:
            others[qdevice.MACHINE] = self.device
        if machine in others:
            return others[machine]
        if machine not in self.nodes:
            raise LabError(f"no machine {machine!r} in lab {self.name}: client, {', '.join(self.nodes)}")
        return f"{self.name}-{machine}"

    def link(self, name):
        if name not in self.links:
            raise LabError(f"no link {name!r} in lab {self.name}: {', '.join(self.links)}")
        return self.links[name]

    def node_links(self, node):
        return [link for link in self.links.values() if link.namespace == self.namespace(node)]

    @property
    def vip(self):
        """The service's address, of IPv4 if it has one."""
        return self.vips[0]

    @property
    def vips(self):
        """The service's addresses, one of each family that the lab has."""
        return vips_of(self.family)

    @property
    def client_address(self):
        """The client's first, of IPv4 if it has one."""
        return (self.client_addresses if families.has4(self.family) else self.client_addresses6)[0]

    def public_address(self, node):
        """Of IPv4 if the node has one."""
        return f"10.77.0.{self.nodes.index(node) + 1}" if families.has4(self.family) else self.public_address6(node)

    def cluster_address(self, node):
        """By which the nodes talk to each other: of IPv4 if the node has one."""
        return f"10.78.0.{self.nodes.index(node) + 1}" if families.has4(self.family) else self.cluster_address6(node)

    @property
    def device_address(self):
        """Of the quorum device's machine, of IPv4 if it has one."""
        return f"10.78.0.{DEVICE_NUMBER}" if families.has4(self.family) else families.address6(78, DEVICE_NUMBER)

    def public_address6(self, node):
        return families.address6(77, self.nodes.index(node) + 1)

    def cluster_address6(self, node):
        return families.address6(78, self.nodes.index(node) + 1)

    @property
    def namespaces(self):
        """All that this lab has."""
        machines = [self.switch, self.client] + [self.namespace(node) for node in self.nodes]
        machines += [self.device] if self.device else []
        return machines + ([self.wire] if any(link.wired for link in self.links.values()) else [])

    # --- making and removing it

    def create(self):
        """Make all namespaces, bridges and links, up and with their addresses. Shims are not running yet."""
        for namespace in self.namespaces:
            if netns.exists(namespace):
                raise LabError(f"namespace {namespace} exists already, and not from a lab that is known here")
        for namespace in self.namespaces:
            netns.add(namespace)
            netns.set_sysctls(namespace, self._sysctls(namespace))
        bridge = "type bridge stp_state 0 forward_delay 0"
        netns.ip_batch(self.switch, [
            "link set lo up",
            f"link add {PUBLIC_BRIDGE} {bridge} {_MULTICAST}",
            f"link set {PUBLIC_BRIDGE} type bridge mcast_querier 1",
            f"link add {CLUSTER_BRIDGE} {bridge} mcast_snooping 0",
            *(f"link set {name} up" for name in (PUBLIC_BRIDGE, CLUSTER_BRIDGE)),
            *(command for link in self.links.values() for command in self._switch_commands(link)),
        ])
        for name in (PUBLIC_BRIDGE, CLUSTER_BRIDGE):
            # A bridge hands flooded frames to the IP stack of its own namespace too, which a switch does not have.
            netns.tc(self.switch, "qdisc", "add", "dev", name, "clsact")
            netns.tc(self.switch, "filter", "add", "dev", name, "ingress", "bpf", "da", "bytecode", "1,6 0 0 2,")
        if netns.exists(self.wire):
            netns.ip_batch(self.wire, ["link set lo up"] + [
                command for link in self.links.values() if link.wired for command in self._wire_commands(link)])
        for machine in ["client"] + ([qdevice.MACHINE] if self.device else []):
            self.set_up_machine(machine)
        for node in self.nodes:
            self.set_up_machine(node)

    def _sysctls(self, namespace):
        if namespace == self.switch:
            return _SWITCH_SYSCTLS
        if namespace == self.wire:
            return _COMMON_SYSCTLS
        return {**(_CLIENT_SYSCTLS if namespace == self.client else NODE_SYSCTLS), **families.sysctls(self.family)}

    def _switch_commands(self, link):
        machine_end = f"name {link.interface} address {link.mac} netns {link.namespace}"
        wire_end = f"name {link.wire_interfaces[0]} netns {self.wire}"
        return [f"link add {link.name} mtu 1500 type veth peer {wire_end if link.wired else machine_end}",
                *link.port_commands]

    def _wire_commands(self, link):
        a, b = link.wire_interfaces
        machine_end = f"name {link.interface} address {link.mac} netns {link.namespace}"
        return [f"link add {b} mtu 1500 type veth peer {machine_end}",
                f"link set {a} arp off up", f"link set {b} arp off up"]

    def set_up_machine(self, machine):
        """Addresses of a machine whose interfaces are there but bare."""
        netns.ip_batch(self.namespace(machine), self.machine_commands(machine))

    def machine_commands(self, machine):
        """The same as arguments of `ip`, wherever the machine is (tests/vm)."""
        interfaces = ["lo", "eth0"] if machine in ("client", qdevice.MACHINE) else ["lo", "eth0", "eth1"]
        return [command for interface in interfaces for command in self.interface_commands(machine, interface)]

    def interface_commands(self, machine, interface, name=None):
        """Those of one interface, which may have another name for now."""
        name = name or interface
        add4 = [f"address add {address} dev {name}" for address, at in self._addresses4(machine) if at == interface]
        add6 = [families.add(address, name) for address, at in self._addresses6(machine) if at == interface]
        return [f"link set {name} up", *add4, *add6]  # up first, which flushes none then

    def _addresses4(self, machine):
        """(address/length, interface) of all that the machine has."""
        if not families.has4(self.family):
            return []
        if machine == "client":
            return [(f"{address}/16", "eth0") for address in self.client_addresses]
        if machine == qdevice.MACHINE:
            return [(f"{self.device_address}/24", "eth0")]
        return [(f"{VIP}/32", "lo"), (f"{self.public_address(machine)}/16", "eth0"), (f"{self.cluster_address(machine)}/24", "eth1")]

    def _addresses6(self, machine):
        """(address, interface) of all that the machine has."""
        if not families.has6(self.family):
            return []
        if machine == "client":
            return [(address, "eth0") for address in self.client_addresses6]
        if machine == qdevice.MACHINE:
            return [(families.address6(78, DEVICE_NUMBER), "eth0")]
        return [(families.VIP6, "lo"), (self.public_address6(machine), "eth0"), (self.cluster_address6(machine), "eth1")]

    def replace_node(self, node):
        """Give the node a new, empty kernel: what a machine has after a power cut. Its cables stay plugged in.

        Sockets, qdiscs, BPF programs, rules and addresses are gone; nothing of the node may be running.
        """
        namespace = self.namespace(node)
        links = self.node_links(node)
        netns.detach_programs(namespace, [link.interface for link in links])
        netns.ip_batch(namespace, [
            command for link in links for command in (f"link set {link.interface} down",
                                                      f"link set {link.interface} name {link.parked}",
                                                      f"link set {link.parked} netns {self.switch}")])
        netns.delete(namespace)
        netns.add(namespace)
        netns.set_sysctls(namespace, self._sysctls(namespace))
        netns.ip_batch(self.switch, [f"link set {link.parked} netns {namespace}" for link in links])
        netns.ip_batch(namespace, [f"link set {link.parked} name {link.interface}" for link in links])
        self.set_up_machine(node)

    def set_links(self, links, state):
        """Put cables in or pull them out ("up", "down"), on the switch's side: the machine loses its carrier."""
        netns.ip_batch(self.switch, [f"link set {self.link(link).name} {state}" for link in links])

    def link_is_up(self, name):
        return "<" in (text := netns.ip("-n", self.switch, "-o", "link", "show", "dev", name)) and \
            "UP" in text[text.index("<") + 1:text.index(">")].split(",")

    def delete(self):
        """Remove what there is of it; also after a half-made create()."""
        for namespace in self.namespaces:
            netns.delete(namespace)
