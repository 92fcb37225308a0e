// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The inspection of requests: single segment or gathered, new or repeated, decided by the service's policy.
 * A first request is given to its node with request_handover(); what becomes of a later one, on a connection
 * that this node has, is in move.c. Nothing here waits, logs or takes a lock.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/inspect/internal.h"
#include "kmod/core/cookie.h"

/* So many ticks of a worker (ES_TICK_S) are about an hour. */
#define ES_DECISION_SWEEP_TICKS 180000

/* Of so old a time, the lease may be over meanwhile. */
#define ES_SLOW_NS 10000000ULL

void es_inspect_count(struct es_inspector *in, enum es_worker_counter counter)
{
	unsigned long long n = atomic_load_explicit(&in->count[counter], memory_order_relaxed);

	/* This thread is the only writer: no locked addition needed. */
	atomic_store_explicit(&in->count[counter], n + 1, memory_order_relaxed);
}

uint32_t es_inspect_now_ms(const struct es_inspector *in)
{
	return (uint32_t)(in->now_ns / 1000000);
}

int es_inspector_init(struct es_inspector *in, const struct es_worker_params *params,
		      const struct es_cluster *cluster)
{
	const struct es_conf_inspector *conf = &cluster->conf->inspector;
	int rc;

	memset(in, 0, sizeof(*in));
	in->params = params;
	in->cluster = cluster;
	in->keys = params->keys;
	in->decisions = params->decisions;
	in->decisions.since_ms = (uint32_t)(es_clock_now_ns() / 1000000);
	rc = es_raw_open(&in->raw);
	if (rc)
		return rc;
	rc = es_gather_table_new(conf->gather_flows, conf->gather_bytes, &in->gathers);
	if (!rc)
		rc = es_handover_sender_new(cluster, params->id, &params->keys.key[0].handover, &in->sender);
	if (!rc)
		rc = es_router_init(&in->router, cluster, params->health, params->route);
	if (!rc)
		rc = es_tally_new(cluster->conf, NULL, NULL, &in->tally);
	if (rc)
		es_inspector_fini(in);
	return rc;
}

void es_inspector_fini(struct es_inspector *in)
{
	es_router_fini(&in->router);
	es_handover_sender_free(&in->sender);
	es_gather_table_free(&in->gathers);
	es_tally_free(&in->tally);
	es_raw_close(&in->raw);
}

/* Without memory the old table stays: it counts nothing that it has no place for. */
static void es_inspector_renew_tally(struct es_inspector *in, const struct es_conf *conf)
{
	struct es_tally *next;

	es_tally_sent(in->tally);
	if (es_tally_new(conf, in->tally, in->cluster->conf, &next))
		return;
	es_tally_free(&in->tally);
	in->tally = next;
}

int es_inspector_set_cluster(struct es_inspector *in, const struct es_cluster *cluster,
			     const struct es_keys *keys)
{
	int rc;

	/* Nodes and services may have other numbers. */
	if (cluster->conf != in->cluster->conf) {
		es_inspect_strays_forget(in);
		es_inspector_renew_tally(in, cluster->conf);
	}
	in->cluster = cluster;
	in->keys = *keys;
	rc = es_router_set_cluster(&in->router, cluster);
	return rc ? rc : es_handover_sender_set(in->sender, cluster, &keys->key[0].handover);
}

void es_inspector_learn(struct es_inspector *in, const struct es_proof *proofs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		es_decision_table_put(&in->decisions, proofs[i].flow_hash, proofs[i].cookie,
				      proofs[i].first_seq - 1, (__u8)proofs[i].node, NULL,
				      es_inspect_now_ms(in));
}

/* What the handshake agreed on, as the cookie in the first segment's acknowledgment tells. */
static void es_order_options(const struct es_inspector *in, uint32_t cookie, int has_ts,
			     struct es_tcp_options *ret)
{
	es_cookie_options_unpack(cookie, ret);
	ret->rcv_wscale = ret->wscale_ok ? (__u8)in->cluster->conf->datapath.receive_window_scale : 0;
	ret->tstamp_ok = (__u8)has_ts;
}

void es_inspect_order(const struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet, struct es_handover_order *ret)
{
	struct es_decided before;

	memset(ret, 0, sizeof(*ret));
	ret->kind = ES_HANDOVER_REQUEST;
	ret->service = record->service;
	if (es_inspect_is_new(record->flow)) {
		es_order_options(in, packet->seg.ack - 1, packet->seg.has_ts, &ret->options);
		/* Its node has crashed: what is under way there yet is of an attempt before. */
		if (!es_decision_table_find(&in->decisions, record->flow_hash, packet->seg.ack - 1,
					    packet->seg.seq - 1, es_inspect_now_ms(in), &before))
			ret->attempt = before.attempt + 1;
		return;
	}
	ret->options = record->options;
	ret->requests = record->requests;
	ret->moves = record->moves;
}

