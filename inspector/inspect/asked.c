// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Decides requests about which a process asks that reads them itself. Its node has the connection, be the
 * request the first or a later one, so in doubt it stays.
 */
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/inspect/asked.h"
#include "inspector/inspect/internal.h"

/* The service that is read and has this connection, or -1. */
static int es_asked_service(const struct es_conf *conf, const struct es_flow *flow)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_htons(conf->services[i].port) == flow->service_port &&
		    es_conf_service_has(&conf->services[i], &flow->service))
			return es_conf_service_reads(&conf->services[i]) == ES_INSPECT_NEVER ? -1 : (int)i;
	return -1;
}

static void es_asked_begin(struct es_inspector *in, const struct es_question *q, struct es_asked *ret)
{
	in->began_ns = es_clock_now_ns();
	*ret = (struct es_asked){
		.word = ES_ASKED_STAY,
		.service = es_asked_service(in->cluster->conf, &q->flow),
		.node = in->cluster->self,
		.is_first = q->is_first,
		.conf_version = in->conf_version,
		.flow_hash = es_flow_hash(&in->keys.ring, in->keys.ring_seed, &q->flow),
		.decided_ns = in->began_ns,
		.order = {.moves = q->moves, .cost = 1},
	};
	ret->order.service = ret->service < 0 ? 0 : (unsigned int)ret->service;
}

/* Reads the request's head. Returns 0 if it is not whole: the server here may say what is wrong with it. */
static int es_asked_read(struct es_inspector *in, const struct es_question *q, const struct es_asked *asked,
			 struct es_request_view *ret)
{
	*ret = (struct es_request_view){
		.flow_hash = asked->flow_hash,
		.current = (int)in->cluster->self,
		.client = &q->flow.client,
		.client_port = es_ntohs(q->flow.client_port),
	};
	es_http_head_init(&in->head);
	if (es_http_head_scan(&in->head, q->text, q->len) == ES_HTTP_MORE) {
		es_inspect_count(in, ES_WORKER_ask_unread);
		return 0;
	}
	es_inspect_describe(in, (unsigned int)asked->service, ret, &in->head, q->text, q->len);
	return 1;
}

/*
 * Is the client on this machine, as the check of the server is (health/server_check.h)? No other node's
 * packets reach it there. And a check that went to another node, or was answered with a page, while this node
 * is left alone or down, would not find that its server works again.
 */
static int es_asked_is_local(const struct es_conf *conf, unsigned int self, const struct es_addr *client)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_conf_service_has(&conf->services[i], client))
			return 1;
	return es_addr_equal(&conf->nodes[self].address, client);
}

/*
 * A plugin that wants more of a body than there is decides without. No node for a connection's first request:
 * then as for one that a packet brings, which may go to a node that has refused something, or gets a page.
 */
static int es_asked_route(struct es_inspector *in, struct es_asked *asked, struct es_request_view *request)
{
	struct es_rejection *rejection = &asked->order.rejection;
	unsigned int service = (unsigned int)asked->service;
	int target = es_inspect_route(in, service, request, rejection);

	if (target == ES_ROUTE_MORE) {
		request->truncated = 1;
		target = es_inspect_route(in, service, request, rejection);
	}
	if (target != -1 || !asked->is_first || es_health_is_unsure(in->params->health, in->now_ns))
		return target == -1 ? (int)in->cluster->self : target;
	request->current = -1;
	target = es_route(&in->router, service, request, in->now_ns, NULL, rejection);
	if (target >= 0 && es_route_is_over(&in->router, request, in->now_ns, rejection))
		return ES_ROUTE_REJECT;
	return target == ES_ROUTE_MORE ? -1 : target;
}

/*
 * Only a request that all servers read alike leaves. Where but first requests are read, nobody knows when one
 * is over, so a node's load is its number of connections.
 */
static void es_asked_complete(struct es_inspector *in, const struct es_request_view *request,
			      struct es_asked *asked)
{
	const struct es_conf_service *conf = &in->cluster->conf->services[asked->service];
	struct es_handover_order *order = &asked->order;
	struct es_boundary boundary;

