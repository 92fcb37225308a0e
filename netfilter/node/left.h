/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_LEFT_H
#define ES_NETFILTER_NODE_LEFT_H

/*
 * Flows whose RSTs clients must not hear: connections of programs that left this node a moment ago, and
 * connections that conntrack knew a moment ago although they had no socket any more. If a packet was on its
 * way to the stack meanwhile, the stack answers with a RST, but another node serves the client now.
 */
#include "kmod/core/types.h"

#define ES_NF_LEFT    4096 /* a power of two; one entry for each slot, the newest */
#define ES_NF_LEFT_MS 1000

struct es_nf_left {
	__u64 flow_hash;
	__u32 at_ms;
	__u32 is_taken;
};

static inline struct es_nf_left *es_nf_left_slot(struct es_nf_left *left, __u64 flow_hash)
{
	return &left[(__u32)(flow_hash >> 20) & (ES_NF_LEFT - 1)];
}

static inline void es_nf_left_note(struct es_nf_left *left, __u64 flow_hash, __u32 now_ms)
{
	*es_nf_left_slot(left, flow_hash) =
		(struct es_nf_left){.flow_hash = flow_hash, .at_ms = now_ms, .is_taken = 1};
}

static inline int es_nf_left_has(struct es_nf_left *left, __u64 flow_hash, __u32 now_ms)
{
	const struct es_nf_left *slot = es_nf_left_slot(left, flow_hash);

	return slot->is_taken && slot->flow_hash == flow_hash && now_ms - slot->at_ms < ES_NF_LEFT_MS;
}

#endif