static void es_inspect_remember(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
				unsigned int target, const struct es_handover_order *order)
{
	unsigned long long n = atomic_load_explicit(&in->sent_to[target], memory_order_relaxed);
	__u32 forgotten_ms = es_decision_table_put(&in->decisions, flow_hash, cookie, first_seq - 1,
						   (__u8)target, order, es_inspect_now_ms(in));

	/* Its client may still send it again, or the rest of it. */
	if (forgotten_ms < in->cluster->conf->datapath.cookie_lifetime_s * 1000)
		es_inspect_count(in, ES_WORKER_decisions_early);
	atomic_store_explicit(&in->sent_to[target], n + 1, memory_order_relaxed);
}

void es_inspect_note(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
		     unsigned int target, const struct es_handover_order *order)
{
	es_inspect_remember(in, flow_hash, cookie, first_seq, target, order);
	es_route_sent(&in->router, target, order->cost, in->now_ns);
}

/*
 * It takes the place of the one before on its connection, which the node's own count has: were it counted on top of that, a
 * node would seem to have more requests in hand than it has connections.
 */
void es_inspect_note_stayed(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			    const struct es_handover_order *order)
{
	es_inspect_count(in, ES_WORKER_stayed);
	es_inspect_remember(in, flow_hash, cookie, first_seq, in->cluster->self, order);
}

void es_inspect_note_moved(struct es_inspector *in, const struct es_gather *g)
{
	static const enum es_worker_counter counters[ES_MOVE_WHY_COUNT] = {
		[ES_MOVE_LOCALITY] = ES_WORKER_moved_locality, [ES_MOVE_LOAD] = ES_WORKER_moved_load,
		[ES_MOVE_DRAIN] = ES_WORKER_moved_drain,       [ES_MOVE_RULE] = ES_WORKER_moved_rule,
		[ES_MOVE_HOME] = ES_WORKER_moved_home,
	};

	es_inspect_count(in, ES_WORKER_moved);
	if (g->order.why < ES_MOVE_WHY_COUNT)
		es_inspect_count(in, counters[g->order.why]);
	es_inspect_remember(in, g->flow_hash, g->cookie, g->first_seq, g->target, &g->order);
	es_route_moved(&in->router, g->target, g->order.cost);
	es_inspect_left_for_content(in, g);
}

void es_inspect_tally(struct es_inspector *in, const struct es_handover_order *order, unsigned int target,
		      enum es_tally_decision decision, unsigned long long decided_ns)
{
	es_tally_decided(in->tally, order->service, target, decision);
	if (target == in->cluster->self)
		return;
	es_tally_handed(in->tally, order->service, target, ES_TALLY_sent);
	es_tally_pending(in->tally, decided_ns);
}

void es_inspect_note_first(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			   unsigned int target, const struct es_handover_order *order)
{
	es_inspect_note(in, flow_hash, cookie, first_seq, target, order);
	es_inspect_count(in, ES_WORKER_requests);
	es_inspect_count(in, target == in->cluster->self ? ES_WORKER_kept : ES_WORKER_handovers);
}

void es_inspect_give(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet, const struct es_handover_order *order,
		     unsigned int target)
{
	es_inspect_note_first(in, record->flow_hash, packet->seg.ack - 1, packet->seg.seq, target, order);
	es_inspect_tally(in, order, target, ES_TALLY_first, in->began_ns);
	es_inspect_send(in, order, packet, record->gso_size, target);
}

void es_inspect_give_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target)
{
	es_inspect_note_first(in, g->flow_hash, g->cookie, g->first_seq, target, &g->order);
	es_inspect_tally(in, &g->order, target, ES_TALLY_first, in->began_ns);
	es_inspect_send_gathered(in, g, target);
}

void es_inspect_give_again(struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet, struct es_handover_order *order,
			   const struct es_decided *decided)
{
	order->attempt = decided->attempt;
	order->repeat = 1;
	es_decision_table_repeat(&in->decisions, record->flow_hash, packet->seg.ack - 1, packet->seg.seq - 1);
	es_inspect_count(in, ES_WORKER_repeated);
	es_inspect_send(in, order, packet, record->gso_size, decided->node);
}

