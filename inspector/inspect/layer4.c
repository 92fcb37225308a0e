// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections whose bytes nobody reads (inspect = never, policy = ring), if they are not simply this node's:
 * this node does not serve them, or a rule chooses their node by the client's address. Each is decided once,
 * as a request is: by the ACK that completes the handshake, since the server may speak first, or by the
 * client's first bytes, if that ACK was lost. The datapath has promised to make no socket of such a
 * connection by itself (ES_SETTLED_REFUSE), and shows the inspector only those that cannot have been served
 * anywhere.
 *
 * No client repeats such an ACK. So this node does, until the target says that it has the connection
 * (ES_NACK_MADE), or refuses it.
 */
#include <string.h>
#include "inspector/inspect/internal.h"

static const unsigned int es_layer4_again_ms[] = {50, 200, 1000};

/* After the datapath has refused one connection, the service is taken for not served here for so long. */
#define ES_LAYER4_UNSERVED_NS 1000000000ULL

static unsigned long long es_layer4_due_ns(const struct es_inspector *in, unsigned int tries)
{
	return in->now_ns + es_layer4_again_ms[tries] * 1000000ULL;
}

static int es_layer4_is_handshake(const struct es_ip_packet *packet)
{
	return !packet->seg.len && !(packet->seg.flags & ES_TCP_FIN);
}

int es_inspect_layer4_route(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			    const struct es_ip_packet *packet)
{
	unsigned int family = !es_addr_is_v4(&packet->flow.client);
	int is_left = 0, target;

	if (in->now_ns < in->layer4.unserved_ns[service][family])
		es_node_set_add(&request->avoid, in->cluster->self);
	/* A node of the version before makes no connection of an ACK: it can get the client's first bytes. */
	for (unsigned int i = 0; es_layer4_is_handshake(packet) && i < in->cluster->conf->node_count; i++) {
		if (i == in->cluster->self ||
		    (atomic_load_explicit(&in->params->health->makes[i], memory_order_relaxed) &
		     ES_MAKES_OF_HANDSHAKES))
			continue;
		es_node_set_add(&request->avoid, i);
		is_left |= es_conf_service_is_on(&in->cluster->conf->services[service], i) &&
			   es_cluster_is_target_of(in->cluster, in->params->health, i, service, family,
						   in->now_ns);
	}
	target = es_route_layer4(&in->router, service, request, in->now_ns, NULL);
	if (target >= 0 || !is_left)
		return target;
	es_inspect_count(in, ES_WORKER_layer4_left);
	return ES_ROUTE_MORE;
}

void es_inspect_layer4_given(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
			     const struct es_handover_order *order, unsigned int target)
{
	struct es_layer4_case *c;

	if (!es_layer4_is_handshake(packet) || packet->len > sizeof(c->packet))
		return;
	c = &in->layer4.given[in->layer4.next++ % ES_LAYER4_CASES];
	*c = (struct es_layer4_case){
		.flow_hash = flow_hash,
		.service = order->service,
		.node = target,
		.attempt = order->attempt,
		.options = order->options,
		.due_ns = es_layer4_due_ns(in, 0),
		.len = packet->len,
	};
	memcpy(c->packet, packet->bytes, packet->len);
}

void es_inspect_layer4_answered(struct es_inspector *in, __u64 flow_hash, unsigned int node)
{
	for (unsigned int i = 0; i < ES_LAYER4_CASES; i++) {
		struct es_layer4_case *c = &in->layer4.given[i];

		if (c->due_ns && c->flow_hash == flow_hash && c->node == node)
			c->due_ns = 0;
	}
}

/* Fills in what a request's order has from reading it. */
static void es_layer4_order(struct es_handover_order *order)
{
	order->pin = ES_PIN_uninspected;
	order->cost = 1;
	/* The attempt before the first one that is given away is this node's own, which it has refused. */
	if (!order->attempt)
		order->attempt = 1;
}

void es_inspect_layer4(struct es_inspector *in, const struct es_record *record,
		       const struct es_ip_packet *packet, const struct es_known *known)
{
	const struct es_decided *decided = &known->decided;
	struct es_request_view request = {
		.flow_hash = record->flow_hash,
		.current = -1,
		.client = &packet->flow.client,
		.client_port = es_ntohs(packet->flow.client_port),
	};
	unsigned int family = !es_addr_is_v4(&packet->flow.client);
	struct es_handover_order order;
	int target;

	if (record->flow == ES_FLOW_UNSERVED)
		in->layer4.unserved_ns[record->service][family] = in->now_ns + ES_LAYER4_UNSERVED_NS;
	if (decided->is_first && es_inspect_was_lost(in, record, decided) &&
	    es_inspect_packet_is_unsafe(in, record->service, packet)) {
		es_inspect_doubt(in, packet->bytes, packet->len);
		return;
	}
	es_inspect_order(in, record, packet, decided, &order);
	es_layer4_order(&order);
	if (decided->is_first && es_health_state(in->params->health, decided->node) != ES_NODE_ABSENT) {
		/*
		 * If a program has handed it over, or an inspecting node before this one has given it away,
		 * its node has the connection, and hears the client itself.
		 */
		if (decided->order->attempt && !decided->is_inherited)
			es_inspect_give_again(in, record, packet, &order, decided);
		return;
	}
	target = es_inspect_layer4_route(in, record->service, &request, packet);
	if (target == ES_ROUTE_MORE)
		return;
	if (target < 0) {
		es_inspect_refuse(in, packet->bytes, packet->len);
		return;
	}
	es_inspect_count(in, ES_WORKER_layer4_given);
	es_inspect_give(in, record, packet, &order, (unsigned int)target);
	es_inspect_layer4_given(in, record->flow_hash, packet, &order, (unsigned int)target);
}

static void es_layer4_again(struct es_inspector *in, struct es_layer4_case *c)
{
	struct es_handover_order order = {
		.kind = ES_HANDOVER_REQUEST,
		.service = c->service,
		.attempt = c->attempt,
		.options = c->options,
		.repeat = 1,
	};
	struct es_ip_packet packet;
	struct es_decided decided;

	/* With its first bytes, or after its node has refused it, it may have been given again. */
	if (!es_inspect_is_mine(in, c->flow_hash) || es_ip_packet_parse(c->packet, c->len, &packet)) {
		c->due_ns = 0;
		return;
	}
	es_decision_table_look(&in->decisions, c->flow_hash, packet.seg.ack - 1, packet.seg.seq - 1,
			       es_inspect_now_ms(in), &decided);
	if (!decided.is_first || decided.node != c->node || decided.order->attempt != c->attempt) {
		c->due_ns = 0;
		return;
	}
	es_layer4_order(&order);
	decided.order->repeat = 1;
	es_inspect_count(in, ES_WORKER_layer4_repeated);
	es_inspect_send(in, &order, &packet, 0, c->node);
	c->tries++;
	c->due_ns = c->tries < sizeof(es_layer4_again_ms) / sizeof(es_layer4_again_ms[0])
			    ? es_layer4_due_ns(in, c->tries)
			    : 0;
}

void es_inspect_layer4_due(struct es_inspector *in)
{
	for (unsigned int i = 0; i < ES_LAYER4_CASES; i++)
		if (in->layer4.given[i].due_ns && in->now_ns >= in->layer4.given[i].due_ns)
			es_layer4_again(in, &in->layer4.given[i]);
}

void es_inspect_layer4_forget(struct es_inspector *in)
{
	memset(&in->layer4, 0, sizeof(in->layer4));
}
