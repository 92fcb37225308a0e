// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules and routes for the kernel's check of sources.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "netfilter/kernel/netlink.h"
#include "netfilter/kernel/source.h"

/* Before the main table. Our rule only matches packets with the mark. */
#define ES_PRIORITY 1000

static const unsigned char families[] = {AF_INET, AF_INET6};

int es_nf_source_is_strict(void)
{
	char text[8] = "";
	int fd = open("/proc/sys/net/ipv4/conf/all/rp_filter", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	/* The greater of this and our device's value counts, and ours is 0. */
	return got > 0 && strtol(text, NULL, 10) == 1;
}

static int change_rule(struct es_nf_netlink *nl, unsigned char family, unsigned int type, unsigned int flags)
{
	char buf[256];
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, type, NLM_F_ACK | flags);
	struct fib_rule_hdr *rule = mnl_nlmsg_put_extra_header(nlh, sizeof(*rule));

	rule->family = family;
	rule->action = FR_ACT_TO_TBL;
	rule->table = RT_TABLE_UNSPEC;
	mnl_attr_put_u32(nlh, FRA_TABLE, ES_NF_SOURCE_TABLE);
	mnl_attr_put_u32(nlh, FRA_PRIORITY, ES_PRIORITY);
	mnl_attr_put_u32(nlh, FRA_FWMARK, ES_NF_MARK_SOURCE);
	mnl_attr_put_u32(nlh, FRA_FWMASK, ES_NF_MARK_MASK);
	return es_nf_netlink_talk(nl, nlh, NULL, NULL);
}

static int add_route(struct es_nf_netlink *nl, unsigned char family, unsigned int index)
{
	char buf[256];
	struct nlmsghdr *nlh =
		es_nf_netlink_put(nl, buf, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE);
	struct rtmsg *route = mnl_nlmsg_put_extra_header(nlh, sizeof(*route));

	route->rtm_family = family;
	route->rtm_table = RT_TABLE_UNSPEC;
	route->rtm_protocol = RTPROT_STATIC;
	route->rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
	route->rtm_type = RTN_UNICAST;
	mnl_attr_put_u32(nlh, RTA_TABLE, ES_NF_SOURCE_TABLE);
	mnl_attr_put_u32(nlh, RTA_OIF, index);
	return es_nf_netlink_talk(nl, nlh, NULL, NULL);
}

static int has_no_v6(int rc)
{
	return rc == -EAFNOSUPPORT || rc == -EOPNOTSUPP || rc == -EACCES || rc == -ENODEV;
}

int es_nf_source_set(const struct es_nf_tun *tun, struct es_nf_why *why)
{
	struct es_nf_netlink nl;
	int rc = es_nf_netlink_open(&nl, NETLINK_ROUTE);

	for (size_t i = 0; i < sizeof(families) && !rc; i++) {
		rc = change_rule(&nl, families[i], RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
		if (!rc || rc == -EEXIST)
			rc = add_route(&nl, families[i], tun->index);
		if (families[i] == AF_INET6 && has_no_v6(rc))
			rc = 0;
	}
	es_nf_netlink_close(&nl);
	return rc ? es_nf_why(why, rc,
			      "the kernel checks sources strictly (rp_filter = 1), and refuses a route for "
			      "%s: %s",
			      tun->name, strerror(-rc))
		  : 0;
}

void es_nf_source_clear(void)
{
	struct es_nf_netlink nl;

	if (es_nf_netlink_open(&nl, NETLINK_ROUTE))
		return;
	for (size_t i = 0; i < sizeof(families); i++)
		(void)change_rule(&nl, families[i], RTM_DELRULE, 0);
	es_nf_netlink_close(&nl);
}
