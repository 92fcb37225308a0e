// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Idle connections of nodes that are lost (cluster/directory.h). The client's next request is a stray here
 * (stray.c): no node takes it. If it begins just where the lost node's record says, and acknowledges just the
 * last byte that was sent, it is decided like a first request, and its node makes the connection of it, as of
 * one that moves. A connection that has gone on since it was told has other numbers.
 *
 * The lost node may have been cut off, and still hear the client. Without a lease it lets nothing into or out
 * of a connection that another one may go on with (es_track_is_ceded()), so nothing is done before that is
 * over; and other nodes, which may have been given the request, are asked first. Nobody knows what
 * the lost node has executed before that, with its answer lost: an unsafe request is not executed again.
 */
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster/directory.h"
#include "inspector/inspect/internal.h"

#define FLAGS_REFUSED (ES_TCP_FIN | ES_TCP_SYN | ES_TCP_RST | ES_TCP_URG)

/* Has the record's node been lost since it told it, and is its lease over? */
static enum es_survives owner_is_lost(const struct es_inspector *in, const struct es_kept *kept,
				      unsigned long long told_ns)
{
	if (es_health_lost_ns(in->params->health, kept->owner) <= told_ns)
		return ES_SURVIVES_NOT;
	return es_health_state(in->params->health, kept->owner) == ES_NODE_LEFT ? ES_SURVIVES_LATER
										: ES_SURVIVES;
}

enum es_survives es_inspect_survivor(struct es_inspector *in, const struct es_record *record,
				     const struct es_ip_packet *packet, struct es_survivor **ret_survivor)
{
	unsigned long long told_ns;
	enum es_survives survives;
	struct es_survivor *s;
	struct es_kept kept;

	if (!in->params->directory || !in->cluster->conf->services[record->service].survive ||
	    !packet->seg.len || (packet->seg.flags & FLAGS_REFUSED) ||
	    !es_directory_find(in->params->directory, record->flow_hash, packet->seg.seq, packet->seg.ack,
			       &kept, &told_ns))
		return ES_SURVIVES_NOT;
	survives = owner_is_lost(in, &kept, told_ns);
	if (survives != ES_SURVIVES)
		return survives;
	s = malloc(sizeof(*s) + packet->len);
	if (!s)
		return ES_SURVIVES_LATER;
	s->record = *record;
	s->record.len = packet->len;
	s->record.options = kept.options;
	s->record.requests = kept.requests;
	s->record.moves = kept.moves;
	memcpy(s->packet, packet->bytes, packet->len);
	*ret_survivor = s;
	return ES_SURVIVES;
}

/* Fills in what its node is told of the connection: as of one that has moved with this request. */
static void order_put(const struct es_record *record, const struct es_ip_packet *packet,
		      struct es_handover_order *ret)
{
	*ret = (struct es_handover_order){
		.kind = ES_HANDOVER_REQUEST,
		.service = record->service,
		.options = record->options,
		.requests = record->requests,
		.moves = record->moves < UINT16_MAX ? (uint16_t)(record->moves + 1) : record->moves,
		.moved = 1,
		.tsecr = packet->seg.tsecr,
	};
}

static void give(struct es_inspector *in, const struct es_record *record, const struct es_ip_packet *packet,
		 const struct es_handover_order *order, unsigned int target)
{
	es_inspect_count(in, ES_WORKER_survived);
	es_inspect_note(in, record->flow_hash, packet->seg.ack - 1, packet->seg.seq, target, order);
	es_inspect_tally(in, packet, order, target, ES_TALLY_move, in->began_ns);
	es_inspect_send(in, order, packet, record->gso_size, target);
}

static void decide(struct es_inspector *in, const struct es_record *record, const struct es_ip_packet *packet)
{
	struct es_request_view request = {
		.flow_hash = record->flow_hash,
		.current = -1,
		.client = &packet->flow.client,
		.client_port = es_ntohs(packet->flow.client_port),
	};
	const char *text = (const char *)es_ip_packet_payload(packet);
	struct es_handover_order order;
	int target;

	es_http_head_init(&in->head);
	/* Its second segment finds no node yet, and would not be gathered. */
	if (es_http_head_scan(&in->head, text, packet->seg.len) == ES_HTTP_MORE) {
		es_inspect_count(in, ES_WORKER_survive_long);
		es_inspect_reset(in, packet->bytes, packet->len);
		return;
	}
	if (es_inspect_is_unsafe(in, record->service, &in->head, text, packet->seg.len)) {
		es_inspect_count(in, ES_WORKER_survive_unsafe);
		es_inspect_doubt(in, packet->bytes, packet->len);
		return;
	}
	es_inspect_describe(in, record->service, &request, &in->head, text, packet->seg.len);
	order_put(record, packet, &order);
	target = es_inspect_route(in, record->service, &request, &order.rejection);
	if (target == ES_ROUTE_MORE || target == -1) {
		es_inspect_refuse(in, packet->bytes, packet->len);
		return;
	}
	es_inspect_complete(in, &request, packet->seg.seq, &order);
	if (target == ES_ROUTE_REJECT)
		es_inspect_reject(in, record->flow_hash, packet, packet->seg.seq + packet->seg.len, &order);
	else
		give(in, record, packet, &order, (unsigned int)target);
}

void es_inspect_survive(struct es_inspector *in, const struct es_survivor *survivor)
{
	struct es_ip_packet packet;
	struct es_kept kept;

	if (es_ip_packet_parse(survivor->packet, survivor->record.len, &packet))
		return;
	in->began_ns = in->now_ns;
	if (!es_directory_take(in->params->directory, survivor->record.flow_hash, packet.seg.seq,
			       packet.seg.ack, &kept)) {
		es_inspect_reset(in, packet.bytes, packet.len);
		return;
	}
	if (es_inspect_is_poison(in, survivor->record.flow_hash, packet.bytes, packet.len)) {
		es_inspect_refuse(in, packet.bytes, packet.len);
		return;
	}
	es_mark_set(in->params->mark, survivor->record.flow_hash, survivor->record.service, packet.bytes,
		    packet.len);
	decide(in, &survivor->record, &packet);
	es_mark_clear(in->params->mark);
}
