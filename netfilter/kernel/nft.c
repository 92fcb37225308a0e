// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Composes transactions of nf_tables.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include "kmod/core/types.h"
#include "netfilter/kernel/nft.h"

/* The size of an xtables structure must be a multiple of this. */
#define ES_XT_ALIGN 8
#define ES_MESSAGE  1024

static struct nlmsghdr *put(struct es_nf_nft *nft, unsigned int type, unsigned int flags,
			    unsigned char family, unsigned int res_id)
{
	struct nlmsghdr *nlh = es_nf_netlink_put(nft->nl, nft->buf + nft->len, type, flags);
	struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));

	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons((__u16)res_id);
	return nlh;
}

/*
 * Completes the last message. If there is no room for another, it will be overwritten, and es_nf_nft_commit()
 * fails.
 */
static void done(struct es_nf_nft *nft, const struct nlmsghdr *nlh)
{
	nft->messages++;
	if (nft->len + nlh->nlmsg_len + ES_MESSAGE <= nft->room)
		nft->len += nlh->nlmsg_len;
	else
		nft->messages = ES_NF_NFT_MESSAGES + 1;
}

static struct nlmsghdr *change(struct es_nf_nft *nft, unsigned int type, unsigned int flags)
{
	return put(nft, NFNL_SUBSYS_NFTABLES << 8 | type, flags, nft->family, 0);
}

void es_nf_nft_begin(struct es_nf_nft *nft, struct es_nf_netlink *nl)
{
	es_nf_nft_begin_in(nft, nl, nft->own, sizeof(nft->own));
}

void es_nf_nft_begin_in(struct es_nf_nft *nft, struct es_nf_netlink *nl, char *buf, size_t room)
{
	nft->buf = buf;
	nft->room = room;
	nft->nl = nl;
	nft->first_seq = nl->seq + 1;
	nft->messages = nft->rules = nft->len = 0;
	done(nft, put(nft, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
}

/* A transaction is one message of the socket, and may exceed the socket's default buffer. */
static void make_room(const struct es_nf_nft *nft)
{
	const int bytes = 2 * (int)nft->len;

	if (nft->len > ES_NF_NETLINK_ROOM)
		(void)setsockopt(mnl_socket_get_fd(nft->nl->socket), SOL_SOCKET, SO_SNDBUFFORCE, &bytes,
				 sizeof(bytes));
}

int es_nf_nft_commit(struct es_nf_nft *nft)
{
	int rc[ES_NF_NFT_MESSAGES];

	done(nft, put(nft, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES));
	if (nft->messages > ES_NF_NFT_MESSAGES)
		return -EMSGSIZE;
	make_room(nft);
	es_nf_netlink_push(nft->nl, nft->buf, nft->len, nft->first_seq, nft->messages, rc);
	for (size_t i = 0; i < nft->messages; i++)
		if (rc[i])
			return rc[i];
	return 0;
}

void es_nf_nft_add_table(struct es_nf_nft *nft)
{
	struct nlmsghdr *nlh = change(nft, NFT_MSG_NEWTABLE, NLM_F_CREATE);

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, nft->table);
	nft->rules = 0;
	done(nft, nlh);
}

void es_nf_nft_delete_table(struct es_nf_nft *nft)
{
	struct nlmsghdr *nlh = change(nft, NFT_MSG_DELTABLE, 0);

	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, nft->table);
	done(nft, nlh);
}

static void empty_table(struct es_nf_nft *nft)
{
	struct nlmsghdr *nlh = change(nft, NFT_MSG_DELRULE, 0);

	mnl_attr_put_strz(nlh, NFTA_RULE_TABLE, nft->table);
	done(nft, nlh);
}

void es_nf_nft_begin_table(struct es_nf_nft *nft, int anew)
{
	es_nf_nft_add_table(nft); /* so that the table exists and can be deleted or emptied */
	if (!anew) {
		empty_table(nft);
		return;
	}
	es_nf_nft_delete_table(nft);
	es_nf_nft_add_table(nft);
}

int es_nf_nft_remove_table(struct es_nf_netlink *nl, unsigned char family, const char *table)
{
	struct es_nf_nft nft;
	int rc;

	es_nf_nft_begin(&nft, nl);
	nft.family = family;
	nft.table = table;
	es_nf_nft_delete_table(&nft);
	rc = es_nf_nft_commit(&nft);
	/* A missing table, or a kernel without that family, is no error. */
	return rc == -ENOENT || rc == -EAFNOSUPPORT || rc == -EOPNOTSUPP ? 0 : rc;
}

