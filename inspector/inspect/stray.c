// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments that no node acknowledges (kmod/core/strays.h). A single server answers a segment that belongs to
 * none of its connections with a RST, and the client begins anew at once. Here, no node knows the others'
 * connections. So the inspecting node asks them, about many segments in one message, for which it gathers
 * questions for a moment.
 *
 * First it asks the nodes that are not members: their daemons may be gone, while their kernels go on with the
 * connections that they have. A node that does not answer within a moment has none any more. Then it asks the
 * members, one after another, itself included. Each must deny having the connection. If one does not, or does
 * not answer, the client is left alone, and all begins anew when it sends again.
 *
 * The members are asked twice: a program may hand a connection over from a member that is still to be asked
 * to one that has been asked already, where the second round finds it.
 *
 * Requests on idle connections of lost nodes (survive.c) are few, each for one of those connections, and
 * their clients have waited already. So they are asked about apart, at once, and at nobody's cost. A node
 * that is not a member has lost its lease, and so stands still with the connections that others may go on
 * with, whether or not it answers; it is asked so that it never goes on with them, and hardly waited for.
 *
 * Clients of lost nodes that wait for an answer (es_inspect_waiting()) are asked about apart as well, at once
 * and at nobody's cost: of each there is a record of its node. That one may go on with what the client has
 * got a part of, and its kernel says so.
 *
 * A message about many has clients of one family. A node whose version does not understand such messages gets
 * one for each segment.
 */
#include <stdlib.h>
#include "inspector/inspect/internal.h"
#include "kmod/core/headers.h"
#include "membership/wire.h"

#define ES_STRAY_ROUNDS 2
#define ES_STRAY_AWAY                                                                                        \
	0xff /* in a message's field attempt, instead of the round: it goes to a node that is not a member */

/* For how long questions are gathered. */
#define ES_STRAY_GATHER_NS 100000000ULL

/*
 * For how long an answer is waited for: of a node that may not be there, and of a member, which must answer.
 */
#define ES_STRAY_AWAY_NS     200000000ULL
#define ES_STRAY_SURVIVOR_NS 20000000ULL
#define ES_STRAY_WAITING_NS  50000000ULL
#define ES_STRAY_MEMBER_NS   1000000000ULL

/*
 * How many bytes a second questions and answers may cost all nodes together, on the cluster network, beyond
 * what the segments themselves earn (ES_STRAY_PART): [0] for flows of which only the segment is known, [1]
 * for flows that are known to have existed. A flood of invented segments finds only the small budget; one
 * that begins with SYNs finds the other one, too.
 */
static const double es_stray_bytes_per_s[2] = {40e3, 160e3};

/*
 * For how many seconds a budget is saved up. After a failure, many connections of a node need it at once, and
 * the others little by little.
 */
static const double es_stray_saved_s[2] = {16, 4};

/*
 * A question may cost this fraction of what its segment cost. Together with the free budget above, a flood of
 * more than 800 kB/s causes less traffic than it consists of. Where this fraction pays for the whole
 * question, as it does for real requests in a cluster of several nodes, no flood keeps a client from being
 * asked about.
 */
#define ES_STRAY_PART		0.75
#define ES_STRAY_FRAME_MIN	60
#define ES_STRAY_FRAME_OVERHEAD 14
#define ES_STRAY_UDP_OVERHEAD	(14 + 20 + 8)

/* One client's address may use this part of the free budget. */
#define ES_STRAY_SOURCE_PART 8

/* A message about many, of either family. */
union es_strays_message {
	struct {
		struct es_stray_service service;
		struct es_stray_question question[ES_STRAYS_MANY];
	} v4;
	struct {
		struct es_stray_service6 service;
		struct es_stray_question6 question[ES_STRAYS_MANY6];
	} v6;
};

static int es_stray_is_away(const struct es_inspector *in, unsigned int node)
{
	return node != in->cluster->self && es_health_state(in->params->health, node) >= ES_NODE_LEFT;
}

static int es_stray_is_removed(const struct es_inspector *in, unsigned int node)
{
	return in->cluster->conf->nodes[node].removed;
}

static int es_stray_understands_many(const struct es_inspector *in, unsigned int node, unsigned int is_v6)
{
	unsigned int what = is_v6 ? ES_WIRE_UNDERSTANDS_STRAYS6 : ES_WIRE_UNDERSTANDS_STRAYS;

	return node == in->cluster->self ||
	       (atomic_load_explicit(&in->params->health->understands[node], memory_order_relaxed) & what);
}

