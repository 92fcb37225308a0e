// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps the nat chains, and the addresses of servers. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include "netfilter/kernel/nft.h"
#include "netfilter/rules/translation.h"

#define ES_CHAIN "servers"

static const unsigned char families[ES_NF_RULES_TABLES] = {NFPROTO_IPV4, NFPROTO_IPV6};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

struct es_addr es_nf_translation_address(int is_v6, unsigned int service)
{
	struct es_addr address = es_addr_from_v4(inet_addr(ES_NF_TRANSLATION_PREFIX));

	if (is_v6)
		inet_pton(AF_INET6, ES_NF_TRANSLATION_PREFIX6, &address);
	address.b[15] = (__u8)(service + 1);
	return address;
}
_Static_assert(ES_SERVICES_MAX < 255, "the last byte of an address tells the service");

static int is_own(const struct es_addr *address)
{
	const struct es_addr own =
		es_nf_translation_address(!es_addr_is_v4(address), (unsigned int)address->b[15] - 1);

	return es_addr_equal(address, &own);
}

/*
 * Deprecated for IPv6, and of scope host for IPv4: the kernel never chooses the address as a source by
 * itself.
 */
static int change_address(struct es_nf_netlink *nl, const struct es_addr *address, unsigned int type,
			  unsigned int flags)
{
	const struct ifa_cacheinfo deprecated = {.ifa_prefered = 0, .ifa_valid = 0xffffffffU};
	const int is_v6 = !es_addr_is_v4(address);
	char buf[256];
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, type, NLM_F_ACK | flags);
	struct ifaddrmsg *message = mnl_nlmsg_put_extra_header(nlh, sizeof(*message));

	message->ifa_family = is_v6 ? AF_INET6 : AF_INET;
	message->ifa_prefixlen = is_v6 ? 128 : 32;
	message->ifa_scope = is_v6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_HOST;
	message->ifa_index = ES_LOOPBACK_IFINDEX;
	if (is_v6) {
		mnl_attr_put(nlh, IFA_LOCAL, sizeof(*address), address);
		mnl_attr_put_u32(nlh, IFA_FLAGS, IFA_F_NODAD);
		mnl_attr_put(nlh, IFA_CACHEINFO, sizeof(deprecated), &deprecated);
	} else {
		mnl_attr_put_u32(nlh, IFA_LOCAL, address->w[3]);
	}
	return es_nf_netlink_talk(nl, nlh, NULL, NULL);
}

/* Keeps an existing chain. */
static int set_table(struct es_nf_netlink *nl, unsigned char family, struct es_nf_whole *ret_whole)
{
	struct es_nf_nft nft;
	int rc;

	es_nf_nft_begin(&nft, nl);
	nft.family = family;
	nft.table = ES_NF_TRANSLATION_TABLE;
	es_nf_nft_begin_table(&nft, 0);
	es_nf_nft_add_nat_chain(&nft, ES_CHAIN, NF_INET_PRE_ROUTING, NF_IP_PRI_NAT_DST);
	rc = es_nf_nft_commit(&nft);
	return rc ? rc : es_nf_whole_note(nl, family, nft.table, nft.rules, ret_whole);
}

static int set_family(struct es_nf_netlink *nl, int is_v6, struct es_nf_whole *ret_whole,
		      struct es_nf_why *why)
{
	int rc = set_table(nl, families[is_v6], ret_whole);

	if (rc == -ENOENT || rc == -EOPNOTSUPP)
		return es_nf_why(why, -EOPNOTSUPP,
				 "server_port: the kernel's nf_tables translate no addresses of IPv%d "
				 "(CONFIG_NFT_NAT)",
				 is_v6 ? 6 : 4);
	return rc ? es_nf_why(why, rc, "nf_tables refuse the table %s: %s", ES_NF_TRANSLATION_TABLE,
			      strerror(-rc))
		  : 0;
}

/* Addresses of the operator (server_address) are the operator's to set. */
static int set_addresses(const struct es_nf_rules *rules, struct es_nf_why *why)
{
	struct es_nf_netlink nl;
	int rc = es_nf_netlink_open(&nl, NETLINK_ROUTE);

	if (rc)
		return es_nf_why(why, rc, "rtnetlink: %s", strerror(-rc));
	for (unsigned int i = 0; i < rules->server_count && !rc; i++)
		if (is_own(&rules->server[i]))
			rc = change_address(&nl, &rules->server[i], RTM_NEWADDR,
					    NLM_F_CREATE | NLM_F_REPLACE);
	es_nf_netlink_close(&nl);
	return rc ? es_nf_why(why, rc, "addresses for servers behind programs, on lo: %s", strerror(-rc)) : 0;
}

int es_nf_translation_set(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			  struct es_nf_translation *ret, struct es_nf_why *why)
{
	int rc = 0;

	for (size_t i = 0; i < FAMILIES && !rc; i++)
		if (es_nf_rules_serve(rules, (int)i))
			rc = set_family(nl, (int)i, &ret->whole[i], why);
	return rc ? rc : set_addresses(rules, why);
}

int es_nf_translation_is_whole(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			       const struct es_nf_translation *translation)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		int rc = es_nf_rules_serve(rules, (int)i)
				 ? es_nf_whole_is(nl, families[i], ES_NF_TRANSLATION_TABLE,
						  &translation->whole[i])
				 : 1;

		if (rc <= 0)
			return rc;
	}
	return 1;
}

/*
 * Removes the addresses of all services that a configuration may have had. Some do not exist, and the family
 * may be missing.
 */
static void remove_addresses(void)
{
	struct es_nf_netlink nl;

	if (es_nf_netlink_open(&nl, NETLINK_ROUTE))
		return;
	for (unsigned int i = 0; i < FAMILIES * ES_SERVICES_MAX; i++) {
		const struct es_addr address = es_nf_translation_address(i % FAMILIES, i / FAMILIES);

		(void)change_address(&nl, &address, RTM_DELADDR, 0);
	}
	es_nf_netlink_close(&nl);
}

int es_nf_translation_remove(struct es_nf_netlink *nl)
{
	int rc = 0;

	remove_addresses();
	for (size_t i = 0; i < FAMILIES && !rc; i++)
		rc = es_nf_nft_remove_table(nl, families[i], ES_NF_TRANSLATION_TABLE);
	return rc;
}
