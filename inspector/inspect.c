// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The inspection of requests: single segment or gathered, new or repeated, decided by the service's policy.
 * A first request is given to its node with request_handover(); what becomes of a later one, on a connection
 * that this node has, is in inspect_move.c. Nothing here waits, logs or takes a lock.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/inspect_internal.h"
#include "kmod/core/cookie.h"

/* A client without an ACK sends its initial window and stops: RFC 6928. */
#define ES_INITIAL_WINDOW_SEGMENTS 10

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
	in->reply_fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW);
	if (in->reply_fd < 0)
		return -errno;
	rc = es_gather_table_new(conf->gather_flows, conf->gather_bytes, &in->gathers);
	if (!rc)
		rc = es_handover_sender_new(cluster, params->id, &params->keys.key[0].handover, &in->sender);
	if (!rc)
		rc = es_router_init(&in->router, cluster, params->health, params->route);
	if (rc)
		es_inspector_fini(in);
	return rc;
}

void es_inspector_fini(struct es_inspector *in)
{
	es_router_fini(&in->router);
	es_handover_sender_free(&in->sender);
	es_gather_table_free(&in->gathers);
	if (in->reply_fd >= 0)
		close(in->reply_fd);
	in->reply_fd = -1;
}

int es_inspector_set_cluster(struct es_inspector *in, const struct es_cluster *cluster,
			     const struct es_keys *keys)
{
	int rc;

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

void es_inspect_reply(struct es_inspector *in, const struct es_flow *flow, const uint8_t *bytes, size_t len)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = flow->client.w[3]};

	if (sendto(in->reply_fd, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		es_inspect_count(in, ES_WORKER_send_failed);
}

/* Tell the client at once, instead of letting it retransmit into silence. */
void es_inspect_reset(struct es_inspector *in, const uint8_t *bytes, size_t len)
{
	struct es_ip_packet packet;
	uint8_t rst[40];

	if (es_ip_packet_parse(bytes, len, &packet))
		return;
	es_ip_packet_reset(&packet, rst);
	es_inspect_reply(in, &packet.flow, rst, sizeof(rst));
}

void es_inspect_refuse(struct es_inspector *in, const uint8_t *bytes, size_t len)
{
	/* Nodes that are not sure of their membership will be, or others will have their place, in a moment.
	 */
	if (es_health_is_unsure(in->params->health, in->now_ns)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	es_inspect_count(in, ES_WORKER_no_target);
	es_inspect_reset(in, bytes, len);
}

/* What the handshake agreed on, as the cookie in the first segment's acknowledgment tells. */
static void es_order_options(const struct es_inspector *in, uint32_t cookie, int has_ts,
			     struct es_tcp_options *ret)
{
	es_cookie_options_unpack(cookie, ret);
	ret->rcv_wscale = ret->wscale_ok ? (__u8)in->cluster->conf->datapath.receive_window_scale : 0;
	ret->tstamp_ok = (__u8)has_ts;
}

/* What is known of a connection from one of its packets. */
static void es_order_init(const struct es_inspector *in, const struct es_record *record,
			  const struct es_ip_packet *packet, struct es_handover_order *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->kind = ES_HANDOVER_REQUEST;
	ret->service = record->service;
	if (record->flow == ES_FLOW_NEW) {
		es_order_options(in, packet->seg.ack - 1, packet->seg.has_ts, &ret->options);
		return;
	}
	ret->options = record->options;
	ret->requests = record->requests;
	ret->moves = record->moves;
}

/*
 * Send one original packet in one or more messages: a packet that the network card or a virtual link merged
 * is cut into segments again. The first piece of a request makes the socket, the others follow it.
 */
void es_inspect_send(struct es_inspector *in, const struct es_handover_order *order,
		     const struct es_ip_packet *packet, size_t segment, unsigned int target)
{
	struct es_handover_order piece = *order;
	size_t room = in->params->packet_max - packet->header_len;
	uint8_t bytes[ES_HANDOVER_PACKET_MAX];

	if (!segment || segment > room)
		segment = room;
	if (packet->seg.len <= segment) {
		request_handover(in->sender, in->cluster, order, packet->bytes, packet->len, target);
		return;
	}
	for (size_t at = 0; at < packet->seg.len; at += segment) {
		size_t len = packet->seg.len - at < segment ? packet->seg.len - at : segment;

		request_handover(in->sender, in->cluster, &piece, bytes,
				 es_ip_packet_cut(packet, at, len, bytes), target);
		piece.kind = ES_HANDOVER_FOLLOW;
	}
}

void es_inspect_note(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
		     unsigned int target, const struct es_handover_order *order)
{
	unsigned long long n = atomic_load_explicit(&in->sent_to[target], memory_order_relaxed);

	es_decision_table_put(&in->decisions, flow_hash, cookie, first_seq - 1, (__u8)target, order,
			      es_inspect_now_ms(in));
	es_route_sent(&in->router, target, order->cost, in->now_ns);
	atomic_store_explicit(&in->sent_to[target], n + 1, memory_order_relaxed);
}

void es_inspect_note_first(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			   unsigned int target, const struct es_handover_order *order)
{
	es_inspect_note(in, flow_hash, cookie, first_seq, target, order);
	es_inspect_count(in, ES_WORKER_requests);
	es_inspect_count(in, target == in->cluster->self ? ES_WORKER_kept : ES_WORKER_handovers);
}

static int es_inspect_route(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			    struct es_rejection *ret_rejection)
{
	enum es_http_result result = request->head->result;
	int target = request->current;

	/* A connection that carries something else is pinned once it has a node. */
	if (target < 0 || result == ES_HTTP_DONE || result == ES_HTTP_AMBIGUOUS)
		target = es_route(&in->router, service, request, in->now_ns, NULL, ret_rejection);
	if (target == ES_ROUTE_MORE)
		return target;
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
	if (es_http_head_scan(&in->head, request.text, request.len) == ES_HTTP_MORE) {
		order->pin = ES_PIN_unknown;
		return;
	}
	es_order_bound(in, &request, packet->seg.seq, order);
	es_request_describe(&request, &in->head, request.text, request.len);
	es_order_weigh(in, &request, order);
}

int es_inspect_is_mine(const struct es_inspector *in, __u64 flow_hash)
{
	__u64 lease_ns = __atomic_load_n(in->params->lease_ns, __ATOMIC_ACQUIRE);

	return es_cluster_inspects(in->cluster, flow_hash) && !(lease_ns && in->now_ns >= lease_ns);
}

/* Decide a gathered request with what there is, and give all its segments to the node. Returns 0 if a rule
 * wants more of it, which it cannot if @truncated. */
static int es_inspect_decide_gathered(struct es_inspector *in, struct es_gather *g, int truncated)
{
	struct es_request_view request = {
		.flow_hash = g->flow_hash,
		.truncated = truncated,
		.current = g->flow == ES_FLOW_HERE ? (int)in->cluster->self : -1,
	};
	struct es_ip_packet packet;
	int target;

	if (!es_ip_packet_parse(g->segment[0].bytes, g->segment[0].len, &packet)) {
		request.client = &packet.flow.client;
		request.client_port = es_ntohs(packet.flow.client_port);
	}
	if (truncated) {
		es_inspect_count(in, ES_WORKER_gather_timeout);
		es_http_head_truncate(&g->head);
	}
	es_request_describe(&request, &g->head, g->text, g->text_len);
	target = es_inspect_route(in, g->order.service, &request, &g->order.rejection);
	if (target == ES_ROUTE_MORE) {
		g->wanted = g->order.rejection.more_bytes;
		return 0;
	}
	es_inspect_count(in, ES_WORKER_gathered);
	es_order_bound(in, &request, g->first_seq, &g->order);
	es_order_weigh(in, &request, &g->order);
	es_order_measure(in, &request, &g->order);
	if (g->flow == ES_FLOW_HERE) {
		es_inspect_move_gathered(in, g, target);
		return 1;
	}
	if (!es_inspect_is_mine(in, g->flow_hash)) {
		es_inspect_count(in, ES_WORKER_not_mine);
	} else if (target == ES_ROUTE_REJECT) {
		es_inspect_reject_gathered(in, g);
	} else if (target < 0) {
		es_inspect_refuse(in, g->segment[0].bytes, g->segment[0].len);
	} else {
		es_inspect_note_first(in, g->flow_hash, g->cookie, g->first_seq, (unsigned int)target,
				      &g->order);
		es_inspect_send_gathered(in, g, (unsigned int)target);
	}
	es_gather_remove(in->gathers, g);
	return 1;
}

static int es_gather_is_stuck(const struct es_inspector *in, const struct es_gather *g)
{
	/* All that a client sends before it hears an ACK is here, in full; more will not come by itself. */
	return g->count >= ES_INITIAL_WINDOW_SEGMENTS || g->count == ES_GATHER_SEGMENTS ||
	       g->text_len >= in->cluster->conf->inspector.gather_bytes;
}

enum es_gather_result es_inspect_keep(struct es_inspector *in, struct es_gather *g,
				      const struct es_record *record, const struct es_ip_packet *packet,
				      int is_first)
{
	size_t segment = record->gso_size;
	uint8_t bytes[ES_HANDOVER_PACKET_MAX];
	enum es_gather_result result = ES_GATHER_ADDED;
	size_t room = in->params->packet_max - packet->header_len;

	if (is_first || !g->has_first) {
		g->flow = record->flow;
		es_order_init(in, record, packet, &g->order);
	}
	if (!segment || segment > room)
		segment = room;
	for (size_t at = 0; at == 0 || at < packet->seg.len; at += segment) {
		size_t len = packet->seg.len - at < segment ? packet->seg.len - at : segment;
		size_t total = es_ip_packet_cut(packet, at, len, bytes);

		result = es_gather_add(in->gathers, g, bytes, total, packet->header_len,
				       packet->seg.seq + (uint32_t)at, is_first && at == 0);
		if (result == ES_GATHER_FULL)
			break;
	}
	return result;
}

/* Keep a segment of an incomplete request; decide if that completes it. */
static void es_inspect_gather(struct es_inspector *in, struct es_gather *g, const struct es_record *record,
			      const struct es_ip_packet *packet, int is_first)
{
	enum es_gather_result result = es_inspect_keep(in, g, record, packet, is_first);
	enum es_http_result scan = ES_HTTP_MORE;

	if (!g->has_first || g->leaving)
		return;
	if (g->text_len)
		scan = es_http_head_scan(&g->head, g->text, g->text_len);
	if (scan != ES_HTTP_MORE && g->text_len >= g->wanted && es_inspect_decide_gathered(in, g, 0))
		return;
	/* A later segment is repeated after two round trips already, as a tail loss probe: more may come. */
	if (result == ES_GATHER_FULL || (result == ES_GATHER_REPEATED && is_first) ||
	    es_gather_is_stuck(in, g))
		es_inspect_decide_gathered(in, g, 1);
}

struct es_gather *es_inspect_gather_begin(struct es_inspector *in, __u64 flow_hash, uint32_t cookie)
{
	double deadline = (double)in->now_ns / 1e6 + in->cluster->conf->inspector.gather_timeout_ms;
	int evicted = 0;
	struct es_gather *g = es_gather_insert(in->gathers, flow_hash, cookie, deadline, &evicted);

	if (evicted || !g)
		es_inspect_count(in, ES_WORKER_gather_forgotten);
	return g;
}

/* A request that came in one segment: decide it. Returns 0 if more of it is needed, @ret_wanted bytes if a
 * rule says so. */
static int es_inspect_single(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, uint32_t cookie, size_t *ret_wanted)
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
	if (es_http_head_scan(&in->head, text, packet->seg.len) == ES_HTTP_MORE)
		return 0;
	es_request_describe(&request, &in->head, text, packet->seg.len);
	es_order_init(in, record, packet, &order);
	target = es_inspect_route(in, record->service, &request, &order.rejection);
	if (target == ES_ROUTE_MORE) {
		*ret_wanted = order.rejection.more_bytes;
		return 0;
	}
	es_order_bound(in, &request, packet->seg.seq, &order);
	es_order_weigh(in, &request, &order);
	es_order_measure(in, &request, &order);
	if (record->flow == ES_FLOW_HERE) {
		es_inspect_move(in, record, packet, &order, target);
	} else if (target == ES_ROUTE_REJECT) {
		es_inspect_reject(in, record->flow_hash, packet, packet->seg.seq + packet->seg.len, &order);
	} else if (target < 0) {
		es_inspect_refuse(in, packet->bytes, packet->len);
	} else {
		es_inspect_note_first(in, record->flow_hash, cookie, packet->seg.seq, (unsigned int)target,
				      &order);
		es_inspect_send(in, &order, packet, record->gso_size, (unsigned int)target);
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
		return;
	}
	/* Queued on another CPU while its socket was being ended for this very request. */
	if (record->flow == ES_FLOW_HERE &&
	    es_decision_table_order(&in->decisions, record->flow_hash, cookie)) {
		es_inspect_moved(in, record, packet, cookie);
		return;
	}
	if (record->flow == ES_FLOW_NEW) {
		int target =
			es_decision_table_get(&in->decisions, record->flow_hash, cookie, packet->seg.seq - 1);
		struct es_handover_order order;

		if (target == ES_NODE_REJECT) {
			es_inspect_moved(in, record, packet, cookie);
			return;
		}
		/* A node that crashed with it: what it had is gone, and the client heard nothing. */
		if (target >= 0 &&
		    es_health_state(in->params->health, (unsigned int)target) != ES_NODE_ABSENT) {
			es_order_init(in, record, packet, &order);
			es_order_bound_again(in, packet, &order);
			order.repeat = 1;
			es_inspect_count(in, ES_WORKER_repeated);
			es_inspect_send(in, &order, packet, record->gso_size, (unsigned int)target);
			return;
		}
	}
	if (!g && es_inspect_single(in, record, packet, cookie, &wanted))
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

	if (packet->seg.has_ts || record->flow != ES_FLOW_NEW ||
	    es_decision_table_get(&in->decisions, record->flow_hash, cookie, packet->seg.seq - 1) >= 0)
		return 0;
	if (es_decision_table_get_any(&in->decisions, record->flow_hash, cookie) >= 0)
		return 1;
	g = es_gather_lookup(in->gathers, record->flow_hash, cookie);
	return g && g->has_first && g->first_seq != packet->seg.seq;
}

void es_inspect_record(struct es_inspector *in, const struct es_record *record, const uint8_t *bytes)
{
	static _Thread_local uint8_t completed[ES_RECORD_LARGE];
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
	if (record->kind == ES_RECORD_ENDED || record->kind == ES_RECORD_KEPT) {
		es_inspect_left(in, record, packet.seg.ack - 1);
		return;
	}
	if (record->flow == ES_FLOW_NEW && !es_inspect_is_mine(in, record->flow_hash)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	if (record->kind == ES_RECORD_STRAY) {
		es_inspect_stray(in, record, &packet);
	} else if (record->flow == ES_FLOW_MOVED) {
		es_inspect_moved(in, record, &packet, packet.seg.ack - 1);
	} else if (record->kind != ES_RECORD_FIRST || es_inspect_is_later(in, record, &packet)) {
		es_inspect_later(in, record, &packet, packet.seg.ack - 1);
	} else if (packet.seg.len) {
		es_inspect_first(in, record, &packet, packet.seg.ack - 1);
	} else {
		es_inspect_count(in, ES_WORKER_fin_before_request);
		es_inspect_reset(in, packet.bytes, packet.len);
	}
}

void es_inspect_skip(struct es_inspector *in)
{
	es_inspect_count(in, ES_WORKER_late);
}

void es_inspect_forget(struct es_inspector *in)
{
	struct es_gather *g;

	while ((g = es_gather_oldest(in->gathers))) {
		es_inspect_count(in, ES_WORKER_gather_forgotten);
		es_gather_remove(in->gathers, g);
	}
	in->strays.count = 0;
}

void es_inspect_deadlines(struct es_inspector *in)
{
	double now_ms = (double)in->now_ns / 1e6;
	struct es_gather *g;

	es_inspect_strays_due(in);
	while ((g = es_gather_oldest(in->gathers)) && g->deadline <= now_ms) {
		if (g->has_first && !g->leaving) {
			es_inspect_decide_gathered(in, g, 1);
		} else {
			es_inspect_count(in, ES_WORKER_gather_forgotten);
			es_gather_remove(in->gathers, g);
		}
	}
}
