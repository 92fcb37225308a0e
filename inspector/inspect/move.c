// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Later requests, on connections whose sockets are here. Each stays, that is, goes to the socket, or moves
 * its connection. A move has three steps. The datapath ends the local socket, if neither server nor client
 * has anything left for it, and says so (END); it looks again, until the socket is gone (GONE); only then is
 * the request handed over. Otherwise a connection that returns soon would meet its own old socket, and one
 * whose server has just spoken would have two sockets.
 */
#include "inspector/inspect/internal.h"

/* Does the request's form let it leave? Only if it is a request beyond doubt. */
static int es_move_is_safe(const struct es_handover_order *order)
{
	switch (order->pin) {
	case ES_PIN_none:
	case ES_PIN_connect:
	case ES_PIN_chunked:
	case ES_PIN_length:
		return 1;
	default:
		return 0;
	}
}

/*
 * Without a bus, two nodes may each take the other one for the home of the same content, until the last word
 * about it has reached both (policy/contents.h). A connection that was sent there, and came straight back,
 * does not leave again for a second.
 */
#define ES_LEFT_REST_MS 1000

static struct es_left *es_left_slot(struct es_inspector *in, __u64 flow_hash, __u64 content)
{
	return &in->left[(flow_hash ^ content) % ES_LEFT_SLOTS];
}

static int es_move_is_for_content(const struct es_inspector *in, const struct es_handover_order *order)
{
	return (order->why == ES_MOVE_LOCALITY || order->why == ES_MOVE_HOME) && order->content &&
	       in->cluster->conf->cluster.membership == ES_CONF_MEMBERSHIP_STATIC &&
	       in->cluster->contents[order->service];
}

void es_inspect_left_for_content(struct es_inspector *in, __u64 flow_hash,
				 const struct es_handover_order *order)
{
	if (!es_move_is_for_content(in, order))
		return;
	*es_left_slot(in, flow_hash, order->content) = (struct es_left){
		.flow_hash = flow_hash,
		.content = order->content,
		.at_ms = es_inspect_now_ms(in),
		.moves = order->moves,
	};
	/* The other node may not know that it is the home now. */
	es_contents_tell(in->cluster->contents[order->service], order->content, in->now_ns);
}

static int es_move_is_back(struct es_inspector *in, __u64 flow_hash, const struct es_handover_order *order)
{
	const struct es_left *left = es_left_slot(in, flow_hash, order->content);

	return es_move_is_for_content(in, order) && left->flow_hash == flow_hash &&
	       left->content == order->content && order->moves == left->moves + 1 &&
	       es_inspect_now_ms(in) - left->at_ms < ES_LEFT_REST_MS;
}

int es_inspect_may_leave(struct es_inspector *in, __u64 flow_hash, const struct es_handover_order *order)
{
	if (es_move_is_back(in, flow_hash, order)) {
		es_inspect_count(in, ES_WORKER_came_back);
		return 0;
	}
	return es_move_is_safe(order);
}

static unsigned int es_move_target(struct es_inspector *in, __u64 flow_hash,
				   const struct es_handover_order *order, int target)
{
	es_inspect_count(in, ES_WORKER_owned);
	if (target == ES_ROUTE_REJECT && es_move_is_safe(order))
		return ES_NODE_REJECT;
	/* This node has the connection, and goes on with it even if it is not a target for new ones. */
	if (target < 0 || (unsigned int)target == in->cluster->self ||
	    !es_inspect_may_leave(in, flow_hash, order))
		return in->cluster->self;
	return (unsigned int)target;
}

/*
 * The request replaces the connection's request before it, which the node's load already counts. If this one
 * were added, a node would seem to have more requests in hand than connections.
 */
static void es_note_stayed(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			   const struct es_handover_order *order)
{
	es_inspect_count(in, ES_WORKER_stayed);
	es_inspect_remember(in, flow_hash, cookie, first_seq, in->cluster->self, order);
}

void es_inspect_count_move(struct es_inspector *in, const struct es_handover_order *order)
{
	static const enum es_worker_counter counters[ES_MOVE_WHY_COUNT] = {
		[ES_MOVE_LOCALITY] = ES_WORKER_moved_locality, [ES_MOVE_LOAD] = ES_WORKER_moved_load,
		[ES_MOVE_DRAIN] = ES_WORKER_moved_drain,       [ES_MOVE_RULE] = ES_WORKER_moved_rule,
		[ES_MOVE_HOME] = ES_WORKER_moved_home,
	};

	es_inspect_count(in, ES_WORKER_moved);
	if (order->why < ES_MOVE_WHY_COUNT)
		es_inspect_count(in, counters[order->why]);
}

