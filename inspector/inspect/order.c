// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fills in what a request's node is told about it (struct es_handover_order): the handshake's options, where
 * the next request begins, what this one costs, and whether to measure its response.
 */
#include <string.h>
#include "inspector/inspect/internal.h"
#include "kmod/core/cookie.h"

/* The handshake's options, which the cookie in the first segment's acknowledgment has. */
static void es_order_options(const struct es_inspector *in, const struct es_ip_packet *packet,
			     struct es_tcp_options *ret)
{
	uint32_t cookie = packet->seg.ack - 1;

	if (es_addr_is_v4(&packet->flow.client))
		es_cookie_options_unpack(cookie, ret);
	else
		es_cookie_options_unpack6(cookie, ret);
	ret->rcv_wscale = ret->wscale_ok ? (__u8)in->cluster->conf->datapath.receive_window_scale : 0;
	ret->tstamp_ok = (__u8)packet->seg.has_ts;
}

void es_inspect_order(const struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet, const struct es_decided *decided,
		      struct es_handover_order *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->kind = ES_HANDOVER_REQUEST;
	ret->service = record->service;
	ret->tsecr = packet->seg.tsecr;
	if (es_inspect_is_new(record->flow)) {
		es_order_options(in, packet, &ret->options);
		/* If its node has crashed, messages of the attempt before may still be under way. */
		if (decided->is_first)
			ret->attempt = decided->order->attempt + 1;
		return;
	}
	ret->options = record->options;
	ret->requests = record->requests;
	ret->moves = record->moves;
	/* Its connection moves from the node that is lost. */
	ret->moved = es_inspect_is_kept(record->flow);
	if (ret->moved && ret->moves < UINT16_MAX)
		ret->moves++;
}

/* Where the connection's next request will begin. Only a service that inspects every request needs that. */
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
	/*
	 * The serving node reads to the end of the response, so it can count the bytes. A node of the version
	 * before would take the length in an answer to HEAD for the content's.
	 */
	if (boundary.pin == ES_PIN_none && !boundary.is_head)
		order->request_flags |= ES_REQUEST_F_MEASURE | ES_REQUEST_F_STATUS;
	if (boundary.pin == ES_PIN_none && !boundary.is_head &&
	    in->cluster->conf->services[order->service].resume)
		order->request_flags |= ES_REQUEST_F_TELL;
}

/*
 * The cost of serving the request, and its URL, whose length is to be learned. Where only first requests are
 * inspected, nobody knows when one is over, so a node's load is its number of connections.
 */
static void es_order_weigh(const struct es_inspector *in, const struct es_request_view *request,
			   struct es_handover_order *order)
{
	int is_every = in->cluster->conf->services[order->service].inspect == ES_INSPECT_EVERY;

	order->cost = is_every ? request->cost : 1;
	order->url_key = request->url_key;
	order->unsafe =
		(uint8_t)es_inspect_is_unsafe(in, order->service, request->head, request->text, request->len);
}

/* Called once the request's bounds are known, and only when it is decided for the first time. */
static void es_order_measure(struct es_inspector *in, const struct es_request_view *request,
			     struct es_handover_order *order)
{
	if ((order->request_flags & ES_REQUEST_F_STATUS) &&
	    es_sampler_wants(&in->sampler, request, in->now_ns))
		order->request_flags &= (uint8_t)~ES_REQUEST_F_STATUS;
}

void es_inspect_complete(struct es_inspector *in, const struct es_request_view *request, uint32_t first_seq,
			 struct es_handover_order *order)
{
	es_order_bound(in, request, first_seq, order);
	es_order_weigh(in, request, order);
	es_order_measure(in, request, order);
	order->why = (uint8_t)request->why;
	order->content = request->content;
	order->is_named = (uint8_t)request->is_named;
}

void es_inspect_bound_again(struct es_inspector *in, const struct es_ip_packet *packet,
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
