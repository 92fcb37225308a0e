// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests that arrive in several segments: kept until there is enough of them to decide, or no more to
 * expect, and given to their node as a whole. The table and its bounds are gather.c's.
 */
#include "inspector/base/clock.h"
#include "inspector/cluster/directory.h"
#include "inspector/inspect/internal.h"

/* A client that hears no ACK sends its initial window, and stops (RFC 6928). */
#define ES_INITIAL_WINDOW_SEGMENTS 10

/*
 * May the client be asked for more, without acknowledging anything? It is told by SACK that everything but
 * the first segment has arrived. It then sends as much again, and keeps all of it until a socket acknowledges
 * it (RFC 2018 section 8), so nothing is lost whatever happens to this node.
 */
static int es_gather_may_ask(const struct es_gather *g)
{
	return g->order.options.sack_ok && g->count > 1 && g->text_len > g->segment[0].payload_len;
}

static void es_inspect_ask(struct es_inspector *in, struct es_gather *g)
{
	uint8_t bytes[ES_ANSWER_HEADER_MAX + ES_SACK_SIZE];
	struct es_ip_packet packet;

	/* The last segment has the newest timestamp. */
	if (es_ip_packet_parse(g->segment[g->count - 1].bytes, g->segment[g->count - 1].len, &packet))
		return;
	if (!g->asked)
		es_inspect_count(in, ES_WORKER_gather_asked);
	g->asked = 1;
	es_inspect_reply(in, &packet.flow, bytes,
			 es_ip_packet_sack(&packet, g->first_seq, g->first_seq + g->segment[0].payload_len,
					   g->first_seq + (uint32_t)g->text_len, g->order.options.rcv_wscale,
					   bytes));
}

/* Refuses a request that a rule might have refused. Its connection ends with it, so it need not be pinned. */
static void es_refuse_unfinished(struct es_inspector *in, struct es_gather *g)
{
	es_inspect_count(in, ES_WORKER_gather_refused);
	g->order.pin = ES_PIN_none;
	g->order.rejection = (struct es_rejection){
		.status = g->full ? 431 : 408,
		.by = ES_RULES_BY_UNFINISHED,
		.protocol = ES_HTTP_DONE,
	};
}

/*
 * It is decided: what is known of its connection (survive.c) is true no more. Returns 0 if it was not any
 * more.
 */
static int es_gather_takes(struct es_inspector *in, const struct es_gather *g)
{
	struct es_kept kept;

	return !es_inspect_is_kept(g->flow) ||
	       es_directory_take(in->params->directory, g->flow_hash, g->first_seq, g->cookie + 1, &kept);
}

/*
 * Decides a gathered request with what is here of it, and gives all its segments to the node. Returns 0 if a
 * rule wants more of it; if it is @truncated, no rule can.
 */
static int es_inspect_decide_gathered(struct es_inspector *in, struct es_gather *g, int truncated)
{
	struct es_request_view request = {
		.flow_hash = g->flow_hash,
		.truncated = truncated || g->text_len < g->wanted,
		.current = g->flow == ES_FLOW_HERE ? (int)in->cluster->self : -1,
	};
	int unfinished = truncated && es_inspect_is_unfinished(in, g), target;
	struct es_ip_packet packet;

	if (g->is_patient)
		es_gather_renew(in->gathers, g, es_inspect_deadline(in));
	if (!es_ip_packet_parse(g->segment[0].bytes, g->segment[0].len, &packet)) {
		request.client = &packet.flow.client;
		request.client_port = es_ntohs(packet.flow.client_port);
	}
	if (truncated) {
		es_inspect_count(in, ES_WORKER_gather_timeout);
		if (g->full)
			es_inspect_count(in, ES_WORKER_gather_full);
		es_http_head_truncate(&g->head);
	}
	if ((g->flow == ES_FLOW_DOUBTFUL || g->flow == ES_FLOW_KEPT_DOUBTFUL) &&
	    es_inspect_is_unsafe(in, g->order.service, &g->head, g->text, g->text_len)) {
		if (es_inspect_is_kept(g->flow) && es_gather_takes(in, g))
			es_inspect_count(in, ES_WORKER_survive_unsafe);
		es_inspect_doubt(in, g->segment[0].bytes, g->segment[0].len);
		es_gather_remove(in->gathers, g);
		return 1;
	}
	es_inspect_describe(in, g->order.service, &request, &g->head, g->text, g->text_len);
	target = es_inspect_route(in, g->order.service, &request, &g->order.rejection);
	if (target == ES_ROUTE_MORE) {
		g->wanted = g->order.rejection.more_bytes;
		return 0;
	}
	if (es_inspect_is_overtaken(in, (enum es_record_flow)g->flow, g->flow_hash)) {
		es_gather_remove(in->gathers, g);
		return 1;
	}
	es_inspect_count(in, ES_WORKER_gathered);
	es_inspect_complete(in, &request, g->first_seq, &g->order);
	if (unfinished && target != ES_ROUTE_REJECT) {
		es_refuse_unfinished(in, g);
		target = ES_ROUTE_REJECT;
	}
	if (g->flow == ES_FLOW_HERE) {
		es_inspect_move_gathered(in, g, target);
		return 1;
	}
	if (!es_inspect_is_mine(in, g->flow_hash)) {
		es_inspect_count(in, ES_WORKER_not_mine);
	} else if (!es_gather_takes(in, g)) {
		es_inspect_reset(in, g->segment[0].bytes, g->segment[0].len);
	} else if (target == ES_ROUTE_REJECT) {
		es_inspect_reject_gathered(in, g);
	} else if (target < 0) {
		es_inspect_refuse(in, g->segment[0].bytes, g->segment[0].len);
	} else {
		es_inspect_give_gathered(in, g, (unsigned int)target);
		es_inspect_given(in, g);
		return 1;
	}
	es_gather_remove(in->gathers, g);
	return 1;
}