	es_boundary_find(request->head, request->text, request->len, &boundary);
	order->pin = (uint8_t)boundary.pin;
	order->request_flags = ES_REQUEST_F_MEASURE | ES_REQUEST_F_STATUS;
	if (!boundary.is_head && es_sampler_wants(&in->sampler, request, in->now_ns))
		order->request_flags = ES_REQUEST_F_MEASURE;
	order->cost = es_conf_service_reads(conf) == ES_INSPECT_EVERY ? request->cost : 1;
	order->url_key = request->url_key;
	order->why = (uint8_t)request->why;
	order->content = request->content;
	order->is_named = (uint8_t)request->is_named;
}

static enum es_tally_decision es_asked_decision(const struct es_inspector *in, const struct es_asked *asked)
{
	if (asked->is_first)
		return ES_TALLY_first;
	return asked->node == in->cluster->self ? ES_TALLY_stay : ES_TALLY_move;
}

/* @status, @bytes: of an answer from here, else 0 */
static void es_asked_show(struct es_inspector *in, const struct es_question *q, struct es_asked *asked,
			  unsigned int status, size_t bytes)
{
	int is_refused = asked->word == ES_ASKED_REJECT;
	const struct es_trace_subject subject = {
		.flow = &q->flow,
		.text = q->text,
		.len = q->len,
		.target = is_refused ? ES_NODE_REJECT : asked->node,
		.decision = is_refused ? ES_TRACE_REJECT : (unsigned int)es_asked_decision(in, asked),
		.decided_ns = asked->decided_ns,
		.status = status,
		.bytes = bytes,
	};

	if (!in->traces && !in->log)
		return;
	if (asked->word != ES_ASKED_MOVE) {
		es_inspect_trace(in, &asked->order, &subject);
		return;
	}
	/* Without memory it is not shown. */
	asked->shown = malloc(sizeof(*asked->shown));
	if (asked->shown)
		es_inspect_trace_entry(in, &asked->order, &subject, asked->shown);
}

static void es_asked_stays(struct es_inspector *in, struct es_asked *asked)
{
	es_inspect_count(in, ES_WORKER_ask_stayed);
	if (!asked->is_first)
		es_inspect_count(in, ES_WORKER_stayed);
	asked->node = in->cluster->self;
	es_tally_decided(in->tally, asked->order.service, asked->node, es_asked_decision(in, asked));
}

static size_t es_asked_reject(struct es_inspector *in, const struct es_question *q, struct es_asked *asked,
			      char *answer)
{
	size_t len, body;

	asked->word = ES_ASKED_REJECT;
	asked->order.rejection.at_s = es_wall_ns() / 1000000000ULL;
	es_inspect_count(in, ES_WORKER_rejected);
	es_tally_rejected(in->tally, asked->order.service, asked->order.rejection.by);
	len = es_inspect_answer_text(&asked->order, answer, &body);
	es_asked_show(in, q, asked, asked->order.rejection.status, body);
	return len;
}

static size_t es_asked_decide(struct es_inspector *in, const struct es_question *q, struct es_asked *asked,
			      char *answer)
{
	unsigned int self = in->cluster->self;
	struct es_request_view request;
	int target;

	if (!es_asked_read(in, q, asked, &request)) {
		es_asked_stays(in, asked);
		return 0;
	}
	target = es_asked_is_local(in->cluster->conf, self, &q->flow.client)
			 ? (int)self
			 : es_asked_route(in, asked, &request);
	es_asked_complete(in, &request, asked);
	if (!asked->is_first)
		es_inspect_count(in, ES_WORKER_owned);
	if (target == ES_ROUTE_REJECT)
		return es_asked_reject(in, q, asked, answer);
	if (target < 0) {
		es_inspect_count(in, ES_WORKER_no_target);
		asked->word = ES_ASKED_RESET;
		return 0;
	}
	if ((unsigned int)target != self && es_inspect_may_leave(in, asked->flow_hash, &asked->order)) {
		asked->word = ES_ASKED_MOVE;
		asked->node = (unsigned int)target;
	} else {
		es_asked_stays(in, asked);
	}
	es_asked_show(in, q, asked, 0, 0);
	return 0;
}

