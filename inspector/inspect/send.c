// SPDX-License-Identifier: GPL-2.0-or-later
/* Sends clients' packets to a node as handover messages. */
#include "inspector/inspect/internal.h"

/*
 * A packet that the network card or a virtual link has merged is cut into segments again. The first piece of
 * a request makes the socket, the others follow it.
 */
void es_inspect_send(struct es_inspector *in, const struct es_handover_order *order,
		     const struct es_ip_packet *packet, size_t segment, unsigned int target)
{
	struct es_handover_order piece = *order;
	size_t room = *in->params->packet_max - packet->header_len;
	uint8_t bytes[ES_HANDOVER_PACKET_MAX];

	if (piece.kind == ES_HANDOVER_FOLLOW)
		piece.request_flags = ES_FOLLOW_F_BACK;
	if (!segment || segment > room)
		segment = room;
	if (packet->seg.len <= segment) {
		request_handover(in->sender, in->cluster, &piece, packet->bytes, packet->len, target);
		return;
	}
	for (size_t at = 0; at < packet->seg.len; at += segment) {
		size_t len = packet->seg.len - at < segment ? packet->seg.len - at : segment;

		request_handover(in->sender, in->cluster, &piece, bytes,
				 es_ip_packet_cut(packet, at, len, bytes), target);
		piece.kind = ES_HANDOVER_FOLLOW;
		piece.request_flags = ES_FOLLOW_F_BACK;
	}
}

void es_inspect_send_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target)
{
	struct es_handover_order order = g->order;
	struct es_ip_packet packet;

	for (unsigned int i = 0; i < g->count; i++) {
		if (es_ip_packet_parse(g->segment[i].bytes, g->segment[i].len, &packet))
			continue;
		if (i)
			es_inspect_count(in, ES_WORKER_followed);
		es_inspect_send(in, &order, &packet, 0, target);
		order.kind = ES_HANDOVER_FOLLOW;
	}
}
