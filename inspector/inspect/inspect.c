// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chooses a packet's way, by its record and by what the tables have of its request, and decides requests that
 * are in one segment. A first request is given to its node (give.c); a later one stays or moves its
 * connection (move.c). Nothing here waits, logs or takes a lock.
 */
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/inspect/internal.h"

/* Ticks of a worker (ES_TICK_S) in about an hour. */
#define ES_DECISION_SWEEP_TICKS 180000

/*
 * Decides a request that arrived in one segment. Returns 0 if more of it is needed: @ret_wanted bytes, if a
 * rule has said so.
 */
static int es_inspect_single(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, struct es_known *known, size_t *ret_wanted)
{
	struct es_request_view request = {
		.flow_hash = record->flow_hash,
		.current = record->flow == ES_FLOW_HERE ? (int)in->cluster->self : -1,
		.client = &packet->flow.client,
		.client_port = es_ntohs(packet->flow.client_port),
	};
	const char *text = (const char *)es_ip_packet_payload(packet);
	struct es_handover_order order;
	int target;

	es_http_head_init(&in->head);
	if (es_inspect_is_urgent(packet))
		es_http_head_distrust(&in->head);
	else if (es_http_head_scan(&in->head, text, packet->seg.len) == ES_HTTP_MORE)
		return 0;
	es_inspect_describe(in, record->service, &request, &in->head, text, packet->seg.len);
	if (record->flow == ES_FLOW_DOUBTFUL &&
	    es_inspect_is_unsafe(in, record->service, &in->head, text, packet->seg.len)) {
		es_inspect_doubt(in, packet->bytes, packet->len);
		return 1;
	}
	es_inspect_order(in, record, packet, &known->decided, &order);
	target = es_inspect_route(in, record->service, &request, &order.rejection);
	if (target == ES_ROUTE_MORE) {
		*ret_wanted = order.rejection.more_bytes;
		return 0;
	}
	if (es_inspect_is_overtaken(in, (enum es_record_flow)record->flow, record->flow_hash))
		return 1;
	es_inspect_complete(in, &request, packet->seg.seq, &order);
	if (record->flow == ES_FLOW_HERE) {
		es_inspect_move(in, record, packet, known, &order, target);
	} else if (target == ES_ROUTE_REJECT) {
		es_inspect_reject(in, record->flow_hash, packet, packet->seg.seq + packet->seg.len, &order);
	} else if (target < 0) {
		es_inspect_refuse(in, packet->bytes, packet->len);
	} else {
		es_inspect_give(in, record, packet, &order, (unsigned int)target);
	}
	return 1;
}

/* A first request that is decided arrives again. Returns 0 if it is to be decided anew. */
static int es_inspect_first_again(struct es_inspector *in, const struct es_record *record,
				  const struct es_ip_packet *packet, const struct es_known *known)
{
	const struct es_decided *decided = &known->decided;
	struct es_handover_order order;

	if (decided->node == ES_NODE_REJECT) {
		es_inspect_moved(in, record, packet, known);
		return 1;
	}
	if (es_inspect_was_lost(in, record, decided) &&
	    es_inspect_packet_is_unsafe(in, record->service, packet)) {
		es_inspect_doubt(in, packet->bytes, packet->len);
		return 1;
	}
	/* Its node has crashed: nothing is left of it there, and its client has heard nothing. */
	if (es_health_state(in->params->health, decided->node) == ES_NODE_ABSENT)
		return 0;
	es_inspect_order(in, record, packet, decided, &order);
	order.unsafe = (uint8_t)es_inspect_packet_is_unsafe(in, record->service, packet);
	es_inspect_bound_again(in, packet, &order);
	es_inspect_give_again(in, record, packet, &order, decided);
	return 1;
}

