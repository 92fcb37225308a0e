// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments of a connection that nobody acknowledges (kmod/core/strays.h). A stack answers what belongs to
 * none of its connections with a RST, and the client begins anew at once; here, no node knows of the others'
 * connections. So the inspecting node asks them, one after another, itself included: the segment goes to each
 * in turn, and comes back from who has no socket for it, so nothing is kept about it here. Who has one, or is
 * not sure, says nothing, and neither does a node that is not there: the client is left alone then, and the
 * question begins anew when it sends again.
 *
 * All are asked twice. A connection may leave a node that is still to be asked for one that has been asked
 * already (a program hands it over); the second round finds it there.
 */
#include "inspector/inspect_internal.h"

#define ES_STRAY_ROUNDS 2

/*
 * By one worker. Each costs four messages a node at most, and the clients of a node that lost its power come
 * back by and by; who is one too many sends again.
 */
#define ES_STRAYS_PER_S 1000

static int es_stray_is_one_too_many(struct es_inspector *in)
{
	if (in->now_ns - in->strays_since_ns >= 1000000000ULL) {
		in->strays_since_ns = in->now_ns;
		in->strays = 0;
	}
	return in->strays++ >= ES_STRAYS_PER_S;
}

/* Ask the first member from @node on; behind the last one of the last round, nobody has the connection. */
static void es_stray_ask(struct es_inspector *in, struct es_handover_order *order, unsigned int node,
			 const struct es_ip_packet *packet)
{
	const struct es_cluster *cluster = in->cluster;

	for (; order->attempt < ES_STRAY_ROUNDS; order->attempt++, node = 0) {
		while (node < cluster->conf->node_count && node != cluster->self &&
		       es_health_state(in->params->health, node) == ES_NODE_ABSENT)
			node++;
		if (node < cluster->conf->node_count) {
			request_handover(in->sender, cluster, order, packet->bytes, packet->len, node);
			return;
		}
	}
	if (!es_inspect_is_mine(in, es_flow_hash(&in->keys.ring, &packet->flow))) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	es_inspect_count(in, ES_WORKER_stray_resets);
	es_inspect_reset(in, packet->bytes, packet->len);
}

void es_inspect_stray(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_STRAY, .service = record->service};
	uint8_t bytes[ES_HANDOVER_PACKET_MAX];
	struct es_ip_packet head;

	if (es_stray_is_one_too_many(in)) {
		es_inspect_count(in, ES_WORKER_stray_limited);
		return;
	}
	/* One byte stands for all: its place in the stream is what matters. A FIN has none. */
	if (es_ip_packet_parse(bytes, es_ip_packet_cut(packet, 0, packet->seg.len ? 1 : 0, bytes), &head))
		return;
	es_inspect_count(in, ES_WORKER_strays);
	es_stray_ask(in, &order, 0, &head);
}

void es_inspect_stray_not_there(struct es_inspector *in, const struct es_handover *nack,
				const struct es_ip_packet *packet)
{
	struct es_handover_order order;

	es_handover_order_of(nack, &order);
	order.kind = ES_HANDOVER_STRAY;
	es_stray_ask(in, &order, nack->source + 1U, packet);
}
