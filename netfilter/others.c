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

#define ES_CHAIN "remember"

/* Shorter than what it takes a client to repeat something twice: of a flow whose state has changed, the repetition is heard. */
#define ES_LIFE_MS 250
#define ES_MOST	   65536 /* flows; of more than that, each packet is asked about */

/* One for each mark; a counter has its name, too. */
struct memory {
	const char *set;
	__u32 id;
	__u32 mark;
};

static const struct memory others = {"others", 1, ES_NF_OTHERS_MARK}, given = {"given", 2, ES_NF_GIVEN_MARK};

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

static void match_flags(struct es_nf_nft *nft, __u8 flags)
{
	const __u8 tcp = IPPROTO_TCP, none = 0;

	es_nf_nft_load_meta(nft, NFT_META_L4PROTO);
	es_nf_nft_match(nft, &tcp, sizeof(tcp));
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
	es_nf_nft_mask(nft, &flags, sizeof(flags));
	es_nf_nft_match(nft, &none, sizeof(none));
}

static void put_drop(struct es_nf_nft *nft, const struct memory *memory)
{
	load_key(nft);
	es_nf_nft_look_up(nft, NFT_REG32_00, memory->set, memory->id);
	es_nf_nft_count(nft, memory->set);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

/* A packet that has no byte behind a TCP header of so many words. */
static void put_bare(struct es_nf_nft *nft, const char *chain, __u8 words)
{
	const __u8 all = 0xf0, size = (__u8)(words << 4);
	const __u32 len = (nft->family == NFPROTO_IPV6 ? 40 : 20) + words * 4U;

	es_nf_nft_begin_rule(nft, chain);
	es_nf_nft_load_meta(nft, NFT_META_LEN);
	es_nf_nft_match(nft, &len, sizeof(len));
	match_flags(nft, ES_TCP_SYN | ES_TCP_FIN | ES_TCP_RST | ES_TCP_URG);
	es_nf_nft_load_payload(nft, NFT_PAYLOAD_TRANSPORT_HEADER, 12, 1);
	es_nf_nft_mask(nft, &all, sizeof(all));
	es_nf_nft_match(nft, &size, sizeof(size));
	put_drop(nft, &given);
}

static void match_mark(struct es_nf_nft *nft, const struct memory *memory)
{
	es_nf_nft_begin_rule(nft, ES_CHAIN);
	es_nf_nft_load_meta(nft, NFT_META_MARK);
	es_nf_nft_match(nft, &memory->mark, sizeof(memory->mark));
}

/* Where there is no room for the flow, the packet is dropped all the same. */
static void put_memory(struct es_nf_nft *nft, const struct memory *memory)
{
	struct nlattr *nest;

	match_mark(nft, memory);
	load_key(nft);
	es_nf_nft_begin_expression(nft, "dynset", &nest);
	mnl_attr_put_strz(nft->rule, NFTA_DYNSET_SET_NAME, memory->set);
	mnl_attr_put_u32(nft->rule, NFTA_DYNSET_SET_ID, htonl(memory->id));
	mnl_attr_put_u32(nft->rule, NFTA_DYNSET_OP, htonl(NFT_DYNSET_OP_ADD));
	mnl_attr_put_u32(nft->rule, NFTA_DYNSET_SREG_KEY, htonl(NFT_REG32_00));
	es_nf_nft_end_expression(nft, nest);
	es_nf_nft_end_rule(nft);
	match_mark(nft, memory);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

static void add_memory(struct es_nf_nft *nft, const struct memory *memory)
{
	es_nf_nft_add_counter(nft, memory->set);
	es_nf_nft_add_memory(nft, memory->set, memory->id, key_len(nft), ES_LIFE_MS, ES_MOST);
}

void es_nf_others_put(struct es_nf_nft *nft, const char *chain)
{
	add_memory(nft, &others);
	add_memory(nft, &given);
	es_nf_nft_begin_rule(nft, chain);
	match_flags(nft, ES_TCP_SYN);
	put_drop(nft, &others);
	/* Without options, or with timestamps. */
	put_bare(nft, chain, 5);
	put_bare(nft, chain, 8);
	es_nf_nft_add_base_chain(nft, ES_CHAIN, NF_INET_PRE_ROUTING, NF_IP_PRI_MANGLE + 1);
	put_memory(nft, &others);
	put_memory(nft, &given);
}

int es_nf_others_forget(struct es_nf_netlink *nl, const char *table)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(families) && !rc; i++) {
		rc = es_nf_nft_empty_set(nl, families[i], table, others.set);
		if (!rc)
			rc = es_nf_nft_empty_set(nl, families[i], table, given.set);
	}
	return rc;
}

void es_nf_others_count(struct es_nf_netlink *nl, const char *table, struct es_nf_others_dropped *sum)
{
	for (size_t i = 0; i < sizeof(families); i++) {
		sum->others += es_nf_nft_take_count(nl, families[i], table, others.set);
		sum->given += es_nf_nft_take_count(nl, families[i], table, given.set);
	}
}
