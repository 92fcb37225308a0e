// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gives a decided request to its node: remembers it, so that copies of it go there, too, counts it and sends
 * it.
 */
#include "inspector/inspect/internal.h"

void es_inspect_remember(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			 unsigned int target, const struct es_handover_order *order)
{
	__u32 forgotten_ms = es_decision_table_put(&in->decisions, flow_hash, cookie, first_seq - 1,
						   (__u8)target, order, es_inspect_now_ms(in));

	/* The client of the forgotten one may still repeat it, or send the rest of it. */
	if (forgotten_ms < in->cluster->conf->datapath.cookie_lifetime_s * 1000)
		es_inspect_count(in, ES_WORKER_decisions_early);
}

void es_inspect_note(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
		     unsigned int target, const struct es_handover_order *order)
{
	es_inspect_remember(in, flow_hash, cookie, first_seq, target, order);
	es_route_sent(&in->router, target, order->cost, in->now_ns);
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
	int is_kept = es_inspect_is_kept(g->flow);
	struct es_ip_packet first;

	if (is_kept) {
		es_inspect_count(in, ES_WORKER_survived);
		if (g->count > 1)
			es_inspect_count(in, ES_WORKER_survive_long);
		es_inspect_note(in, g->flow_hash, g->cookie, g->first_seq, target, &g->order);
	} else {
		es_inspect_note_first(in, g->flow_hash, g->cookie, g->first_seq, target, &g->order);
	}
	es_inspect_tally_gathered(in, g, target, is_kept ? ES_TALLY_move : ES_TALLY_first, in->began_ns);
	es_inspect_send_gathered(in, g, target);
	if (!is_kept && !es_ip_packet_parse(g->segment[0].bytes, g->segment[0].len, &first))
		es_inspect_fate_given(in, g->order.service, &first, target);
}

void es_inspect_give_again(struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet, struct es_handover_order *order,
			   const struct es_decided *decided)
{
	order->attempt = decided->order->attempt;
	order->repeat = decided->order->repeat = 1;
	es_inspect_count(in, ES_WORKER_repeated);
	es_inspect_send(in, order, packet, record->gso_size, decided->node);
	es_inspect_fate_again(in, order->service, packet, decided);
}
