// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Composes the rules that remember whose flows are others'.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include "kmod/core/tcp.h"
#include "netfilter/others.h"

#define ES_SET	   "others"
#define ES_CHAIN   "remember"
#define ES_COUNTER "unasked"
#define ES_SET_ID  1

#define ES_LIFE_MS 1000
#define ES_MOST	   65536 /* flows; of more than that, each packet is asked about */

static const unsigned char families[] = {NFPROTO_IPV4, NFPROTO_IPV6};

/* Both addresses, of which the source is the first, and both ports. */
static unsigned int key_len(const struct es_nf_nft *nft)
{
	return nft->family == NFPROTO_IPV4 ? 12 : 36;
}

static void load_key(struct es_nf_nft *nft)
{
	const unsigned int ports = key_len(nft) - 4;

	es_nf_nft_load_payload_to(nft, NFT_REG32_00, NFT_PAYLOAD_NETWORK_HEADER,
				  nft->family == NFPROTO_IPV4 ? 12 : 8, ports);
	es_nf_nft_load_payload_to(nft, NFT_REG32_00 + ports / 4, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 4);
}

static void put_drop(struct es_nf_nft *nft, const char *chain)
{
	const __u8 tcp = IPPROTO_TCP, syn = ES_TCP_SYN, none = 0;

	es_nf_nft_begin_rule(nft, chain);
	es_nf_nft_load_meta(nft, NFT_META_L4PROTO);
	es_nf_nft_match(nft, &tcp, sizeof(tcp));
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
	es_nf_nft_mask(nft, &syn, sizeof(syn));
	es_nf_nft_match(nft, &none, sizeof(none));
	load_key(nft);
	es_nf_nft_look_up(nft, NFT_REG32_00, ES_SET, ES_SET_ID);
	es_nf_nft_count(nft, ES_COUNTER);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

/* Where there is no room for the flow, the packet is dropped all the same. */
static void put_chain(struct es_nf_nft *nft)
{
	const __u32 mark = ES_NF_OTHERS_MARK;
	struct nlattr *nest;

	es_nf_nft_add_base_chain(nft, ES_CHAIN, NF_INET_PRE_ROUTING, NF_IP_PRI_MANGLE + 1);
	es_nf_nft_begin_rule(nft, ES_CHAIN);
	es_nf_nft_load_meta(nft, NFT_META_MARK);
	es_nf_nft_match(nft, &mark, sizeof(mark));
	load_key(nft);
	es_nf_nft_begin_expression(nft, "dynset", &nest);
	mnl_attr_put_strz(nft->rule, NFTA_DYNSET_SET_NAME, ES_SET);
	mnl_attr_put_u32(nft->rule, NFTA_DYNSET_SET_ID, htonl(ES_SET_ID));
	mnl_attr_put_u32(nft->rule, NFTA_DYNSET_OP, htonl(NFT_DYNSET_OP_ADD));
	mnl_attr_put_u32(nft->rule, NFTA_DYNSET_SREG_KEY, htonl(NFT_REG32_00));
	es_nf_nft_end_expression(nft, nest);
	es_nf_nft_end_rule(nft);
	es_nf_nft_begin_rule(nft, ES_CHAIN);
	es_nf_nft_load_meta(nft, NFT_META_MARK);
	es_nf_nft_match(nft, &mark, sizeof(mark));
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

void es_nf_others_put(struct es_nf_nft *nft, const char *chain)
{
	es_nf_nft_add_counter(nft, ES_COUNTER);
	es_nf_nft_add_memory(nft, ES_SET, ES_SET_ID, key_len(nft), ES_LIFE_MS, ES_MOST);
	put_drop(nft, chain);
	put_chain(nft);
}

int es_nf_others_forget(struct es_nf_netlink *nl, const char *table)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(families) && !rc; i++)
		rc = es_nf_nft_empty_set(nl, families[i], table, ES_SET);
	return rc;
}

unsigned long long es_nf_others_count(struct es_nf_netlink *nl, const char *table)
{
	unsigned long long sum = 0;

	for (size_t i = 0; i < sizeof(families); i++)
		sum += es_nf_nft_take_count(nl, families[i], table, ES_COUNTER);
	return sum;
}