static void es_inspect_first(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, struct es_known *known)
{
	size_t wanted = 0;

	if (known->gather && known->gather->given)
		known->gather = NULL; /* it is decided */
	if (known->gather && known->gather->leaving) {
		es_inspect_count(in, ES_WORKER_repeated); /* it goes as soon as its socket is ended */
		es_inspect_leave_again(in, known->gather);
		return;
	}
	/* Another CPU queued it while its socket was being ended for this very request. */
	if (record->flow == ES_FLOW_HERE && es_decided_is_moved(&known->decided)) {
		es_inspect_moved(in, record, packet, known);
		return;
	}
	/*
	 * Its client repeated it while it was being decided. It is not decided again: a rule may need its
	 * body for that, which the client does not repeat.
	 */
	if (record->flow == ES_FLOW_HERE && !known->gather &&
	    es_inspect_stay_again(in, record, packet, known))
		return;
	if (es_inspect_is_new(record->flow) && known->decided.is_first &&
	    es_inspect_first_again(in, record, packet, known))
		return;
	if (!known->gather && (es_inspect_single(in, record, packet, known, &wanted) ||
			       es_inspect_gather_begin(in, record->flow_hash, known)))
		return;
	if (wanted)
		known->gather->wanted = wanted;
	es_inspect_gather(in, record, packet, known, 1);
}

static void es_inspect_later(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, struct es_known *known)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_FOLLOW, .service = record->service};
	const struct es_decided *decided = &known->decided;
	int is_decided = decided->order && (!known->gather || known->gather->given);

	/*
	 * Until its connection is given away, a segment is left to its client, which repeats it. A connection
	 * that a program has handed over hears its client itself.
	 */
	if (es_inspect_is_layer4(in, record->service) && !(decided->order && decided->order->attempt))
		return;
	if (is_decided && decided->node == ES_NODE_REJECT) {
		es_inspect_moved(in, record, packet, known);
		return;
	}
	if (is_decided) {
		/*
		 * The socket takes it when its client repeats it, and its node notes that urgent data may
		 * follow.
		 */
		if (es_inspect_is_urgent(packet))
			return;
		es_inspect_count(in, ES_WORKER_followed);
		es_inspect_send(in, &order, packet, record->gso_size, decided->node);
		return;
	}
	if (known->gather || !es_inspect_gather_begin(in, record->flow_hash, known))
		es_inspect_gather(in, record, packet, known, 0);
}

/*
 * Is it a later segment that the datapath took for a first one? Without timestamps, 1 of 2,048 looks like one
 * (cookie.h). A flow's packets arrive in order, so the tables know its request then.
 */
static int es_inspect_is_later(const struct es_record *record, const struct es_ip_packet *packet,
			       const struct es_known *known)
{
	const struct es_gather *g = known->gather;

	if (packet->seg.has_ts || !es_inspect_is_new(record->flow) || known->decided.is_first)
		return 0;
	return known->decided.order || (g && g->has_first && g->first_seq != packet->seg.seq);
}

/* A client closes its side before any request: that is for a server to answer, and any server will do. */
static void es_inspect_fin(struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet, const struct es_known *known)
{
	struct es_handover_order order;

	es_inspect_count(in, ES_WORKER_fin_before_request);
	es_inspect_order(in, record, packet, &known->decided, &order);
	order.pin = ES_PIN_half_closed;
	es_inspect_note(in, record->flow_hash, known->cookie, packet->seg.seq, in->cluster->self, &order);
	es_inspect_send(in, &order, packet, 0, in->cluster->self);
}

/*
 * A client gives up its connection within its first request. Its RST has the number after all that it has
 * sent; one that somebody else has made up has not.
 */
static void es_inspect_client_reset(struct es_inspector *in, const struct es_ip_packet *packet,
				    struct es_gather *g)
{
	const struct es_gather_segment *last;

	if (!g || !es_inspect_is_new(g->flow) || !g->count)
		return;
	last = &g->segment[g->count - 1];
	if (packet->seg.seq != last->seq + last->payload_len)
		return;
	es_inspect_count(in, ES_WORKER_client_reset);
	es_gather_remove(in->gathers, g);
}

/*
 * Has every node denied having the connection of this stray (earlier.h)? Then it is a first request: returns
 * 1, with its record as one.
 */
