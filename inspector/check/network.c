// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks of the interfaces and addresses, and of what the daemon sets on them: before it runs, a setting of
 * its own is no fault; while it runs, somebody has undone it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "inspector/base/prefix.h"
#include "inspector/check/check.h"
#include "inspector/machine/interface.h"
#include "kmod/core/handover.h"
#include "inspector/datapath/network.h"

#define PACKET_SOCKETS_MAX 16
#define PACKET_USUAL	   1500

static int daemon_runs(const struct es_check *check)
{
	return check->facts->daemon.runs;
}

static void judge_link(struct es_check *check, const char *name, const struct es_facts_link *link)
{
	char there[256];

	es_interfaces_text(there, sizeof(there));
	if (link->rc == -ENODEV)
		es_check_error(check,
			       es_check_action("its name in datapath { } of %s, or in this node's section; "
					       "ip link",
					       check->conf->path),
			       "no interface %s; here are %s", name, there);
	else if (link->rc)
		es_check_unchecked(check, "interface %s cannot be read: %s", name, strerror(-link->rc));
	else if (!(link->flags & IFF_UP))
		es_check_error(check, es_check_action("ip link set %s up", name), "%s is down", name);
	else if (!link->carrier)
		es_check_error(check, es_check_action("its cable and switch port; ethtool %s", name),
			       "%s has no carrier", name);
	else if (link->master)
		es_check_warning(
			check,
			es_check_action("the bridge's or bond's name instead, in %s", check->conf->path),
			"%s is a port of a bridge or bond", name);
	else
		es_check_ok(check, "%s is up", name);
}

static void check_public(struct es_check *check)
{
	judge_link(check, check->conf->datapath.interface, &check->facts->public);
}

static void check_cluster(struct es_check *check)
{
	judge_link(check, check->conf->datapath.cluster_interface, &check->facts->cluster);
}

static void check_apart(struct es_check *check)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;

	if (strcmp(dp->interface, dp->cluster_interface) != 0)
		es_check_ok(check, "clients on %s, handovers on %s", dp->interface, dp->cluster_interface);
	else
		es_check_info(check, "clients and handovers are both on %s", dp->interface);
}

static void check_mtu(struct es_check *check)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;
	const struct es_facts_link *cluster = &check->facts->cluster, *public = &check->facts->public;
	unsigned int mtu = dp->mtu ? dp->mtu : cluster->mtu;
	unsigned int packet = es_network_packet_max(check->conf, mtu, public->mtu);
	unsigned int overhead = es_network_overhead(check->conf);

	if (cluster->rc || public->rc)
		es_check_unchecked(check, "the MTU of %s or %s is not known", dp->interface,
				   dp->cluster_interface);
	else if (dp->mtu > cluster->mtu)
		es_check_error(check,
			       es_check_action("ip link set %s mtu %u", dp->cluster_interface, dp->mtu),
			       "mtu = %u in %s, but %s has %u", dp->mtu, check->conf->path,
			       dp->cluster_interface, cluster->mtu);
	else if (packet < ES_NETWORK_PACKET_MIN)
		es_check_error(check, es_check_action("ip link set %s mtu 1500", dp->cluster_interface),
			       "an MTU of %u on %s and %u on %s; %u is the least for handovers", mtu,
			       dp->cluster_interface, public->mtu, dp->interface,
			       ES_NETWORK_PACKET_MIN + overhead);
	else if (packet < public->mtu && packet + overhead < PACKET_USUAL)
		es_check_warning(check, es_check_action("ip link set %s mtu 1500", dp->cluster_interface),
				 "an MTU of %u on %s, so clients' segments have at most %u bytes", mtu,
				 dp->cluster_interface, packet - 40);
	else if (packet < public->mtu)
		es_check_info(check,
			      "an MTU of %u on %s: clients' segments have at most %u bytes, %u if it were %u",
			      mtu, dp->cluster_interface, packet - 40, public->mtu - 40,
			      public->mtu + overhead);
	else
		es_check_ok(check, "an MTU of %u on %s: clients' segments have up to %u bytes", mtu,
			    dp->cluster_interface, packet - 40);
}

static void check_lro(struct es_check *check)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;
	const struct es_facts *f = check->facts;
	const char *name = f->public.lro == 1 ? dp->interface : dp->cluster_interface;

	if (f->public.lro == 1 || f->cluster.lro == 1)
		es_check_error(check, es_check_action("ethtool -K %s lro off", name), "LRO is on for %s",
			       name);
	else if (f->public.rc || f->cluster.rc || f->public.lro < 0 || f->cluster.lro < 0)
		es_check_unchecked(check, "whether LRO is off on %s and %s: the driver does not say",
				   dp->interface, dp->cluster_interface);
	else
		es_check_ok(check, "LRO is off");
}

