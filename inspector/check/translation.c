// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads which rules of nf_tables, those of iptables-nft among them, certainly translate packets for a
 * service. A rule's conditions on port, address, protocol and interface are understood; a rule with another
 * condition may match or not, so it is not reported (check_firewall() warns of its chain). If rules may jump
 * to a chain, it is taken for granted that they do. Rules of iptables-legacy are not read.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/xt_tcpudp.h>
#include <stdio.h>

#include "inspector/check/facts.h"
#include "inspector/check/nft.h"

#define CHAINS_MAX 64
#define REGISTERS  32

/* The fact about a packet that a register holds. */
enum loaded { NOTHING, PORT, ADDRESS4, ADDRESS6, PROTOCOL, FAMILY, INTERFACE };

/* struct base - a base chain of the kind nat; @is_in: it is for arriving packets */
struct base {
	unsigned int family;
	int is_in;
	char table[64], chain[64];
};

/**
 * struct rule - the rule that is being read
 * @low, @high: the ports that it is about; @address: unless all zeros, the address; @family: 0, 4 or 6
 * @never: it is about another protocol or interface; @unsure: it has a condition that is not understood
 */
struct rule {
	enum loaded loaded[REGISTERS];
	unsigned int low, high;
	unsigned int family;
	struct es_addr address;
	int never, unsure;
	int translates, accepts;
};

/*
 * @accepted: the services whose packets the chain that is being read has let pass by now, as bits; for each
 * family
 */
struct reader {
	const struct es_conf *conf;
	struct es_facts_translation *ret;
	unsigned int count;
	struct base base[CHAINS_MAX];
	struct base last;
	__u64 accepted[ES_CONF_FAMILIES];
};

static unsigned int number(struct es_nft_bytes in, int type)
{
	struct es_nft_bytes value = es_nft_attribute(in, type);
	__be32 be = 0;

	if (value.at && value.len >= sizeof(be))
		memcpy(&be, value.at, sizeof(be));
	return ntohl(be);
}

static void copy_name(char *name, size_t size, struct es_nft_bytes text)
{
	snprintf(name, size, "%.*s", (int)(text.at ? text.len : 0), text.at ? (const char *)text.at : "");
}

static void on_chain(void *ctx, const void *data, size_t len)
{
	struct es_nft_bytes all = es_nft_message(data, len), hook = es_nft_attribute(all, NFTA_CHAIN_HOOK);
	struct reader *r = ctx;
	struct base *base = &r->base[r->count];

	if (!hook.at || r->count == CHAINS_MAX ||
	    !es_nft_is_text(es_nft_attribute(all, NFTA_CHAIN_TYPE), "nat"))
		return;
	base->family = ((const struct nfgenmsg *)data)->nfgen_family;
	base->is_in = number(hook, NFTA_HOOK_HOOKNUM) == NF_INET_PRE_ROUTING;
	copy_name(base->table, sizeof(base->table), es_nft_attribute(all, NFTA_CHAIN_TABLE));
	copy_name(base->chain, sizeof(base->chain), es_nft_attribute(all, NFTA_CHAIN_NAME));
	r->count++;
}

/* Registers of 16 bytes and of 4 bytes share their places; one is known by the place of its first 4 bytes. */
static enum loaded *register_of(struct rule *rule, unsigned int reg)
{
	unsigned int at = reg >= NFT_REG32_00 ? reg - NFT_REG32_00 : 4 * (reg - NFT_REG_1);

	return &rule->loaded[at < REGISTERS ? at : REGISTERS - 1];
}

static void read_payload(struct es_nft_bytes data, struct rule *rule)
{
	unsigned int base = number(data, NFTA_PAYLOAD_BASE), off = number(data, NFTA_PAYLOAD_OFFSET),
		     len = number(data, NFTA_PAYLOAD_LEN);
	enum loaded what = NOTHING;

	if (base == NFT_PAYLOAD_TRANSPORT_HEADER && off == 2 && len == 2)
		what = PORT;
	else if (base == NFT_PAYLOAD_NETWORK_HEADER && off == 16 && len == 4)
		what = ADDRESS4;
	else if (base == NFT_PAYLOAD_NETWORK_HEADER && off == 24 && len == 16)
		what = ADDRESS6;
	else if (base == NFT_PAYLOAD_NETWORK_HEADER && (off == 9 || off == 6) && len == 1)
		what = PROTOCOL;
	*register_of(rule, number(data, NFTA_PAYLOAD_DREG)) = what;
}

