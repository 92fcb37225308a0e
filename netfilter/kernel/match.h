/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_MATCH_H
#define ES_NETFILTER_KERNEL_MATCH_H

/*
 * Conditions that several of our tables need, as expressions of a rule (nft.h): the rule goes on only if the
 * packet fulfils them.
 */
#include "netfilter/kernel/entry.h"
#include "netfilter/kernel/nft.h"

/* es_nf_match_bits() - register 1 and @mask is @value; @len bytes */
void es_nf_match_bits(struct es_nf_nft *nft, const void *mask, const void *value, size_t len);

/* es_nf_match_protocol() - IPPROTO_… */
void es_nf_match_protocol(struct es_nf_nft *nft, __u8 protocol);

/* es_nf_match_flags() - TCP, and of the flags in @mask (ES_TCP_SYN, …) just those in @flags are set */
void es_nf_match_flags(struct es_nf_nft *nft, __u8 mask, __u8 flags);

/*
 * es_nf_match_bare() - TCP with a header of @words words, without payload, and without any of the flags in
 * @says
 */
void es_nf_match_bare(struct es_nf_nft *nft, __u8 words, __u8 says);

/* es_nf_match_labels() - of the labels in @mask, the connection has just those in @bits */
void es_nf_match_labels(struct es_nf_nft *nft, const unsigned long mask[ES_NF_LABEL_LONGS],
			const unsigned long bits[ES_NF_LABEL_LONGS]);

/* es_nf_match_label() - its connection has this label, ES_NF_LABEL_… */
void es_nf_match_label(struct es_nf_nft *nft, unsigned int bit);

/* es_nf_match_interface() - received by this interface */
void es_nf_match_interface(struct es_nf_nft *nft, unsigned int ifindex);

/* es_nf_match_leaves() - to be sent by another interface than lo */
void es_nf_match_leaves(struct es_nf_nft *nft);

/* Which address of an IP header. */
enum es_nf_side {
	ES_NF_SOURCE,
	ES_NF_TARGET,
};

/* es_nf_match_address() - from or to that address, which is of the table's family */
void es_nf_match_address(struct es_nf_nft *nft, enum es_nf_side side, const struct es_addr *address);

/* es_nf_match_ours() - of a connection that was made here, and is proven, or is not (unproven.h) */
void es_nf_match_ours(struct es_nf_nft *nft, int is_proven);

/* es_nf_match_established() - of an established connection; or, with 0, of none */
void es_nf_match_established(struct es_nf_nft *nft, int is_established);

#endif