void es_nf_nft_add_chain(struct es_nf_nft *nft, const char *chain)
{
	struct nlmsghdr *nlh = change(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE);

	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, nft->table);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, chain);
	done(nft, nlh);
}

/* @device: for the family netdev, else NULL */
static void add_hooked_chain(struct es_nf_nft *nft, const char *chain, const char *type, unsigned int hook,
			     int priority, const char *device)
{
	struct nlmsghdr *nlh = change(nft, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	struct nlattr *nest;

	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, nft->table);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, chain);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TYPE, type);
	nest = mnl_attr_nest_start(nlh, NFTA_CHAIN_HOOK);
	mnl_attr_put_u32(nlh, NFTA_HOOK_HOOKNUM, htonl(hook));
	mnl_attr_put_u32(nlh, NFTA_HOOK_PRIORITY, htonl((__u32)priority));
	if (device)
		mnl_attr_put_strz(nlh, NFTA_HOOK_DEV, device);
	mnl_attr_nest_end(nlh, nest);
	done(nft, nlh);
}

void es_nf_nft_add_base_chain(struct es_nf_nft *nft, const char *chain, unsigned int hook, int priority)
{
	add_hooked_chain(nft, chain, "filter", hook, priority, NULL);
}

void es_nf_nft_add_nat_chain(struct es_nf_nft *nft, const char *chain, unsigned int hook, int priority)
{
	add_hooked_chain(nft, chain, "nat", hook, priority, NULL);
}

void es_nf_nft_add_ingress_chain(struct es_nf_nft *nft, const char *chain, const char *device)
{
	add_hooked_chain(nft, chain, "filter", NF_NETDEV_INGRESS, 0, device);
}

void es_nf_nft_delete_set(struct es_nf_nft *nft, const char *set)
{
	struct nlmsghdr *nlh = change(nft, NFT_MSG_DELSET, 0);

	mnl_attr_put_strz(nlh, NFTA_SET_TABLE, nft->table);
	mnl_attr_put_strz(nlh, NFTA_SET_NAME, set);
	done(nft, nlh);
}

static struct nlmsghdr *put_set(struct es_nf_nft *nft, const char *set, __u32 id, __u32 flags,
				unsigned int key_len)
{
	struct nlmsghdr *nlh = change(nft, NFT_MSG_NEWSET, NLM_F_CREATE);

	mnl_attr_put_strz(nlh, NFTA_SET_TABLE, nft->table);
	mnl_attr_put_strz(nlh, NFTA_SET_NAME, set);
	mnl_attr_put_u32(nlh, NFTA_SET_FLAGS, htonl(flags));
	mnl_attr_put_u32(nlh, NFTA_SET_KEY_TYPE, 0); /* only people read it */
	mnl_attr_put_u32(nlh, NFTA_SET_KEY_LEN, htonl(key_len));
	mnl_attr_put_u32(nlh, NFTA_SET_ID, htonl(id));
	return nlh;
}

void es_nf_nft_add_set(struct es_nf_nft *nft, const char *set, __u32 id, __u32 flags, unsigned int key_len)
{
	done(nft, put_set(nft, set, id, flags, key_len));
}

void es_nf_nft_add_memory(struct es_nf_nft *nft, const char *set, __u32 id, unsigned int key_len,
			  unsigned int life_ms, unsigned int most)
{
	struct nlmsghdr *nlh = put_set(nft, set, id, NFT_SET_TIMEOUT | NFT_SET_EVAL, key_len);
	struct nlattr *nest;

	mnl_attr_put_u64(nlh, NFTA_SET_TIMEOUT, es_cpu_be64(life_ms));
	mnl_attr_put_u32(nlh, NFTA_SET_GC_INTERVAL, htonl(life_ms / 4));
	nest = mnl_attr_nest_start(nlh, NFTA_SET_DESC);
	mnl_attr_put_u32(nlh, NFTA_SET_DESC_SIZE, htonl(most));
	mnl_attr_nest_end(nlh, nest);
	done(nft, nlh);
}

int es_nf_nft_empty_set(struct es_nf_netlink *nl, unsigned char family, const char *table, const char *set)
{
	struct es_nf_nft nft;
	struct nlmsghdr *nlh;
	int rc;

	es_nf_nft_begin(&nft, nl);
	nft.family = family;
	nlh = change(&nft, NFT_MSG_DELSETELEM, 0);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, table);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, set);
	done(&nft, nlh);
	rc = es_nf_nft_commit(&nft);
	return rc == -ENOENT || rc == -EAFNOSUPPORT || rc == -EOPNOTSUPP ? 0 : rc;
}

