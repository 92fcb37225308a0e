// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads which rules of nf_tables, those of iptables-nft among them, put packets into conntrack zones. */
#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <string.h>

#include "inspector/check/facts.h"
#include "inspector/check/nft.h"

/*
 * struct rule - the rule that is being read. @loaded: the last number that it has put into a register; @zone:
 * the zone that it sets, or 0
 */
struct rule {
	__u16 loaded;
	__u16 zone;
};

static void read_immediate(struct es_nft_bytes data, struct rule *rule)
{
	struct es_nft_bytes value =
		es_nft_attribute(es_nft_attribute(data, NFTA_IMMEDIATE_DATA), NFTA_DATA_VALUE);

	if (value.at && value.len >= sizeof(rule->loaded))
		memcpy(&rule->loaded, value.at, sizeof(rule->loaded));
}

static void read_ct(struct es_nft_bytes data, struct rule *rule)
{
	struct es_nft_bytes key = es_nft_attribute(data, NFTA_CT_KEY),
			    source = es_nft_attribute(data, NFTA_CT_SREG);
	const __be32 zone = htonl(NFT_CT_ZONE);

	if (source.at && key.at && key.len == sizeof(zone) && !memcmp(key.at, &zone, sizeof(zone)))
		rule->zone = rule->loaded;
}

/* xtables' target CT: its struct begins with flags and zone, 16 bits each, in all of its revisions. */
static void read_target(struct es_nft_bytes data, struct rule *rule)
{
	struct es_nft_bytes info = es_nft_attribute(data, NFTA_TARGET_INFO);
	__u16 words[2];

	if (!es_nft_is_text(es_nft_attribute(data, NFTA_TARGET_NAME), "CT") || !info.at ||
	    info.len < sizeof(words))
		return;
	memcpy(words, info.at, sizeof(words));
	rule->zone = words[1];
}

static void read_expression(struct es_nft_bytes expression, struct rule *rule)
{
	struct es_nft_bytes name = es_nft_attribute(expression, NFTA_EXPR_NAME),
			    data = es_nft_attribute(expression, NFTA_EXPR_DATA);

	if (es_nft_is_text(name, "immediate"))
		read_immediate(data, rule);
	else if (es_nft_is_text(name, "ct"))
		read_ct(data, rule);
	else if (es_nft_is_text(name, "target"))
		read_target(data, rule);
}

static void read_expressions(struct es_nft_bytes list, struct rule *rule)
{
	while (list.at)
		read_expression(es_nft_next(&list), rule);
}

static void on_rule(void *ctx, const void *data, size_t len)
{
	struct es_facts_zones *zones = ctx;
	struct es_nft_bytes all = es_nft_message(data, len), table, chain;
	struct rule rule = {};

	table = es_nft_attribute(all, NFTA_RULE_TABLE);
	chain = es_nft_attribute(all, NFTA_RULE_CHAIN);
	if (!table.at || !chain.at || !strncmp(table.at, ES_FACTS_OUR_TABLES, strlen(ES_FACTS_OUR_TABLES)))
		return;
	read_expressions(es_nft_attribute(all, NFTA_RULE_EXPRESSIONS), &rule);
	if (!rule.zone)
		return;
	zones->is_right |= rule.zone == zones->wanted;
	if (zones->rules++)
		return;
	zones->first = rule.zone;
	snprintf(zones->name, sizeof(zones->name), "nft %.32s %.32s", (const char *)table.at,
		 (const char *)chain.at);
}

void es_facts_read_zones(const struct es_conf *conf, struct es_facts *facts)
{
	struct nfgenmsg request = {.nfgen_family = NFPROTO_UNSPEC, .version = NFNETLINK_V0};

	facts->zones = (struct es_facts_zones){.wanted = conf->datapath.conntrack_zone};
	if (facts->datapath == ES_DATAPATH_NETFILTER) /* which needs nf_tables */
		facts->zones.rc =
			es_netlink_ask(NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE,
				       NLM_F_DUMP, &request, sizeof(request), on_rule, &facts->zones);
}
