// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps the rule that keeps the kernel's SYNPROXY hook. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/xt_SYNPROXY.h>
#include <linux/netfilter_ipv4.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include "kmod/core/tcp.h"
#include "netfilter/kernel/marks.h"
#include "netfilter/kernel/match.h"
#include "netfilter/rules/hook.h"

#define ES_CHAIN "never" /* no packet enters it */

static const unsigned char families[] = {NFPROTO_IPV4, NFPROTO_IPV6};

static size_t families_of(const struct es_nf_hook *hook)
{
	return hook->has_v6 ? 2 : 1;
}

static void put_synproxy(struct es_nf_nft *nft, enum es_nf_hook_way way)
{
	/* The target would answer so, if a packet ever reached it. */
	struct xt_synproxy_info info = {.options = XT_SYNPROXY_OPT_MSS, .mss = 1460};
	struct nlattr *nest;

	es_nf_nft_begin_rule(nft, ES_CHAIN);
	if (way == ES_NF_HOOK_COMPAT) {
		es_nf_nft_target(nft, "SYNPROXY", 0, &info, sizeof(info));
	} else {
		es_nf_nft_begin_expression(nft, "synproxy", &nest);
		mnl_attr_put_u16(nft->rule, NFTA_SYNPROXY_MSS, htons(info.mss));
		mnl_attr_put_u8(nft->rule, NFTA_SYNPROXY_WSCALE, 0);
		mnl_attr_put_u32(nft->rule, NFTA_SYNPROXY_FLAGS, htonl(info.options));
		es_nf_nft_end_expression(nft, nest);
	}
	es_nf_nft_end_rule(nft);
}

/* The kernel makes room for labels in entries while a rule exists that could set one. */
static void put_label(struct es_nf_nft *nft)
{
	unsigned long none[ES_NF_LABEL_BYTES / sizeof(long)] = {};

	es_nf_nft_begin_rule(nft, ES_CHAIN);
	es_nf_nft_load(nft, none, sizeof(none));
	es_nf_nft_set_ct(nft, NFT_CT_LABELS);
	es_nf_nft_end_rule(nft);
}

/*
 * The hook ends a handshake with a packet by `lo`, outside of any zone. That one must not finish it
 * (rebuild.c).
 */
