// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Composes the tables that drop other nodes' packets in the kernel.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "netfilter/kernel/match.h"
#include "netfilter/rules/drop_by_flow.h"
#include "netfilter/rules/drop_by_ring.h"

#define ES_CHAIN     "overheard"
#define ES_COUNTER   "dropped"
#define ES_ENDPOINTS "services"
#define ES_SLOTS     "slots"

/* Elements in one message: each takes at most 24 bytes, of the 65535 that a nest can have. */
#define ES_ELEMENTS    2000
#define ES_ELEMENT_MAX 40 /* bytes; an endpoint */

/* Each part of a concatenated key fills whole registers of four bytes. */
#define ES_REGISTER 4

static const unsigned char families[] = {NFPROTO_IPV4, NFPROTO_IPV6};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

static int is_of(const struct es_addr *address, unsigned char family)
{
	return es_addr_is_v4(address) == (family == NFPROTO_IPV4);
}

static unsigned int address_len(unsigned char family)
{
	return family == NFPROTO_IPV4 ? 4 : 16;
}

static void add_endpoint(struct es_nf_drop_by_ring *o, const struct es_addr *address, __be16 port)
{
	if (!es_addr_is_unspecified(address))
		o->endpoint[o->count++] = (struct es_nf_endpoint){.address = *address, .port = port};
}

void es_nf_drop_by_ring_of(const struct es_config *config, const struct es_node_ring *ring,
			   struct es_nf_drop_by_ring *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->seed = config->ring_seed;
	if (!ret->seed)
		return;
	ret->public_ifindex = config->public_ifindex;
	for (__u32 i = 0; i < config->service_count && i < ES_SERVICES_MAX; i++) {
		const struct es_service_entry *service = &config->service[i];

		if (service->inspect == ES_INSPECT_EVERY)
			continue;
		add_endpoint(ret, &service->address, service->port);
		add_endpoint(ret, &service->address6, service->port);
	}
	memcpy(ret->answered, ring->answered, sizeof(ret->answered));
}

static int is_answered(const struct es_nf_drop_by_ring *o, __u32 slot)
{
	return (int)(o->answered[slot / 64] >> (slot % 64) & 1);
}

int es_nf_drop_by_ring_next(const struct es_nf_drop_by_ring *o, __u32 *at, __u32 *ret_from, __u32 *ret_to)
{
	__u32 slot = *at;

	while (slot < ES_RING_SLOTS && is_answered(o, slot))
		slot++;
	*ret_from = slot;
	while (slot < ES_RING_SLOTS && !is_answered(o, slot))
		slot++;
	*at = *ret_to = slot;
	return *ret_from < slot;
}

int es_nf_drop_by_ring_gains(const __u64 before[ES_RING_SLOTS / 64], const __u64 after[ES_RING_SLOTS / 64])
{
	for (size_t i = 0; i < ES_RING_SLOTS / 64; i++)
		if (after[i] & ~before[i])
			return 1;
	return 0;
}

static int have(const struct es_nf_drop_by_ring *o, unsigned char family)
{
	for (__u32 i = 0; o->seed && i < o->count; i++)
		if (is_of(&o->endpoint[i].address, family))
			return 1;
	return 0;
}

static void put_endpoints(struct es_nf_nft *nft, const struct es_nf_drop_by_ring *o)
{
	const unsigned int len = address_len(nft->family);

	es_nf_nft_add_set(nft, ES_ENDPOINTS, 1, 0, len + ES_REGISTER);
	es_nf_nft_begin_elements(nft, ES_ENDPOINTS);
	for (__u32 i = 0; i < o->count; i++) {
		const struct es_nf_endpoint *e = &o->endpoint[i];
		__u8 key[sizeof(e->address) + ES_REGISTER] = {};

		if (!is_of(&e->address, nft->family))
			continue;
		memcpy(key, e->address.b + sizeof(e->address) - len, len);
		memcpy(key + len, &e->port, sizeof(e->port));
		es_nf_nft_put_element(nft, key, len + ES_REGISTER, 0);
	}
	es_nf_nft_end_elements(nft);
}