/*
 * Does a rule ask for more than the client may send? There is room for less than a segment then, and a client
 * does not send a part of a segment (RFC 9293 section 3.8.6.2.1) unless the request ends with it.
 */
static int es_gather_is_in_vain(const struct es_gather *g, size_t most)
{
	struct es_boundary boundary;

	if (!g->wanted || !g->asked || g->text_len + g->longest <= most)
		return 0;
	es_boundary_find(&g->head, g->text, g->text_len, &boundary);
	return boundary.pin != ES_PIN_none || boundary.len_bytes > most;
}

/* Is a bound met, or has the client sent everything that it sends before it hears something? */
static int es_gather_is_full(const struct es_inspector *in, const struct es_gather *g)
{
	size_t most = es_gather_most(in->cluster->conf->inspector.gather_bytes, g->order.options.rcv_wscale);

	return g->count == ES_GATHER_SEGMENTS || g->text_len >= most || es_gather_is_in_vain(g, most) ||
	       (g->count >= ES_INITIAL_WINDOW_SEGMENTS && !es_gather_may_ask(g));
}

/* Is as much here as the rules ask for, or as there is before they decide? */
static int es_gather_is_enough(const struct es_gather *g)
{
	return g->text_len >= g->wanted || es_boundary_is_reached(&g->head, g->text, g->text_len);
}

/* Does the client wait for an answer, and send nothing more by itself? */
static int es_gather_waits(const struct es_gather *g, enum es_gather_result result, int is_first)
{
	/*
	 * A client repeats a later segment after two round trips already, as a tail loss probe, so more may
	 * follow. More may also follow the first segment, if the client was told by SACK that it is lost.
	 */
	return result == ES_GATHER_REPEATED && (is_first || g->acked) && !g->asked;
}

void es_inspect_gather(struct es_inspector *in, const struct es_record *record,
		       const struct es_ip_packet *packet, const struct es_known *known, int is_first)
{
	enum es_gather_result result = es_inspect_keep(in, record, packet, known, is_first);
	struct es_gather *g = known->gather;
	enum es_http_result scan = ES_HTTP_MORE;

	if (!g->has_first || g->leaving || g->given)
		return;
	if (g->urgent)
		scan = es_http_head_distrust(&g->head);
	else if (g->text_len)
		scan = es_http_head_scan(&g->head, g->text, g->text_len);
	if (scan != ES_HTTP_MORE && es_gather_is_enough(g) && es_inspect_decide_gathered(in, g, 0))
		return;
	g->full = result == ES_GATHER_FULL || es_gather_is_full(in, g);
	if (g->full || es_gather_is_closed(g) ||
	    (es_gather_waits(g, result, is_first) && !es_inspect_is_waited_on(in, g, packet)))
		es_inspect_decide_gathered(in, g, 1);
	else if (es_gather_may_ask(g) && g->count >= ES_INITIAL_WINDOW_SEGMENTS)
		es_inspect_ask(in, g);
	/* No rule may refuse it any more, after what has arrived since. */
	else if (g->is_patient && !es_inspect_is_unfinished(in, g))
		es_gather_renew(in->gathers, g, es_inspect_deadline(in));
}

void es_inspect_gathers_forget(struct es_inspector *in)
{
	struct es_gather *g;
	unsigned int left;

	while ((g = es_gather_patient(in->gathers))) {
		es_inspect_count(in, ES_WORKER_gather_forgotten);
		es_inspect_forsake(in, g);
		es_gather_remove(in->gathers, g);
	}
	for (left = es_gather_count(in->gathers); left && (g = es_gather_oldest(in->gathers)); left--) {
		/*
		 * Its socket is being ended and gets nothing more, even from a datapath that serves without
		 * the daemon.
		 */
		if (g->leaving == ES_GATHER_ENDING) {
			es_gather_renew(in->gathers, g, es_inspect_deadline(in));
			continue;
		}
		es_inspect_count(in, ES_WORKER_gather_forgotten);
		es_inspect_forsake(in, g);
		es_gather_remove(in->gathers, g);
	}
}

void es_inspect_gathers_due(struct es_inspector *in)
{
	double now_ms = (double)in->now_ns / 1e6;
	struct es_gather *g;

	while ((g = es_gather_oldest(in->gathers)) && g->deadline <= now_ms) {
		if (g->given) {
			es_inspect_given(in, g);
		} else if (g->has_first && !g->leaving) {
			in->began_ns = es_clock_now_ns();
			es_mark_set(in->params->mark, g->flow_hash, g->order.service, g->segment[0].bytes,
				    g->segment[0].len);
			if (g->is_patient || !es_inspect_is_waited_for(in, g))
				es_inspect_decide_gathered(in, g, 1);
			es_mark_clear(in->params->mark);
		} else if (g->leaving && now_ms - g->left_ms < ES_LEAVE_MS) {
			es_gather_renew(in->gathers, g, es_inspect_deadline(in));
			/* The server was in the middle of a system call, or the RST was dropped. */
			if (g->leaving == ES_GATHER_ENDING)
				es_inspect_leave_again(in, g);
		} else {
			es_inspect_count(in, ES_WORKER_gather_forgotten);
			es_gather_remove(in->gathers, g);
		}
	}
}
