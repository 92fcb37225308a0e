/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_DECISIONS_H
#define ES_CORE_DECISIONS_H

/*
 * The decision table: what the inspector of this node decided for which first request. A repeated request
 * must never be routed somewhere else, also not by a daemon that was restarted meanwhile, so the table lives
 * in memory that the datapath owns and the daemon maps. The daemon's workers write (each its own sets: a set
 * belongs to the worker es_worker_of() names), the datapath only reads; no locks.
 *
 * 4-way sets of one cache line. A connection's later request takes the place of its one before; else the
 * oldest entry of a full set is replaced. Bounded by construction.
 */
#include "types.h"

#define ES_DECISION_WAYS 4

/* In place of a node id: the inspector refused the request with an answer of its own. */
#define ES_NODE_REJECT 127

/*
 * For how long what a client goes on sending behind a refusal is acknowledged, and dropped: a RST would make
 * its system forget the refusal before the client, which sends first and reads then, has read it. nginx's
 * lingering_time.
 */
#define ES_REJECT_LINGER_MS 30000

/**
 * struct es_decision
 * @key: flow tag (the hash's low 32 bits) and, above it, the cookie: names one incarnation of the flow; 0 is
 * empty. Written last, cleared first, so a reader that sees the same key before and after has read one entry.
 * @value: client ISN, moved (1 bit), target node (7 bits) and time of the decision (24 bits of milliseconds)
 *
 * A later request on a persistent connection is named in the same way: what its segments acknowledge is its
 * "cookie + 1" (the last byte of the response before it), its first byte "client ISN + 1". If it moved the
 * connection away from this node, "moved" says so: then this node, not the ring's, answers for its
 * retransmissions.
 */
struct es_decision {
	__u64 key;
	__u64 value;
};

struct es_decision_set {
	struct es_decision way[ES_DECISION_WAYS];
};
_Static_assert(sizeof(struct es_decision_set) == 64, "a set is one cache line");

static __always_inline __u64 es_decision_key(__u64 flow_hash, __u32 cookie)
{
	return (flow_hash & 0xffffffff) | (__u64)cookie << 32;
}

#define ES_DECISION_MOVED 0x80000000ULL

static __always_inline __u64 es_decision_value(__u32 client_isn, __u8 node, __u32 now_ms)
{
	return (__u64)client_isn << 32 | (__u32)node << 24 | (now_ms & 0xffffff);
}

static __always_inline int es_decision_is_moved(__u64 value)
{
	return !!(value & ES_DECISION_MOVED);
}

static __always_inline __u32 es_decision_isn(__u64 value)
{
	return (__u32)(value >> 32);
}

static __always_inline __u8 es_decision_node(__u64 value)
{
	return (__u8)(value >> 24) & 0x7f;
}

/* How far the datapath's coarse clock may lie behind the daemon's, and more. */
#define ES_DECISION_AHEAD_MS 1000

/*
 * So old, nothing asks for a decision any more: no cookie lives longer (cookie_lifetime_s is 3600 at most),
 * and no client repeats a request for so long. The daemon forgets it before its age wraps.
 */
#define ES_DECISION_OLD_MS 3600000

/*
 * Milliseconds since the decision; wraps after 4.6 hours. A decision that seems to lie just ahead was made
 * just now.
 */
static __always_inline __u32 es_decision_age_ms(__u64 value, __u32 now_ms)
{
	__u32 age = (now_ms - (__u32)value) & 0xffffff;

	return age <= 0xffffff - ES_DECISION_AHEAD_MS ? age : 0;
}

/* Which set of @sets (a power of two); disjoint from the bits that make the ring position. */
static __always_inline __u32 es_decision_index(__u64 flow_hash, __u32 sets)
{
	return (__u32)(flow_hash >> 20) & (sets - 1);
}

/**
 * es_worker_of() - the worker that handles a flow
 * From the set's index, so that a worker is the only writer of its sets.
 */
static __always_inline __u32 es_worker_of(__u64 flow_hash, __u32 workers)
{
	return workers ? ((__u32)(flow_hash >> 20) & 0xff) % workers : 0;
}

/**
 * es_decision_lookup() - the value stored for one incarnation of a flow; 0 if none
 */
static __always_inline __u64 es_decision_lookup(const struct es_decision_set *set, __u64 key)
{
	for (int i = 0; i < ES_DECISION_WAYS; i++) {
		const volatile struct es_decision *d = &set->way[i];

		if (d->key == key) {
			__u64 value = d->value;

			return d->key == key ? value : 0;
		}
	}
	return 0;
}

#endif
