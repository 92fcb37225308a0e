/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_FRESH_H
#define ES_NETFILTER_NODE_FRESH_H

/*
 * Connections that were made here lately. The kernel gives their packets to the stack without asking. But a
 * packet that was under way before its connection existed comes to this datapath, and must find it, whatever
 * the ring says. That costs a question to the kernel, which is asked only about flows noted here. One entry
 * for each slot, the newest. A flow that loses its slot waits for its client's repetition.
 */
#include "kmod/core/types.h"

#define ES_NF_FRESH 16384 /* a power of two; 256 KB */

/* How long a packet may have been under way. */
#define ES_NF_FRESH_MS 2000

/**
 * struct es_nf_fresh - @first_seq: of the first byte of its first request; @at_ms: monotonic, when it was
 * made. Zero: empty.
 */
struct es_nf_fresh {
	__u64 flow_hash;
	__u32 first_seq;
	__u32 at_ms;
};
_Static_assert(sizeof(struct es_nf_fresh) == 16, "no padding: it lies in a file");

static inline struct es_nf_fresh *es_nf_fresh_slot(struct es_nf_fresh *fresh, __u64 flow_hash)
{
	return &fresh[(__u32)(flow_hash >> 20) & (ES_NF_FRESH - 1)];
}

static inline void es_nf_fresh_note(struct es_nf_fresh *fresh, __u64 flow_hash, __u32 first_seq, __u32 now_ms)
{
	*es_nf_fresh_slot(fresh, flow_hash) =
		(struct es_nf_fresh){.flow_hash = flow_hash, .first_seq = first_seq, .at_ms = now_ms};
}

/* es_nf_fresh_is() - was the flow's connection made here a moment ago? */
static inline int es_nf_fresh_is(struct es_nf_fresh *fresh, __u64 flow_hash, __u32 now_ms)
{
	const struct es_nf_fresh *t = es_nf_fresh_slot(fresh, flow_hash);

	return t->flow_hash == flow_hash && now_ms - t->at_ms < ES_NF_FRESH_MS;
}

/* es_nf_fresh_first() - the first byte of the flow's newest connection. Returns 1; 0: unknown. */
static inline int es_nf_fresh_first(struct es_nf_fresh *fresh, __u64 flow_hash, __u32 *ret_first_seq)
{
	const struct es_nf_fresh *t = es_nf_fresh_slot(fresh, flow_hash);

	if (t->flow_hash != flow_hash)
		return 0;
	*ret_first_seq = t->first_seq;
	return 1;
}

#endif