void es_nf_nft_begin_elements(struct es_nf_nft *nft, const char *set)
{
	nft->elements = change(nft, NFT_MSG_NEWSETELEM, NLM_F_CREATE);
	mnl_attr_put_strz(nft->elements, NFTA_SET_ELEM_LIST_TABLE, nft->table);
	mnl_attr_put_strz(nft->elements, NFTA_SET_ELEM_LIST_SET, set);
	nft->element_list = mnl_attr_nest_start(nft->elements, NFTA_SET_ELEM_LIST_ELEMENTS);
}

void es_nf_nft_put_element(struct es_nf_nft *nft, const void *key, size_t len, __u32 flags)
{
	struct nlattr *element = mnl_attr_nest_start(nft->elements, NFTA_LIST_ELEM);
	struct nlattr *nest = mnl_attr_nest_start(nft->elements, NFTA_SET_ELEM_KEY);

	mnl_attr_put(nft->elements, NFTA_DATA_VALUE, len, key);
	mnl_attr_nest_end(nft->elements, nest);
	if (flags)
		mnl_attr_put_u32(nft->elements, NFTA_SET_ELEM_FLAGS, htonl(flags));
	mnl_attr_nest_end(nft->elements, element);
}

void es_nf_nft_end_elements(struct es_nf_nft *nft)
{
	mnl_attr_nest_end(nft->elements, nft->element_list);
	done(nft, nft->elements);
}

void es_nf_nft_add_counter(struct es_nf_nft *nft, const char *counter)
{
	struct nlmsghdr *nlh = change(nft, NFT_MSG_NEWOBJ, NLM_F_CREATE);
	struct nlattr *nest;

	mnl_attr_put_strz(nlh, NFTA_OBJ_TABLE, nft->table);
	mnl_attr_put_strz(nlh, NFTA_OBJ_NAME, counter);
	mnl_attr_put_u32(nlh, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	nest = mnl_attr_nest_start(nlh, NFTA_OBJ_DATA);
	mnl_attr_nest_end(nlh, nest);
	done(nft, nlh);
}

/* @data: the sum to add to */
static int on_counter(const struct nlmsghdr *nlh, void *data)
{
	unsigned long long *sum = data;
	const struct nlattr *attr, *in;

	mnl_attr_for_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(attr) != NFTA_OBJ_DATA)
			continue;
		mnl_attr_for_each_nested(in, attr)
		{
			if (mnl_attr_get_type(in) == NFTA_COUNTER_PACKETS &&
			    mnl_attr_get_payload_len(in) >= sizeof(__u64))
				*sum += es_cpu_be64(mnl_attr_get_u64(in));
		}
	}
	return MNL_CB_OK;
}

unsigned long long es_nf_nft_take_count(struct es_nf_netlink *nl, unsigned char family, const char *table,
					const char *counter)
{
	unsigned long long count = 0;
	char buf[256];
	struct nlmsghdr *nlh =
		es_nf_netlink_put(nl, buf, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETOBJ_RESET, NLM_F_ACK);
	struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));

	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	mnl_attr_put_strz(nlh, NFTA_OBJ_TABLE, table);
	mnl_attr_put_strz(nlh, NFTA_OBJ_NAME, counter);
	mnl_attr_put_u32(nlh, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	(void)es_nf_netlink_talk(nl, nlh, on_counter, &count);
	return count;
}

