/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_SETTLED_H
#define ES_BPF_SETTLED_H

/*
 * The fate of requests here (kmod/core/settled.h).
 */
#include "maps.h"
#include "kmod/core/cookie.h"
#include "kmod/core/settled.h"

struct es_settled_slot {
	struct bpf_spin_lock lock;
	__u32 pad;
	struct es_settled_set set;
};

/* max_entries is set by the loader: es_settled_sets() */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct es_settled_slot);
} es_settleds SEC(".maps");

/* The result of es_settle() in one number: its field as; see es_settled_unpack(). */
#define ES_SETTLED_AS(answer) ((__u32)(answer)&0xff)

/*
 * es_settle() - es_settled_step() about a request
 * A global function, so that it is verified once.
 */
__noinline int es_settle(__u64 flow_hash, __u32 seq, __u32 step, __u32 attempt)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	__u32 now_ms = es_ns_to_ms(bpf_ktime_get_ns()), hold_ms, index;
	__u64 request = es_settled_request(flow_hash, seq);
	struct es_settled_answer answer;
	struct es_settled_slot *slot;

	if (!cfg)
		return ES_SETTLED_NOT;
	hold_ms = es_settled_hold_ms(cfg->slot_s * ES_COOKIE_SLOTS_VALID);
	index = es_settled_index(flow_hash, es_settled_sets(cfg->decision_sets));
	slot = es_array_at(&es_settleds, index);
	if (!slot)
		return ES_SETTLED_NOT;
	bpf_spin_lock(&slot->lock);
	answer = es_settled_step(&slot->set, request, step, (__u8)attempt, now_ms, hold_ms);
	bpf_spin_unlock(&slot->lock);
	if (answer.forgot)
		es_count(ES_COUNT_settled_forgot);
	return answer.as | answer.attempt << 8 | answer.is_recent << 16 | answer.has_vanished << 17;
}

/* es_settle_reset() - es_settled_reset(). A global function likewise. */
__noinline int es_settle_reset(__u64 flow_hash)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	__u32 now_ms = es_ns_to_ms(bpf_ktime_get_ns()), index;
	struct es_settled_slot *slot;
	int found;

	if (!cfg)
		return 0;
	index = es_settled_index(flow_hash, es_settled_sets(cfg->decision_sets));
	slot = es_array_at(&es_settleds, index);
	if (!slot)
		return 0;
	bpf_spin_lock(&slot->lock);
	found = es_settled_reset(&slot->set, flow_hash, now_ms);
	bpf_spin_unlock(&slot->lock);
	return found;
}

/* The same again as its struct. */
static __always_inline struct es_settled_answer es_settled_unpack(int answer)
{
	struct es_settled_answer unpacked = {
		.as = (__u8)ES_SETTLED_AS(answer),
		.attempt = (__u8)((__u32)answer >> 8),
		.is_recent = !!(answer & 0x10000),
		.has_vanished = !!(answer & 0x20000),
	};

	return unpacked;
}

#endif
