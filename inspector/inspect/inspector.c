// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The inspector itself, from its beginning to its end, and what every case does with it: count, and note and
 * send a request that is decided. No decision is made here, and nothing waits, logs or takes a lock.
 */
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/inspect/internal.h"

void es_inspect_count(struct es_inspector *in, enum es_worker_counter counter)
{
	unsigned long long n = atomic_load_explicit(&in->count[counter], memory_order_relaxed);

	/* This thread is the only writer: no locked addition needed. */
	atomic_store_explicit(&in->count[counter], n + 1, memory_order_relaxed);
}

uint32_t es_inspect_now_ms(const struct es_inspector *in)
{
	return (uint32_t)(in->now_ns / 1000000);
}

int es_inspector_init(struct es_inspector *in, const struct es_worker_params *params,
		      const struct es_cluster *cluster)
{
	const struct es_conf_inspector *conf = &cluster->conf->inspector;
	int rc;

	memset(in, 0, sizeof(*in));
	in->params = params;
	in->cluster = cluster;
	in->keys = params->keys;
	in->decisions = params->decisions;
	in->decisions.since_ms = (uint32_t)(es_clock_now_ns() / 1000000);
	rc = es_raw_open(&in->raw);
	if (rc)
		return rc;
	rc = es_gather_table_new(conf->gather_flows, conf->gather_bytes, &in->gathers);
	if (!rc)
		rc = es_handover_sender_new(cluster, params->id, &params->keys.key[0].handover, &in->sender);
	if (!rc)
		rc = es_router_init(&in->router, cluster, params->health, params->route);
	if (!rc)
		rc = es_tally_new(cluster->conf, NULL, NULL, &in->tally);
	if (rc)
		es_inspector_fini(in);
	return rc;
}

void es_inspector_fini(struct es_inspector *in)
{
	es_inspect_beyond_forget(in);
	es_router_fini(&in->router);
	es_handover_sender_free(&in->sender);
	es_gather_table_free(&in->gathers);
	es_tally_free(&in->tally);
	es_raw_close(&in->raw);
}

/* Without memory the old table stays: it counts nothing that it has no place for. */
static void es_inspector_renew_tally(struct es_inspector *in, const struct es_conf *conf)
{
	struct es_tally *next;

	es_tally_sent(in->tally);
	if (es_tally_new(conf, in->tally, in->cluster->conf, &next))
		return;
	es_tally_free(&in->tally);
	in->tally = next;
}

int es_inspector_set_cluster(struct es_inspector *in, const struct es_cluster *cluster,
			     const struct es_keys *keys)
{
	int rc;

	/* Nodes and services may have other numbers. */
	if (cluster->conf != in->cluster->conf) {
		es_inspect_strays_forget(in);
		es_inspect_fates_forget(in);
		es_inspect_beyond_forget(in);
		es_inspect_layer4_forget(in);
		es_inspector_renew_tally(in, cluster->conf);
	}
	in->cluster = cluster;
	in->version++;
	in->keys = *keys;
	rc = es_router_set_cluster(&in->router, cluster);
	return rc ? rc : es_handover_sender_set(in->sender, cluster, &keys->key[0].handover);
}

void es_inspector_learn(struct es_inspector *in, const struct es_proof *proofs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		es_decision_table_put(&in->decisions, proofs[i].flow_hash, proofs[i].cookie,
				      proofs[i].first_seq - 1, (__u8)proofs[i].node, NULL,
				      es_inspect_now_ms(in));
}

static void es_inspect_remember(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
				unsigned int target, const struct es_handover_order *order)
{
	unsigned long long n = atomic_load_explicit(&in->sent_to[target], memory_order_relaxed);
	__u32 forgotten_ms = es_decision_table_put(&in->decisions, flow_hash, cookie, first_seq - 1,
						   (__u8)target, order, es_inspect_now_ms(in));

	/* Its client may still send it again, or the rest of it. */
	if (forgotten_ms < in->cluster->conf->datapath.cookie_lifetime_s * 1000)
		es_inspect_count(in, ES_WORKER_decisions_early);
	atomic_store_explicit(&in->sent_to[target], n + 1, memory_order_relaxed);
}

void es_inspect_note(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
		     unsigned int target, const struct es_handover_order *order)
{
	es_inspect_remember(in, flow_hash, cookie, first_seq, target, order);
	es_route_sent(&in->router, target, order->cost, in->now_ns);
}

/*
 * It takes the place of the one before on its connection, which the node's own count has: were it counted on top of that, a
 * node would seem to have more requests in hand than it has connections.
 */
void es_inspect_note_stayed(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			    const struct es_handover_order *order)
{
	es_inspect_count(in, ES_WORKER_stayed);
	es_inspect_remember(in, flow_hash, cookie, first_seq, in->cluster->self, order);
}

void es_inspect_note_moved(struct es_inspector *in, const struct es_gather *g)
{
	static const enum es_worker_counter counters[ES_MOVE_WHY_COUNT] = {
		[ES_MOVE_LOCALITY] = ES_WORKER_moved_locality, [ES_MOVE_LOAD] = ES_WORKER_moved_load,
		[ES_MOVE_DRAIN] = ES_WORKER_moved_drain,       [ES_MOVE_RULE] = ES_WORKER_moved_rule,
		[ES_MOVE_HOME] = ES_WORKER_moved_home,
	};

	es_inspect_count(in, ES_WORKER_moved);
	if (g->order.why < ES_MOVE_WHY_COUNT)
		es_inspect_count(in, counters[g->order.why]);
	es_inspect_remember(in, g->flow_hash, g->cookie, g->first_seq, g->target, &g->order);
	es_route_moved(&in->router, g->target, g->order.cost);
	es_inspect_left_for_content(in, g);
}

void es_inspect_note_first(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			   unsigned int target, const struct es_handover_order *order)
{
	es_inspect_note(in, flow_hash, cookie, first_seq, target, order);
	es_inspect_count(in, ES_WORKER_requests);
	es_inspect_count(in, target == in->cluster->self ? ES_WORKER_kept : ES_WORKER_handovers);
}

void es_inspect_give(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet, const struct es_handover_order *order,
		     unsigned int target)
{
	es_inspect_note_first(in, record->flow_hash, packet->seg.ack - 1, packet->seg.seq, target, order);
	es_inspect_tally(in, packet, order, target, ES_TALLY_first, in->began_ns);
	es_inspect_send(in, order, packet, record->gso_size, target);
	es_inspect_fate_given(in, order->service, packet, target);
}

void es_inspect_give_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target)
{
	struct es_ip_packet first;

	es_inspect_note_first(in, g->flow_hash, g->cookie, g->first_seq, target, &g->order);
	es_inspect_tally_gathered(in, g, target, ES_TALLY_first, in->began_ns);
	es_inspect_send_gathered(in, g, target);
	if (!es_ip_packet_parse(g->segment[0].bytes, g->segment[0].len, &first))
		es_inspect_fate_given(in, g->order.service, &first, target);
}

void es_inspect_give_again(struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet, struct es_handover_order *order,
			   const struct es_decided *decided)
{
	order->attempt = decided->attempt;
	order->repeat = 1;
	es_decision_table_repeat(&in->decisions, record->flow_hash, packet->seg.ack - 1, packet->seg.seq - 1);
	es_inspect_count(in, ES_WORKER_repeated);
	es_inspect_send(in, order, packet, record->gso_size, decided->node);
	es_inspect_fate_again(in, order->service, packet, record->flow_hash, decided->node);
}
