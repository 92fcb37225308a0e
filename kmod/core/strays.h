/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_STRAYS_H
#define ES_CORE_STRAYS_H

/*
 * Segments of connections that are not here, and that their clients send again and again: nobody acknowledges
 * them. Then nobody may have the connection any more: its node has lost its power, or the server has closed
 * it while the client slept. A stack would answer with a RST (RFC 9293 section 3.10.7.1); a node that knows
 * of its own sockets only must ask the others first, see inspector/inspect_stray.c. Here is what makes it
 * ask.
 *
 * One entry a slot, the newest; any CPU writes, none locks. What two have written at once makes a segment
 * come again that did not, or the other way round: a question too many, or a later one.
 */
#include "types.h"

#define ES_STRAYS 16384 /* a power of two; 256 KB */

/*
 * Who has the connection acknowledges what arrives; the client has waited for that twice and more in this
 * time (RFC 6298: 1 s at first; Linux 200 ms, doubled each time).
 */
#define ES_STRAY_AGAIN_MS 500

/**
 * struct es_stray - a segment that was not for this node's sockets
 * @seq: of its first byte; @at_ms: monotonic, when it came first or was last asked about
 */
struct es_stray {
	__u64 flow_hash;
	__u32 seq;
	__u32 at_ms;
};
_Static_assert(sizeof(struct es_stray) == 16, "no padding");

static __always_inline __u32 es_stray_index(__u64 flow_hash)
{
	return (__u32)(flow_hash >> 20) & (ES_STRAYS - 1);
}

/* es_stray_came_again() - note the segment; is it time to ask whose it is? */
static __always_inline int es_stray_came_again(struct es_stray *slot, __u64 flow_hash, __u32 seq,
					       __u32 now_ms)
{
	volatile struct es_stray *s = slot;
	int is_same = s->flow_hash == flow_hash && s->seq == seq;

	if (is_same && now_ms - s->at_ms < ES_STRAY_AGAIN_MS)
		return 0;
	s->flow_hash = flow_hash;
	s->seq = seq;
	s->at_ms = now_ms;
	return is_same;
}

#endif
