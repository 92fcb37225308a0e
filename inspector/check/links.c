// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the interfaces of the configuration (rtnetlink, one ethtool flag) and all addresses of this machine.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspector/base/sockaddr.h"
#include "inspector/check/facts.h"
#include "inspector/check/netlink.h"

static unsigned int attribute_u32(const void *attributes, size_t len, int type)
{
	unsigned int value = 0;
	size_t n;
	const void *p = es_netlink_attribute(attributes, len, type, &n);

	if (p && n >= sizeof(value))
		memcpy(&value, p, sizeof(value));
	return value;
}

static void on_link(void *ctx, const void *data, size_t len)
{
	struct es_facts_link *link = ctx;
	const struct ifinfomsg *info = data;
	const void *attributes = (const char *)data + NLMSG_ALIGN(sizeof(*info));
	const void *p;
	size_t n;

	if (len < NLMSG_ALIGN(sizeof(*info)))
		return;
	len -= NLMSG_ALIGN(sizeof(*info));
	link->index = (unsigned int)info->ifi_index;
	link->flags = info->ifi_flags;
	link->mtu = attribute_u32(attributes, len, IFLA_MTU);
	link->master = attribute_u32(attributes, len, IFLA_MASTER);
	link->promiscuity = attribute_u32(attributes, len, IFLA_PROMISCUITY);
	p = es_netlink_attribute(attributes, len, IFLA_CARRIER, &n);
	link->carrier = p && n && *(const unsigned char *)p;
	p = es_netlink_attribute(attributes, len, IFLA_ADDRESS, &n);
	if (p && n == sizeof(link->mac))
		memcpy(link->mac, p, n);
}

static int read_lro(const char *name)
{
	struct ethtool_value value = {.cmd = ETHTOOL_GFLAGS};
	struct ifreq ifr = {.ifr_data = (void *)&value};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int lro = -1;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	if (fd < 0)
		return -1;
	if (!ioctl(fd, SIOCETHTOOL, &ifr))
		lro = !!(value.data & ETH_FLAG_LRO);
	close(fd);
	return lro;
}

static void read_link(const char *name, struct es_facts_link *link)
{
	struct ifinfomsg info = {.ifi_index = (int)if_nametoindex(name)};

	memset(link, 0, sizeof(*link));
	if (!info.ifi_index) {
		link->rc = -ENODEV;
		return;
	}
	link->rc = es_netlink_ask(NETLINK_ROUTE, RTM_GETLINK, 0, &info, sizeof(info), on_link, link);
	link->lro = read_lro(name);
}

/* The length of a mask of that family. */
static unsigned int prefix_of(const struct sockaddr *mask, int family)
{
	unsigned int bits = 0;
	__be32 w[4] = {};

	if (!mask)
		return family == AF_INET ? 32 : 128;
	if (family == AF_INET)
		w[0] = ((const struct sockaddr_in *)(const void *)mask)->sin_addr.s_addr;
	else
		memcpy(w, &((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr, sizeof(w));
	for (size_t i = 0; i < 4; i++)
		bits += (unsigned int)__builtin_popcount(w[i]);
	return bits;
}

static int read_addresses(struct es_facts *facts)
{
	struct ifaddrs *list, *i;
	size_t n = 0;

	if (getifaddrs(&list))
		return -errno;
	for (i = list; i; i = i->ifa_next)
		n++;
	facts->addresses = calloc(n + 1, sizeof(*facts->addresses));
	for (i = list; i && facts->addresses; i = i->ifa_next) {
		struct es_facts_address *a = &facts->addresses[facts->address_count];

		int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

		if ((family != AF_INET && family != AF_INET6) ||
		    es_sockaddr_addr(i->ifa_addr,
				     family == AF_INET ? sizeof(struct sockaddr_in)
						       : sizeof(struct sockaddr_in6),
				     &a->address))
			continue;
		/* an address with a label of its own, "eth0:1", is on eth0 */
		snprintf(a->interface, sizeof(a->interface), "%.*s", (int)strcspn(i->ifa_name, ":"),
			 i->ifa_name);
		a->flags = i->ifa_flags;
		a->prefix = prefix_of(i->ifa_netmask, family);
		facts->address_count++;
	}
	freeifaddrs(list);
	return facts->addresses ? 0 : -ENOMEM;
}

void es_facts_read_links(const struct es_conf *conf, struct es_facts *facts)
{
	read_link(conf->datapath.interface, &facts->public);
	read_link(conf->datapath.cluster_interface, &facts->cluster);
	facts->addresses_rc = read_addresses(facts);
}
