// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keeps the segments of requests that are not whole, or that wait for their socket to be ended, in the gather
 * table.
 */
#include <errno.h>
#include "inspector/inspect/internal.h"

int es_inspect_gather_begin(struct es_inspector *in, __u64 flow_hash, struct es_known *known)
{
	const struct es_gather *victim = es_gather_victim(in->gathers);
	int evicted = 0;

	if (victim)
		es_inspect_forsake(in, victim);
	known->gather =
		es_gather_insert(in->gathers, flow_hash, known->cookie, es_inspect_deadline(in), &evicted);
	if (evicted || !known->gather)
		es_inspect_count(in, ES_WORKER_gather_forgotten);
	return known->gather ? 0 : -ENOMEM;
}

enum es_gather_result es_inspect_keep(struct es_inspector *in, const struct es_record *record,
				      const struct es_ip_packet *packet, const struct es_known *known,
				      int is_first)
{
	struct es_gather *g = known->gather;
	size_t segment = record->gso_size;
	uint8_t bytes[ES_HANDOVER_PACKET_MAX];
	enum es_gather_result result = ES_GATHER_ADDED;
	size_t room = *in->params->packet_max - packet->header_len;

	if (is_first || !g->has_first) {
		g->flow = record->flow;
		es_inspect_order(in, record, packet, &known->decided, &g->order);
	}
	if (es_inspect_is_urgent(packet))
		g->urgent = 1;
	if (packet->seg.flags & ES_TCP_FIN) {
		g->has_fin = 1;
		g->fin_seq = packet->seg.seq + packet->seg.len;
	}
	if (!segment || segment > room)
		segment = room;
	for (size_t at = 0; at == 0 || at < packet->seg.len; at += segment) {
		size_t len = packet->seg.len - at < segment ? packet->seg.len - at : segment;
		size_t total = es_ip_packet_cut(packet, at, len, bytes);

		result = es_gather_add(in->gathers, g, bytes, total, packet->header_len,
				       packet->seg.seq + (uint32_t)at, is_first && at == 0);
		if (result == ES_GATHER_FULL)
			break;
	}
	return result;
}
