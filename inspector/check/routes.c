// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Has the kernel been told that the way to another node takes shorter packets than the interface does? ICMP
 * errors say so; it remembers that as an exception of the route, for some minutes.
 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspector/check/facts.h"
#include "inspector/check/netlink.h"

static void on_route(void *ctx, const void *data, size_t len)
{
	struct es_facts_route *route = ctx;
	size_t header = NLMSG_ALIGN(sizeof(struct rtmsg)), cache_len = 0, metrics_len = 0, mtu_len = 0;
	const void *attributes = (const char *)data + header, *cache, *metrics, *mtu;
	struct rta_cacheinfo info;
	long ticks = sysconf(_SC_CLK_TCK);

	if (len < header)
		return;
	cache = es_netlink_attribute(attributes, len - header, RTA_CACHEINFO, &cache_len);
	metrics = es_netlink_attribute(attributes, len - header, RTA_METRICS, &metrics_len);
	mtu = metrics ? es_netlink_attribute(metrics, metrics_len, RTAX_MTU, &mtu_len) : NULL;
	if (!cache || cache_len < offsetof(struct rta_cacheinfo, rta_error) || !mtu ||
	    mtu_len < sizeof(route->mtu))
		return;
	memset(&info, 0, sizeof(info));
	memcpy(&info, cache, cache_len < sizeof(info) ? cache_len : sizeof(info));
	if (info.rta_expires <= 0 || ticks <= 0)
		return; /* what people have set stays */
	memcpy(&route->mtu, mtu, sizeof(route->mtu));
	route->expires_s = (unsigned int)(info.rta_expires / ticks);
}

static void ask(const struct es_addr *to, struct es_facts_route *ret)
{
	const unsigned int len = es_addr_is_v4(to) ? 4 : 16;
	struct {
		struct rtmsg route;
		struct rtattr attribute;
		__u8 address[16];
	} request = {
		.route = {.rtm_family = len == 4 ? AF_INET : AF_INET6, .rtm_dst_len = (__u8)(8 * len)},
		.attribute = {.rta_len = (unsigned short)RTA_LENGTH(len), .rta_type = RTA_DST},
	};

	memcpy(request.address, to->b + sizeof(*to) - len, len);
	ret->rc = es_netlink_ask(NETLINK_ROUTE, RTM_GETROUTE, 0, &request,
				 sizeof(request) - sizeof(request.address) + len, on_route, ret);
}

void es_facts_read_routes(const struct es_conf *conf, int self, struct es_facts *facts)
{
	for (unsigned int i = 0; i < conf->node_count; i++)
		if ((int)i != self)
			ask(&conf->nodes[i].address, &facts->node_route[i]);
}
