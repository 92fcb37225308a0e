/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_RING_H
#define ES_CORE_RING_H

/*
 * The ring as the datapath looks it up: sampled at 65,536 equidistant positions. Slot s holds the node that
 * owns position s << 48 on the exact ring (libearshot-ring), so a look-up is one array access whatever the
 * number of points, which suits the BPF verifier and the cache. Sampling keeps what makes the ring
 * consistent: a slot is just a key, so a node that leaves gives away its own slots only. It costs at most
 * 1/65536 of the hash space per point.
 */
#include "types.h"

#define ES_RING_SLOTS 65536
#define ES_NODES_MAX  128
#define ES_NODE_NONE  0x3fff

/*
 * While the ring changes, SYNs are answered by the node that loses a slot and by the one that gains it (any
 * node may, the answer is the same), and requests by none: they are left to the client's retransmission.
 * ES_RING_WAIT: added to this node's own id: it gains the slot, but the node that had it may still inspect
 * there. ES_RING_ANSWER: added to another node's id: this node loses the slot, and that one may not know yet.
 */
#define ES_RING_WAIT   0x4000
#define ES_RING_ANSWER 0x8000
#define ES_RING_NODE   0x3fff

struct es_ring_table {
	__u16 node[ES_RING_SLOTS];
};

/* es_ring_table_lookup() - node id that owns @hash, perhaps with a flag; ES_NODE_NONE on an empty ring */
static __always_inline __u16 es_ring_table_lookup(const struct es_ring_table *table, __u64 hash)
{
	return table->node[hash >> 48];
}

/*
 * es_ring_flow_position() - where a flow lies on the exact ring: at its slot. By its whole hash, one in some
 * hundreds would belong to another node there than in the table.
 */
static __always_inline __u64 es_ring_flow_position(__u64 hash)
{
	return hash >> 48 << 48;
}

/* es_ring_answers() - does @self answer handshakes at what es_ring_table_lookup() returned? */
static __always_inline int es_ring_answers(__u32 found, __u32 self)
{
	return (found & ES_RING_NODE) == self || (found & ES_RING_ANSWER);
}

#endif
