/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_MATCH_H
#define ES_NETFILTER_KERNEL_MATCH_H

/*
 * What several of our tables look for in packets, as expressions of a rule (nft.h): each lets it go on only if the packet is such a one.
 */
#include "netfilter/kernel/entry.h"
#include "netfilter/kernel/nft.h"

/* es_nf_match_bits() - these bits of register 1, @len bytes, are as in @value */
void es_nf_match_bits(struct es_nf_nft *nft, const void *mask, const void *value, size_t len);

/* es_nf_match_protocol() - IPPROTO_… */
void es_nf_match_protocol(struct es_nf_nft *nft, __u8 protocol);

/* es_nf_match_flags() - it is TCP, and of the flags in @mask (ES_TCP_SYN, …) it has those in @flags */
void es_nf_match_flags(struct es_nf_nft *nft, __u8 mask, __u8 flags);

/* es_nf_match_bare() - it is TCP, with a header of so many words, not a byte more, and none of the flags in @says */
void es_nf_match_bare(struct es_nf_nft *nft, __u8 words, __u8 says);

/* es_nf_match_labels() - of the labels in @mask, its connection has those in @bits */
void es_nf_match_labels(struct es_nf_nft *nft, const unsigned long mask[ES_NF_LABEL_LONGS],
			const unsigned long bits[ES_NF_LABEL_LONGS]);

/* es_nf_match_interface() - it comes in there */
void es_nf_match_interface(struct es_nf_nft *nft, unsigned int ifindex);

/* Whose address in an IP header. */
enum es_nf_side {
	ES_NF_SOURCE,
	ES_NF_TARGET,
};

/* es_nf_match_address() - it is from that address, or to it, which is one of the table's family */
void es_nf_match_address(struct es_nf_nft *nft, enum es_nf_side side, const struct es_addr *address);

/* es_nf_match_ours() - its connection was made here, and is proven, or is not */
void es_nf_match_ours(struct es_nf_nft *nft, int is_proven);

/* es_nf_match_established() - it is of a connection that is established, or of none such */
void es_nf_match_established(struct es_nf_nft *nft, int is_established);

#endif