static void read_meta(struct es_nft_bytes data, struct rule *rule)
{
	unsigned int key = number(data, NFTA_META_KEY);

	if (es_nft_attribute(data, NFTA_META_DREG).at)
		*register_of(rule, number(data, NFTA_META_DREG)) = key == NFT_META_L4PROTO   ? PROTOCOL
								   : key == NFT_META_NFPROTO ? FAMILY
								   : key == NFT_META_IIFNAME ? INTERFACE
											     : NOTHING;
}

static void compare_port(struct rule *rule, unsigned int op, unsigned int port)
{
	if ((op == NFT_CMP_EQ || op == NFT_CMP_GTE) && port > rule->low)
		rule->low = port;
	if ((op == NFT_CMP_EQ || op == NFT_CMP_LTE) && port < rule->high)
		rule->high = port;
	rule->unsure |= op != NFT_CMP_EQ && op != NFT_CMP_GTE && op != NFT_CMP_LTE;
}

/* A name that ends in an asterisk is compared without a NUL. */
static int is_our_interface(const struct es_conf *conf, struct es_nft_bytes value)
{
	return !strncmp(conf->datapath.interface, value.at, value.len);
}

static struct es_addr address4(const unsigned char *bytes)
{
	__be32 v4;

	memcpy(&v4, bytes, sizeof(v4));
	return es_addr_from_v4(v4);
}

static void read_cmp(const struct es_conf *conf, struct es_nft_bytes data, struct rule *rule)
{
	struct es_nft_bytes value = es_nft_attribute(es_nft_attribute(data, NFTA_CMP_DATA), NFTA_DATA_VALUE);
	unsigned int op = number(data, NFTA_CMP_OP);
	const unsigned char *bytes = value.at;
	int is_not = op == NFT_CMP_NEQ;
	enum loaded what = *register_of(rule, number(data, NFTA_CMP_SREG));

	if (!bytes || !value.len || (what != PORT && op != NFT_CMP_EQ && !is_not))
		what = NOTHING;
	if (what == PORT && value.len == 2)
		compare_port(rule, op, (unsigned int)bytes[0] << 8 | bytes[1]);
	else if (what == PROTOCOL)
		rule->never |= (bytes[0] == IPPROTO_TCP) == is_not;
	else if (what == INTERFACE)
		rule->never |= is_our_interface(conf, value) == is_not;
	else if (what == FAMILY && !is_not)
		rule->family = bytes[0] == NFPROTO_IPV6 ? 6 : 4;
	else if (what == ADDRESS4 && value.len == 4 && !is_not)
		rule->address = address4(bytes);
	else if (what == ADDRESS6 && value.len == 16 && !is_not)
		memcpy(&rule->address, bytes, 16);
	else
		rule->unsure = 1;
}

/* Reads xtables' match tcp. Its match comment is no condition. */
static void read_match(struct es_nft_bytes data, struct rule *rule)
{
	struct es_nft_bytes name = es_nft_attribute(data, NFTA_MATCH_NAME),
			    info = es_nft_attribute(data, NFTA_MATCH_INFO);
	struct xt_tcp tcp;

	if (es_nft_is_text(name, "comment"))
		return;
	if (!es_nft_is_text(name, "tcp") || !info.at || info.len < sizeof(tcp)) {
		rule->unsure = 1;
		return;
	}
	memcpy(&tcp, info.at, sizeof(tcp));
	rule->low = tcp.dpts[0] > rule->low ? tcp.dpts[0] : rule->low;
	rule->high = tcp.dpts[1] < rule->high ? tcp.dpts[1] : rule->high;
	rule->unsure |= tcp.invflags || tcp.spts[0] || tcp.spts[1] != 0xffff || tcp.option || tcp.flg_mask;
}

static void read_verdict(struct es_nft_bytes data, struct rule *rule)
{
	struct es_nft_bytes verdict =
		es_nft_attribute(es_nft_attribute(data, NFTA_IMMEDIATE_DATA), NFTA_DATA_VERDICT);
	int code = (int)number(verdict, NFTA_VERDICT_CODE);

	rule->accepts |= verdict.at && (code == NF_ACCEPT || code == NFT_RETURN);
}