static unsigned int es_stray_is_v6(const struct es_ip_packet *packet)
{
	return !es_addr_is_v4(&packet->flow.client);
}

/*
 * The bytes on the cluster network that asking all other nodes takes: for one question, and for a message
 * about many.
 */
static void es_stray_cost(const struct es_inspector *in, size_t len, unsigned int is_v6, double *ret_question,
			  double *ret_message)
{
	const size_t header = ES_STRAY_UDP_OVERHEAD + sizeof(struct es_handover);
	size_t question = 0, message = 0;

	for (unsigned int node = 0; node < in->cluster->conf->node_count; node++) {
		size_t times = es_stray_is_away(in, node) ? 1 : ES_STRAY_ROUNDS;

		if (node == in->cluster->self || es_stray_is_removed(in, node))
			continue;
		if (es_stray_understands_many(in, node, is_v6)) {
			question += times * es_stray_question_len((int)is_v6);
			message += times * (2 * header + es_stray_service_len((int)is_v6) + ES_STRAYS_KEPT);
		} else {
			question += times * 2 * (header + len);
		}
	}
	*ret_question = (double)question;
	*ret_message = (double)message;
}

/* This worker's part of the free budget of a second. */
static double es_stray_share(const struct es_inspector *in, int is_heard)
{
	unsigned int workers = in->params->count ? in->params->count : 1;

	return es_stray_bytes_per_s[is_heard] / es_conf_nodes_present(in->cluster->conf) / workers;
}

static void es_stray_budget_grow(struct es_inspector *in, struct es_stray_budget *b, int is_heard,
				 double brought, double cost)
{
	double share = es_stray_share(in, is_heard), most = share * es_stray_saved_s[is_heard];

	/* One question must be possible, however much it costs. */
	most = most < 2 * cost ? 2 * cost : most;
	if (!b->since_ns)
		b->bytes = most;
	else
		b->bytes += share * (double)(in->now_ns - b->since_ns) / 1e9 + brought;
	b->since_ns = in->now_ns;
	if (b->bytes > most)
		b->bytes = most;
}

/* A client whose segments pay for its questions takes nothing from the others. */
static int es_stray_source_may(struct es_inspector *in, const struct es_flow *flow, int is_heard, double cost)
{
	__u64 hash = es_addr_hash(&in->keys.ring, &flow->client);
	struct es_stray_source *source = &in->strays.source[hash % ES_STRAY_SOURCES];
	unsigned int second = (unsigned int)(in->now_ns / 1000000000ULL);
	double most = es_stray_share(in, is_heard) * es_stray_saved_s[is_heard] / ES_STRAY_SOURCE_PART;

	if (source->second != second)
		*source = (struct es_stray_source){.second = second};
	if (source->bytes > 0 && source->bytes + cost > most)
		return 0;
	source->bytes += cost;
	if (source->bytes < 0)
		source->bytes = 0;
	return 1;
}

/* May the nodes be asked about a repeated segment? @is_first: its message has no other question yet */
static int es_stray_may_ask(struct es_inspector *in, const struct es_record *record,
			    const struct es_ip_packet *packet, size_t len, int is_first)
{
	int is_heard = record->flow != ES_FLOW_NEW;
	struct es_stray_budget *b = &in->strays.budget[is_heard];
	size_t frame = ES_STRAY_FRAME_OVERHEAD + packet->len;
	double brought, cost, message;

	brought = ES_STRAY_PART * (double)(frame < ES_STRAY_FRAME_MIN ? ES_STRAY_FRAME_MIN : frame);
	es_stray_cost(in, len, es_stray_is_v6(packet), &cost, &message);
	es_stray_budget_grow(in, b, is_heard, brought, cost + message);
	if (is_first)
		cost += message;
	if (b->bytes < cost || !es_stray_source_may(in, &packet->flow, is_heard, cost - brought))
		return 0;
	b->bytes -= cost;
	return 1;
}

static __u64 es_stray_bits(unsigned int count)
{
	return count < 64 ? (1ULL << count) - 1 : ~0ULL;
}

/* Forgets the strays that a node may have, or has not answered about. */
static void es_stray_group_sift(struct es_stray_group *g)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < g->count; i++) {
		if (g->open & 1ULL << i)
			g->stray[kept++] = g->stray[i];
		else
			free(g->stray[i].survivor);
	}
	g->count = kept;
	g->open = es_stray_bits(kept);
	g->said = 0;
}