/* The request as a packet of its connection would bring it. @ret: room for ES_MARK_BYTES; returns how many */
static size_t es_asked_packet(const struct es_question *q, uint8_t *ret)
{
	const struct es_segment seg = {
		.len = (uint32_t)(q->len < ES_POISON_REQUEST_BYTES ? q->len : ES_POISON_REQUEST_BYTES),
		.flags = ES_TCP_ACK,
	};

	return es_ip_packet_make(&q->flow, &seg, (const uint8_t *)q->text, ret);
}

size_t es_inspect_asked(struct es_inspector *in, const struct es_question *q, struct es_asked *ret,
			char *answer)
{
	uint8_t packet[ES_MARK_BYTES];
	size_t len;

	es_inspect_count(in, ES_WORKER_asked);
	es_asked_begin(in, q, ret);
	if (ret->service < 0) {
		es_inspect_count(in, ES_WORKER_ask_stayed);
		return 0;
	}
	len = es_asked_packet(q, packet);
	if (es_inspect_is_poison(in, ret->flow_hash, packet, len)) {
		es_inspect_count(in, ES_WORKER_poisoned);
		es_asked_stays(in, ret);
		return 0;
	}
	es_mark_set(in->params->mark, ret->flow_hash, ret->order.service, packet, len);
	len = es_asked_decide(in, q, ret, answer);
	es_mark_clear(in->params->mark);
	return len;
}

void es_inspect_taken(struct es_inspector *in, const struct es_question *q, struct es_asked *ret)
{
	struct es_request_view request;

	es_inspect_count(in, ES_WORKER_ask_taken);
	es_asked_begin(in, q, ret);
	if (ret->service < 0 || !es_asked_read(in, q, ret, &request))
		return;
	es_route_weigh(&in->router, ret->order.service, &request, in->now_ns);
	es_asked_complete(in, &request, ret);
}

void es_asked_forget(struct es_asked *asked)
{
	free(asked->shown);
	asked->shown = NULL;
}

/* Numbers of a configuration before are nobody's. */
static int es_asked_is_old(const struct es_inspector *in, const struct es_asked *asked)
{
	return asked->conf_version != in->conf_version;
}

void es_inspect_asked_moved(struct es_inspector *in, struct es_asked *asked)
{
	struct es_handover_order *order = &asked->order;

	es_inspect_count(in, ES_WORKER_ask_moved);
	if (!es_asked_is_old(in, asked)) {
		if (order->moves < UINT16_MAX)
			order->moves++;
		if (!asked->is_first)
			es_inspect_count_move(in, order);
		es_route_moved(&in->router, asked->node, order->cost);
		es_inspect_left_for_content(in, asked->flow_hash, order);
		es_tally_decided(in->tally, order->service, asked->node, es_asked_decision(in, asked));
		es_tally_handed(in->tally, order->service, asked->node, ES_TALLY_sent);
		es_tally_pending(in->tally, asked->decided_ns);
	}
	if (asked->shown) {
		asked->shown->at_ns = es_clock_now_ns();
		asked->shown->took_ns = asked->shown->at_ns - asked->decided_ns;
		es_inspect_trace_put(in, asked->shown);
	}
	es_asked_forget(asked);
}

void es_inspect_asked_stayed(struct es_inspector *in, struct es_asked *asked)
{
	es_inspect_count(in, ES_WORKER_ask_refused);
	if (!es_asked_is_old(in, asked)) {
		es_tally_handed(in->tally, asked->order.service, asked->node, ES_TALLY_stayed);
		es_asked_stays(in, asked);
		if (asked->shown) {
			es_inspect_trace_decided(in, &asked->order, asked->node,
						 (unsigned int)es_asked_decision(in, asked), asked->shown);
			es_inspect_trace_put(in, asked->shown);
		}
	}
	es_asked_forget(asked);
}