static void check_multicast(struct es_check *check)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;
	const unsigned char *m = dp->cluster_mac;
	int has = es_facts_has_multicast(check->facts, dp->interface, m);

	if (has < 0)
		es_check_unchecked(check, "/proc/net/dev_mcast cannot be read: %s", strerror(-has));
	else if (has)
		es_check_ok(check, "%s takes frames for %02x:%02x:%02x:%02x:%02x:%02x", dp->interface, m[0],
			    m[1], m[2], m[3], m[4], m[5]);
	else if (!daemon_runs(check))
		es_check_ok(check, "earshotd registers the cluster MAC with %s when it starts",
			    dp->interface);
	else
		es_check_error(
			check,
			es_check_action(
				"earshot reload; or: ip maddress add %02x:%02x:%02x:%02x:%02x:%02x dev %s",
				m[0], m[1], m[2], m[3], m[4], m[5], dp->interface),
			"%s does not take frames for %02x:%02x:%02x:%02x:%02x:%02x", dp->interface, m[0],
			m[1], m[2], m[3], m[4], m[5]);
}

static void check_unicast(struct es_check *check)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;
	const struct es_facts_link *link = &check->facts->public;

	if (link->rc)
		es_check_unchecked(check, "interface %s cannot be read", dp->interface);
	else if (!memcmp(link->mac, dp->cluster_mac, sizeof(link->mac)))
		es_check_error(
			check,
			es_check_action("another cluster_mac in datapath { } of %s", check->conf->path),
			"the cluster MAC is %s's own", dp->interface);
	else if (link->promiscuity || link->flags & IFF_PROMISC)
		es_check_ok(check, "%s takes frames for any MAC", dp->interface);
	else if (!daemon_runs(check))
		es_check_ok(check, "earshotd makes %s take frames for any MAC when it starts", dp->interface);
	else
		es_check_error(
			check,
			es_check_action("earshot reload; or: ip link set %s promisc on", dp->interface),
			"%s takes frames for its own MAC only", dp->interface);
}

static void check_cluster_mac(struct es_check *check)
{
	if (check->facts->public.rc == -ENODEV)
		es_check_unchecked(check, "there is no interface %s", check->conf->datapath.interface);
	else if (check->conf->datapath.mac_mode == ES_CONF_MAC_MULTICAST)
		check_multicast(check);
	else
		check_unicast(check);
}

static void check_datapath(struct es_check *check)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;
	int attached = check->facts->attached;

	if (attached == -EPERM || attached == -EACCES)
		es_check_unchecked(check, "BPF programs may not be listed by this user: run it as root");
	else if (attached < 0)
		es_check_unchecked(check, "whether the datapath is attached to %s, %s and lo: %s",
				   dp->interface, dp->cluster_interface, strerror(-attached));
	else if (attached)
		es_check_ok(check, "the datapath is attached");
	else if (daemon_runs(check))
		es_check_error(check, "restart earshotd",
			       "earshotd runs, but its datapath is not attached to %s, %s or lo",
			       dp->interface, dp->cluster_interface);
	else
		es_check_ok(check, "the datapath is not attached: earshotd does not run");
}

/*
 * Checks where an address of a service is, with a finding of its own for each that is wrong. @is_needed: the
 * service is on this node
 */
static unsigned int judge_service_address(struct es_check *check, const struct es_conf_service *service,
					  const struct es_addr *address, int is_needed)
{
	const struct es_facts *f = check->facts;
	unsigned int wrong = 0, on_lo = 0, length = es_addr_is_v4(address) ? 32 : 128;
	char text[INET6_ADDRSTRLEN];
	size_t i;

	es_conf_addr_text(address, text);
	for (i = 0; i < f->address_count; i++) {
		const struct es_facts_address *a = &f->addresses[i];

		if (!es_addr_equal(&a->address, address))
			continue;
		if (!(a->flags & IFF_LOOPBACK)) {
			wrong++;
			es_check_error(
				check,
				es_check_action("ip address del %s/%u dev %s; ip address add %s/%u dev lo",
						text, a->prefix, a->interface, text, length),
				"service %s: %s is on %s", service->name, text, a->interface);
		} else if (a->prefix != length) {
			wrong++;
			es_check_error(
				check,
				es_check_action("ip address add %s/%u dev lo; ip address del %s/%u dev %s",
						text, length, text, a->prefix, a->interface),
				length == 32 ? "service %s: %s/%u on %s makes all of that network local"
					     : "service %s: %s/%u on %s makes that network's way lead there",
				service->name, text, a->prefix, a->interface);
		} else {
			on_lo = 1;
		}
	}
	if (!wrong && !on_lo && is_needed) {
		wrong++;
		es_check_error(check, es_check_action("ip address add %s/%u dev lo", text, length),
			       "service %s: %s is not an address of this node", service->name, text);
	}
	return wrong;
}