/* In network byte order, in which intervals are compared. */
static void put_slots(struct es_nf_nft *nft, const struct es_nf_drop_by_ring *o)
{
	__u32 at = 0, from, to, n = 0;

	es_nf_nft_add_set(nft, ES_SLOTS, 2, NFT_SET_INTERVAL, ES_REGISTER);
	while (es_nf_drop_by_ring_next(o, &at, &from, &to)) {
		const __be32 first = htonl(from), behind = htonl(to);

		if (n % ES_ELEMENTS == 0)
			es_nf_nft_begin_elements(nft, ES_SLOTS);
		es_nf_nft_put_element(nft, &first, sizeof(first), 0);
		es_nf_nft_put_element(nft, &behind, sizeof(behind), NFT_SET_ELEM_INTERVAL_END);
		n += 2;
		if (n % ES_ELEMENTS == 0)
			es_nf_nft_end_elements(nft);
	}
	if (n % ES_ELEMENTS != 0)
		es_nf_nft_end_elements(nft);
}

static void put_rule(struct es_nf_nft *nft, const struct es_nf_drop_by_ring *o)
{
	const unsigned int len = address_len(nft->family), source = nft->family == NFPROTO_IPV4 ? 12 : 8;
	/* Registers of four bytes each, from where register 1 begins. */
	const unsigned int first = NFT_REG32_00, behind = NFT_REG32_00 + len / ES_REGISTER;
	const __u32 established = 1U << (IP_CT_ESTABLISHED + 1), none = 0;
	struct nlattr *nest;

	es_nf_nft_begin_rule(nft, ES_CHAIN);
	es_nf_nft_load_meta(nft, NFT_META_IIF);
	es_nf_nft_match(nft, &o->public_ifindex, sizeof(o->public_ifindex));
	es_nf_match_protocol(nft, IPPROTO_TCP);
	es_nf_nft_load_payload_to(nft, first, NFT_PAYLOAD_NETWORK_HEADER, source + len, len);
	es_nf_nft_load_payload_to(nft, behind, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
	es_nf_nft_look_up(nft, first, ES_ENDPOINTS, 1);
	es_nf_nft_load_ct(nft, NFT_CT_STATE);
	es_nf_match_bits(nft, &established, &none, sizeof(none));
	es_nf_nft_load_payload_to(nft, first, NFT_PAYLOAD_NETWORK_HEADER, source, len);
	es_nf_nft_load_payload_to(nft, behind, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 2);
	es_nf_nft_begin_expression(nft, "hash", &nest);
	mnl_attr_put_u32(nft->rule, NFTA_HASH_SREG, htonl(first));
	mnl_attr_put_u32(nft->rule, NFTA_HASH_DREG, htonl(first));
	mnl_attr_put_u32(nft->rule, NFTA_HASH_LEN, htonl(len + ES_REGISTER));
	mnl_attr_put_u32(nft->rule, NFTA_HASH_MODULUS, htonl(ES_RING_SLOTS));
	mnl_attr_put_u32(nft->rule, NFTA_HASH_SEED, htonl(o->seed));
	es_nf_nft_end_expression(nft, nest);
	es_nf_nft_begin_expression(nft, "byteorder", &nest);
	mnl_attr_put_u32(nft->rule, NFTA_BYTEORDER_SREG, htonl(first));
	mnl_attr_put_u32(nft->rule, NFTA_BYTEORDER_DREG, htonl(first));
	mnl_attr_put_u32(nft->rule, NFTA_BYTEORDER_OP, htonl(NFT_BYTEORDER_HTON));
	mnl_attr_put_u32(nft->rule, NFTA_BYTEORDER_LEN, htonl(ES_REGISTER));
	mnl_attr_put_u32(nft->rule, NFTA_BYTEORDER_SIZE, htonl(ES_REGISTER));
	es_nf_nft_end_expression(nft, nest);
	es_nf_nft_look_up(nft, first, ES_SLOTS, 2);
	es_nf_nft_count(nft, ES_COUNTER);
	es_nf_nft_verdict(nft, NF_DROP, NULL);
	es_nf_nft_end_rule(nft);
}

static int make(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *o, unsigned char family, int anew,
		struct es_nf_whole *ret_whole)
{
	/* An interval takes two elements. Apart from endpoints, all else fits into the usual room. */
	const size_t room =
		2 * ES_NF_NETLINK_ROOM + (size_t)ES_RING_SLOTS * 24 + (size_t)o->count * ES_ELEMENT_MAX;
	int rc;
	struct es_nf_nft nft;
	char *buf = malloc(room);

	if (!buf)
		return -ENOMEM;
	es_nf_nft_begin_in(&nft, nl, buf, room);
	nft.family = family;
	nft.table = ES_NF_DROP_BY_RING_TABLE;
	es_nf_nft_begin_table(&nft, anew);
	if (!anew) {
		es_nf_nft_delete_set(&nft, ES_ENDPOINTS);
		es_nf_nft_delete_set(&nft, ES_SLOTS);
	}
	es_nf_nft_add_counter(&nft, ES_COUNTER);
	put_endpoints(&nft, o);
	put_slots(&nft, o);
	/* After conntrack, and before the rules that give packets to the daemon. */
	es_nf_nft_add_base_chain(&nft, ES_CHAIN, NF_INET_PRE_ROUTING, ES_NF_PRIORITY_DROP_BY_RING);
	put_rule(&nft, o);
	rc = es_nf_nft_commit(&nft);
	free(buf);
	return rc ? rc : es_nf_whole_note(nl, family, nft.table, nft.rules, ret_whole);
}

/* Makes the table anew if it does not exist, or cannot be changed into ours. */
static int set(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *o, unsigned char family, int anew,
	       struct es_nf_whole *ret_whole)
{
	int rc = anew ? -EEXIST : make(nl, o, family, 0, ret_whole);

	return rc && rc != -ENOMEM ? make(nl, o, family, 1, ret_whole) : rc;
}

int es_nf_drop_by_ring_set(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *overheard, int anew,
			   struct es_nf_rules_whole *ret_whole, struct es_nf_why *why)
{
	int rc = 0;

	for (size_t i = 0; i < FAMILIES && !rc; i++)
		rc = have(overheard, families[i])
			     ? set(nl, overheard, families[i], anew, &ret_whole->table[i])
			     : es_nf_nft_remove_table(nl, families[i], ES_NF_DROP_BY_RING_TABLE);
	if (!rc)
		return 0;
	/* A table that stays would drop by the previous ring. */
	(void)es_nf_drop_by_ring_remove(nl);
	if (rc == -ENOENT)
		return es_nf_why(why, rc,
				 "nf_tables of this kernel cannot tell whose a packet is (CONFIG_NFT_HASH, "
				 "CONFIG_NFT_OBJREF, CONFIG_NFT_COUNTER)");
	return es_nf_why(why, rc, "nf_tables refuse the table %s: %s", ES_NF_DROP_BY_RING_TABLE,
			 strerror(-rc));
}

int es_nf_drop_by_ring_are_whole(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *overheard,
				 const struct es_nf_rules_whole *whole)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		int rc = have(overheard, families[i])
				 ? es_nf_whole_is(nl, families[i], ES_NF_DROP_BY_RING_TABLE, &whole->table[i])
				 : 1;

		if (rc <= 0)
			return rc;
	}
	return 1;
}

unsigned long long es_nf_drop_by_ring_count(struct es_nf_netlink *nl)
{
	unsigned long long sum = 0;

	for (size_t i = 0; i < FAMILIES; i++)
		sum += es_nf_nft_take_count(nl, families[i], ES_NF_DROP_BY_RING_TABLE, ES_COUNTER);
	return sum;
}

int es_nf_drop_by_ring_remove(struct es_nf_netlink *nl)
{
	int rc = 0;

	for (size_t i = 0; i < FAMILIES && !rc; i++)
		rc = es_nf_nft_remove_table(nl, families[i], ES_NF_DROP_BY_RING_TABLE);
	return rc;
}
