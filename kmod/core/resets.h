/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_RESETS_H
#define ES_CORE_RESETS_H

/*
 * Connections that the stack here has ended with a RST. That may get lost; or the client, which lacks what
 * was sent before it, asks whether it was meant (RFC 5961 section 3.2). Either way it sends something more,
 * and a stack answers what belongs to no connection with a RST (RFC 9293 section 3.10.7.1). A node must not:
 * the connection may be another's. But the one that has ended it knows, and says so again.
 *
 * Only what acknowledges something that was under way then is of that connection, and not of the next one of
 * the same ports, of whose SYN this node may not have heard.
 *
 * One entry a slot, the newest: who loses his to another flow waits for his own timeout. Any CPU writes, none
 * locks. An entry that two have written at once names a flow and another one's numbers, in which that one's
 * packets are not.
 */
#include "types.h"

#define ES_RESETS 16384 /* a power of two; 384 KB */

/* A client sends again what was lost five times and more in this time. */
#define ES_RESET_HOLD_MS 60000

/*
 * With a RST that answers a packet, the stack does not say what was under way behind what that packet
 * acknowledges: most often nothing.
 */
#define ES_RESET_UNDER_WAY (1u << 20)

/*
 * es_reset_under_way() - the same of a RST that is sent by a raw socket, of IP protocol @protocol
 * The stack has one of its own, with TCP's. An inspector's has the one that it writes its own headers with. A
 * connection that an inspector ends waits for an answer, and no node has it that could have sent a part of
 * one. So a client that acknowledges more has gone on elsewhere, and its connection is alive.
 */
#define ES_RESET_PROTOCOL_RAW 255 /* IPPROTO_RAW */

static __always_inline __u32 es_reset_under_way(__u32 protocol)
{
	return protocol == ES_RESET_PROTOCOL_RAW ? 0 : ES_RESET_UNDER_WAY;
}

/**
 * struct es_reset - a connection that was ended
 * @first: what the client had acknowledged; @under_way: so many bytes were sent behind that
 * @at_ms: monotonic. All zero: empty.
 */
struct es_reset {
	__u64 flow_hash;
	__u32 first;
	__u32 under_way;
	__u32 at_ms;
	__u32 pad;
};
_Static_assert(sizeof(struct es_reset) == 24, "no padding but this");

static __always_inline __u32 es_reset_index(__u64 flow_hash)
{
	return (__u32)(flow_hash >> 20) & (ES_RESETS - 1);
}

static __always_inline void es_reset_note(struct es_reset *slot, __u64 flow_hash, __u32 first,
					  __u32 under_way, __u32 now_ms)
{
	volatile struct es_reset *r = slot;

	r->flow_hash = flow_hash;
	r->first = first;
	r->under_way = under_way;
	r->at_ms = now_ms;
}

/* Is it worth a look at the table? @reset_ns: struct es_state's */
static __always_inline int es_resets_are_fresh(__u64 reset_ns, __u64 now_ns)
{
	return reset_ns && (__s64)(now_ns - reset_ns) < ES_RESET_HOLD_MS * 1000000LL;
}

/* The flow begins anew. */
static __always_inline void es_reset_forget(struct es_reset *slot, __u64 flow_hash)
{
	volatile struct es_reset *r = slot;

	if (r->flow_hash == flow_hash)
		r->flow_hash = 0;
}

/* es_reset_is_of() - is a segment of @flow_hash that acknowledges @ack of the connection that was ended? */
static __always_inline int es_reset_is_of(const struct es_reset *slot, __u64 flow_hash, __u32 ack,
					  __u32 now_ms)
{
	const volatile struct es_reset *r = slot;

	return r->flow_hash == flow_hash && now_ms - r->at_ms < ES_RESET_HOLD_MS &&
	       ack - r->first <= r->under_way;
}

#endif
