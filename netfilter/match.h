/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_MATCH_H
#define ES_NETFILTER_MATCH_H

/*
 * What several of our tables look for in packets, as expressions of a rule (nft.h): each lets it go on only if the packet is such a one.
 */
#include "netfilter/entry.h"
#include "netfilter/nft.h"

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

#endif
