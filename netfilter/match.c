// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Composes what rules look for in packets.
 */
#include <netinet/in.h> /* before the kernel's headers, which leave out what it has */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include "netfilter/match.h"

/* Where a TCP header has its own length, in the upper bits, and its flags. */
#define ES_TCP_WORDS_OFF 12
#define ES_TCP_FLAGS_OFF 13

void es_nf_match_bits(struct es_nf_nft *nft, const void *mask, const void *value, size_t len)
{
	es_nf_nft_mask(nft, mask, len);
	es_nf_nft_match(nft, value, len);
}

void es_nf_match_protocol(struct es_nf_nft *nft, __u8 protocol)
{
	es_nf_nft_load_meta(nft, NFT_META_L4PROTO);
	es_nf_nft_match(nft, &protocol, sizeof(protocol));
}

void es_nf_match_flags(struct es_nf_nft *nft, __u8 mask, __u8 flags)
{
	es_nf_match_protocol(nft, IPPROTO_TCP);
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, ES_TCP_FLAGS_OFF, 1);
	es_nf_match_bits(nft, &mask, &flags, sizeof(flags));
}

void es_nf_match_bare(struct es_nf_nft *nft, __u8 words, __u8 says)
{
	const __u8 all = 0xf0, size = (__u8)(words << 4);
	const __u32 len = (nft->family == NFPROTO_IPV6 ? 40 : 20) + words * 4U;

	es_nf_nft_load_meta(nft, NFT_META_LEN);
	es_nf_nft_match(nft, &len, sizeof(len));
	es_nf_match_flags(nft, says, 0);
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, ES_TCP_WORDS_OFF, 1);
	es_nf_match_bits(nft, &all, &size, sizeof(all));
}

void es_nf_match_labels(struct es_nf_nft *nft, const unsigned long mask[ES_NF_LABEL_LONGS],
			const unsigned long bits[ES_NF_LABEL_LONGS])
{
	es_nf_nft_load_ct(nft, NFT_CT_LABELS);
	es_nf_match_bits(nft, mask, bits, ES_NF_LABEL_LONGS * sizeof(long));
}