/* Writes question @i of a message, and the service, which all its questions are about. */
static void es_stray_question_put(union es_strays_message *m, unsigned int i,
				  const struct es_ip_packet *packet)
{
	const struct es_flow *flow = &packet->flow;
	__be32 seq = es_htonl(packet->seg.seq), ack = es_htonl(packet->seg.ack);

	if (es_stray_is_v6(packet)) {
		m->v6.service.address = flow->service;
		m->v6.service.port = flow->service_port;
		m->v6.question[i] = (struct es_stray_question6){
			.client = flow->client,
			.port = flow->client_port,
			.flags = packet->seg.flags,
			.seq = seq,
			.ack = ack,
		};
		return;
	}
	m->v4.service.address = flow->service.w[3];
	m->v4.service.port = flow->service_port;
	m->v4.question[i] = (struct es_stray_question){
		.client = flow->client.w[3],
		.port = flow->client_port,
		.flags = packet->seg.flags,
		.seq = seq,
		.ack = ack,
	};
}

static void es_stray_ask_node(struct es_inspector *in, const struct es_stray_group *g, unsigned int node,
			      unsigned int attempt)
{
	struct es_handover_order order = {
		.kind = ES_HANDOVER_STRAY,
		.service = g->service,
		.attempt = attempt,
		.requests = g->id,
	};
	union es_strays_message m = {};
	struct es_ip_packet packet;

	for (unsigned int i = 0; i < g->count; i++) {
		const struct es_stray_case *c = &g->stray[i];

		if (!es_stray_understands_many(in, node, g->is_v6)) {
			request_handover(in->sender, in->cluster, &order, c->packet, c->len, node);
			continue;
		}
		if (es_ip_packet_parse(c->packet, c->len, &packet))
			continue;
		es_stray_question_put(&m, i, &packet);
	}
	if (!es_stray_understands_many(in, node, g->is_v6))
		return;
	*(g->is_v6 ? &m.v6.service.count : &m.v4.service.count) = es_htons(g->count);
	order.kind = g->is_v6 ? ES_HANDOVER_STRAYS6 : ES_HANDOVER_STRAYS;
	request_handover(in->sender, in->cluster, &order, (const uint8_t *)&m,
			 es_strays_len((int)g->is_v6, g->count), node);
}

static void es_stray_group_free(struct es_stray_group *g)
{
	for (unsigned int i = 0; g->state != ES_STRAY_FREE && i < g->count; i++)
		free(g->stray[i].survivor);
	g->state = ES_STRAY_FREE;
}

/* No node has their connections. */
static void es_stray_tell(struct es_inspector *in, const struct es_stray_group *g)
{
	for (unsigned int i = 0; i < g->count; i++) {
		const struct es_stray_case *c = &g->stray[i];

		if (!es_inspect_is_mine(in, c->flow_hash)) {
			es_inspect_count(in, ES_WORKER_not_mine);
			continue;
		}
		if (c->survivor) {
			es_inspect_survive(in, c->survivor);
			continue;
		}
		if (g->kind == ES_STRAY_OF_WAITING) {
			es_waiting_reset(in, g->service, c->packet, c->len, c->ack);
			continue;
		}
		if (c->is_owned)
			continue; /* when it comes again, it will be known whether its node is lost */
		if (c->is_earlier) {
			es_inspect_earlier_note(in, c);
			continue;
		}
		es_inspect_count(in, ES_WORKER_stray_resets);
		es_inspect_reset(in, c->packet, c->len);
	}
}

/*
 * Asks the first member from @node on. After the last member of the last round, no node has the connections.
 */
static void es_stray_ask(struct es_inspector *in, struct es_stray_group *g, unsigned int node)
{
	const struct es_cluster *cluster = in->cluster;

	es_stray_group_sift(g);
	for (; g->count && g->round < ES_STRAY_ROUNDS; g->round++, node = 0) {
		/* A node that has left the cluster since then was not asked, so it is asked now. */
		while (node < cluster->conf->node_count &&
		       (es_stray_is_removed(in, node) || (g->away[node] && es_stray_is_away(in, node))))
			node++;
		if (node < cluster->conf->node_count) {
			g->state = ES_STRAY_ASKED;
			g->node = node;
			g->deadline_ns = in->now_ns + ES_STRAY_MEMBER_NS;
			es_stray_ask_node(in, g, node, g->round);
			return;
		}
	}
	es_stray_tell(in, g);
	es_stray_group_free(g);
}