static int es_inspect_is_first(struct es_inspector *in, const struct es_record *record,
			       const struct es_ip_packet *packet, struct es_record *ret_first)
{
	if (!es_inspect_earlier_is_nobodys(in, record->flow_hash, &packet->seg))
		return 0;
	*ret_first = *record;
	ret_first->kind = ES_RECORD_FIRST;
	ret_first->flow = record->flow == ES_FLOW_EARLIER_DOUBTFUL &&
					  es_cluster_has_doubts(in->cluster, record->flow_hash)
				  ? ES_FLOW_DOUBTFUL
				  : ES_FLOW_NEW;
	es_inspect_count(in, ES_WORKER_earlier);
	return 1;
}

static struct es_gather *es_inspect_gathered(struct es_inspector *in, const struct es_record *record,
					     const struct es_ip_packet *packet)
{
	return es_gather_lookup(in->gathers, record->flow_hash, packet->seg.ack - 1);
}

static void es_inspect_know(struct es_inspector *in, const struct es_record *record,
			    const struct es_ip_packet *packet, struct es_known *ret)
{
	ret->cookie = packet->seg.ack - 1;
	ret->gather = es_inspect_gathered(in, record, packet);
	es_decision_table_look(&in->decisions, record->flow_hash, ret->cookie, packet->seg.seq - 1,
			       es_inspect_now_ms(in), &ret->decided);
}

enum es_course {
	ES_COURSE_NONE,
	ES_COURSE_RESET,
	ES_COURSE_MOVED,
	ES_COURSE_BLIND,
	ES_COURSE_LAYER4,
	ES_COURSE_POISON,
	ES_COURSE_LATER,
	ES_COURSE_FIRST,
	ES_COURSE_FIN,
};

/* Chooses a packet's way. @is_earlier: it is a first request that es_inspect_is_first() has found */
static enum es_course es_inspect_course(const struct es_inspector *in, const struct es_record *record,
					const struct es_ip_packet *packet, const struct es_known *known,
					int is_earlier)
{
	int is_first = record->kind == ES_RECORD_FIRST && !es_inspect_is_later(record, packet, known);

	if (packet->seg.flags & ES_TCP_RST)
		return ES_COURSE_RESET;
	if (record->flow == ES_FLOW_MOVED)
		return ES_COURSE_MOVED;
	if (is_earlier && in->cluster->conf->services[record->service].inspect == ES_INSPECT_NEVER)
		return ES_COURSE_BLIND;
	if (es_inspect_is_new(record->flow) && is_first && es_inspect_is_layer4(in, record->service))
		return ES_COURSE_LAYER4;
	if (es_inspect_is_poisoned(in, record, packet))
		return ES_COURSE_POISON;
	if (!is_first)
		return ES_COURSE_LATER;
	if (packet->seg.len)
		return ES_COURSE_FIRST;
	return packet->seg.flags & ES_TCP_FIN ? ES_COURSE_FIN : ES_COURSE_NONE;
}

/* Looks at each table once, and goes the way that follows. */
static void es_inspect_request(struct es_inspector *in, const struct es_record *record,
			       const struct es_ip_packet *packet, int is_earlier)
{
	struct es_known known;

	es_inspect_know(in, record, packet, &known);
	switch (es_inspect_course(in, record, packet, &known, is_earlier)) {
	case ES_COURSE_RESET:
		es_inspect_client_reset(in, packet, known.gather);
		break;
	case ES_COURSE_MOVED:
		es_inspect_moved(in, record, packet, &known);
		break;
	case ES_COURSE_BLIND:
		es_inspect_earlier_blind(in, record, packet, &known);
		break;
	case ES_COURSE_LAYER4:
		es_inspect_layer4(in, record, packet, &known);
		break;
	case ES_COURSE_POISON:
		es_inspect_poison(in, record, packet, &known);
		break;
	case ES_COURSE_LATER:
		es_inspect_later(in, record, packet, &known);
		break;
	case ES_COURSE_FIRST:
		es_inspect_first(in, record, packet, &known);
		break;
	case ES_COURSE_FIN:
		es_inspect_fin(in, record, packet, &known);
		break;
	case ES_COURSE_NONE:
		break;
	}
}