void es_inspect_describe(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			 const struct es_http_head *head, const char *text, size_t len)
{
	es_request_describe(request, head, text, len, in->cluster->conf->services[service].content_host,
			    &in->name);
}

int es_inspect_route(struct es_inspector *in, unsigned int service, struct es_request_view *request,
		     struct es_rejection *ret_rejection)
{
	enum es_http_result result = request->head->result;
	int target = request->current;

	/* A connection that carries something else is pinned once it has a node. */
	if (target < 0 || result == ES_HTTP_DONE || result == ES_HTTP_AMBIGUOUS)
		target = es_route(&in->router, service, request, in->now_ns, NULL, ret_rejection);
	if (target == ES_ROUTE_MORE)
		return target;
	if (request->head->header_count > ES_HTTP_HEADERS_MAX)
		es_inspect_count(in, ES_WORKER_head_long);
	if (result == ES_HTTP_AMBIGUOUS)
		es_inspect_count(in, ES_WORKER_ambiguous);
	else if (result == ES_HTTP_TLS)
		es_inspect_count(in, ES_WORKER_tls);
	else if (result == ES_HTTP_H2)
		es_inspect_count(in, ES_WORKER_http2);
	else if (result == ES_HTTP_NOT_HTTP)
		es_inspect_count(in, ES_WORKER_not_http);
	if (request->uri)
		es_hot_seen(&in->hot, service, request, in->now_ns);
	if (request->target && target >= 0)
		es_tally_content(in->tally, service, request->target, (unsigned int)target);
	es_tally_took(in->tally, es_clock_now_ns() - in->began_ns);
	return target;
}

/* Where the next request on the connection will start; only services that inspect every request ask. */
static void es_order_bound(const struct es_inspector *in, const struct es_request_view *request,
			   uint32_t first_seq, struct es_handover_order *order)
{
	struct es_boundary boundary;

	if (in->cluster->conf->services[order->service].inspect != ES_INSPECT_EVERY)
		return;
	es_boundary_find(request->head, request->text, request->len, &boundary);
	order->next_request_seq = first_seq + boundary.len_bytes;
	order->request_flags = boundary.is_head ? ES_REQUEST_F_HEAD : 0;
	order->pin = (uint8_t)boundary.pin;
}

/*
 * What serving it costs, for the node that does; and its length, if that should be learned. Where only first
 * requests are inspected, nobody knows when one is over: a node's load is its connections then.
 */
static void es_order_weigh(const struct es_inspector *in, const struct es_request_view *request,
			   struct es_handover_order *order)
{
	int is_every = in->cluster->conf->services[order->service].inspect == ES_INSPECT_EVERY;

	order->cost = is_every ? request->cost : 1;
	order->content = request->content;
	order->unsafe =
		(uint8_t)es_inspect_is_unsafe(in, order->service, request->head, request->text, request->len);
}

/* A request that is decided for the first time; its bounds are known. */
static void es_order_measure(struct es_inspector *in, const struct es_request_view *request,
			     struct es_handover_order *order)
{
	if (in->cluster->conf->services[order->service].inspect == ES_INSPECT_EVERY &&
	    order->pin == ES_PIN_none && !(order->request_flags & ES_REQUEST_F_HEAD) &&
	    es_sampler_wants(&in->sampler, request, in->now_ns))
		order->request_flags |= ES_REQUEST_F_MEASURE;
}

void es_inspect_complete(struct es_inspector *in, const struct es_request_view *request, uint32_t first_seq,
			 struct es_handover_order *order)
{
	es_order_bound(in, request, first_seq, order);
	es_order_weigh(in, request, order);
	es_order_measure(in, request, order);
	order->why = (uint8_t)request->why;
	order->target = request->target;
}

/* The same for a request that comes again. One that had to be gathered is not gathered twice for this. */
static void es_order_bound_again(struct es_inspector *in, const struct es_ip_packet *packet,
				 struct es_handover_order *order)
{
	struct es_request_view request = {
		.head = &in->head,
		.text = (const char *)es_ip_packet_payload(packet),
		.len = packet->seg.len,
	};

	if (in->cluster->conf->services[order->service].inspect != ES_INSPECT_EVERY)
		return;
	es_http_head_init(&in->head);
	if (es_inspect_is_urgent(packet)) {
		es_http_head_distrust(&in->head);
	} else if (es_http_head_scan(&in->head, request.text, request.len) == ES_HTTP_MORE) {
		order->pin = ES_PIN_unknown;
		return;
	}
	es_order_bound(in, &request, packet->seg.seq, order);
	es_inspect_describe(in, order->service, &request, &in->head, request.text, request.len);
	es_order_weigh(in, &request, order);
}

