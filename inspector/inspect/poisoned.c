// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests that have ended a daemon, here or on another node: nobody reads them, or asks a rule, a plugin or
 * a policy about them. They are served as without a daemon, by the node that the ring names, or refused.
 */
#include "inspector/inspect/internal.h"

/* Daemons have ended too fast: the next first request may be another one that ends a daemon. */
static int es_inspect_is_storm(const struct es_inspector *in, const struct es_record *record)
{
	return es_inspect_is_new(record->flow) && in->params->poisons &&
	       in->now_ns < in->params->poisons->storm_until_ns;
}

/* Gives all that has been gathered of it to the node, or to the socket that is here. */
static void es_poison_serve_gathered(struct es_inspector *in, struct es_gather *g)
{
	struct es_request_view request = {.flow_hash = g->flow_hash, .current = -1};
	int target = es_route_fallback(&in->router, g->order.service, &request, in->now_ns);

	g->order.cost = 1;
	g->order.pin = ES_PIN_unknown;
	g->order.unsafe = (uint8_t)es_inspect_bytes_are_unsafe(in, g->order.service, g->text, g->text_len);
	if (g->flow == ES_FLOW_HERE) {
		es_inspect_move_gathered(in, g, (int)in->cluster->self);
		return;
	}
	if (g->flow == ES_FLOW_DOUBTFUL && g->order.unsafe) {
		es_inspect_doubt(in, g->segment[0].bytes, g->segment[0].len);
	} else if (target < 0) {
		es_inspect_refuse(in, g->segment[0].bytes, g->segment[0].len);
	} else {
		es_inspect_give_gathered(in, g, (unsigned int)target);
	}
	es_gather_remove(in->gathers, g);
}

/* Gives a first request to its node again, or to the ring's. */
static void es_poison_serve_first(struct es_inspector *in, const struct es_record *record,
				  const struct es_ip_packet *packet, const struct es_decided *decided,
				  struct es_handover_order *order)
{
	struct es_request_view request = {.flow_hash = record->flow_hash, .current = -1};
	int is_known = decided->is_first && decided->node != ES_NODE_REJECT, target;

	if (order->unsafe &&
	    (is_known ? es_inspect_was_lost(in, record, decided) : record->flow == ES_FLOW_DOUBTFUL)) {
		es_inspect_doubt(in, packet->bytes, packet->len);
		return;
	}
	if (is_known && es_health_state(in->params->health, decided->node) != ES_NODE_ABSENT) {
		es_inspect_give_again(in, record, packet, order, decided);
		return;
	}
	target = es_route_fallback(&in->router, order->service, &request, in->now_ns);
	if (target < 0)
		es_inspect_refuse(in, packet->bytes, packet->len);
	else
		es_inspect_give(in, record, packet, order, (unsigned int)target);
}

static void es_poison_serve(struct es_inspector *in, const struct es_record *record,
			    const struct es_ip_packet *packet, struct es_known *known)
{
	const struct es_decided *decided = &known->decided;
	struct es_handover_order order;

	es_inspect_order(in, record, packet, decided, &order);
	order.cost = 1;
	order.pin = ES_PIN_unknown;
	order.unsafe = (uint8_t)es_inspect_bytes_are_unsafe(
		in, record->service, (const char *)es_ip_packet_payload(packet), packet->seg.len);
	if (record->flow == ES_FLOW_HERE) {
		/* Its connection stays, and is not read any more. */
		if (record->kind == ES_RECORD_FIRST)
			es_inspect_move(in, record, packet, known, &order, (int)in->cluster->self);
		return;
	}
	if (record->kind == ES_RECORD_FIRST) {
		es_poison_serve_first(in, record, packet, decided, &order);
		return;
	}
	/* A segment that arrives before the first one will be repeated. */
	if (!decided->order || decided->node == ES_NODE_REJECT)
		return;
	order.kind = ES_HANDOVER_FOLLOW;
	es_inspect_count(in, ES_WORKER_followed);
	es_inspect_send(in, &order, packet, record->gso_size, decided->node);
}

int es_inspect_is_poisoned(const struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet)
{
	return packet->seg.len && (es_inspect_is_poison(in, record->flow_hash, packet->bytes, packet->len) ||
				   es_inspect_is_storm(in, record));
}

void es_inspect_poison(struct es_inspector *in, const struct es_record *record,
		       const struct es_ip_packet *packet, struct es_known *known)
{
	int is_refused = in->cluster->conf->inspector.poison == ES_CONF_POISON_REFUSE &&
			 es_inspect_is_poison(in, record->flow_hash, packet->bytes, packet->len);
	struct es_gather *g = known->gather;

	es_inspect_count(in, ES_WORKER_poisoned);
	if (g && g->leaving)
		return; /* it goes as soon as its socket is ended */
	if (g && g->has_first && !is_refused) {
		es_inspect_keep(in, record, packet, known, record->kind == ES_RECORD_FIRST);
		es_poison_serve_gathered(in, g);
		return;
	}
	/* Without its first segment it cannot be served; all of it will be repeated. */
	if (g) {
		es_gather_remove(in->gathers, g);
		known->gather = NULL;
	}
	if (is_refused)
		es_inspect_reset(in, packet->bytes, packet->len);
	else
		es_poison_serve(in, record, packet, known);
}
