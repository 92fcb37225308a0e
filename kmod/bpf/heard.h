/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_HEARD_H
#define ES_BPF_HEARD_H

/*
 * Notes of all that this node hears: SYNs (kmod/core/syns.h), and first requests that are another node's
 * (kmod/core/firsts.h).
 */
#include "maps.h"
#include "kmod/core/decide.h"

static __always_inline void es_syn_note(const struct es_state *state, const struct es_config *cfg,
					const struct es_view *v, __u64 now_ns)
{
	__u64 key = es_syn_key(v->flow_hash, v->seg.seq, state->hears_ns);
	struct es_overheard *slot = es_syn_slot(key);

	if (slot)
		es_overheard_note(slot, key, es_syn_generation(es_ns_to_s(now_ns), cfg->slot_s));
}

/* Functions of their own: seldom needed, and verified once. */
static __noinline int es_syn_was_heard(__u64 flow_hash, __u32 isn, __u64 now_ns)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_overheard *slot;
	__u64 key;

	if (!cfg)
		return 0;
	key = es_syn_key(flow_hash, isn, state->hears_ns);
	slot = es_syn_slot(key);
	return slot && es_overheard_has(slot, key, es_syn_generation(es_ns_to_s(now_ns), cfg->slot_s));
}

static __noinline int es_flow_note(__u64 flow_hash, __u64 now_ns)
{
	__u64 key = es_heard_flow_key(flow_hash);
	struct es_overheard *slot = es_heard_flow_slot(key);

	if (slot)
		es_overheard_note(slot, key, es_heard_flow_generation(es_ns_to_s(now_ns)));
	return 0;
}

static __noinline int es_flow_was_heard(__u64 flow_hash)
{
	__u64 key = es_heard_flow_key(flow_hash);
	struct es_overheard *slot = es_heard_flow_slot(key);
	__u32 now_s = es_ns_to_s(bpf_ktime_get_coarse_ns());

	return slot && es_overheard_has(slot, key, es_heard_flow_generation(now_s));
}

static __always_inline void es_view_heard(const struct es_state *state, const struct es_config *cfg,
					  struct es_view *v, __u64 now_ns)
{
	v->heard = (__u8)es_syn_was_heard(v->flow_hash, es_syn_isn(&v->seg, v->inspect == ES_INSPECT_NEVER),
					  now_ns);
	v->heard_all = (__u8)es_syns_are_complete(state->hears_ns, now_ns, cfg->slot_s);
	v->many_guesses = (__u8)es_guesses_are_many(&state->guesses, es_ns_to_s(now_ns));
}

static __noinline int es_first_note(__u64 flow_hash, __u32 seq, __u64 now_ns)
{
	__u64 key = es_overheard_key(flow_hash, seq);
	struct es_overheard *slot = es_first_slot(key);

	if (slot)
		es_overheard_note(slot, key, es_first_generation(es_ns_to_s(now_ns)));
	return 0;
}

/* Another node's to take: if it is a first request, it must be known later on that it was heard. */
static __always_inline void es_view_overhear(const struct es_view *v, __u64 now_ns)
{
	if (es_syn_was_heard(v->flow_hash, es_syn_isn(&v->seg, v->inspect == ES_INSPECT_NEVER), now_ns))
		es_first_note(v->flow_hash, v->seg.seq, now_ns);
}

/* May a lost node have had the request? Behind es_view_heard(). */
static __noinline int es_view_doubt(struct es_view *v, __u64 now_ns)
{
	struct es_overheard *slot;
	__u64 key;

	if (!v)
		return -1;
	key = es_overheard_key(v->flow_hash, v->seg.seq);
	slot = es_first_slot(key);
	v->doubtful = (__u8)es_view_is_doubtful(
		v, slot && es_overheard_has(slot, key, es_first_generation(es_ns_to_s(now_ns))));
	return 0;
}

#endif
