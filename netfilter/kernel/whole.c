// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compares tables of nf_tables with what they were.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include "netfilter/kernel/whole.h"

#define ES_LOOKS 8 /* tries, if the table is being changed */

/* FNV-1a. A collision is useless to an attacker: whoever can change rules needs none. */
#define ES_FNV_BASIS 0xcbf29ce484222325ULL
#define ES_FNV_PRIME 0x100000001b3ULL

/* Our tables have no more sets. NFTA_TABLE_USE, which is hashed, tells if a table has. */
#define ES_SETS	    4
#define ES_SET_NAME 32

/* @sets: names of the table's sets, @set_count of them */
struct look {
	const char *table;
	struct es_nf_whole whole;
	size_t set_count;
	char sets[ES_SETS][ES_SET_NAME];
};

static __u64 digested(__u64 digest, const struct nlattr *attr)
{
	const unsigned char *byte = mnl_attr_get_payload(attr);

	for (size_t i = 0; i < mnl_attr_get_payload_len(attr); i++)
		digest = (digest ^ byte[i]) * ES_FNV_PRIME;
	return digest;
}

static void digest(struct es_nf_whole *whole, const struct nlattr *attr)
{
	whole->digest = digested(whole->digest, attr);
}

/* NFTA_TABLE_USE counts the table's chains, sets and objects. */
static int on_table(const struct nlmsghdr *nlh, void *data)
{
	struct look *look = data;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		int type = mnl_attr_get_type(attr);

		if (type == NFTA_TABLE_FLAGS || type == NFTA_TABLE_USE)
			digest(&look->whole, attr);
	}
	return MNL_CB_STOP;
}

static int on_rule(const struct nlmsghdr *nlh, void *data)
{
	struct look *look = data;
	const struct nlattr *attr;

	/* Old kernels ignore the table's name in the request and list all tables. */
	mnl_attr_for_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(attr) == NFTA_RULE_TABLE &&
		    strcmp(mnl_attr_get_str(attr), look->table) != 0)
			return MNL_CB_OK;
	}
	mnl_attr_for_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		int type = mnl_attr_get_type(attr);

		if (type == NFTA_RULE_CHAIN || type == NFTA_RULE_HANDLE || type == NFTA_RULE_EXPRESSIONS)
			digest(&look->whole, attr);
	}
	look->whole.rules++;
	return MNL_CB_OK;
}

static int on_set(const struct nlmsghdr *nlh, void *data)
{
	struct look *look = data;
	const struct nlattr *attr, *name = NULL;
	__u32 flags = 0;

	mnl_attr_for_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(attr) == NFTA_SET_TABLE &&
		    strcmp(mnl_attr_get_str(attr), look->table) != 0)
			return MNL_CB_OK;
		if (mnl_attr_get_type(attr) == NFTA_SET_NAME)
			name = attr;
		if (mnl_attr_get_type(attr) == NFTA_SET_FLAGS &&
		    mnl_attr_get_payload_len(attr) >= sizeof(flags))
			flags = ntohl(mnl_attr_get_u32(attr));
	}
	/* Rules fill and empty sets with NFT_SET_EVAL, so their elements are not hashed. */
	if (name)
		digest(&look->whole, name);
	if (name && !(flags & NFT_SET_EVAL) && look->set_count < ES_SETS &&
	    mnl_attr_get_payload_len(name) <= ES_SET_NAME) {
		strncpy(look->sets[look->set_count++], mnl_attr_get_str(name), ES_SET_NAME - 1);
	}
	return MNL_CB_OK;
}

/* The kernel lists elements in no fixed order, so their hashes are added up. */
static void add_element(struct look *look, const struct nlattr *element)
{
	__u64 sum = ES_FNV_BASIS;
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, element)
	{
		int type = mnl_attr_get_type(attr);

		if (type == NFTA_SET_ELEM_KEY || type == NFTA_SET_ELEM_FLAGS)
			sum = digested(sum, attr);
	}
	look->whole.digest += sum;
}

static int on_elements(const struct nlmsghdr *nlh, void *data)
{
	const struct nlattr *attr, *element;

	mnl_attr_for_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(attr) != NFTA_SET_ELEM_LIST_ELEMENTS)
			continue;
		mnl_attr_for_each_nested(element, attr) add_element(data, element);
	}
	return MNL_CB_OK;
}

static struct nlmsghdr *ask(struct es_nf_netlink *nl, void *buf, unsigned int type, unsigned int flags,
			    unsigned char family)
{
	struct nlmsghdr *nlh = es_nf_netlink_put(nl, buf, NFNL_SUBSYS_NFTABLES << 8 | type, flags);
	struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));

	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	return nlh;
}

static int look_once(struct es_nf_netlink *nl, unsigned char family, struct look *look)
{
	char buf[256];
	struct nlmsghdr *nlh = ask(nl, buf, NFT_MSG_GETTABLE, 0, family);
	int rc;

	look->whole = (struct es_nf_whole){.digest = ES_FNV_BASIS};
	look->set_count = 0;
	memset(look->sets, 0, sizeof(look->sets));
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, look->table);
	rc = es_nf_netlink_talk(nl, nlh, on_table, look);
	if (rc)
		return rc;
	nlh = ask(nl, buf, NFT_MSG_GETRULE, NLM_F_DUMP, family);
	mnl_attr_put_strz(nlh, NFTA_RULE_TABLE, look->table);
	rc = es_nf_netlink_talk(nl, nlh, on_rule, look);
	if (rc)
		return rc;
	nlh = ask(nl, buf, NFT_MSG_GETSET, NLM_F_DUMP, family);
	mnl_attr_put_strz(nlh, NFTA_SET_TABLE, look->table);
	rc = es_nf_netlink_talk(nl, nlh, on_set, look);
	for (size_t i = 0; i < look->set_count && !rc; i++) {
		nlh = ask(nl, buf, NFT_MSG_GETSETELEM, NLM_F_DUMP, family);
		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, look->table);
		mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, look->sets[i]);
		rc = es_nf_netlink_talk(nl, nlh, on_elements, look);
	}
	return rc;
}

/* Returns 0; -ENOENT: there is no such table; -EINTR: it keeps changing; or -errno. */
static int look_at(struct es_nf_netlink *nl, unsigned char family, struct look *look)
{
	int rc = -EINTR;

	for (int i = 0; i < ES_LOOKS && rc == -EINTR; i++)
		rc = look_once(nl, family, look);
	return rc;
}

int es_nf_whole_note(struct es_nf_netlink *nl, unsigned char family, const char *table, size_t rules,
		     struct es_nf_whole *ret_whole)
{
	struct look look = {.table = table};
	int rc = look_at(nl, family, &look);

	if (rc && rc != -ENOENT && rc != -EINTR)
		return rc;
	ret_whole->digest = rc ? 0 : look.whole.digest;
	ret_whole->rules = rules;
	return 0;
}

int es_nf_whole_is(struct es_nf_netlink *nl, unsigned char family, const char *table,
		   const struct es_nf_whole *whole)
{
	struct look look = {.table = table};
	int rc = look_at(nl, family, &look);

	if (rc)
		return rc == -EINTR ? 1 : rc == -ENOENT ? 0 : rc;
	return look.whole.rules == whole->rules && look.whole.digest == whole->digest;
}