static void read_expression(const struct es_conf *conf, struct es_nft_bytes expression, struct rule *rule)
{
	static const char *const no_conditions[] = {"counter", "log", "redir", "target"};
	struct es_nft_bytes name = es_nft_attribute(expression, NFTA_EXPR_NAME),
			    data = es_nft_attribute(expression, NFTA_EXPR_DATA), target;
	int is_known = 0;

	for (size_t i = 0; i < sizeof(no_conditions) / sizeof(no_conditions[0]); i++)
		is_known |= es_nft_is_text(name, no_conditions[i]);
	target = es_nft_attribute(data, NFTA_TARGET_NAME);
	if (es_nft_is_text(name, "payload"))
		read_payload(data, rule);
	else if (es_nft_is_text(name, "meta"))
		read_meta(data, rule);
	else if (es_nft_is_text(name, "cmp"))
		read_cmp(conf, data, rule);
	else if (es_nft_is_text(name, "match"))
		read_match(data, rule);
	else if (es_nft_is_text(name, "immediate"))
		read_verdict(data, rule);
	else if (es_nft_is_text(name, "nat"))
		rule->translates |= number(data, NFTA_NAT_TYPE) == NFT_NAT_DNAT;
	else
		rule->unsure |= !is_known;
	rule->translates |= es_nft_is_text(name, "redir") ||
			    (es_nft_is_text(name, "target") &&
			     (es_nft_is_text(target, "REDIRECT") || es_nft_is_text(target, "DNAT")));
}

/* Is the chain asked about arriving packets? @at: its table and name */
static int is_asked(const struct reader *r, const struct base *at)
{
	int asked = 0;

	for (unsigned int i = 0; i < r->count; i++) {
		const struct base *base = &r->base[i];

		if (base->family != at->family || strcmp(base->table, at->table) != 0)
			continue;
		if (!base->is_in && !strcmp(base->chain, at->chain))
			return 0;
		asked |= base->is_in;
	}
	return asked && strncmp(at->table, ES_FACTS_OUR_TABLES, strlen(ES_FACTS_OUR_TABLES)) != 0;
}

/* Does the rule certainly match packets for the service's address of that family? */
static int matches(const struct reader *r, const struct rule *rule, unsigned int service, unsigned int family)
{
	const struct es_conf_service *s = &r->conf->services[service];
	const struct es_addr *address = es_conf_service_of(s, family);
	unsigned int of = r->last.family == NFPROTO_IPV4   ? 4
			  : r->last.family == NFPROTO_IPV6 ? 6
							   : rule->family;

	return address && !rule->never && !rule->unsure && s->port >= rule->low && s->port <= rule->high &&
	       (!of || of == (family ? 6U : 4U)) &&
	       (!es_addr_is_set(&rule->address) || es_addr_equal(&rule->address, address));
}

static void on_rule(void *ctx, const void *data, size_t len)
{
	struct es_nft_bytes all = es_nft_message(data, len), list;
	struct rule rule = {.high = 0xffff};
	struct reader *r = ctx;
	struct base at = {};

	if (!all.at)
		return;
	at.family = ((const struct nfgenmsg *)data)->nfgen_family;
	copy_name(at.table, sizeof(at.table), es_nft_attribute(all, NFTA_RULE_TABLE));
	copy_name(at.chain, sizeof(at.chain), es_nft_attribute(all, NFTA_RULE_CHAIN));
	if (memcmp(&at, &r->last, sizeof(at)) != 0) {
		r->last = at;
		memset(r->accepted, 0, sizeof(r->accepted));
	}
	if (!is_asked(r, &at))
		return;
	for (list = es_nft_attribute(all, NFTA_RULE_EXPRESSIONS); list.at;)
		read_expression(r->conf, es_nft_next(&list), &rule);
	for (unsigned int i = 0; i < r->conf->service_count * ES_CONF_FAMILIES; i++) {
		unsigned int service = i / ES_CONF_FAMILIES, family = i % ES_CONF_FAMILIES;
		char *taken = r->ret->taken[service];

		if ((r->accepted[family] >> service & 1) || !matches(r, &rule, service, family))
			continue;
		r->accepted[family] |= (__u64)rule.accepts << service;
		if (rule.translates && !taken[0])
			snprintf(taken, sizeof(r->ret->taken[0]), "nft %.32s %.32s", at.table, at.chain);
	}
}

void es_facts_read_translation(const struct es_conf *conf, struct es_facts *facts)
{
	struct nfgenmsg request = {.nfgen_family = NFPROTO_UNSPEC, .version = NFNETLINK_V0};
	struct es_facts_translation *t = &facts->translation;
	struct reader r = {.conf = conf, .ret = t};

	*t = (struct es_facts_translation){};
	t->rc = es_netlink_ask(NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN, NLM_F_DUMP,
			       &request, sizeof(request), on_chain, &r);
	if (!t->rc && r.count)
		t->rc = es_netlink_ask(NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE,
				       NLM_F_DUMP, &request, sizeof(request), on_rule, &r);
	/* no nf_tables in this kernel, so none of its rules */
	if (t->rc == -EINVAL || t->rc == -EOPNOTSUPP || t->rc == -EPROTONOSUPPORT)
		t->rc = 0;
}