int es_inspect_is_mine(const struct es_inspector *in, __u64 flow_hash)
{
	__u64 lease_ns = __atomic_load_n(in->params->lease_ns, __ATOMIC_ACQUIRE);

	return es_cluster_inspects(in->cluster, flow_hash) && !(lease_ns && in->now_ns >= lease_ns);
}

int es_inspect_is_overtaken(struct es_inspector *in, enum es_record_flow flow, __u64 flow_hash)
{
	unsigned long long late_ns = in->cluster->conf->datapath.fallback_after_ms * 1000000ULL, now_ns;

	if (!in->router.plugins || !late_ns)
		return 0;
	now_ns = es_clock_now_ns();
	if (now_ns - in->now_ns >= late_ns) {
		es_inspect_count(in, ES_WORKER_late);
		return 1;
	}
	if (now_ns - in->now_ns < ES_SLOW_NS)
		return 0;
	in->now_ns = now_ns;
	if (!es_inspect_is_new(flow) || es_inspect_is_mine(in, flow_hash))
		return 0;
	es_inspect_count(in, ES_WORKER_not_mine);
	return 1;
}

/* A request that came in one segment: decide it. Returns 0 if more of it is needed, @ret_wanted bytes if a
 * rule says so. */
static int es_inspect_single(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, size_t *ret_wanted)
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
	es_inspect_order(in, record, packet, &order);
	target = es_inspect_route(in, record->service, &request, &order.rejection);
	if (target == ES_ROUTE_MORE) {
		*ret_wanted = order.rejection.more_bytes;
		return 0;
	}
	if (es_inspect_is_overtaken(in, (enum es_record_flow)record->flow, record->flow_hash))
		return 1;
	es_inspect_complete(in, &request, packet->seg.seq, &order);
	if (record->flow == ES_FLOW_HERE) {
		es_inspect_move(in, record, packet, &order, target);
	} else if (target == ES_ROUTE_REJECT) {
		es_inspect_reject(in, record->flow_hash, packet, packet->seg.seq + packet->seg.len, &order);
	} else if (target < 0) {
		es_inspect_refuse(in, packet->bytes, packet->len);
	} else {
		es_inspect_give(in, record, packet, &order, (unsigned int)target);
	}
	return 1;
}

static void es_inspect_first(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, uint32_t cookie)
{
	struct es_gather *g = es_gather_lookup(in->gathers, record->flow_hash, cookie);
	size_t wanted = 0;

	if (g && g->leaving) {
		es_inspect_count(in, ES_WORKER_repeated); /* it goes as soon as its socket is ended */
		es_inspect_leave_again(in, g);
		return;
	}
	/* Queued on another CPU while its socket was being ended for this very request. */
	if (record->flow == ES_FLOW_HERE &&
	    es_decision_table_order(&in->decisions, record->flow_hash, cookie)) {
		es_inspect_moved(in, record, packet, cookie);
		return;
	}
	if (es_inspect_is_new(record->flow)) {
		struct es_handover_order order;
		struct es_decided decided;
		int is_known = !es_decision_table_find(&in->decisions, record->flow_hash, cookie,
						       packet->seg.seq - 1, es_inspect_now_ms(in), &decided);

		if (is_known && decided.node == ES_NODE_REJECT) {
			es_inspect_moved(in, record, packet, cookie);
			return;
		}
		if (is_known && es_inspect_was_lost(in, record, cookie, decided.node) &&
		    es_inspect_packet_is_unsafe(in, record->service, packet)) {
			es_inspect_doubt(in, packet->bytes, packet->len);
			return;
		}
		/* A node that crashed with it: what it had is gone, and the client heard nothing. */
		if (is_known && es_health_state(in->params->health, decided.node) != ES_NODE_ABSENT) {
			es_inspect_order(in, record, packet, &order);
			es_order_bound_again(in, packet, &order);
			es_inspect_give_again(in, record, packet, &order, &decided);
			return;
		}
	}
	if (!g && es_inspect_single(in, record, packet, &wanted))
		return;
	if (!g)
		g = es_inspect_gather_begin(in, record->flow_hash, cookie);
	if (!g)
		return;
	if (wanted)
		g->wanted = wanted;
	es_inspect_gather(in, g, record, packet, 1);
}

