// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks nodes what became of first requests that they were given (ES_HANDOVER_FATE), where there is a reason:
 * the client has repeated the request for more than a second, or nothing was heard of another request of this
 * client. unheard.h says what follows from the answers.
 */
#include "inspector/inspect/internal.h"
#include "kmod/core/settled.h"
#include "membership/wire.h"

static __u64 es_fate_now_ms(const struct es_inspector *in)
{
	return in->now_ns / 1000000;
}

static int es_fate_understands(const struct es_inspector *in, unsigned int node)
{
	return node == in->cluster->self ||
	       (atomic_load_explicit(&in->params->health->understands[node], memory_order_relaxed) &
		ES_WIRE_UNDERSTANDS_FATE);
}

/* Note that @node is to be asked, at @due_ms, about the request that begins with @packet. */
static void es_fate_keep(struct es_inspector *in, struct es_unheard_client *c,
			 const struct es_ip_packet *packet, unsigned int node, __u64 due_ms)
{
	int is_plain = packet->ip_len == (es_addr_is_v4(&packet->flow.client) ? 20 : 40);

	if (c->asking != ES_UNHEARD_IDLE || !es_fate_understands(in, node) || !packet->seg.len || !is_plain ||
	    packet->header_len + 1 > sizeof(c->packet))
		return;
	c->asking = ES_UNHEARD_WAITS;
	c->node = node;
	c->due_ms = due_ms;
	c->flow_hash = es_flow_hash(&in->keys.ring, in->keys.ring_seed, &packet->flow);
	c->seq = packet->seg.seq;
	/* One byte is enough: its place in the stream names the request. */
	c->len = es_ip_packet_cut(packet, 0, 1, c->packet);
}

void es_inspect_fate_given(struct es_inspector *in, unsigned int service, const struct es_ip_packet *packet,
			   unsigned int node)
{
	__u64 now_ms = es_fate_now_ms(in);
	struct es_unheard_client *c;

	if (now_ms >= in->unheard.until_ms)
		return;
	c = es_unheard_find(&in->unheard, &in->keys.ring, service, &packet->flow.client, now_ms);
	if (!c && es_unheard_samples(&in->unheard, service, node, now_ms))
		c = es_unheard_get(&in->unheard, &in->keys.ring, service, &packet->flow.client, now_ms);
	if (c)
		es_fate_keep(in, c, packet, node, now_ms + ES_UNHEARD_ASK_MS);
}

void es_inspect_fate_again(struct es_inspector *in, unsigned int service, const struct es_ip_packet *packet,
			   const struct es_decided *decided)
{
	__u64 now_ms = es_fate_now_ms(in);

	if (decided->age_ms >= ES_SETTLED_VANISHED_MS)
		es_fate_keep(
			in,
			es_unheard_get(&in->unheard, &in->keys.ring, service, &packet->flow.client, now_ms),
			packet, decided->node, now_ms);
}

int es_inspect_fate_vanished(struct es_inspector *in, unsigned int service, const struct es_ip_packet *packet,
			     __u64 flow_hash, unsigned int node, struct es_node_set *ret_nodes)
{
	__u64 now_ms = es_fate_now_ms(in);
	struct es_unheard_client *c =
		es_unheard_get(&in->unheard, &in->keys.ring, service, &packet->flow.client, now_ms);

	es_unheard_vanished(&in->unheard, c, node, es_settled_request(flow_hash, packet->seg.seq), now_ms);
	/* It has answered before it was asked. Now the next node that gets the request can be asked. */
	if (c->node == node && c->flow_hash == flow_hash && c->seq == packet->seg.seq)
		c->asking = ES_UNHEARD_IDLE;
	*ret_nodes = es_unheard_nodes(c);
	es_node_set_add(ret_nodes, node);
	return es_unheard_is_own(c, now_ms);
}

/*
 * If everything that a client asks for is on one node, and the client gives up before that node gives a
 * request back, no other node would ever be tried.
 */