void es_nf_nft_begin_rule(struct es_nf_nft *nft, const char *chain)
{
	nft->rule = change(nft, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	mnl_attr_put_strz(nft->rule, NFTA_RULE_TABLE, nft->table);
	mnl_attr_put_strz(nft->rule, NFTA_RULE_CHAIN, chain);
	nft->rule_expressions = mnl_attr_nest_start(nft->rule, NFTA_RULE_EXPRESSIONS);
}

void es_nf_nft_end_rule(struct es_nf_nft *nft)
{
	if (nft->rule_expressions)
		mnl_attr_nest_end(nft->rule, nft->rule_expressions);
	nft->rules++;
	done(nft, nft->rule);
}

void es_nf_nft_begin_expression(struct es_nf_nft *nft, const char *name, struct nlattr **ret_nest)
{
	*ret_nest = mnl_attr_nest_start(nft->rule, NFTA_LIST_ELEM);
	mnl_attr_put_strz(nft->rule, NFTA_EXPR_NAME, name);
	nft->data = mnl_attr_nest_start(nft->rule, NFTA_EXPR_DATA);
}

void es_nf_nft_end_expression(struct es_nf_nft *nft, struct nlattr *nest)
{
	mnl_attr_nest_end(nft->rule, nft->data);
	mnl_attr_nest_end(nft->rule, nest);
}

/*
 * An expression that moves @key to or from register 1. Attributes have different numbers in each expression.
 */
static void put_key(struct es_nf_nft *nft, const char *name, __u16 key_attr, unsigned int key, __u16 reg_attr)
{
	struct nlattr *nest;

	es_nf_nft_begin_expression(nft, name, &nest);
	mnl_attr_put_u32(nft->rule, key_attr, htonl(key));
	mnl_attr_put_u32(nft->rule, reg_attr, htonl(NFT_REG_1));
	es_nf_nft_end_expression(nft, nest);
}

void es_nf_nft_load_meta(struct es_nf_nft *nft, unsigned int key)
{
	put_key(nft, "meta", NFTA_META_KEY, key, NFTA_META_DREG);
}

void es_nf_nft_load_ct(struct es_nf_nft *nft, unsigned int key)
{
	put_key(nft, "ct", NFTA_CT_KEY, key, NFTA_CT_DREG);
}

void es_nf_nft_load_payload(struct es_nf_nft *nft, unsigned int base, unsigned int offset, unsigned int len)
{
	es_nf_nft_load_payload_to(nft, NFT_REG_1, base, offset, len);
}

void es_nf_nft_load_payload_to(struct es_nf_nft *nft, unsigned int reg, unsigned int base,
			       unsigned int offset, unsigned int len)
{
	struct nlattr *nest;

	es_nf_nft_begin_expression(nft, "payload", &nest);
	mnl_attr_put_u32(nft->rule, NFTA_PAYLOAD_DREG, htonl(reg));
	mnl_attr_put_u32(nft->rule, NFTA_PAYLOAD_BASE, htonl(base));
	mnl_attr_put_u32(nft->rule, NFTA_PAYLOAD_OFFSET, htonl(offset));
	mnl_attr_put_u32(nft->rule, NFTA_PAYLOAD_LEN, htonl(len));
	es_nf_nft_end_expression(nft, nest);
}

void es_nf_nft_set_meta(struct es_nf_nft *nft, unsigned int key)
{
	put_key(nft, "meta", NFTA_META_KEY, key, NFTA_META_SREG);
}

void es_nf_nft_set_ct(struct es_nf_nft *nft, unsigned int key)
{
	put_key(nft, "ct", NFTA_CT_KEY, key, NFTA_CT_SREG);
}

static void put_value(struct es_nf_nft *nft, unsigned int type, const void *bytes, size_t len)
{
	struct nlattr *nest = mnl_attr_nest_start(nft->rule, (__u16)type);

	mnl_attr_put(nft->rule, NFTA_DATA_VALUE, len, bytes);
	mnl_attr_nest_end(nft->rule, nest);
}

static void compare(struct es_nf_nft *nft, unsigned int how, const void *bytes, size_t len)
{
	struct nlattr *nest;

	es_nf_nft_begin_expression(nft, "cmp", &nest);
	mnl_attr_put_u32(nft->rule, NFTA_CMP_SREG, htonl(NFT_REG_1));
	mnl_attr_put_u32(nft->rule, NFTA_CMP_OP, htonl(how));
	put_value(nft, NFTA_CMP_DATA, bytes, len);
	es_nf_nft_end_expression(nft, nest);
}

void es_nf_nft_match(struct es_nf_nft *nft, const void *bytes, size_t len)
{
	compare(nft, NFT_CMP_EQ, bytes, len);
}

void es_nf_nft_differ(struct es_nf_nft *nft, const void *bytes, size_t len)
{
	compare(nft, NFT_CMP_NEQ, bytes, len);
}

void es_nf_nft_mask(struct es_nf_nft *nft, const void *bytes, size_t len)
{
	const __u8 none[16] = {};

	es_nf_nft_replace(nft, bytes, none, len);
}

void es_nf_nft_replace(struct es_nf_nft *nft, const void *mask, const void *bits, size_t len)
{
	struct nlattr *nest;

	es_nf_nft_begin_expression(nft, "bitwise", &nest);
	mnl_attr_put_u32(nft->rule, NFTA_BITWISE_SREG, htonl(NFT_REG_1));
	mnl_attr_put_u32(nft->rule, NFTA_BITWISE_DREG, htonl(NFT_REG_1));
	mnl_attr_put_u32(nft->rule, NFTA_BITWISE_LEN, htonl((__u32)len));
	put_value(nft, NFTA_BITWISE_MASK, mask, len);
	put_value(nft, NFTA_BITWISE_XOR, bits, len);
	es_nf_nft_end_expression(nft, nest);
}

static void look_up(struct es_nf_nft *nft, unsigned int reg, const char *set, __u32 id, __u32 flags)
{
	struct nlattr *nest;

	es_nf_nft_begin_expression(nft, "lookup", &nest);
	mnl_attr_put_strz(nft->rule, NFTA_LOOKUP_SET, set);
	mnl_attr_put_u32(nft->rule, NFTA_LOOKUP_SREG, htonl(reg));
	mnl_attr_put_u32(nft->rule, NFTA_LOOKUP_SET_ID, htonl(id));
	if (flags)
		mnl_attr_put_u32(nft->rule, NFTA_LOOKUP_FLAGS, htonl(flags));
	es_nf_nft_end_expression(nft, nest);
}

void es_nf_nft_look_up(struct es_nf_nft *nft, unsigned int reg, const char *set, __u32 id)
{
	look_up(nft, reg, set, id, 0);
}

void es_nf_nft_look_up_not(struct es_nf_nft *nft, unsigned int reg, const char *set, __u32 id)
{
	look_up(nft, reg, set, id, NFT_LOOKUP_F_INV);
}

void es_nf_nft_count(struct es_nf_nft *nft, const char *counter)
{
	struct nlattr *nest;

	es_nf_nft_begin_expression(nft, "objref", &nest);
	mnl_attr_put_u32(nft->rule, NFTA_OBJREF_IMM_TYPE, htonl(NFT_OBJECT_COUNTER));
	mnl_attr_put_strz(nft->rule, NFTA_OBJREF_IMM_NAME, counter);
	es_nf_nft_end_expression(nft, nest);
}

void es_nf_nft_verdict(struct es_nf_nft *nft, int verdict, const char *chain)
{
	struct nlattr *nest, *data, *code;

	es_nf_nft_begin_expression(nft, "immediate", &nest);
	mnl_attr_put_u32(nft->rule, NFTA_IMMEDIATE_DREG, htonl(NFT_REG_VERDICT));
	data = mnl_attr_nest_start(nft->rule, NFTA_IMMEDIATE_DATA);
	code = mnl_attr_nest_start(nft->rule, NFTA_DATA_VERDICT);
	mnl_attr_put_u32(nft->rule, NFTA_VERDICT_CODE, htonl((__u32)verdict));
	if (chain)
		mnl_attr_put_strz(nft->rule, NFTA_VERDICT_CHAIN, chain);
	mnl_attr_nest_end(nft->rule, code);
	mnl_attr_nest_end(nft->rule, data);
	es_nf_nft_end_expression(nft, nest);
}

void es_nf_nft_load(struct es_nf_nft *nft, const void *bytes, size_t len)
{
	struct nlattr *nest;

	es_nf_nft_begin_expression(nft, "immediate", &nest);
	mnl_attr_put_u32(nft->rule, NFTA_IMMEDIATE_DREG, htonl(NFT_REG_1));
	put_value(nft, NFTA_IMMEDIATE_DATA, bytes, len);
	es_nf_nft_end_expression(nft, nest);
}

void es_nf_nft_target(struct es_nf_nft *nft, const char *name, unsigned int revision, const void *info,
		      size_t len)
{
	char aligned[128] = "";
	struct nlattr *nest;

	memcpy(aligned, info, len);
	es_nf_nft_begin_expression(nft, "target", &nest);
	mnl_attr_put_strz(nft->rule, NFTA_TARGET_NAME, name);
	mnl_attr_put_u32(nft->rule, NFTA_TARGET_REV, htonl(revision));
	mnl_attr_put(nft->rule, NFTA_TARGET_INFO, (len + ES_XT_ALIGN - 1) / ES_XT_ALIGN * ES_XT_ALIGN,
		     aligned);
	es_nf_nft_end_expression(nft, nest);
	mnl_attr_nest_end(nft->rule, nft->rule_expressions);
	nft->rule_expressions = NULL; /* the target is the rule's last expression */
	nest = mnl_attr_nest_start(nft->rule, NFTA_RULE_COMPAT);
	mnl_attr_put_u32(nft->rule, NFTA_RULE_COMPAT_PROTO, htonl(IPPROTO_TCP));
	mnl_attr_put_u32(nft->rule, NFTA_RULE_COMPAT_FLAGS, 0);
	mnl_attr_nest_end(nft->rule, nest);
}
