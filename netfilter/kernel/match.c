// SPDX-License-Identifier: GPL-2.0-or-later
/* Composes conditions of rules. */
#include <netinet/in.h> /* before the kernel's headers, which then omit what it has */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include "kmod/core/abi.h"
#include "netfilter/kernel/match.h"

/* Offsets in a TCP header: its length, in the upper four bits, and its flags. */
#define ES_TCP_WORDS_OFF 12
#define ES_TCP_FLAGS_OFF 13

/* A connection's state as a bit of the expression ct. */
#define ES_CT_STATE(state) (1U << ((state) + 1))

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

void es_nf_match_label(struct es_nf_nft *nft, unsigned int bit)
{
	unsigned long bits[ES_NF_LABEL_LONGS] = {};

	es_nf_label_set(bits, bit);
	es_nf_match_labels(nft, bits, bits);
}

void es_nf_match_leaves(struct es_nf_nft *nft)
{
	const unsigned int loopback = ES_LOOPBACK_IFINDEX;

	es_nf_nft_load_meta(nft, NFT_META_OIF);
	es_nf_nft_differ(nft, &loopback, sizeof(loopback));
}

void es_nf_match_interface(struct es_nf_nft *nft, unsigned int ifindex)
{
	es_nf_nft_load_meta(nft, NFT_META_IIF);
	es_nf_nft_match(nft, &ifindex, sizeof(ifindex));
}

void es_nf_match_address(struct es_nf_nft *nft, enum es_nf_side side, const struct es_addr *address)
{
	const int is_v6 = nft->family == NFPROTO_IPV6;
	const unsigned int len = is_v6 ? 16 : 4, source = is_v6 ? 8 : 12;

	es_nf_nft_load_payload(nft, NFT_PAYLOAD_NETWORK_HEADER, side == ES_NF_SOURCE ? source : source + len,
			       len);
	es_nf_nft_match(nft, address->b + sizeof(*address) - len, len);
}

void es_nf_match_ours(struct es_nf_nft *nft, int is_proven)
{
	unsigned long ours[ES_NF_LABEL_LONGS], both[ES_NF_LABEL_LONGS];

	es_nf_label(ours);
	es_nf_label(both);
	es_nf_label_set(both, ES_NF_LABEL_PROVEN);
	es_nf_match_labels(nft, both, is_proven ? both : ours);
}

void es_nf_match_established(struct es_nf_nft *nft, int is_established)
{
	const __u32 established = ES_CT_STATE(IP_CT_ESTABLISHED), none = 0;

	es_nf_nft_load_ct(nft, NFT_CT_STATE);
	es_nf_match_bits(nft, &established, is_established ? &established : &none, sizeof(established));
}