static void es_note_moved(struct es_inspector *in, const struct es_gather *g)
{
	es_inspect_count_move(in, &g->order);
	es_inspect_remember(in, g->flow_hash, g->cookie, g->first_seq, g->target, &g->order);
	es_route_moved(&in->router, g->target, g->order.cost);
	es_inspect_left_for_content(in, g->flow_hash, &g->order);
}

static void es_stay_gathered(struct es_inspector *in, struct es_gather *g)
{
	g->order.kind = ES_HANDOVER_STAY;
	es_note_stayed(in, g->flow_hash, g->cookie, g->first_seq, &g->order);
	es_inspect_tally_gathered(in, g, in->cluster->self, ES_TALLY_stay, in->began_ns);
	es_inspect_send_gathered(in, g, in->cluster->self);
	es_inspect_given(in, g);
}

/*
 * Asks the datapath to end the socket; es_inspect_left() goes on from there. Until then nobody has the
 * connection, and this thread may be suspended, or hang in another request. A node that asks meanwhile whose
 * the connection is must not hear that it is nobody's. So a decision about another first byte is put into the
 * table, which says just that, for ES_STRAY_ON_ITS_WAY_MS.
 */
static void es_leave(struct es_inspector *in, struct es_gather *g, unsigned int target)
{
	g->target = target;
	g->leaving = ES_GATHER_LEAVING;
	g->left_ms = (double)in->now_ns / 1e6;
	es_decision_table_put(&in->decisions, g->flow_hash, g->cookie, g->first_seq, (__u8)in->cluster->self,
			      &g->order, es_inspect_now_ms(in));
	es_inspect_leave_again(in, g);
}

/*
 * The question may have been lost, or its answer have found no room in the ring. A second answer does no
 * harm.
 */
void es_inspect_leave_again(struct es_inspector *in, const struct es_gather *g)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_END, .service = g->order.service};
	const uint8_t *bytes = g->segment[0].bytes;
	size_t len = g->segment[0].len;
	struct es_ip_packet packet;
	uint8_t head[120];

	if (g->leaving == ES_GATHER_ENDING && !es_ip_packet_parse(bytes, len, &packet)) {
		order.kind = ES_HANDOVER_GONE;
		len = es_ip_packet_cut(&packet, 0, 0, head);
		bytes = head;
	}
	request_handover(in->sender, in->cluster, &order, bytes, len, in->cluster->self);
}

void es_inspect_move_gathered(struct es_inspector *in, struct es_gather *g, int target)
{
	unsigned int node = es_move_target(in, g->flow_hash, &g->order, target);

	if (node == in->cluster->self)
		es_stay_gathered(in, g);
	else
		es_leave(in, g, node);
}

void es_inspect_move(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet, struct es_known *known,
		     const struct es_handover_order *order, int target)
{
	unsigned int node = es_move_target(in, record->flow_hash, order, target);
	struct es_handover_order message = *order;

	if (node != in->cluster->self) {
		if (es_inspect_gather_begin(in, record->flow_hash, known))
			return;
		es_inspect_keep(in, record, packet, known, 1);
		known->gather->order = *order;
		es_leave(in, known->gather, node);
		return;
	}
	message.kind = ES_HANDOVER_STAY;
	es_note_stayed(in, record->flow_hash, known->cookie, packet->seg.seq, &message);
	es_inspect_tally(in, packet, &message, node, ES_TALLY_stay, in->began_ns);
	es_inspect_send(in, &message, packet, record->gso_size, node);
}

int es_inspect_stay_again(struct es_inspector *in, const struct es_record *record,
			  const struct es_ip_packet *packet, const struct es_known *known)
{
	if (!es_decided_has_stayed(&known->decided, in->cluster->self))
		return 0;
	es_inspect_count(in, ES_WORKER_repeated);
	es_inspect_send(in, known->decided.order, packet, record->gso_size, in->cluster->self);
	return 1;
}

