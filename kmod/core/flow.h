/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_FLOW_H
#define ES_CORE_FLOW_H

#include "jhash.h"
#include "siphash.h"

/**
 * struct es_flow - one client connection to a service; addresses and ports in network byte order
 */
struct es_flow {
	struct es_addr client;
	struct es_addr service;
	__be16 client_port;
	__be16 service_port;
};
_Static_assert(sizeof(struct es_flow) == 36, "es_flow has no padding");

static __always_inline int es_flow_equal(const struct es_flow *a, const struct es_flow *b)
{
	return a->client_port == b->client_port && a->service_port == b->service_port &&
	       es_addr_equal(&a->client, &b->client) && es_addr_equal(&a->service, &b->service);
}

/*
 * Is it a connection of this node to itself, by the service's address, as the daemon makes one to see whether
 * the server answers? It is no client's: nobody inspects it, and it is no load.
 */
static __always_inline int es_flow_is_own(const struct es_flow *flow)
{
	return es_addr_equal(&flow->client, &flow->service);
}

static __always_inline __u64 es_words_le64(__be32 lo, __be32 hi)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (__u64)lo | (__u64)hi << 32;
#else
	return es_cpu_le64((__u64)lo << 32 | (__u64)hi);
#endif
}

/* es_flow_siphash() - SipHash-2-4 of the 36 bytes of @flow */
static __always_inline __u64 es_flow_siphash(const struct es_sipkey *key, const struct es_flow *flow)
{
	const struct es_addr *c = &flow->client;
	const struct es_addr *s = &flow->service;
	struct es_sipstate sip;

	es_siphash_init(&sip, key);
	es_siphash_word(&sip, es_words_le64(c->w[0], c->w[1]));
	es_siphash_word(&sip, es_words_le64(c->w[2], c->w[3]));
	es_siphash_word(&sip, es_words_le64(s->w[0], s->w[1]));
	es_siphash_word(&sip, es_words_le64(s->w[2], s->w[3]));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return es_siphash_final(&sip, (__u64)flow->client_port | (__u64)flow->service_port << 16, 36);
#else
	return es_siphash_final(&sip,
				(__u64)__builtin_bswap16(flow->client_port) |
					(__u64)__builtin_bswap16(flow->service_port) << 16,
				36);
#endif
}

#define ES_FLOW_SLOT_SHIFT 48 /* above it are the bits that make the position on the ring (ring.h) */

/**
 * es_flow_hash() - es_flow_siphash() under the cluster's ring key
 * The one hash of a flow: its upper 16 bits are the position on the ring (ring.h), and cookies, the decision
 * table and the choice of a worker are all derived from it, so a packet costs one pass over the addresses.
 * @seed: not 0: the position is jhash's with this seed (jhash.h), so that nf_tables can know it; the other 48
 * bits stay SipHash's, and all that must be beyond guessing, or spread over tables, is made of those
 */
ES_OWN_STACK __u64 es_flow_hash(const struct es_sipkey *key, __u32 seed, const struct es_flow *flow)
{
	__u64 hash = es_flow_siphash(key, flow);

	if (!seed)
		return hash;
	return (hash & ((1ULL << ES_FLOW_SLOT_SHIFT) - 1)) |
	       (__u64)es_jhash_slot(&flow->client, flow->client_port, seed) << ES_FLOW_SLOT_SHIFT;
}

/**
 * es_addr_hash() - ring position of a bare client address
 * For what is not a flow (ARP, ICMP echo, ports without a service): the whole traffic of a client reaches one
 * node.
 */
static __always_inline __u64 es_addr_hash(const struct es_sipkey *key, const struct es_addr *a)
{
	struct es_sipstate sip;

	es_siphash_init(&sip, key);
	es_siphash_word(&sip, es_words_le64(a->w[0], a->w[1]));
	es_siphash_word(&sip, es_words_le64(a->w[2], a->w[3]));
	return es_siphash_final(&sip, 0, 16);
}

#endif
