/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_SETTLED_H
#define ES_NETFILTER_NODE_SETTLED_H

/* The table of requests that were settled here (kmod/core/settled.h). */
#include "kmod/core/cookie.h"
#include "netfilter/node/node.h"

/* es_nf_settle() - es_settled_step() about a request */
static inline struct es_settled_answer es_nf_settle(struct es_nf_node *node, __u64 flow_hash, __u32 seq,
						    enum es_settled_step step, __u8 attempt)
{
	__u32 hold_ms = es_settled_hold_ms(node->config.slot_s * ES_COOKIE_SLOTS_VALID);
	__u32 sets = es_settled_sets(node->memory.decision_sets);
	struct es_settled_answer answer = es_settled_step(
		&node->memory.settled[es_settled_index(flow_hash, sets)], es_settled_request(flow_hash, seq),
		step, attempt, es_ns_to_ms(node->now_ns), hold_ms);

	if (answer.forgot)
		es_nf_count(node, ES_COUNT_settled_forgot);
	return answer;
}

#endif
