/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_KEPT_H
#define ES_CORE_KEPT_H

/*
 * Idle connections of other nodes, as the datapath knows them: of each, where its client's next request will
 * begin (inspector/cluster/directory.h has the rest). So a node knows of such a request whether it has
 * heard it before the connection's node was lost; and once that node's lease is over, the inspector gets
 * the request at once, with what follows it, be it repeated or not.
 *
 * One entry a slot, the newest. The daemon writes an entry, the datapath only notes in it that a request was
 * heard. A connection whose slot is another's is served all the same, when its client has repeated the
 * request for a while (strays.h).
 */
#include "tcp.h"

#define ES_KEPT_SLOTS 262144 /* a power of two; 4 MB */

/* So many bytes from the request's first one on, what follows may be of it: no more is gathered. */
#define ES_KEPT_REQUEST_MAX 65536

/**
 * struct es_kept_slot - all zero: nobody's
 * @seq: where the next request begins
 * @is_heard: it was heard when this node was not to take it; @is_orphan: its node is lost, with its lease
 */
struct es_kept_slot {
	__u64 flow_hash;
	__u32 seq;
	__u8 is_heard;
	__u8 is_orphan;
	__u16 pad;
};
_Static_assert(sizeof(struct es_kept_slot) == 16, "no padding but this");

static __always_inline __u32 es_kept_index(__u64 flow_hash)
{
	return (__u32)(flow_hash >> 20) & (ES_KEPT_SLOTS - 1);
}

/**
 * es_kept_hear() - a segment with payload has come whose connection is not here
 * @is_mine: this node may take it. Returns 1 if it may be of a request that this node goes on with.
 */
static __always_inline int es_kept_hear(struct es_kept_slot *slot, __u64 flow_hash, __u32 seq, int is_mine)
{
	volatile struct es_kept_slot *s = slot;

	if (s->flow_hash != flow_hash)
		return 0;
	if (is_mine && s->is_orphan)
		return seq - s->seq < ES_KEPT_REQUEST_MAX;
	if (s->seq == seq)
		s->is_heard = 1;
	return 0;
}

#endif
