/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_SYNS_H
#define ES_CORE_SYNS_H

/*
 * The SYNs that this node has heard, whichever node answered them. Without timestamps, a segment proves its
 * client's first sequence number by 11 bits only (cookie.h): in a long upload, or behind a long download, one
 * in some thousand looks like a first request. But a first request has had a SYN, with the very number that
 * it proves, and all nodes hear all SYNs.
 */
#include "cookie.h"
#include "overheard.h"

/*
 * A power of two; 4 MB. Asked for a SYN that never was, a node that hears 100 others a second says yes in one
 * of 8,000 cases, one that hears 1,000 in one of 140, one that hears 5,000 in one of 5.
 */
#define ES_SYNS 262144

/*
 * A cookie is good for its slot and the two behind it; and it may name the next slot (es_cookie_is_taken()).
 * So long, a SYN must be remembered.
 */
static __always_inline __u32 es_syn_life_s(__u32 slot_s)
{
	return slot_s * (ES_COOKIE_SLOTS_VALID + 1);
}

static __always_inline __u32 es_syn_generation(__u32 now_s, __u32 slot_s)
{
	return es_overheard_generation(now_s, es_syn_life_s(slot_s));
}

/* Names a SYN. @hears_ns: struct es_state's; a SYN that was heard before a gap is not found any more. */
static __always_inline __u64 es_syn_key(__u64 flow_hash, __u32 isn, __u64 hears_ns)
{
	return es_overheard_key(flow_hash ^ hears_ns, isn);
}

/* The ISN that a segment without a SYN may prove: a bare ACK as a keep-alive probe, another as the first one.
 * @blind: nobody inspects, so a bare ACK is the handshake's. */
static __always_inline __u32 es_syn_isn(const struct es_segment *seg, int blind)
{
	return blind || seg->len || (seg->flags & ES_TCP_FIN) ? seg->seq - 1 : seg->seq;
}

/**
 * es_syns_are_complete() - would this node have heard each SYN whose cookie is still good?
 * @hears_ns: struct es_state's
 */
static __always_inline int es_syns_are_complete(__u64 hears_ns, __u64 now_ns, __u32 slot_s)
{
	return hears_ns && (__s64)(now_ns - hears_ns) >= (__s64)es_syn_life_s(slot_s) * 1000000000LL;
}

#endif
