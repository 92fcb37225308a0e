/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_KEPT_H
#define ES_CORE_KEPT_H

/*
 * Idle connections of other nodes, as the datapath knows them: of each, where its client's next request will
 * begin (inspector/cluster/directory.h has the rest). So a node knows of such a request whether it has
 * heard it before the connection's node was lost; and once that node's lease is over, the inspector gets
 * the request at once, with what follows it, be it repeated or not.
 *
 * A request that its client repeats before that goes to the inspector, too, which keeps it. When the lease is
 * over, it asks the client whether it waits yet, and gets the answer (inspect/held.c).
 *
 * One entry a slot, the newest. The daemon writes an entry, the datapath only notes in it that a request was
 * heard, and that a question was answered. A connection whose slot is another's is served all the same, when
 * its client has repeated the request for a while (strays.h).
 */
#include "tcp.h"

#define ES_KEPT_SLOTS 262144 /* a power of two; 4 MB */

/* So many bytes from the request's first one on, what follows may be of it: no more is gathered. */
#define ES_KEPT_REQUEST_MAX 65536

/**
 * struct es_kept_slot - all zero: nobody's
 * @seq: where the next request begins
 * @is_heard: it was heard when this node was not to take it; @is_orphan: its node is lost, with its lease
 * @is_asked: its client was asked whether it waits for the answer to it, and has not said so yet
 */
struct es_kept_slot {
	__u64 flow_hash;
	__u32 seq;
	__u8 is_heard;
	__u8 is_orphan;
	__u8 is_asked;
	__u8 pad;
};
_Static_assert(sizeof(struct es_kept_slot) == 16, "no padding but this");

static __always_inline __u32 es_kept_index(__u64 flow_hash)
{
	return (__u32)(flow_hash >> 20) & (ES_KEPT_SLOTS - 1);
}

enum es_kept_says {
	ES_KEPT_SAYS_NOTHING = 0,
	ES_KEPT_SAYS_MINE, /* the segment may be of a request that this node goes on with */
	ES_KEPT_SAYS_TELL, /* the inspector is to know of it, whatever becomes of it */
};

/*
 * es_kept_hear() - a segment with payload has come whose connection is not here; @is_mine: this node may take
 * it
 */
static __always_inline enum es_kept_says es_kept_hear(struct es_kept_slot *slot, __u64 flow_hash, __u32 seq,
						      int is_mine)
{
	volatile struct es_kept_slot *s = slot;

	if (s->flow_hash != flow_hash)
		return ES_KEPT_SAYS_NOTHING;
	if (is_mine && s->is_orphan)
		return seq - s->seq < ES_KEPT_REQUEST_MAX ? ES_KEPT_SAYS_MINE : ES_KEPT_SAYS_NOTHING;
	if (s->seq != seq)
		return ES_KEPT_SAYS_NOTHING;
	if (s->is_heard)
		return ES_KEPT_SAYS_TELL;
	s->is_heard = 1;
	return ES_KEPT_SAYS_NOTHING;
}

/*
 * es_kept_answers() - the same of a bare acknowledgment: the answer of a client that was asked has the number
 * after all that it has sent. There is one to each question.
 */
static __always_inline enum es_kept_says es_kept_answers(struct es_kept_slot *slot, __u64 flow_hash,
							 __u32 seq, int is_mine)
{
	volatile struct es_kept_slot *s = slot;

	if (!is_mine || s->flow_hash != flow_hash || !s->is_asked || seq - s->seq - 1 >= ES_KEPT_REQUEST_MAX)
		return ES_KEPT_SAYS_NOTHING;
	s->is_asked = 0;
	return ES_KEPT_SAYS_TELL;
}

#endif
