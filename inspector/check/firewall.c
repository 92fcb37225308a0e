// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads whether packet filters see arriving packets: nftables' base chains (iptables-nft makes such, too),
 * and the tables of iptables-legacy. Whether the rules let the right packets pass is nothing that a program
 * could judge.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspector/check/facts.h"
#include "inspector/check/netlink.h"

static unsigned int attribute_be32(const void *attributes, size_t len, int type, unsigned int missing)
{
	size_t n = 0;
	__be32 value;
	const void *p = es_netlink_attribute(attributes, len, type, &n);

	if (!p || n < sizeof(value))
		return missing;
	memcpy(&value, p, sizeof(value));
	return ntohl(value);
}

static const char *attribute_text(const void *attributes, size_t len, int type)
{
	size_t n = 0;
	const char *p = es_netlink_attribute(attributes, len, type, &n);

	return p && n && !p[n - 1] ? p : "?";
}

static void firewall_add(struct es_facts_firewall *firewall, int dropping, const char *kind,
			 const char *table, const char *chain)
{
	firewall->chains++;
	firewall->dropping += (unsigned int)dropping;
	if (!firewall->name[0])
		snprintf(firewall->name, sizeof(firewall->name), "%s %.32s %.32s", kind, table, chain);
}

static void nat_add(struct es_facts_firewall *firewall, const char *kind, const char *table,
		    const char *chain)
{
	firewall->nat++;
	if (!firewall->nat_name[0])
		snprintf(firewall->nat_name, sizeof(firewall->nat_name), "%s %.32s %.32s", kind, table,
			 chain);
}

/* Packets that are forwarded or leave are not our business. */
static int sees_input(int family, int has_v6, const void *hook, size_t len)
{
	unsigned int number = attribute_be32(hook, len, NFTA_HOOK_HOOKNUM, ~0U);

	if (family == NFPROTO_NETDEV)
		return number == NF_NETDEV_INGRESS;
	if (family != NFPROTO_IPV4 && family != NFPROTO_INET && (family != NFPROTO_IPV6 || !has_v6))
		return 0;
	return number == NF_INET_PRE_ROUTING || number == NF_INET_LOCAL_IN;
}

static void on_chain(void *ctx, const void *data, size_t len)
{
	const struct es_facts_firewall *firewall = ctx;
	const struct nfgenmsg *m = data;
	const void *attributes = (const char *)data + NLMSG_ALIGN(sizeof(*m));
	size_t hook_len = 0;
	const void *hook;
	int drops;

	if (len < NLMSG_ALIGN(sizeof(*m)))
		return;
	len -= NLMSG_ALIGN(sizeof(*m));
	hook = es_netlink_attribute(attributes, len, NFTA_CHAIN_HOOK, &hook_len);
	if (!hook || !sees_input(m->nfgen_family, firewall->has_v6, hook, hook_len) ||
	    !strncmp(attribute_text(attributes, len, NFTA_CHAIN_TABLE), ES_FACTS_OUR_TABLES,
		     strlen(ES_FACTS_OUR_TABLES)))
		return;
	if (!strcmp(attribute_text(attributes, len, NFTA_CHAIN_TYPE), "nat") &&
	    attribute_be32(attributes, len, NFTA_CHAIN_USE, 0))
		nat_add(ctx, "nft", attribute_text(attributes, len, NFTA_CHAIN_TABLE),
			attribute_text(attributes, len, NFTA_CHAIN_NAME));
	if (strcmp(attribute_text(attributes, len, NFTA_CHAIN_TYPE), "filter") != 0)
		return;
	drops = attribute_be32(attributes, len, NFTA_CHAIN_POLICY, NF_ACCEPT) == NF_DROP;
	if (drops || attribute_be32(attributes, len, NFTA_CHAIN_USE, 0))
		firewall_add(ctx, drops, "nft", attribute_text(attributes, len, NFTA_CHAIN_TABLE),
			     attribute_text(attributes, len, NFTA_CHAIN_NAME));
}

static int read_nft(struct es_facts_firewall *firewall)
{
	struct nfgenmsg request = {.nfgen_family = NFPROTO_UNSPEC, .version = NFNETLINK_V0};
	int rc = es_netlink_ask(NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN, NLM_F_DUMP,
				&request, sizeof(request), on_chain, firewall);

	/* no nf_tables in this kernel, so none of its rules */
	return rc == -EINVAL || rc == -EOPNOTSUPP || rc == -EPROTONOSUPPORT ? 0 : rc;
}

/* ip6tables' struct and option are iptables' own, under other names. */
_Static_assert(sizeof(struct ipt_getinfo) == sizeof(struct ip6t_getinfo) &&
		       IPT_SO_GET_INFO == IP6T_SO_GET_INFO,
	       "one for both");

/*
 * A table without rules has one entry per built-in chain, its policy, and one at the end. @family: AF_INET or
 * AF_INET6
 */
static void read_legacy_table(int fd, int family, const char *name, struct es_facts_firewall *firewall)
{
	const char *kind = family == AF_INET ? "iptables-legacy" : "ip6tables-legacy";
	struct ipt_getinfo info = {};
	socklen_t len = sizeof(info);
	unsigned int hooks;

	snprintf(info.name, sizeof(info.name), "%s", name);
	if (getsockopt(fd, family == AF_INET ? SOL_IP : SOL_IPV6, IPT_SO_GET_INFO, &info, &len))
		return;
	hooks = (unsigned int)__builtin_popcount(info.valid_hooks);
	if (info.valid_hooks & (1u << NF_INET_LOCAL_IN | 1u << NF_INET_PRE_ROUTING) &&
	    info.num_entries > hooks + 1) {
		if (!strcmp(name, "nat"))
			nat_add(firewall, kind, name, "");
		else
			firewall_add(firewall, 0, kind, name, "");
	}
}

static int read_legacy(struct es_facts *facts, int family, const char *path)
{
	char *text = NULL, *rest, *name;
	int fd, rc;

	rc = es_facts_file(facts, path, &text);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	if (fd < 0)
		rc = -errno;
	for (rest = text; !rc && (name = strsep(&rest, "\n"));)
		if (*name)
			read_legacy_table(fd, family, name, &facts->firewall);
	if (fd >= 0)
		close(fd);
	free(text);
	return rc;
}

void es_facts_read_firewall(const struct es_conf *conf, struct es_facts *facts)
{
	memset(&facts->firewall, 0, sizeof(facts->firewall));
	facts->firewall.has_v6 = !es_addr_is_v4(&conf->nodes[0].address);
	for (unsigned int i = 0; i < conf->service_count; i++)
		facts->firewall.has_v6 |= es_addr_is_set(&conf->services[i].address6);
	facts->firewall.rc = read_nft(&facts->firewall);
	if (!facts->firewall.rc)
		facts->firewall.rc = read_legacy(facts, AF_INET, "/proc/net/ip_tables_names");
	if (!facts->firewall.rc && facts->firewall.has_v6)
		facts->firewall.rc = read_legacy(facts, AF_INET6, "/proc/net/ip6_tables_names");
}
