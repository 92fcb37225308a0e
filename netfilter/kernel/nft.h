/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_NFT_H
#define ES_NETFILTER_KERNEL_NFT_H

/*
 * Transactions of nf_tables: all of their changes are made, or none is. The functions that put things go on behind each
 * other; what is too much for the buffer, es_nf_nft_commit() refuses.
 */
#include "netfilter/kernel/netlink.h"

/* Enough for the rules of 64 services with an address of each family: five for IPv6, four for IPv4, of less than 500 bytes; and all others. */
#define ES_NF_NFT_MESSAGES 704
#define ES_NF_NFT_ROOM	   (ES_NF_NFT_MESSAGES * 500)

/**
 * struct es_nf_nft - one transaction
 * @family: NFPROTO_IPV4, NFPROTO_IPV6, NFPROTO_NETDEV, of the table that the next functions mean; @table: its name
 * @rules: how many this table has got, since es_nf_nft_add_table()
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

/* es_nf_nft_begin_in() - the same for one that is longer: in @buf, which the caller owns */
void es_nf_nft_begin_in(struct es_nf_nft *nft, struct es_nf_netlink *nl, char *buf, size_t room);

/* es_nf_nft_commit() - Returns 0, or the first error of the kernel's, negative. */
int es_nf_nft_commit(struct es_nf_nft *nft);

/* es_nf_nft_add_table() - @nft->table; one that is there stays. */
void es_nf_nft_add_table(struct es_nf_nft *nft);

/**
 * es_nf_nft_begin_table() - @nft->table, with no rules in it; no packet sees it empty
 * @anew: whatever else may be in it goes, too. But where a base chain goes, the kernel drops all packets of the network
 * namespace that wait in queues. Otherwise its chains stay as they are, and the next functions may add them again.
 */
void es_nf_nft_begin_table(struct es_nf_nft *nft, int anew);

/* es_nf_nft_delete_table() - with all that is in it; an error of the transaction if there is none */
void es_nf_nft_delete_table(struct es_nf_nft *nft);

/* es_nf_nft_remove_table() - the same in a transaction of its own. Returns 0, also if there is none, or -errno. */
int es_nf_nft_remove_table(struct es_nf_netlink *nl, unsigned char family, const char *table);

/* es_nf_nft_add_chain() - one that packets reach by jumps only */
void es_nf_nft_add_chain(struct es_nf_nft *nft, const char *chain);

/* es_nf_nft_add_base_chain() - of type filter, policy accept; @hook: NF_INET_PRE_ROUTING, … */
void es_nf_nft_add_base_chain(struct es_nf_nft *nft, const char *chain, unsigned int hook, int priority);

/* es_nf_nft_add_nat_chain() - the same of type nat: as long as there is one, the kernel translates what entries say */
void es_nf_nft_add_nat_chain(struct es_nf_nft *nft, const char *chain, unsigned int hook, int priority);

/* es_nf_nft_add_ingress_chain() - the same of the family netdev: what comes in by @device, before any protocol sees it */
void es_nf_nft_add_ingress_chain(struct es_nf_nft *nft, const char *chain, const char *device);

/* es_nf_nft_delete_set() - an error of the transaction if there is none, or a rule uses it */
void es_nf_nft_delete_set(struct es_nf_nft *nft, const char *set);

/* es_nf_nft_add_set() - @id: another number for each in the transaction; @flags: NFT_SET_…; @key_len: in bytes */
void es_nf_nft_add_set(struct es_nf_nft *nft, const char *set, __u32 id, __u32 flags, unsigned int key_len);

/* es_nf_nft_add_memory() - a set that rules fill: an element is gone after @life_ms, and there are never more than @most */
void es_nf_nft_add_memory(struct es_nf_nft *nft, const char *set, __u32 id, unsigned int key_len,
			  unsigned int life_ms, unsigned int most);

/* es_nf_nft_empty_set() - in a transaction of its own. Returns 0, also if there is none, or -errno. */
int es_nf_nft_empty_set(struct es_nf_netlink *nl, unsigned char family, const char *table, const char *set);

/* es_nf_nft_begin_elements() - of a set, up to es_nf_nft_end_elements(): at most 65535 bytes */
void es_nf_nft_begin_elements(struct es_nf_nft *nft, const char *set);

