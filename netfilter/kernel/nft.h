/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_NFT_H
#define ES_NETFILTER_KERNEL_NFT_H

/*
 * Transactions of nf_tables: the kernel makes all of their changes, or none. The functions below append to
 * the transaction. es_nf_nft_commit() fails if the buffer was too small.
 */
#include "netfilter/kernel/netlink.h"

/*
 * Enough for 64 services with an address of each family (five rules for IPv6, four for IPv4, each below 500
 * bytes) and for all other rules.
 */
#define ES_NF_NFT_MESSAGES 704
#define ES_NF_NFT_ROOM	   (ES_NF_NFT_MESSAGES * 500)

/**
 * struct es_nf_nft - one transaction
 * @family, @table: the table that the next functions change; NFPROTO_IPV4, NFPROTO_IPV6 or NFPROTO_NETDEV
 * @rules: how many rules this table got since es_nf_nft_add_table()
 */
struct es_nf_nft {
	struct es_nf_netlink *nl;
	unsigned char family;
	const char *table;
	unsigned int first_seq;
	size_t messages;
	size_t rules;
	size_t len;
	struct nlmsghdr *rule;
	struct nlattr *rule_expressions;
	struct nlattr *data;
	struct nlmsghdr *elements;
	struct nlattr *element_list;
	char *buf;
	size_t room;
	char own[ES_NF_NFT_ROOM];
};

/* es_nf_nft_begin() - @nl: NETLINK_NETFILTER */
void es_nf_nft_begin(struct es_nf_nft *nft, struct es_nf_netlink *nl);

/* es_nf_nft_begin_in() - likewise, for a longer transaction: in @buf, which the caller owns */
void es_nf_nft_begin_in(struct es_nf_nft *nft, struct es_nf_netlink *nl, char *buf, size_t room);

/* es_nf_nft_commit() - Returns 0, or the kernel's first error, negative. */
int es_nf_nft_commit(struct es_nf_nft *nft);

/* es_nf_nft_add_table() - add @nft->table; an existing one stays */
void es_nf_nft_add_table(struct es_nf_nft *nft);

/**
 * es_nf_nft_begin_table() - make @nft->table exist without rules; no packet sees it empty
 * @anew: delete everything else in it, too. But when a base chain is deleted, the kernel drops all packets of
 * the network namespace that wait in queues. Without @anew, the chains stay, and the next functions may add
 * them again.
 */
void es_nf_nft_begin_table(struct es_nf_nft *nft, int anew);

/* es_nf_nft_delete_table() - with its contents; if it does not exist, the transaction fails */
void es_nf_nft_delete_table(struct es_nf_nft *nft);

/*
 * es_nf_nft_remove_table() - likewise in a transaction of its own. Returns 0, also if it does not exist, or
 * -errno.
 */
int es_nf_nft_remove_table(struct es_nf_netlink *nl, unsigned char family, const char *table);

/* es_nf_nft_add_chain() - add a chain that packets reach only by jumps */
void es_nf_nft_add_chain(struct es_nf_nft *nft, const char *chain);

/* es_nf_nft_add_base_chain() - of type filter, with policy accept; @hook: NF_INET_PRE_ROUTING, … */
void es_nf_nft_add_base_chain(struct es_nf_nft *nft, const char *chain, unsigned int hook, int priority);

/*
 * es_nf_nft_add_nat_chain() - likewise, of type nat; while there is one, the kernel translates packets as
 * their entries say
 */
void es_nf_nft_add_nat_chain(struct es_nf_nft *nft, const char *chain, unsigned int hook, int priority);

/*
 * es_nf_nft_add_ingress_chain() - likewise, of the family netdev: sees packets that @device receives, before
 * any protocol does
 */
void es_nf_nft_add_ingress_chain(struct es_nf_nft *nft, const char *chain, const char *device);

/* es_nf_nft_delete_set() - if there is none, or a rule uses it, the transaction fails */
void es_nf_nft_delete_set(struct es_nf_nft *nft, const char *set);

/* es_nf_nft_add_set() - @id: unique within the transaction; @flags: NFT_SET_…; @key_len: in bytes */
void es_nf_nft_add_set(struct es_nf_nft *nft, const char *set, __u32 id, __u32 flags, unsigned int key_len);

/* es_nf_nft_add_memory() - a set that rules fill; elements expire after @life_ms; it holds at most @most */
void es_nf_nft_add_memory(struct es_nf_nft *nft, const char *set, __u32 id, unsigned int key_len,
			  unsigned int life_ms, unsigned int most);

/* es_nf_nft_empty_set() - in a transaction of its own. Returns 0, also if there is none, or -errno. */
int es_nf_nft_empty_set(struct es_nf_netlink *nl, unsigned char family, const char *table, const char *set);

