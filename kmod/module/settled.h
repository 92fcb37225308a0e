/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_SETTLED_H
#define ES_MODULE_SETTLED_H

/*
 * The table of requests that were settled here (kmod/core/settled.h).
 */
#include "kmod/core/cookie.h"
#include "node.h"

/* es_settle() - es_settled_step() about a request, under its set's lock. From any context but irqs. */
static inline struct es_settled_answer es_settle(struct es_node *node, const struct es_config *cfg,
						 u64 flow_hash, u32 seq, enum es_settled_step step,
						 u8 attempt)
{
	u32 hold_ms = es_settled_hold_ms(cfg->slot_s * ES_COOKIE_SLOTS_VALID);
	u32 sets = es_settled_sets(node->params.decision_sets);
	struct es_settled_slot *slot = &node->settled[es_settled_index(flow_hash, sets)];
	u32 now_ms = es_ns_to_ms(ktime_get_coarse_ns());
	struct es_settled_answer answer;

	spin_lock_bh(&slot->lock);
	answer = es_settled_step(&slot->set, es_settled_request(flow_hash, seq), step, attempt, now_ms,
				 hold_ms);
	spin_unlock_bh(&slot->lock);
	if (answer.forgot)
		es_count(node, ES_COUNT_settled_forgot);
	return answer;
}

/* es_settle_reset() - es_settled_reset(), under the set's lock. From any context but irqs. */
static inline int es_settle_reset(struct es_node *node, u64 flow_hash)
{
	u32 sets = es_settled_sets(node->params.decision_sets);
	struct es_settled_slot *slot = &node->settled[es_settled_index(flow_hash, sets)];
	int found;

	spin_lock_bh(&slot->lock);
	found = es_settled_reset(&slot->set, flow_hash, es_ns_to_ms(ktime_get_coarse_ns()));
	spin_unlock_bh(&slot->lock);
	return found;
}

#endif