static void put_quiet(struct es_nf_nft *nft)
{
	const char name[IF_NAMESIZE] = "lo";

	es_nf_nft_begin_rule(nft, "handshake");
	es_nf_nft_load_meta(nft, NFT_META_OIFNAME);
	es_nf_nft_match(nft, name, sizeof(name));
	es_nf_match_label(nft, ES_NF_LABEL);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

/*
 * Drops the listening socket's answer to a SYN whose attempt was withdrawn (withdraw.h). The entry has
 * changed its state by then; the hook, which would finish the handshake, comes after this chain.
 */
static void put_withdrawn(struct es_nf_nft *nft)
{
	unsigned long bits[ES_NF_LABEL_LONGS] = {};

	es_nf_label_set(bits, ES_NF_LABEL_MAKING);
	es_nf_label_set(bits, ES_NF_LABEL_HELD);
	es_nf_nft_begin_rule(nft, "handshake");
	es_nf_match_flags(nft, ES_TCP_SYN, ES_TCP_SYN);
	es_nf_match_labels(nft, bits, bits);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

/* After conntrack. */
static void put_handshake_chain(struct es_nf_nft *nft)
{
	es_nf_nft_add_base_chain(nft, "handshake", NF_INET_LOCAL_OUT, NF_IP_PRI_MANGLE);
	put_quiet(nft);
	put_withdrawn(nft);
}

/* @mark: replaces our bits of the mark, of packets from @device */
static void put_mark(struct es_nf_nft *nft, const char *device, const char *chain, unsigned int hook,
		     int priority, __u32 mark)
{
	const __u32 others = ~ES_NF_MARK_MASK;
	char name[IF_NAMESIZE] = "";

	strncpy(name, device, sizeof(name) - 1);
	es_nf_nft_add_base_chain(nft, chain, hook, priority);
	es_nf_nft_begin_rule(nft, chain);
	es_nf_nft_load_meta(nft, NFT_META_IIFNAME);
	es_nf_nft_match(nft, name, sizeof(name));
	es_nf_nft_load_meta(nft, NFT_META_MARK);
	es_nf_nft_replace(nft, &others, &mark, sizeof(mark));
	es_nf_nft_set_meta(nft, NFT_META_MARK);
	es_nf_nft_end_rule(nft);
}

/*
 * Packets have the mark while firewalls check sources by rules, before conntrack, and while the kernel checks
 * them, after all rules.
 */
static void put_marks(struct es_nf_nft *nft, const char *device)
{
	put_mark(nft, device, "mark", NF_INET_PRE_ROUTING, NF_IP_PRI_RAW, ES_NF_MARK_SOURCE);
	put_mark(nft, device, "checked", NF_INET_PRE_ROUTING, NF_IP_PRI_RAW + 50, 0);
	put_mark(nft, device, "route", NF_INET_PRE_ROUTING, NF_IP_PRI_LAST, ES_NF_MARK_SOURCE);
	put_mark(nft, device, "routed", NF_INET_LOCAL_IN, NF_IP_PRI_FIRST, 0);
}

/* An operator's zone rule that looks at the interface would not match our device. */
static void put_zone(struct es_nf_nft *nft, const struct es_nf_hook_device *device)
{
	char name[IF_NAMESIZE] = "";

	strncpy(name, device->name, sizeof(name) - 1);
	es_nf_nft_add_base_chain(nft, "zone", NF_INET_PRE_ROUTING, NF_IP_PRI_RAW);
	es_nf_nft_begin_rule(nft, "zone");
	es_nf_nft_load_meta(nft, NFT_META_IIFNAME);
	es_nf_nft_match(nft, name, sizeof(name));
	es_nf_nft_load(nft, &device->zone, sizeof(device->zone));
	es_nf_nft_set_ct(nft, NFT_CT_ZONE);
	es_nf_nft_end_rule(nft);
}

int es_nf_hook_set_as(struct es_nf_netlink *nl, const struct es_nf_hook_device *device,
		      struct es_nf_hook *hook)
{
	struct es_nf_nft nft;
	int rc;

	es_nf_nft_begin(&nft, nl);
	for (size_t i = 0; i < families_of(hook); i++) {
		nft.family = families[i];
		nft.table = ES_NF_HOOK_TABLE;
		es_nf_nft_add_table(&nft); /* so that there is one to delete */
		es_nf_nft_delete_table(&nft);
		es_nf_nft_add_table(&nft);
		es_nf_nft_add_chain(&nft, ES_CHAIN);
		put_synproxy(&nft, hook->way);
		if (hook->has_label) {
			put_label(&nft);
			put_handshake_chain(&nft);
		}
		if (device && device->is_marked)
			put_marks(&nft, device->name);
		if (device && device->zone)
			put_zone(&nft, device);
	}
	rc = es_nf_nft_commit(&nft);
	/* nft.rules counts one family, and both got the same rules. */
	for (size_t i = 0; i < families_of(hook) && !rc; i++)
		rc = es_nf_whole_note(nl, families[i], ES_NF_HOOK_TABLE, nft.rules, &hook->whole[i]);
	return rc;
}

int es_nf_hook_set(struct es_nf_netlink *nl, const struct es_nf_hook_device *device,
		   struct es_nf_hook *ret_hook, struct es_nf_why *why)
{
	/* Best first. */
	static const struct es_nf_hook ways[] = {
		{ES_NF_HOOK_NFT, 1, 1, {}},    {ES_NF_HOOK_NFT, 1, 0, {}},    {ES_NF_HOOK_COMPAT, 1, 1, {}},
		{ES_NF_HOOK_COMPAT, 1, 0, {}}, {ES_NF_HOOK_NFT, 0, 1, {}},    {ES_NF_HOOK_NFT, 0, 0, {}},
		{ES_NF_HOOK_COMPAT, 0, 1, {}}, {ES_NF_HOOK_COMPAT, 0, 0, {}},
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct es_nf_hook hook = ways[i];

		rc = es_nf_hook_set_as(nl, device, &hook);
		if (!rc) {
			*ret_hook = hook;
			return 0;
		}
		if (rc == -EPERM)
			return es_nf_why(why, rc, "no permission to change nf_tables (CAP_NET_ADMIN)");
	}
	if (rc == -EOPNOTSUPP && device && device->zone)
		return es_nf_why(why, rc,
				 "the kernel has no zones of the connection tracking "
				 "(CONFIG_NF_CONNTRACK_ZONES), and conntrack_zone = %d",
				 device->zone);
	if (rc == -ENOENT)
		return es_nf_why(why, -EOPNOTSUPP,
				 "the kernel has no SYNPROXY (CONFIG_NFT_SYNPROXY, or CONFIG_NFT_COMPAT and "
				 "CONFIG_IP_NF_TARGET_SYNPROXY)");
	return es_nf_why(why, rc, "nf_tables refuse the table %s: %s", ES_NF_HOOK_TABLE, strerror(-rc));
}

int es_nf_hook_is_set(struct es_nf_netlink *nl, const struct es_nf_hook *hook)
{
	for (size_t i = 0; i < families_of(hook); i++) {
		int rc = es_nf_whole_is(nl, families[i], ES_NF_HOOK_TABLE, &hook->whole[i]);

		if (rc <= 0)
			return rc;
	}
	return 1;
}

int es_nf_hook_remove(struct es_nf_netlink *nl)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(families) && !rc; i++)
		rc = es_nf_nft_remove_table(nl, families[i], ES_NF_HOOK_TABLE);
	return rc;
}

int es_nf_hook_watch(struct es_nf_netlink *nl)
{
	unsigned int group = NFNLGRP_NFTABLES;
	int rc = es_nf_netlink_open(nl, NETLINK_NETFILTER);

	if (!rc && mnl_socket_setsockopt(nl->socket, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0) {
		rc = -errno;
		es_nf_netlink_close(nl);
	}
	return rc;
}

int es_nf_hook_watched(struct es_nf_netlink *nl)
{
	char buf[ES_NF_NETLINK_ROOM];

	for (;;) {
		ssize_t got = recv(mnl_socket_get_fd(nl->socket), buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);

		if (got >= 0 || errno == EINTR || errno == ENOBUFS) /* lost messages say nothing else */
			continue;
		return errno == EAGAIN ? 0 : -errno;
	}
}