/* es_nf_nft_begin_elements() - elements for a set, up to es_nf_nft_end_elements(): at most 65535 bytes */
void es_nf_nft_begin_elements(struct es_nf_nft *nft, const char *set);

/* es_nf_nft_put_element() - @flags: NFT_SET_ELEM_…, or 0 */
void es_nf_nft_put_element(struct es_nf_nft *nft, const void *key, size_t len, __u32 flags);
void es_nf_nft_end_elements(struct es_nf_nft *nft);

/* es_nf_nft_add_counter() - add a named counter, to which rules refer */
void es_nf_nft_add_counter(struct es_nf_nft *nft, const char *counter);

/* es_nf_nft_take_count() - read a counter and reset it. Returns 0 if it does not exist. */
unsigned long long es_nf_nft_take_count(struct es_nf_netlink *nl, unsigned char family, const char *table,
					const char *counter);

/* es_nf_nft_begin_rule() - the expressions that follow, up to es_nf_nft_end_rule(), are the rule's */
void es_nf_nft_begin_rule(struct es_nf_nft *nft, const char *chain);
void es_nf_nft_end_rule(struct es_nf_nft *nft);

/**
 * es_nf_nft_begin_expression() - the caller then puts the attributes into @nft->rule by mnl_attr_put()
 * @name: as the kernel has it, such as "meta". All numbers are in network byte order.
 */
void es_nf_nft_begin_expression(struct es_nf_nft *nft, const char *name, struct nlattr **ret_nest);
void es_nf_nft_end_expression(struct es_nf_nft *nft, struct nlattr *nest);

/* es_nf_nft_load_meta() - load it into register 1; @key: NFT_META_… */
void es_nf_nft_load_meta(struct es_nf_nft *nft, unsigned int key);

/* es_nf_nft_load_ct() - likewise, of the packet's conntrack entry; @key: NFT_CT_… */
void es_nf_nft_load_ct(struct es_nf_nft *nft, unsigned int key);

/* es_nf_nft_load_payload() - load bytes of a header into register 1; @base: NFT_PAYLOAD_… */
void es_nf_nft_load_payload(struct es_nf_nft *nft, unsigned int base, unsigned int offset, unsigned int len);

/*
 * es_nf_nft_load_payload_to() - into the registers from @reg on; NFT_REG32_00 + n: the nth four bytes from
 * register 1 on
 */
void es_nf_nft_load_payload_to(struct es_nf_nft *nft, unsigned int reg, unsigned int base,
			       unsigned int offset, unsigned int len);

/*
 * es_nf_nft_look_up() - go on only if the set has the value at @reg; the set is made in this transaction,
 * with @id
 */
void es_nf_nft_look_up(struct es_nf_nft *nft, unsigned int reg, const char *set, __u32 id);

/* es_nf_nft_look_up_not() - go on only if the set does not have it */
void es_nf_nft_look_up_not(struct es_nf_nft *nft, unsigned int reg, const char *set, __u32 id);

/* es_nf_nft_count() - count the packet with a named counter */
void es_nf_nft_count(struct es_nf_nft *nft, const char *counter);

/* es_nf_nft_set_meta(), es_nf_nft_set_ct() - set it to register 1 */
void es_nf_nft_set_meta(struct es_nf_nft *nft, unsigned int key);
void es_nf_nft_set_ct(struct es_nf_nft *nft, unsigned int key);

/* es_nf_nft_match() - go on only if register 1 equals these bytes */
void es_nf_nft_match(struct es_nf_nft *nft, const void *bytes, size_t len);

/* es_nf_nft_differ() - go on only if it differs from them */
void es_nf_nft_differ(struct es_nf_nft *nft, const void *bytes, size_t len);

/* es_nf_nft_mask() - and register 1 with these bytes, at most 16 */
void es_nf_nft_mask(struct es_nf_nft *nft, const void *bytes, size_t len);

/* es_nf_nft_replace() - and register 1 with @mask, then xor it with @bits */
void es_nf_nft_replace(struct es_nf_nft *nft, const void *mask, const void *bits, size_t len);

/*
 * es_nf_nft_verdict() - for packets that get this far in the rule: NF_DROP, NFT_JUMP, …; @chain: for
 * NFT_JUMP, else NULL
 */
void es_nf_nft_verdict(struct es_nf_nft *nft, int verdict, const char *chain);

/* es_nf_nft_load() - load these bytes into register 1 */
void es_nf_nft_load(struct es_nf_nft *nft, const void *bytes, size_t len);

/**
 * es_nf_nft_target() - a target of xtables, where the kernel lacks the expression of nf_tables
 * The rule then also says what xtables checks: that it is about TCP. @revision: of @info, @len bytes
 */
void es_nf_nft_target(struct es_nf_nft *nft, const char *name, unsigned int revision, const void *info,
		      size_t len);

#endif