/* es_nf_nft_put_element() - @flags: NFT_SET_ELEM_…, 0: none */
void es_nf_nft_put_element(struct es_nf_nft *nft, const void *key, size_t len, __u32 flags);
void es_nf_nft_end_elements(struct es_nf_nft *nft);

/* es_nf_nft_add_counter() - one that has a name, for rules to refer to */
void es_nf_nft_add_counter(struct es_nf_nft *nft, const char *counter);

/* es_nf_nft_take_count() - how many packets have come to a counter; it begins anew. 0 if there is none. */
unsigned long long es_nf_nft_take_count(struct es_nf_netlink *nl, unsigned char family, const char *table,
					const char *counter);

/* es_nf_nft_begin_rule() - what follows up to es_nf_nft_end_rule() is its expressions */
void es_nf_nft_begin_rule(struct es_nf_nft *nft, const char *chain);
void es_nf_nft_end_rule(struct es_nf_nft *nft);

/**
 * es_nf_nft_begin_expression() - the caller puts its attributes by mnl_attr_put() into @nft->rule
 * @name: the kernel's, as "meta". All numbers are in network byte order.
 */
void es_nf_nft_begin_expression(struct es_nf_nft *nft, const char *name, struct nlattr **ret_nest);
void es_nf_nft_end_expression(struct es_nf_nft *nft, struct nlattr *nest);

/* es_nf_nft_load_meta() - into register 1; @key: NFT_META_… */
void es_nf_nft_load_meta(struct es_nf_nft *nft, unsigned int key);

/* es_nf_nft_load_ct() - what the connection tracking knows, likewise; @key: NFT_CT_… */
void es_nf_nft_load_ct(struct es_nf_nft *nft, unsigned int key);

/* es_nf_nft_load_payload() - some bytes of a header into register 1; @base: NFT_PAYLOAD_… */
void es_nf_nft_load_payload(struct es_nf_nft *nft, unsigned int base, unsigned int offset, unsigned int len);

/* es_nf_nft_load_payload_to() - into @reg and those behind it; NFT_REG32_00 + n: the nth four bytes from register 1 on */
void es_nf_nft_load_payload_to(struct es_nf_nft *nft, unsigned int reg, unsigned int base,
			       unsigned int offset, unsigned int len);

/* es_nf_nft_look_up() - go on only if what begins in @reg is in the set, which is made in the same transaction with @id */
void es_nf_nft_look_up(struct es_nf_nft *nft, unsigned int reg, const char *set, __u32 id);

/* es_nf_nft_look_up_not() - go on only if it is not there */
void es_nf_nft_look_up_not(struct es_nf_nft *nft, unsigned int reg, const char *set, __u32 id);

/* es_nf_nft_count() - by a counter that has a name */
void es_nf_nft_count(struct es_nf_nft *nft, const char *counter);

/* es_nf_nft_set_meta(), es_nf_nft_set_ct() - from register 1 */
void es_nf_nft_set_meta(struct es_nf_nft *nft, unsigned int key);
void es_nf_nft_set_ct(struct es_nf_nft *nft, unsigned int key);

/* es_nf_nft_match() - go on only if register 1 has these bytes */
void es_nf_nft_match(struct es_nf_nft *nft, const void *bytes, size_t len);

/* es_nf_nft_differ() - go on only if register 1 has others */
void es_nf_nft_differ(struct es_nf_nft *nft, const void *bytes, size_t len);

/* es_nf_nft_mask() - leave of register 1 the bits that these bytes have; at most 16 bytes */
void es_nf_nft_mask(struct es_nf_nft *nft, const void *bytes, size_t len);

/* es_nf_nft_replace() - the same with @mask's, and then change those that @bits has */
void es_nf_nft_replace(struct es_nf_nft *nft, const void *mask, const void *bits, size_t len);

/* es_nf_nft_verdict() - of what has come so far in the rule: NF_DROP, NFT_JUMP, …; @chain: of NFT_JUMP, else NULL */
void es_nf_nft_verdict(struct es_nf_nft *nft, int verdict, const char *chain);

/* es_nf_nft_load() - these bytes into register 1 */
void es_nf_nft_load(struct es_nf_nft *nft, const void *bytes, size_t len);

/**
 * es_nf_nft_target() - a target of xtables, for kernels that lack the expression of nf_tables
 * The rule gets what xtables checks: that it is about TCP. @revision: of @info, @len bytes
 */
void es_nf_nft_target(struct es_nf_nft *nft, const char *name, unsigned int revision, const void *info,
		      size_t len);

#endif
