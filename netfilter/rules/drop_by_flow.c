// SPDX-License-Identifier: GPL-2.0-or-later
/* Composes the rules that remember flows. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <netinet/in.h>
#include "kmod/core/tcp.h"
#include "netfilter/kernel/match.h"
#include "netfilter/rules/drop_by_flow.h"

#define ES_CHAIN "remember"

/* Shorter than a client's second repetition: if the flow's state has changed meanwhile, that one is heard. */
#define ES_LIFE_MS 250
#define ES_MOST	   65536 /* flows; beyond that, every packet goes to the daemon */

/* A set of flows, and the counter of packets that were dropped by it. */
struct memory {
	const char *name;
	__u32 id;
};

static const struct memory others = {"others", 1}, given = {"given", 2}, gone = {"gone", 3};

static const struct memory *const memories[] = {&others, &given, &gone};
#define MEMORIES (sizeof(memories) / sizeof(memories[0]))

static const unsigned char families[] = {NFPROTO_IPV4, NFPROTO_IPV6};

/* Source address, destination address, and both ports. */
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

/* Drops packets whose flow is in @memory and not in @unless, which may be NULL. */
static void put_drop(struct es_nf_nft *nft, const struct memory *memory, const struct memory *unless)
{
	load_key(nft);
	es_nf_nft_look_up(nft, NFT_REG32_00, memory->name, memory->id);
	if (unless)
		es_nf_nft_look_up_not(nft, NFT_REG32_00, unless->name, unless->id);
	es_nf_nft_count(nft, memory->name);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

/* Drops bare acknowledgements with a TCP header of @words words. */
static void put_bare(struct es_nf_nft *nft, const char *chain, __u8 words)
{
	es_nf_nft_begin_rule(nft, chain);
	es_nf_match_bare(nft, words, ES_TCP_SYN | ES_TCP_FIN | ES_TCP_RST | ES_TCP_URG);
	put_drop(nft, &given, NULL);
}

static void match_mark(struct es_nf_nft *nft, __u32 mark)
{
	es_nf_nft_begin_rule(nft, ES_CHAIN);
	es_nf_nft_load_meta(nft, NFT_META_MARK);
	es_nf_nft_match(nft, &mark, sizeof(mark));
}

/* Each packet renews the flow's time. */
static void put_memory(struct es_nf_nft *nft, __u32 mark, const struct memory *memory)
{
	struct nlattr *nest;

	match_mark(nft, mark);
	load_key(nft);
	es_nf_nft_begin_expression(nft, "dynset", &nest);
	mnl_attr_put_strz(nft->rule, NFTA_DYNSET_SET_NAME, memory->name);
	mnl_attr_put_u32(nft->rule, NFTA_DYNSET_SET_ID, htonl(memory->id));
	mnl_attr_put_u32(nft->rule, NFTA_DYNSET_OP, htonl(NFT_DYNSET_OP_UPDATE));
	mnl_attr_put_u32(nft->rule, NFTA_DYNSET_SREG_KEY, htonl(NFT_REG32_00));
	es_nf_nft_end_expression(nft, nest);
	es_nf_nft_end_rule(nft);
}

/* Drops the packet even if the set was full. */
static void put_end(struct es_nf_nft *nft, __u32 mark)
{
	match_mark(nft, mark);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

static void add_memory(struct es_nf_nft *nft, const struct memory *memory)
{
	es_nf_nft_add_counter(nft, memory->name);
	es_nf_nft_add_memory(nft, memory->name, memory->id, key_len(nft), ES_LIFE_MS, ES_MOST);
}

void es_nf_drop_by_flow_put(struct es_nf_nft *nft, const char *chain)
{
	add_memory(nft, &others);
	add_memory(nft, &given);
	add_memory(nft, &gone);
	es_nf_nft_begin_rule(nft, chain);
	es_nf_match_flags(nft, ES_TCP_SYN, 0);
	put_drop(nft, &others, NULL);
	/* without TCP options, or with timestamps */
	put_bare(nft, chain, 5);
	put_bare(nft, chain, 8);
	/* A flow in @given has had a new SYN, so this may be another connection of the same ports. */
	es_nf_nft_begin_rule(nft, chain);
	es_nf_match_flags(nft, ES_TCP_SYN, 0);
	put_drop(nft, &gone, &given);
	es_nf_nft_add_base_chain(nft, ES_CHAIN, NF_INET_PRE_ROUTING, ES_NF_PRIORITY_DROP_BY_FLOW);
	put_memory(nft, ES_NF_OTHERS_MARK, &others);
	put_end(nft, ES_NF_OTHERS_MARK);
	put_memory(nft, ES_NF_GIVEN_MARK, &given);
	put_end(nft, ES_NF_GIVEN_MARK);
	put_memory(nft, ES_NF_GONE_MARK, &gone);
	put_end(nft, ES_NF_GONE_MARK);
}

int es_nf_drop_by_flow_forget(struct es_nf_netlink *nl, const char *table)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(families) * MEMORIES && !rc; i++)
		rc = es_nf_nft_empty_set(nl, families[i / MEMORIES], table, memories[i % MEMORIES]->name);
	return rc;
}

void es_nf_drop_by_flow_count(struct es_nf_netlink *nl, const char *table, struct es_nf_dropped_by_flow *sum)
{
	for (size_t i = 0; i < sizeof(families); i++) {
		sum->others += es_nf_nft_take_count(nl, families[i], table, others.name);
		sum->given += es_nf_nft_take_count(nl, families[i], table, given.name);
		sum->gone += es_nf_nft_take_count(nl, families[i], table, gone.name);
	}
}