static void check_service_address(struct es_check *check)
{
	unsigned int wrong = 0;

	if (check->facts->addresses_rc) {
		es_check_unchecked(check, "the addresses cannot be read: %s",
				   strerror(-check->facts->addresses_rc));
		return;
	}
	for (unsigned int i = 0; i < check->conf->service_count; i++)
		for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
			const struct es_conf_service *service = &check->conf->services[i];
			const struct es_addr *address = es_conf_service_of(service, family);

			wrong += address ? judge_service_address(check, service, address,
								 es_check_is_here(check, i))
					 : 0;
		}
	if (!wrong)
		es_check_ok(check, "all service addresses that are needed here are on lo, and nowhere else");
}

/* This node's address as the kernel has it, preferably on the private network's interface. */
static const struct es_facts_address *own_address(const struct es_check *check)
{
	const struct es_facts_address *found = NULL;
	size_t i;

	for (i = 0; check->self >= 0 && i < check->facts->address_count; i++) {
		const struct es_facts_address *a = &check->facts->addresses[i];

		if (!es_addr_equal(&a->address, &check->conf->nodes[check->self].address))
			continue;
		if (!found || !strcmp(a->interface, check->conf->datapath.cluster_interface))
			found = a;
	}
	return found;
}

static void check_node_address(struct es_check *check)
{
	const char *interface = check->conf->datapath.cluster_interface;
	const struct es_facts_address *own = own_address(check);
	char text[INET6_ADDRSTRLEN];

	if (check->self < 0) {
		es_check_unchecked(check, "it is not known which node this is");
		return;
	}
	es_conf_addr_text(&check->conf->nodes[check->self].address, text);
	if (!own)
		es_check_error(check, es_check_action("ip address add %s/PREFIX dev %s", text, interface),
			       "%s is not an address of this machine", text);
	else if (strcmp(own->interface, interface) != 0)
		es_check_error(check,
			       es_check_action("cluster_interface = %s in datapath { } of %s", own->interface,
					       check->conf->path),
			       "%s is on %s, and cluster_interface is %s", text, own->interface, interface);
	else
		es_check_ok(check, "%s is on %s", text, interface);
}

/* Is a node's address in the network of this node's? */
static int is_near(const struct es_facts_address *own, const struct es_addr *address)
{
	int is_v4 = es_addr_is_v4(&own->address);
	const struct es_prefix network = {
		.address = own->address,
		.bits = own->prefix + (is_v4 ? ES_PREFIX_V4 : 0),
	};

	return es_prefix_has(&network, address);
}

static void check_near(struct es_check *check)
{
	const struct es_facts_address *own = own_address(check);
	char text[INET6_ADDRSTRLEN], near[INET6_ADDRSTRLEN];
	unsigned int i, far = 0;

	if (!own) {
		es_check_unchecked(check, "this node's own network is not known");
		return;
	}
	es_conf_addr_text(&own->address, near);
	for (i = 0; i < check->conf->node_count; i++) {
		const struct es_conf_node *node = &check->conf->nodes[i];

		if (node->removed || is_near(own, &node->address))
			continue;
		far++;
		es_check_warning(
			check,
			es_check_action("address = one of the private network, in %s", check->conf->path),
			"node %s: %s is not in the network of %s/%u", node->name,
			es_conf_addr_text(&node->address, text), near, own->prefix);
	}
	if (!far)
		es_check_ok(check, "all nodes are in the network of %s/%u", near, own->prefix);
}

