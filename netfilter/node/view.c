// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes the view of a packet from this node's tables.
 */
#include "netfilter/node/view.h"

static __u64 es_nf_hears_ns(const struct es_nf_node *node)
{
	return es_nf_read64(&node->memory.state->hears_ns);
}

static void es_nf_syn_note(const struct es_nf_node *node, const struct es_view *v)
{
	__u64 key = es_syn_key(v->flow_hash, v->seg.seq, es_nf_hears_ns(node));

	es_overheard_note(&node->memory.syns[es_overheard_index(key, ES_SYNS)], key,
			  es_syn_generation(es_ns_to_s(node->now_ns), node->config.slot_s));
}

static int es_nf_syn_was_heard(const struct es_nf_node *node, const struct es_view *v)
{
	__u64 key = es_syn_key(v->flow_hash, es_syn_isn(&v->seg, v->inspect == ES_INSPECT_NEVER),
			       es_nf_hears_ns(node));

	return es_overheard_has(&node->memory.syns[es_overheard_index(key, ES_SYNS)], key,
				es_syn_generation(es_ns_to_s(node->now_ns), node->config.slot_s));
}

static struct es_overheard *es_nf_heard_flow_slot(const struct es_nf_node *node, __u64 key)
{
	return &node->memory.heard_flows[es_overheard_index(key, ES_HEARD_FLOWS)];
}

static void es_nf_flow_note(const struct es_nf_node *node, __u64 flow_hash)
{
	__u64 key = es_heard_flow_key(flow_hash);

	es_overheard_note(es_nf_heard_flow_slot(node, key), key,
			  es_heard_flow_generation(es_ns_to_s(node->now_ns)));
}

int es_nf_flow_was_heard(const struct es_nf_node *node, __u64 flow_hash)
{
	__u64 key = es_heard_flow_key(flow_hash);

	return es_overheard_has(es_nf_heard_flow_slot(node, key), key,
				es_heard_flow_generation(es_ns_to_s(node->now_ns)));
}

void es_nf_view_heard(const struct es_nf_node *node, struct es_view *v)
{
	v->heard = (__u8)es_nf_syn_was_heard(node, v);
	v->heard_all = (__u8)es_syns_are_complete(es_nf_hears_ns(node), node->now_ns, node->config.slot_s);
	v->many_guesses = (__u8)es_guesses_are_many(&node->memory.state->guesses, es_ns_to_s(node->now_ns));
}

static struct es_overheard *es_nf_first_slot(const struct es_nf_node *node, __u64 key)
{
	return &node->memory.firsts[es_overheard_index(key, ES_FIRSTS)];
}

void es_nf_view_doubt(const struct es_nf_node *node, struct es_view *v)
{
	__u64 key = es_overheard_key(v->flow_hash, v->seg.seq);

	v->doubtful =
		(__u8)es_view_is_doubtful(v, es_overheard_has(es_nf_first_slot(node, key), key,
							      es_first_generation(es_ns_to_s(node->now_ns))));
}

void es_nf_first_note(const struct es_nf_node *node, __u64 flow_hash, __u32 seq)
{
	__u64 key = es_overheard_key(flow_hash, seq);

	es_overheard_note(es_nf_first_slot(node, key), key, es_first_generation(es_ns_to_s(node->now_ns)));
}

/* Another node takes the packet. If it is a first request, it must be known later on that it was heard. */
static void es_nf_view_overhear(const struct es_nf_node *node, const struct es_view *v)
{
	if (es_nf_syn_was_heard(node, v))
		es_nf_first_note(node, v->flow_hash, v->seg.seq);
}

void es_nf_view_complete(const struct es_nf_node *node, const struct es_packet *pkt, struct es_view *v)
{
	const struct es_config *cfg = &node->config;
	const struct es_state *state = node->memory.state;

	es_view_begin(v, cfg, pkt);
	if (es_view_opens(v)) {
		es_nf_syn_note(node, v);
		es_nf_flow_note(node, v->flow_hash);
	}
	if (es_view_may_be_ended(v, es_nf_read64(&state->reset_ns), node->now_ns))
		es_view_ended(v, &node->memory.resets[es_reset_index(v->flow_hash)], node->now_ns);
	if (v->socket != ES_SOCKET_ESTABLISHED) {
		es_view_ring(v, &node->ring, es_nf_read32(&state->attached));
		if (cfg->leased && es_view_is_overheard(v))
			es_nf_view_overhear(node, v);
	}
	if (!es_view_concerns(v))
		return;
	es_view_time(v, cfg, state, es_nf_read64(&state->worker[es_view_worker(v, cfg)].heartbeat_ns),
		     node->now_ns);
	if (es_view_needs_decision(v))
		es_view_decision(v, es_nf_decision_set(node, v->flow_hash),
				 es_nf_stray_slot(node, v->flow_hash));
}