static int es_fate_elsewhere(struct es_inspector *in, unsigned int service, const struct es_unheard_client *c,
			     const struct es_request_view *request, int target)
{
	struct es_request_view elsewhere = *request;
	int node;

	elsewhere.avoid = es_unheard_nodes(c);
	if (!es_unheard_is_doubtful(c) || !es_node_set_has(elsewhere.avoid, (unsigned int)target))
		return target;
	node = es_route_fallback(&in->router, service, &elsewhere, in->now_ns);
	return node < 0 ? target : node;
}

int es_inspect_fate_target(struct es_inspector *in, unsigned int service,
			   const struct es_request_view *request, int target)
{
	unsigned int self = in->cluster->self;
	__u64 now_ms = es_fate_now_ms(in);
	const struct es_unheard_client *c;

	if (target < 0 || now_ms >= in->unheard.until_ms)
		return target;
	c = es_unheard_find(&in->unheard, &in->keys.ring, service, request->client, now_ms);
	if (!c)
		return target;
	if (!es_unheard_is_own(c, now_ms))
		return es_fate_elsewhere(in, service, c, request, target);
	if (!es_conf_service_is_on(&in->cluster->conf->services[service], self) ||
	    !es_cluster_is_target_of(in->cluster, in->params->health, self, service,
				     !es_addr_is_v4(request->client), in->now_ns))
		return target;
	es_inspect_count(in, ES_WORKER_own_affair);
	return (int)self;
}

void es_inspect_fate_answer(struct es_inspector *in, const struct es_handover *nack,
			    const struct es_ip_packet *packet)
{
	__u64 flow_hash = es_flow_hash(&in->keys.ring, in->keys.ring_seed, &packet->flow);
	__u64 now_ms = es_fate_now_ms(in);
	struct es_unheard_client *c =
		es_unheard_find(&in->unheard, &in->keys.ring, nack->service, &packet->flow.client, now_ms);

	if (!c || c->asking != ES_UNHEARD_ASKED || c->node != nack->source || c->flow_hash != flow_hash ||
	    c->seq != packet->seg.seq)
		return;
	c->asking = ES_UNHEARD_IDLE;
	if (nack->nack == ES_NACK_HEARD)
		es_unheard_heard(&in->unheard, c, nack->source, now_ms);
	else if (nack->nack == ES_NACK_UNHEARD)
		es_unheard_vanished(&in->unheard, c, nack->source,
				    es_settled_request(flow_hash, packet->seg.seq), now_ms);
}

static void es_fate_ask(struct es_inspector *in, struct es_unheard_client *c, __u64 now_ms)
{
	const struct es_handover_order order = {.kind = ES_HANDOVER_FATE, .service = c->service};

	es_inspect_count(in, ES_WORKER_fates_asked);
	c->asking = ES_UNHEARD_ASKED;
	c->due_ms = now_ms + ES_UNHEARD_ANSWER_MS;
	request_handover(in->sender, in->cluster, &order, c->packet, c->len, c->node);
}

void es_inspect_fates_due(struct es_inspector *in)
{
	__u64 now_ms = es_fate_now_ms(in);

	for (unsigned int i = 0; now_ms < in->unheard.until_ms && i < ES_UNHEARD_CLIENTS; i++) {
		struct es_unheard_client *c = &in->unheard.client[i];

		if (c->asking == ES_UNHEARD_IDLE || now_ms < c->due_ms)
			continue;
		if (c->asking == ES_UNHEARD_WAITS)
			es_fate_ask(in, c, now_ms);
		else
			c->asking = ES_UNHEARD_IDLE; /* the answer was lost */
	}
}

void es_inspect_fates_forget(struct es_inspector *in)
{
	in->unheard.until_ms = 0;
	memset(in->unheard.client, 0, sizeof(in->unheard.client));
	memset(in->unheard.suspect, 0, sizeof(in->unheard.suspect));
}
