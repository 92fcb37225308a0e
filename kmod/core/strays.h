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
#include "decisions.h"

#define ES_STRAYS 16384 /* a power of two; 256 KB */

/*
 * Who has the connection acknowledges what arrives; the client has waited for that twice and more in this
 * time (Linux sends again after 200 ms, 400 ms, ...; others after 1 s, RFC 6298).
 */
#define ES_STRAY_AGAIN_MS 500

/*
 * So long for what may be a later segment of a request whose first one was lost: nobody has that connection
 * yet. A client sends such a segment a second time only as a tail loss probe, two round trips behind the
 * first (RFC 8985 section 7.2), and then its first segment, again and again.
 */
#define ES_STRAY_AGAIN_LATER_MS 3000

/*
 * So long may a request that was given to a node, and what follows it, be on its way there.
 */
#define ES_STRAY_ON_ITS_WAY_MS 5000

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

/* es_stray_note() - a segment came; for how many milliseconds has its client been sending it? */
static __always_inline __u32 es_stray_note(struct es_stray *slot, __u64 flow_hash, __u32 seq, __u32 now_ms)
{
	volatile struct es_stray *s = slot;

	if (s->flow_hash == flow_hash && s->seq == seq)
		return now_ms - s->at_ms;
	s->flow_hash = flow_hash;
	s->seq = seq;
	s->at_ms = now_ms;
	return 0;
}

/* es_stray_asked() - all are asked about the segment: not again at once */
static __always_inline void es_stray_asked(struct es_stray *slot, __u32 now_ms)
{
	((volatile struct es_stray *)slot)->at_ms = now_ms;
}

/*
 * es_stray_is_on_its_way() - may the connection of a segment be under way from here to another node?
 * @decision: this node's about a request with the same acknowledgment, 0 if there is none
 * If the segment is the request's first one, this node sends it again. One behind it is repeated by the
 * client only when the target has acknowledged the first: that is there, or was.
 */
static __always_inline int es_stray_is_on_its_way(__u64 decision, __u32 seq, __u32 now_ms)
{
	return decision && (es_decision_isn(decision) == seq - 1 ||
			    es_decision_age_ms(decision, now_ms) < ES_STRAY_ON_ITS_WAY_MS);
}

#endif