/* Asks the questions that were gathered: first all nodes that are not members. */
static void es_stray_begin(struct es_inspector *in, struct es_stray_group *g)
{
	static const unsigned long long away_ns[] = {
		[ES_STRAY_OF_ANY] = ES_STRAY_AWAY_NS,
		[ES_STRAY_OF_SURVIVORS] = ES_STRAY_SURVIVOR_NS,
		[ES_STRAY_OF_WAITING] = ES_STRAY_WAITING_NS,
	};
	unsigned int asked = 0;

	g->open = es_stray_bits(g->count);
	g->id = ++in->strays.id;
	g->round = 0;
	for (unsigned int node = 0; node < in->cluster->conf->node_count; node++) {
		g->away[node] = (uint8_t)es_stray_is_away(in, node);
		if (!g->away[node] || es_stray_is_removed(in, node))
			continue;
		es_stray_ask_node(in, g, node, ES_STRAY_AWAY);
		asked++;
	}
	if (!asked) {
		es_stray_ask(in, g, 0);
		return;
	}
	g->state = ES_STRAY_ASKED_AWAY;
	g->deadline_ns = in->now_ns + away_ns[g->kind];
}

/* Are the nodes being asked about this request? Its client has repeated it meanwhile. */
static int es_stray_is_known(const struct es_strays *strays, const struct es_survivor *survivor)
{
	for (unsigned int i = 0; i < ES_STRAY_GROUPS; i++) {
		const struct es_stray_group *g = &strays->group[i];

		for (unsigned int k = 0;
		     g->state != ES_STRAY_FREE && g->kind == ES_STRAY_OF_SURVIVORS && k < g->count; k++)
			if (g->stray[k].flow_hash == survivor->record.flow_hash)
				return 1;
	}
	return 0;
}

/* The group that gathers such questions about the service in that family, else a free one, else NULL. */
static struct es_stray_group *es_stray_group_of(struct es_strays *strays, unsigned int service,
						unsigned int is_v6, enum es_stray_kind kind)
{
	struct es_stray_group *found = NULL;

	for (unsigned int i = 0; i < ES_STRAY_GROUPS; i++) {
		struct es_stray_group *g = &strays->group[i];

		if (g->state == ES_STRAY_GATHERING && g->service == service && g->is_v6 == is_v6 &&
		    g->kind == kind)
			return g;
		if (g->state == ES_STRAY_FREE)
			found = g;
	}
	return found;
}

/* Puts one into @g, which gathers such, or is free. */
static struct es_stray_case *es_stray_add(struct es_inspector *in, struct es_stray_group *g,
					  unsigned int service, enum es_stray_kind kind, __u64 flow_hash,
					  const struct es_ip_packet *packet)
{
	/* One byte is enough, since only its place in the stream matters. A FIN alone has none. */
	size_t payload = packet->seg.len ? 1 : 0;
	struct es_stray_case *c;

	es_inspect_count(in, ES_WORKER_strays);
	if (g->state == ES_STRAY_FREE) {
		g->state = ES_STRAY_GATHERING;
		g->service = service;
		g->is_v6 = es_stray_is_v6(packet);
		g->kind = kind;
		g->count = 0;
		g->deadline_ns = in->now_ns + (kind == ES_STRAY_OF_ANY ? ES_STRAY_GATHER_NS : 0);
	}
	c = &g->stray[g->count++];
	*c = (struct es_stray_case){
		.flow_hash = flow_hash,
		.seq = packet->seg.seq,
		.ack = packet->seg.ack,
		.version = in->version,
	};
	c->len = es_ip_packet_cut(packet, 0, payload, c->packet);
	return c;
}

void es_inspect_stray(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet)
{
	size_t payload = packet->seg.len ? 1 : 0;
	struct es_survivor *survivor = NULL;
	enum es_survives survives = es_inspect_survivor(in, record, packet, &survivor);
	enum es_stray_kind kind;
	struct es_stray_group *g;
	struct es_stray_case *c;

	/* If all were asked now, none would have it. */
	if (survives == ES_SURVIVES_LATER)
		return;
	if (survivor && es_stray_is_known(&in->strays, survivor)) {
		free(survivor);
		return;
	}
	kind = survivor ? ES_STRAY_OF_SURVIVORS : ES_STRAY_OF_ANY;
	g = es_stray_group_of(&in->strays, record->service, es_stray_is_v6(packet), kind);
	if (!g || packet->header_len + payload > sizeof(c->packet) ||
	    (!survivor && !es_stray_may_ask(in, record, packet, packet->header_len + payload,
					    g->state == ES_STRAY_FREE))) {
		es_inspect_count(in, ES_WORKER_stray_limited);
		free(survivor);
		return;
	}
	c = es_stray_add(in, g, record->service, kind, record->flow_hash, packet);
	c->survivor = survivor;
	c->is_owned = survives == ES_SURVIVES_OWNED;
	/*
	 * A socket for a link-local client can only be made of a packet from the network, not of a message.
	 */
	c->is_earlier = (uint8_t)(es_inspect_is_earlier(record->flow) &&
				  !es_addr_is_link_local(&packet->flow.client));
	if (g->count == es_strays_many((int)g->is_v6))
		es_stray_begin(in, g);
}

