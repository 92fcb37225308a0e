/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_DROP_BY_RING_H
#define ES_NETFILTER_RULES_DROP_BY_RING_H

/*
 * Where the cluster's ring_hash is jhash, nf_tables can tell whose a packet is, and drop in the kernel what this node only
 * overhears: a table of its own for each family, in front of the rules of rules.h. Packets of connections that are here pass,
 * as conntrack knows them; of the others, those whose slot of the ring this node has nothing to do with are counted and dropped.
 *
 * What is dropped there this node has not heard: no SYN, no first request of another node's (kmod/core/overheard.h). Whoever
 * gives it more slots must say so (es_datapath_hears_anew()). And a service with inspect = every is left out: there this node may
 * have moved the connection away and be the one that answers for it, which no slot tells.
 */
#include "kmod/core/abi.h"
#include "kmod/core/neighbour.h"
#include "kmod/core/node_ring.h"
#include "netfilter/rules/rules.h"
#include "netfilter/kernel/why.h"

#define ES_NF_DROP_BY_RING_TABLE "earshot-overheard"
#define ES_NF_DROP_BY_RING_MAX	 (2 * ES_SERVICES_MAX)

/* struct es_nf_endpoint - a service's address and port, in network byte order */
struct es_nf_endpoint {
	struct es_addr address;
	__be16 port;
	__u16 pad;
};

/**
 * struct es_nf_drop_by_ring - what the tables depend on
 * @seed: as of es_flow_hash(); 0: there are none
 * @count: of endpoints; @answered: a bit for each slot, as of struct es_node_ring
 */
struct es_nf_drop_by_ring {
	__u32 public_ifindex;
	__u32 seed;
	__u32 count;
	__u32 pad;
	struct es_nf_endpoint endpoint[ES_NF_DROP_BY_RING_MAX];
	__u64 answered[ES_RING_SLOTS / 64];
};
_Static_assert(sizeof(struct es_nf_drop_by_ring) == 16 + 20 * ES_NF_DROP_BY_RING_MAX + ES_RING_SLOTS / 8,
	       "no padding: two are compared as bytes");

/* es_nf_drop_by_ring_of() - of what is in force */
void es_nf_drop_by_ring_of(const struct es_config *config, const struct es_node_ring *ring,
			   struct es_nf_drop_by_ring *ret_overheard);

/**
 * es_nf_drop_by_ring_next() - the next slots, in order, that are other nodes'
 * @at: where to look from, 0 at first; moved behind them
 * Returns 1: from @ret_from to before @ret_to; or 0: there are no more.
 */
int es_nf_drop_by_ring_next(const struct es_nf_drop_by_ring *overheard, __u32 *at, __u32 *ret_from,
			    __u32 *ret_to);

/* es_nf_drop_by_ring_gains() - is there a slot in @after that is not in @before? Its packets were dropped so far, and not heard. */
int es_nf_drop_by_ring_gains(const __u64 before[ES_RING_SLOTS / 64], const __u64 after[ES_RING_SLOTS / 64]);

/**
 * es_nf_drop_by_ring_set() - set the tables, each in one transaction; or take them away, if there are to be none
 * @anew: as of es_nf_nft_begin_table(); otherwise they are, too, where it needs be.
 * What they have counted so far is lost: es_nf_drop_by_ring_count() has it before.
 * @ret_whole: for es_nf_drop_by_ring_are_whole()
 * Returns 0; or -errno, with @why: none is there then.
 */
int es_nf_drop_by_ring_set(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *overheard, int anew,
			   struct es_nf_rules_whole *ret_whole, struct es_nf_why *why);

/* es_nf_drop_by_ring_are_whole() - are all tables as they were set, with each slot? 1, 0 or -errno. */
int es_nf_drop_by_ring_are_whole(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *overheard,
				 const struct es_nf_rules_whole *whole);

/* es_nf_drop_by_ring_count() - how many packets were dropped since it was asked last. What cannot be read is none. */
unsigned long long es_nf_drop_by_ring_count(struct es_nf_netlink *nl);

/* es_nf_drop_by_ring_remove() - Returns 0, also if there are none, or -errno. */
int es_nf_drop_by_ring_remove(struct es_nf_netlink *nl);

#endif