void es_inspect_left(struct es_inspector *in, const struct es_record *record, struct es_gather *g)
{
	/* It was given up meanwhile, or answered twice: the client repeats it. */
	if (!g || !g->leaving)
		return;
	if ((double)in->now_ns / 1e6 - g->left_ms >= ES_LEAVE_MS) {
		es_inspect_count(in, ES_WORKER_gather_forgotten);
		es_gather_remove(in->gathers, g);
		return;
	}
	if (record->kind == ES_RECORD_ENDING) {
		g->leaving = ES_GATHER_ENDING;
		es_inspect_leave_again(in, g);
		return;
	}
	/* That answers an earlier question. */
	if ((record->kind == ES_RECORD_ENDED) != (g->leaving == ES_GATHER_ENDING))
		return;
	if (record->kind == ES_RECORD_KEPT) {
		es_inspect_count(in, ES_WORKER_move_refused);
		es_tally_handed(in->tally, g->order.service, g->target, ES_TALLY_stayed);
		es_stay_gathered(in, g);
		return;
	}
	if (g->target == ES_NODE_REJECT) {
		es_inspect_reject_gathered(in, g);
		es_gather_remove(in->gathers, g);
		return;
	}
	if (es_inspect_cedes(in, g->order.service)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		es_gather_remove(in->gathers, g);
		return;
	}
	g->order.kind = ES_HANDOVER_REQUEST;
	g->order.moved = 1;
	if (g->order.moves < UINT16_MAX)
		g->order.moves++;
	es_note_moved(in, g);
	es_inspect_tally_gathered(in, g, g->target, ES_TALLY_move, (unsigned long long)(g->left_ms * 1e6));
	es_inspect_send_gathered(in, g, g->target);
	es_inspect_given(in, g);
}

/*
 * Has the client heard the new socket? Then that socket gets the segment from the network, as all nodes do.
 */
static int es_moved_is_heard(const struct es_handover_order *order, const struct es_ip_packet *packet)
{
	return packet->seg.has_ts &&
	       !es_seq_before(packet->seg.tsecr, order->tsecr + ES_REBUILD_CLOCK_AHEAD_MS);
}

void es_inspect_moved(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet, const struct es_known *known)
{
	const struct es_decided *decided = &known->decided;
	int target = (int)decided->node;
	struct es_handover_order order;

	if (!es_decided_is_moved(decided)) {
		/* An earlier daemon has moved it, and only that one knew the connection. */
		es_inspect_count(in, ES_WORKER_move_forgotten);
		es_inspect_refuse(in, packet->bytes, packet->len);
		return;
	}
	if (es_inspect_cedes(in, record->service)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	order = *decided->order;
	order.repeat = 1;
	if (target == ES_NODE_REJECT) {
		es_inspect_reject_again(in, record, packet, &order);
		return;
	}
	if (order.unsafe && es_inspect_was_lost(in, record, decided)) {
		es_inspect_doubt(in, packet->bytes, packet->len);
		return;
	}
	if (es_health_state(in->params->health, (unsigned int)target) == ES_NODE_ABSENT) {
		/*
		 * Its node has crashed, and the client has no answer: another node goes on with the
		 * connection.
		 */
		struct es_request_view request = {.flow_hash = record->flow_hash, .current = -1};

		if (record->kind != ES_RECORD_FIRST)
			return; /* its first segment will be repeated, too, and bring it to a node */
		target = order.attempt < ES_ATTEMPTS_MAX
				 ? es_route_fallback(&in->router, order.service, &request, in->now_ns)
				 : -1;
		if (target < 0) {
			es_inspect_refuse(in, packet->bytes, packet->len);
			return;
		}
		order.repeat = 0; /* that node gets it for the first time */
		order.attempt++;
		es_inspect_note(in, record->flow_hash, known->cookie, packet->seg.seq, (unsigned int)target,
				&order);
		es_inspect_tally(in, packet, &order, (unsigned int)target, ES_TALLY_again, in->began_ns);
		es_inspect_send(in, &order, packet, record->gso_size, (unsigned int)target);
		return;
	}
	if (record->kind != ES_RECORD_FIRST && es_moved_is_heard(&order, packet))
		return;
	if (record->kind != ES_RECORD_FIRST)
		order.kind = ES_HANDOVER_FOLLOW;
	else if (decided->is_first)
		decided->order->repeat = 1;
	es_inspect_count(in, record->kind == ES_RECORD_FIRST ? ES_WORKER_repeated : ES_WORKER_followed);
	es_inspect_send(in, &order, packet, record->gso_size, (unsigned int)target);
}