/* The kernel takes the larger one of "all" and the interface's. Return: 0, or -1 and it is reported. */
static int read_conf(struct es_check *check, const char *interface, const char *name, long *ret_value)
{
	const char *const of[] = {interface, "all"};
	char path[128];
	size_t i;

	*ret_value = 0;
	for (i = 0; i < 2; i++) {
		long value;
		int n;

		snprintf(path, sizeof(path), "net/ipv4/conf/%s/%s", of[i], name);
		n = es_facts_sysctl(check->facts, path, &value, 1);
		if (n != 1) {
			es_check_unchecked(check, "sysctl %s cannot be read: %s", path, strerror(-n));
			return -1;
		}
		if (value > *ret_value)
			*ret_value = value;
	}
	return 0;
}

static int has_service_address(const struct es_check *check)
{
	unsigned int s;
	size_t i;

	for (s = 0; s < check->conf->service_count; s++)
		for (i = 0; i < check->facts->address_count; i++)
			if (es_addr_equal(&check->facts->addresses[i].address,
					  &check->conf->services[s].address))
				return 1;
	return 0;
}

/* arp_ignore and arp_announce: the daemon sets them, but the node is on the network before it runs. */
static void judge_arp(struct es_check *check, long least)
{
	const char *interface = check->conf->datapath.interface, *name = check->item->name;
	const char *action = es_check_action("sysctl -w net/ipv4/conf/%s/%s=%ld", interface, name, least);
	long value;

	if (check->facts->public.rc == -ENODEV) {
		es_check_unchecked(check, "there is no interface %s", interface);
		return;
	}
	if (read_conf(check, interface, name, &value))
		return;
	if (value >= least)
		es_check_ok(check, "%s is %ld on %s", name, value, interface);
	else if (daemon_runs(check))
		es_check_error(check, action, "%s is %ld on %s, though earshotd has set it to %ld", name,
			       value, interface, least);
	else if (has_service_address(check))
		es_check_warning(check, action, "%s is %ld on %s until earshotd starts", name, value,
				 interface);
	else
		es_check_ok(check, "earshotd sets %s on %s when it starts", name, interface);
}

static void check_arp_ignore(struct es_check *check)
{
	judge_arp(check, 1);
}

static void check_arp_announce(struct es_check *check)
{
	judge_arp(check, 2);
}

static void check_rp_filter_public(struct es_check *check)
{
	const char *interface = check->conf->datapath.interface;
	char way[IF_NAMESIZE];
	long value;

	if (check->facts->public.rc == -ENODEV) {
		es_check_unchecked(check, "there is no interface %s", interface);
		return;
	}
	if (read_conf(check, interface, "rp_filter", &value))
		return;
	if (value != 1) {
		es_check_ok(check, "rp_filter is %ld on %s", value, interface);
		return;
	}
	if (es_facts_default_interface(check->facts, way, sizeof(way)))
		es_check_unchecked(check, "rp_filter is strict on %s, and the routes cannot be read",
				   interface);
	else if (strcmp(way, interface) != 0)
		es_check_warning(check, es_check_action("sysctl -w net/ipv4/conf/%s/rp_filter=2", interface),
				 "rp_filter is 1 (strict) on %s, and the default route is %s%s", interface,
				 *way ? "on " : "missing", way);
	else
		es_check_ok(check, "rp_filter is 1 (strict) on %s, and the way back is the same interface",
			    interface);
}

static void check_rp_filter(struct es_check *check)
{
	const char *const interfaces[] = {check->conf->datapath.cluster_interface, "lo"};
	unsigned int i, wrong = 0;
	long value;

	if (check->facts->cluster.rc == -ENODEV) {
		es_check_unchecked(check, "there is no interface %s", interfaces[0]);
		return;
	}
	for (i = 0; i < 2; i++) {
		if (read_conf(check, interfaces[i], "rp_filter", &value))
			return;
		if (value != 1 || !daemon_runs(check))
			continue;
		wrong++;
		es_check_error(
			check, es_check_action("sysctl -w net/ipv4/conf/%s/rp_filter=2", interfaces[i]),
			"rp_filter is 1 (strict) on %s, though earshotd has set it to 2", interfaces[i]);
	}
	if (!wrong)
		es_check_ok(check,
			    daemon_runs(check) ? "rp_filter is not strict on %s and lo"
					       : "earshotd makes rp_filter loose on %s and lo",
			    interfaces[0]);
}

static void check_accept_local(struct es_check *check)
{
	long value;

	if (read_conf(check, "lo", "accept_local", &value))
		return;
	if (value)
		es_check_ok(check, "accept_local is 1 on lo");
	else if (daemon_runs(check))
		es_check_error(check, "sysctl -w net.ipv4.conf.lo.accept_local=1",
			       "accept_local is 0 on lo, though earshotd has set it to 1");
	else
		es_check_ok(check, "earshotd sets accept_local on lo when it starts");
}

