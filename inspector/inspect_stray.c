// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments of a connection that nobody acknowledges (kmod/core/strays.h). A stack answers what belongs to
 * none of its connections with a RST, and the client begins anew at once; here, no node knows of the others'
 * connections. So the inspecting node asks them.
 *
 * First those that are no members: their daemon may be gone, while their kernels go on with what they have.
 * Who does not answer within a moment has nothing any more. Then the members, one after another, this node
 * included: the segment goes to each in turn and comes back with the answer, so nothing is kept about it
 * here. Each must say no. If one does not, or does not answer, the client is left alone, and the question
 * begins anew when it sends again.
 *
 * The members are asked twice: a connection may leave one that is still to be asked for one that has been
 * asked already (a program hands it over), where the second round finds it.
 */
#include "inspector/inspect_internal.h"

#define ES_STRAY_ROUNDS 2
#define ES_STRAY_AWAY                                                                                        \
	0xff /* in a message's field attempt, instead of the round: to a node that is no member */

/* So long a node is waited for that is perhaps not there. */
#define ES_STRAY_AWAY_NS 200000000ULL

/*
 * By one worker. Each costs four messages a node at most, and the clients of a node that lost its power come
 * back by and by; who is one too many sends again.
 */
#define ES_STRAYS_PER_S 1000

static int es_stray_is_one_too_many(struct es_inspector *in)
{
	struct es_strays *strays = &in->strays;

	if (in->now_ns - strays->since_ns >= 1000000000ULL) {
		strays->since_ns = in->now_ns;
		strays->seen = 0;
	}
	return strays->seen++ >= ES_STRAYS_PER_S || strays->count == ES_STRAYS_WAITING;
}

static int es_stray_is_away(const struct es_inspector *in, unsigned int node)
{
	return node != in->cluster->self && es_health_state(in->params->health, node) >= ES_NODE_LEFT;
}

/* Ask the first member from @node on; behind the last one of the last round, nobody has the connection. */
static void es_stray_ask(struct es_inspector *in, struct es_handover_order *order, unsigned int node,
			 const struct es_ip_packet *packet)
{
	const struct es_cluster *cluster = in->cluster;

	for (; order->attempt < ES_STRAY_ROUNDS; order->attempt++, node = 0) {
		while (node < cluster->conf->node_count && es_stray_is_away(in, node))
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

/* Ask all that are no members; returns how many there are. */
static unsigned int es_stray_ask_away(struct es_inspector *in, const struct es_handover_order *order,
				      const struct es_ip_packet *packet)
{
	struct es_handover_order question = *order;
	unsigned int asked = 0;

	question.attempt = ES_STRAY_AWAY;
	for (unsigned int node = 0; node < in->cluster->conf->node_count; node++) {
		if (!es_stray_is_away(in, node))
			continue;
		request_handover(in->sender, in->cluster, &question, packet->bytes, packet->len, node);
		asked++;
	}
	return asked;
}

static struct es_stray_case *es_stray_case_at(struct es_strays *strays, unsigned int i)
{
	return &strays->waiting[(strays->first + i) % ES_STRAYS_WAITING];
}

void es_inspect_stray(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet)
{
	struct es_strays *strays = &in->strays;
	/* One byte stands for all: its place in the stream is what matters. A FIN has none. */
	size_t payload = packet->seg.len ? 1 : 0;
	struct es_stray_case *c = es_stray_case_at(strays, strays->count);
	struct es_ip_packet head;

	if (es_stray_is_one_too_many(in) || packet->header_len + payload > sizeof(c->packet)) {
		es_inspect_count(in, ES_WORKER_stray_limited);
		return;
	}
	*c = (struct es_stray_case){
		.flow_hash = record->flow_hash,
		.deadline_ns = in->now_ns + ES_STRAY_AWAY_NS,
		.order = {.kind = ES_HANDOVER_STRAY, .service = record->service},
	};
	c->len = es_ip_packet_cut(packet, 0, payload, c->packet);
	if (es_ip_packet_parse(c->packet, c->len, &head))
		return;
	es_inspect_count(in, ES_WORKER_strays);
	if (es_stray_ask_away(in, &c->order, &head))
		strays->count++;
	else
		es_stray_ask(in, &c->order, 0, &head);
}

void es_inspect_strays_due(struct es_inspector *in)
{
	struct es_strays *strays = &in->strays;
	struct es_ip_packet packet;
	struct es_stray_case *c;

	while (strays->count) {
		c = es_stray_case_at(strays, 0);
		if (c->deadline_ns > in->now_ns)
			break;
		strays->first = (strays->first + 1) % ES_STRAYS_WAITING;
		strays->count--;
		if (!c->is_here && !es_ip_packet_parse(c->packet, c->len, &packet))
			es_stray_ask(in, &c->order, 0, &packet);
	}
}

void es_inspect_stray_answer(struct es_inspector *in, const struct es_handover *nack,
			     const struct es_ip_packet *packet)
{
	__u64 flow_hash = es_flow_hash(&in->keys.ring, &packet->flow);
	struct es_handover_order order;

	if (nack->attempt == ES_STRAY_AWAY) {
		for (unsigned int i = 0; nack->nack == ES_NACK_HERE && i < in->strays.count; i++)
			if (es_stray_case_at(&in->strays, i)->flow_hash == flow_hash)
				es_stray_case_at(&in->strays, i)->is_here = 1;
		return;
	}
	if (nack->nack == ES_NACK_HERE)
		return;
	es_handover_order_of(nack, &order);
	order.kind = ES_HANDOVER_STRAY;
	es_stray_ask(in, &order, nack->source + 1U, packet);
}