/* A segment on another node's idle connection: its client has repeated a request, or answers a question. */
static void es_inspect_heard(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet)
{
	struct es_ip_packet request;
	struct es_held *held;

	if (packet->seg.len) {
		es_inspect_hold(in, record, packet);
		return;
	}
	held = es_inspect_held_answer(in, record->flow_hash, packet);
	if (held && !es_ip_packet_parse(held->packet, held->record.len, &request)) {
		es_inspect_count(in, ES_WORKER_survive_answered);
		es_inspect_stray(in, &held->record, &request);
	}
	free(held);
}

static void es_inspect_packet(struct es_inspector *in, const struct es_record *record, const uint8_t *bytes)
{
	static _Thread_local uint8_t completed[ES_RECORD_MAX];
	struct es_record first;
	struct es_ip_packet packet;

	if (record->service >= in->cluster->conf->service_count ||
	    es_ip_packet_parse(bytes, record->len, &packet)) {
		es_inspect_count(in, ES_WORKER_bad_packet);
		return;
	}
	if (record->csum_partial || (packet.len < record->len)) {
		/* The checksum was left to hardware that this packet never met. */
		es_ip_packet_cut(&packet, 0, packet.seg.len, completed);
		packet.bytes = completed;
	} else if (!record->gso_size && !es_ip_packet_checksum_ok(&packet)) {
		es_inspect_count(in, ES_WORKER_bad_checksum);
		return;
	}
	if (es_inspect_is_left(record)) {
		es_inspect_left(in, record, es_inspect_gathered(in, record, &packet));
		return;
	}
	if (record->kind == ES_RECORD_OPEN) {
		es_inspect_probe(in, &packet);
		return;
	}
	if (record->kind == ES_RECORD_HEARD) {
		es_inspect_heard(in, record, &packet);
		return;
	}
	if ((es_inspect_is_new(record->flow) || record->kind == ES_RECORD_STRAY) &&
	    !es_inspect_is_mine(in, record->flow_hash)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	if (es_inspect_is_earlier(record->flow) && es_inspect_is_first(in, record, &packet, &first))
		record = &first;
	if (record->kind == ES_RECORD_STRAY && !(packet.seg.flags & ES_TCP_RST))
		es_inspect_stray(in, record, &packet);
	else
		es_inspect_request(in, record, &packet, record == &first);
}

void es_inspect_record(struct es_inspector *in, const struct es_record *record, const uint8_t *bytes)
{
	struct es_record sure;

	in->began_ns = es_clock_now_ns();
	es_mark_set(in->params->mark, record->flow_hash, record->service, bytes, record->len);
	if (record->flow == ES_FLOW_DOUBTFUL && !es_cluster_has_doubts(in->cluster, record->flow_hash)) {
		sure = *record;
		sure.flow = ES_FLOW_NEW;
		record = &sure;
	}
	es_inspect_packet(in, record, bytes);
	es_mark_clear(in->params->mark);
}

void es_inspect_late(struct es_inspector *in, const struct es_record *record, const uint8_t *bytes)
{
	if (es_inspect_is_left(record) || record->kind == ES_RECORD_OPEN)
		es_inspect_record(in, record, bytes);
	else
		es_inspect_count(in, ES_WORKER_late);
}

/* A few sets with each tick, so that each has its turn within an hour. */
static void es_inspect_forget_old(struct es_inspector *in)
{
	for (__u32 i = in->decisions.count / ES_DECISION_SWEEP_TICKS + 1; i; i--) {
		if (es_worker_of((__u64)in->swept << 20, in->params->count) == in->params->id)
			es_decision_table_forget(&in->decisions, in->swept, es_inspect_now_ms(in));
		in->swept = (in->swept + 1) & (in->decisions.count - 1);
	}
}

void es_inspect_deadlines(struct es_inspector *in)
{
	es_inspect_strays_due(in);
	es_inspect_held_due(in);
	es_inspect_fates_due(in);
	es_inspect_beyond_due(in);
	es_inspect_layer4_due(in);
	es_inspect_forget_old(in);
	es_inspect_gathers_due(in);
}

void es_inspect_forget(struct es_inspector *in)
{
	es_inspect_gathers_forget(in);
	es_inspect_strays_forget(in);
}
