/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_NODE_RING_H
#define ES_CORE_NODE_RING_H

#include "ring.h"

/**
 * struct es_node_ring - the ring as one node's datapath has it
 * @answered: a bit for each slot where es_ring_answers() holds for this node; where it does not, the slot has
 * no flag either.
 *
 * Most packets that a node hears are another's, and must be dropped cheaply. A random access to 128 KB costs
 * more than the rest of that, so the bits tell whether this node has anything to do with the packet: they are
 * 8 KB, and stay in the cache.
 */
struct es_node_ring {
	struct es_ring_table table;
	__u64 answered[ES_RING_SLOTS / 64];
};

/* es_node_ring_answers() - es_ring_answers() of @hash's slot, for the node whose ring it is */
static __always_inline int es_node_ring_answers(const struct es_node_ring *ring, __u64 hash)
{
	__u32 slot = (__u32)(hash >> 48);

	return (int)(ring->answered[slot / 64] >> (slot % 64) & 1);
}

/* es_node_ring_waits() - are requests at @hash left to the client's retransmission for now? */
static __always_inline int es_node_ring_waits(const struct es_node_ring *ring, __u64 hash)
{
	return (es_ring_table_lookup(&ring->table, hash) & (ES_RING_WAIT | ES_RING_ANSWER)) != 0;
}

#endif