static void es_inspect_later(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, uint32_t cookie)
{
	struct es_handover_order order = {.kind = ES_HANDOVER_FOLLOW, .service = record->service};
	struct es_gather *g = es_gather_lookup(in->gathers, record->flow_hash, cookie);
	int target = g ? -1 : es_decision_table_get_any(&in->decisions, record->flow_hash, cookie);

	if (target == ES_NODE_REJECT) {
		es_inspect_moved(in, record, packet, cookie);
		return;
	}
	if (target >= 0) {
		/* The socket takes it when it comes again, and its node notes that urgent data may lie
		 * behind. */
		if (es_inspect_is_urgent(packet))
			return;
		es_inspect_count(in, ES_WORKER_followed);
		es_inspect_send(in, &order, packet, record->gso_size, (unsigned int)target);
		return;
	}
	if (!g)
		g = es_inspect_gather_begin(in, record->flow_hash, cookie);
	if (g)
		es_inspect_gather(in, g, record, packet, 0);
}

/*
 * The datapath took a segment for a first one; without timestamps 1 of 2,048 later ones looks like that
 * (cookie.h). A flow's packets come in order, so what is known of its request tells.
 */
static int es_inspect_is_later(struct es_inspector *in, const struct es_record *record,
			       const struct es_ip_packet *packet)
{
	uint32_t cookie = packet->seg.ack - 1;
	const struct es_gather *g;

	if (packet->seg.has_ts || !es_inspect_is_new(record->flow) ||
	    es_decision_table_get(&in->decisions, record->flow_hash, cookie, packet->seg.seq - 1) >= 0)
		return 0;
	if (es_decision_table_get_any(&in->decisions, record->flow_hash, cookie) >= 0)
		return 1;
	g = es_gather_lookup(in->gathers, record->flow_hash, cookie);
	return g && g->has_first && g->first_seq != packet->seg.seq;
}

/* A client closes its side without a request: what comes of that is for a server to say, and any will do. */
static void es_inspect_fin(struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet)
{
	struct es_handover_order order;

	es_inspect_count(in, ES_WORKER_fin_before_request);
	es_inspect_order(in, record, packet, &order);
	order.pin = ES_PIN_half_closed;
	es_inspect_note(in, record->flow_hash, packet->seg.ack - 1, packet->seg.seq, in->cluster->self,
			&order);
	es_inspect_send(in, &order, packet, 0, in->cluster->self);
}

/*
 * A client gives its connection up within its first request. It does so behind all that it has sent; who else
 * says so knows no sequence numbers.
 */
static void es_inspect_client_reset(struct es_inspector *in, const struct es_record *record,
				    const struct es_ip_packet *packet)
{
	struct es_gather *g = es_gather_lookup(in->gathers, record->flow_hash, packet->seg.ack - 1);
	const struct es_gather_segment *last;

	if (!g || !es_inspect_is_new(g->flow) || !g->count)
		return;
	last = &g->segment[g->count - 1];
	if (packet->seg.seq != last->seq + last->payload_len)
		return;
	es_inspect_count(in, ES_WORKER_client_reset);
	es_gather_remove(in->gathers, g);
}

static void es_inspect_packet(struct es_inspector *in, const struct es_record *record, const uint8_t *bytes)
{
	static _Thread_local uint8_t completed[ES_RECORD_MAX];
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
		es_inspect_left(in, record, packet.seg.ack - 1);
		return;
	}
	if ((es_inspect_is_new(record->flow) || record->kind == ES_RECORD_STRAY) &&
	    !es_inspect_is_mine(in, record->flow_hash)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	if (packet.seg.flags & ES_TCP_RST) {
		es_inspect_client_reset(in, record, &packet);
	} else if (record->kind == ES_RECORD_STRAY) {
		es_inspect_stray(in, record, &packet);
	} else if (record->flow == ES_FLOW_MOVED) {
		es_inspect_moved(in, record, &packet, packet.seg.ack - 1);
	} else if (es_inspect_poison(in, record, &packet)) {
		return;
	} else if (record->kind != ES_RECORD_FIRST || es_inspect_is_later(in, record, &packet)) {
		es_inspect_later(in, record, &packet, packet.seg.ack - 1);
	} else if (packet.seg.len) {
		es_inspect_first(in, record, &packet, packet.seg.ack - 1);
	} else {
		es_inspect_fin(in, record, &packet);
	}
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
	if (es_inspect_is_left(record))
		es_inspect_record(in, record, bytes);
	else
		es_inspect_count(in, ES_WORKER_late);
}

/* Some sets a tick, so that all have their turn within an hour. */
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
	es_inspect_forget_old(in);
	es_inspect_gathers_due(in);
}

void es_inspect_forget(struct es_inspector *in)
{
	es_inspect_gathers_forget(in);
	es_inspect_strays_forget(in);
}