void es_inspect_waiting(struct es_inspector *in, const struct es_waiting_client *client)
{
	uint8_t bytes[ES_ANSWER_HEADER_MAX];
	struct es_ip_packet packet;
	struct es_stray_group *g;

	if (client->service >= in->cluster->conf->service_count ||
	    es_ip_packet_parse(bytes, es_waiting_question(in, client, bytes), &packet))
		return;
	g = es_stray_group_of(&in->strays, client->service, es_stray_is_v6(&packet), ES_STRAY_OF_WAITING);
	if (!g) {
		es_inspect_count(in, ES_WORKER_stray_limited);
		return;
	}
	es_stray_add(in, g, client->service, ES_STRAY_OF_WAITING, client->flow_hash, &packet)->ack =
		client->ack;
	if (g->count == es_strays_many((int)g->is_v6))
		es_stray_begin(in, g);
}

void es_inspect_strays_due(struct es_inspector *in)
{
	for (unsigned int i = 0; i < ES_STRAY_GROUPS; i++) {
		struct es_stray_group *g = &in->strays.group[i];

		if (g->state == ES_STRAY_FREE || g->deadline_ns > in->now_ns)
			continue;
		switch (g->state) {
		case ES_STRAY_GATHERING:
			es_stray_begin(in, g);
			break;
		case ES_STRAY_ASKED_AWAY:
			es_stray_ask(in, g, 0);
			break;
		default:
			g->open &= g->said;
			es_stray_ask(in, g, g->node + 1);
			break;
		}
	}
}

void es_inspect_strays_forget(struct es_inspector *in)
{
	for (unsigned int i = 0; i < ES_STRAY_GROUPS; i++)
		es_stray_group_free(&in->strays.group[i]);
}

/* Does @nack answer the question that the group waits for? */
static int es_stray_is_asked(const struct es_stray_group *g, const struct es_handover *nack)
{
	if (g->id != es_ntohl(nack->requests))
		return 0;
	if (nack->attempt == ES_STRAY_AWAY)
		return g->state == ES_STRAY_ASKED_AWAY;
	return g->state == ES_STRAY_ASKED && g->node == nack->source && g->round == nack->attempt;
}

/* A node has answered about the strays in @said, and may have those in @here. */
static void es_stray_said(struct es_inspector *in, struct es_stray_group *g, __u64 said, __u64 here)
{
	for (unsigned int i = 0; i < g->count; i++)
		if (here & 1ULL << i)
			es_inspect_lives(in, g->stray[i].flow_hash);
	g->open &= ~here;
	if (g->state != ES_STRAY_ASKED)
		return; /* others may have some of them, too: all are waited for */
	g->said |= said;
	if (!(g->open & ~g->said))
		es_stray_ask(in, g, g->node + 1);
}

void es_inspect_strays_answer(struct es_inspector *in, const struct es_handover *nack)
{
	for (unsigned int i = 0; i < ES_STRAY_GROUPS; i++) {
		struct es_stray_group *g = &in->strays.group[i];

		if (es_stray_is_asked(g, nack)) {
			es_stray_said(in, g, ~0ULL, es_cpu_be64((__u64)nack->here));
			return;
		}
	}
}

void es_inspect_stray_answer(struct es_inspector *in, const struct es_handover *nack,
			     const struct es_ip_packet *packet)
{
	__u64 flow_hash = es_flow_hash(&in->keys.ring, in->keys.ring_seed, &packet->flow);

	for (unsigned int i = 0; i < ES_STRAY_GROUPS; i++) {
		struct es_stray_group *g = &in->strays.group[i];
		__u64 about = 0;

		if (!es_stray_is_asked(g, nack))
			continue;
		for (unsigned int k = 0; k < g->count; k++)
			if (g->stray[k].flow_hash == flow_hash && g->stray[k].seq == packet->seg.seq)
				about |= 1ULL << k;
		if (about)
			es_stray_said(in, g, about, nack->nack == ES_NACK_HERE ? about : 0);
	}
}