/* Where sockets are made from packets. */
static const char *heard_on(const struct es_check *check, const struct es_facts_packet_socket *s)
{
	const struct es_conf_datapath *dp = &check->conf->datapath;

	if (!s->ifindex)
		return "all interfaces";
	if (!check->facts->public.rc && s->ifindex == check->facts->public.index)
		return dp->interface;
	if (!check->facts->cluster.rc && s->ifindex == check->facts->cluster.index)
		return dp->cluster_interface;
	return s->ifindex == if_nametoindex("lo") ? "lo" : NULL;
}

static void check_packet_sockets(struct es_check *check)
{
	struct es_facts_packet_socket sockets[PACKET_SOCKETS_MAX];
	int n, wrong = 0;

	if (check->facts->datapath != ES_DATAPATH_BPF) {
		es_check_ok(check, "the %s datapath makes its sockets where packet sockets do no harm",
			    es_datapath_name(check->facts->datapath));
		return;
	}
	n = es_facts_packet_sockets(check->facts, sockets, PACKET_SOCKETS_MAX);
	if (n < 0) {
		es_check_unchecked(check, "/proc/net/packet: %s", strerror(-n));
		return;
	}
	for (int i = 0; i < n; i++) {
		const char *where = heard_on(check, &sockets[i]);

		if (!where)
			continue;
		wrong++;
		if (sockets[i].process)
			es_check_error(
				check,
				es_check_action("stop process %ld, or bind its socket to another interface "
						"(a DHCP client: give %s a static address)",
						sockets[i].process, check->conf->datapath.interface),
				"%s (process %ld) has a packet socket for IP on %s, inode %lu",
				sockets[i].name, sockets[i].process, where, sockets[i].inode);
		else
			es_check_error(
				check, "as root: earshot check; ss -0 -p",
				"a process that cannot be seen has a packet socket for IP on %s, inode %lu",
				where, sockets[i].inode);
	}
	if (!wrong)
		es_check_ok(check, "no packet socket for IP hears %s, %s or lo",
			    check->conf->datapath.interface, check->conf->datapath.cluster_interface);
}

static const struct es_check_item items[] = {
	{"public", "Clients' packets arrive there.", check_public},
	{"private", "Handovers arrive there.", check_cluster},
	{"apart", "Handovers compete with clients for one cable.", check_apart},
	{"mtu", "A client's full segment must fit into a handover message, with 92 bytes of envelope.",
	 check_mtu},
	{"lro", "Packets that the NIC merges without a trace can be neither inspected nor handed over.",
	 check_lro},
	{"cluster_mac", "The node does not hear the clients.", check_cluster_mac},
	{"datapath", "The node answers nothing for the services.", check_datapath},
	{"service_address",
	 "The kernel takes packets for a service only if its address is local, "
	 "and the network must not learn it from an interface of this node.",
	 check_service_address},
	{"node_address",
	 "Other nodes send handovers to this address, and the datapath waits on that interface.",
	 check_node_address},
	{"nodes_near", "Handovers to a node elsewhere take a way that nobody has meant for them.",
	 check_near},
	{"arp_ignore",
	 "The node answers ARP for the service address with its own MAC and gets all clients alone.",
	 check_arp_ignore},
	{"arp_announce",
	 "The node tells neighbours the service address with its own MAC and gets all clients alone.",
	 check_arp_announce},
	{"rp_filter_public", "The kernel drops clients whose way back is not the interface they came from.",
	 check_rp_filter_public},
	{"rp_filter",
	 "The kernel drops connections that are handed over, since their way back is another interface.",
	 check_rp_filter},
	{"packet_sockets",
	 "The kernel gives the stack a copy of what such a socket hears, "
	 "and the copy has lost the connection that was made from the packet: the client gets a RST.",
	 check_packet_sockets},
	{"accept_local", "This node cannot tell itself that a handover to itself must be tried elsewhere.",
	 check_accept_local},
	{"ipv6", "The kernel has no connection with a client whose family an interface does not speak.",
	 es_check_ipv6},
	{"link_local",
	 "Without such an address the kernel asks no neighbour for his MAC, and answers reach nobody.",
	 es_check_link_local},
	{"solicited", "A switch that snoops MLD keeps neighbours' questions for the address from this node.",
	 es_check_solicited},
	{NULL, NULL, NULL},
};

const struct es_check_group es_check_network_group = {.name = "network", .items = items};
