// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections that began before this node listened (kmod/core/syns.h). Without timestamps, one in 2,048 later
 * segments of another node's connection looks like a first request, and this node has not heard the SYN that
 * would tell. So it asks all nodes whose the segment is, as about any stray (stray.c). If no node has the
 * connection, the segment is a first request, and is taken for one when its client repeats it; until then
 * only its numbers are kept.
 *
 * While this node inspects the flow's slot of the ring, no other node can get the connection. So the answer
 * holds until the ring changes.
 */
#include "inspector/inspect/internal.h"

static struct es_earlier *es_earlier_slot(struct es_inspector *in, __u64 flow_hash)
{
	return &in->earlier[flow_hash % ES_EARLIER_SLOTS];
}

void es_inspect_earlier_note(struct es_inspector *in, const struct es_stray_case *stray)
{
	*es_earlier_slot(in, stray->flow_hash) = (struct es_earlier){
		.flow_hash = stray->flow_hash,
		.seq = stray->seq,
		.ack = stray->ack,
		.version = stray->version,
		.is_noted = 1,
	};
}

int es_inspect_earlier_is_nobodys(struct es_inspector *in, __u64 flow_hash, const struct es_segment *seg)
{
	const struct es_earlier *e = es_earlier_slot(in, flow_hash);

	return e->is_noted && e->flow_hash == flow_hash && e->seq == seg->seq && e->ack == seg->ack &&
	       e->version == in->version;
}

void es_inspect_earlier_blind(struct es_inspector *in, const struct es_record *record,
			      const struct es_ip_packet *packet, const struct es_known *known)
{
	struct es_handover_order order;

	if (record->flow == ES_FLOW_DOUBTFUL &&
	    in->cluster->conf->services[record->service].unsafe == ES_UNSAFE_ALL) {
		es_inspect_doubt(in, packet->bytes, packet->len);
		return;
	}
	es_inspect_order(in, record, packet, &known->decided, &order);
	order.cost = 1;
	order.pin = ES_PIN_unknown;
	es_inspect_note(in, record->flow_hash, known->cookie, packet->seg.seq, in->cluster->self, &order);
	es_inspect_send(in, &order, packet, record->gso_size, in->cluster->self);
}
