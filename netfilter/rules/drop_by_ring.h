/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_DROP_BY_RING_H
#define ES_NETFILTER_RULES_DROP_BY_RING_H

/*
 * Where the cluster's ring_hash is jhash, nf_tables can compute a packet's slot. So a table for each family,
 * before the rules of rules.h, drops packets that this node only overhears. Packets of connections that are
 * here pass, as conntrack knows them. Other packets are counted and dropped if their slot does not concern
 * this node. This node does not hear what is dropped here: no SYN and no first request of another node's
 * (kmod/core/overheard.h). When it gets more slots, that must be told (es_nf_drop_by_ring_gains()). Services
 * with inspect = every are left out: this node may have moved such a connection away and still answer for it,
 * whatever its slot.
 */
#include "kmod/core/abi.h"
#include "kmod/core/neighbour.h"
#include "kmod/core/node_ring.h"
#include "netfilter/kernel/why.h"
#include "netfilter/rules/rules.h"

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
 * @seed: as for es_flow_hash(); 0: no tables
 * @count: number of endpoints; @answered: a bit for each slot, as in struct es_node_ring
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

/* es_nf_drop_by_ring_of() - from the configuration and ring in force */
void es_nf_drop_by_ring_of(const struct es_config *config, const struct es_node_ring *ring,
			   struct es_nf_drop_by_ring *ret_overheard);

/**
 * es_nf_drop_by_ring_next() - find the next range of slots of other nodes
 * @at: where to begin, 0 at first; set to where to go on
 * Returns 1: slots from @ret_from to before @ret_to; 0: there are no more.
 */
int es_nf_drop_by_ring_next(const struct es_nf_drop_by_ring *overheard, __u32 *at, __u32 *ret_from,
			    __u32 *ret_to);

/*
 * es_nf_drop_by_ring_gains() - is a slot in @after that is not in @before? Its packets have been dropped
 * unheard so far.
 */
int es_nf_drop_by_ring_gains(const __u64 before[ES_RING_SLOTS / 64], const __u64 after[ES_RING_SLOTS / 64]);

/**
 * es_nf_drop_by_ring_set() - set the tables, each in one transaction; or remove them if there are to be none
 * @anew: as for es_nf_nft_begin_table(); a table that cannot be changed is made anew in any case
 * @ret_whole: for es_nf_drop_by_ring_are_whole()
 * Resets the counters: call es_nf_drop_by_ring_count() before. Returns 0; or -errno, with @why, and no table
 * is there.
 */
int es_nf_drop_by_ring_set(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *overheard, int anew,
			   struct es_nf_rules_whole *ret_whole, struct es_nf_why *why);

/*
 * es_nf_drop_by_ring_are_whole() - are all tables as they were set, with each slot? Returns 1, 0 or -errno.
 */
int es_nf_drop_by_ring_are_whole(struct es_nf_netlink *nl, const struct es_nf_drop_by_ring *overheard,
				 const struct es_nf_rules_whole *whole);

/*
 * es_nf_drop_by_ring_count() - packets dropped since the last call; a counter that cannot be read counts as 0
 */
unsigned long long es_nf_drop_by_ring_count(struct es_nf_netlink *nl);

/* es_nf_drop_by_ring_remove() - Returns 0, also if there are none, or -errno. */
int es_nf_drop_by_ring_remove(struct es_nf_netlink *nl);

#endif
