// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Answers requests that a rule refuses, without a socket: by one segment with status, reason and FIN. The
 * decision table remembers the answer twice: for a client that has not heard it, and, under what a client
 * acknowledges that has heard it, so that the datapath acknowledges and drops whatever else that sends
 * (ES_REJECT_LINGER_MS).
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "inspector/base/wall.h"
#include "inspector/inspect/internal.h"
#include "kmod/core/resets.h"

void es_inspect_reply(struct es_inspector *in, const struct es_flow *flow, const uint8_t *bytes, size_t len)
{
	if (es_raw_send(&in->raw, flow, bytes, len))
		es_inspect_count(in, ES_WORKER_send_failed);
}

/* The datapath does not see this RST, and has to repeat it if need be. */
static void es_inspect_note_reset(struct es_inspector *in, const struct es_ip_packet *packet)
{
	__u64 flow_hash = es_flow_hash(&in->keys.ring, in->keys.ring_seed, &packet->flow);

	es_reset_note(&in->params->resets[es_reset_index(flow_hash)], flow_hash, packet->seg.ack,
		      es_reset_under_way(ES_RESET_PROTOCOL_RAW), es_ns_to_ms(in->now_ns));
	__atomic_store_n(in->params->reset_ns, in->now_ns, __ATOMIC_RELAXED);
}

void es_inspect_reset(struct es_inspector *in, const uint8_t *bytes, size_t len)
{
	struct es_ip_packet packet;
	uint8_t rst[ES_RESET_MAX];

	if (es_ip_packet_parse(bytes, len, &packet))
		return;
	es_inspect_reply(in, &packet.flow, rst, es_ip_packet_reset(&packet, rst));
	if (in->params->resets)
		es_inspect_note_reset(in, &packet);
}

void es_inspect_refuse(struct es_inspector *in, const uint8_t *bytes, size_t len)
{
	/* Nodes that are not sure of their membership will soon be sure, or others will have their place. */
	if (es_health_is_unsure(in->params->health, in->now_ns)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	es_inspect_count(in, ES_WORKER_no_target);
	es_inspect_reset(in, bytes, len);
}

/*
 * The answer is one segment, with timestamps, for any client of IPv6, and for all of IPv4 but the few that
 * announce less than 1,300 bytes.
 */
#define ES_ANSWER_HEAD 208
_Static_assert(ES_ANSWER_HEAD + ES_CONF_PAGE_MAX <= ES_ANSWER_SIZE, "a page is a segment");
_Static_assert(ES_ANSWER_SIZE + ES_TIMESTAMP_OPTION_LEN <= ES_TCP_MSS_MIN_V6, "and not more than one");

static const char *es_status_reason(unsigned int status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 401:
		return "Unauthorized";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 410:
		return "Gone";
	case 429:
		return "Too Many Requests";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	default:
		return status < 500 ? "Refused" : "Unavailable";
	}
}

/* An HTTP-date, RFC 9110 section 5.6.7. */
static void es_answer_date(unsigned long long at_s, char *text, size_t size)
{
	time_t at = (time_t)at_s;
	struct tm utc;

	if (!gmtime_r(&at, &utc) || !strftime(text, size, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc))
		text[0] = 0;
}

/*
 * Does the client take a segment with the whole body? A first request's cookie tells its class of MSS; of an
 * open connection it is not known.
 */
static int has_room(const struct es_handover_order *order)
{
	size_t len = order->rejection.body ? strlen(order->rejection.body) : 0;

	return !order->options.mss || ES_ANSWER_HEAD + len + ES_TIMESTAMP_OPTION_LEN <= order->options.mss;
}

/*
 * Writes the answer, and returns its length; @ret_body: how much of that is the body's. RFC 9110: 6.6.1
 * (Date), 15.6.4 (503), 10.2.3 (Retry-After). A response to HEAD has no body, and says how long the body
 * would be.
 */
size_t es_inspect_answer_text(const struct es_handover_order *order, char *text, size_t *ret_body)
{
	const struct es_rejection *rejection = &order->rejection;
	const char *reason = es_status_reason(rejection->status);
	char retry[48] = "", date[48], body[ES_CONF_PAGE_MAX + 1];
	const char *type = has_room(order) ? rejection->type : NULL;
	int len = rejection->body && has_room(order)
			  ? snprintf(body, sizeof(body), type ? "%s" : "%s\n", rejection->body)
			  : snprintf(body, sizeof(body), "%u %s\n", rejection->status, reason);
	/* RFC 8446 section 6: a fatal alert, access_denied, in the clear, since there is no key yet. */
	static const char alert[] = {21, 3, 3, 0, 2, 2, 49};

	*ret_body = 0;
	if (rejection->protocol == ES_HTTP_TLS) {
		memcpy(text, alert, sizeof(alert));
		return sizeof(alert);
	}
	if (rejection->protocol == ES_HTTP_H2 || rejection->protocol == ES_HTTP_NOT_HTTP)
		return 0;
	if (rejection->retry_after_s)
		snprintf(retry, sizeof(retry), "Retry-After: %u\r\n", rejection->retry_after_s);
	es_answer_date(rejection->at_s, date, sizeof(date));
	*ret_body = rejection->is_head ? 0 : (size_t)len;
	return (size_t)snprintf(text, ES_ANSWER_SIZE,
				"HTTP/1.1 %u %s\r\n"
				"%s"
				"Content-Type: %s\r\n"
				"Content-Length: %d\r\n"
				"%s"
				"Connection: close\r\n"
				"\r\n"
				"%s",
				rejection->status, reason, date, type ? type : "text/plain; charset=utf-8",
				len, retry, rejection->is_head ? "" : body);
}

/* Returns the answer's length, which is the same for each copy. */
static size_t es_answer_send(struct es_inspector *in, const struct es_ip_packet *packet,
			     const struct es_handover_order *order, uint32_t ack, size_t *ret_body)
{
	uint8_t bytes[ES_ANSWER_HEADER_MAX + ES_ANSWER_SIZE];
	char text[ES_ANSWER_SIZE];
	size_t len = es_inspect_answer_text(order, text, ret_body);

	es_inspect_reply(
		in, &packet->flow, bytes,
		es_ip_packet_answer(packet, ack, ES_TCP_ACK | ES_TCP_PSH | ES_TCP_FIN, text, len, bytes));
	return len;
}

void es_inspect_reject(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
		       uint32_t end_seq, const struct es_handover_order *order)
{
	struct es_handover_order answered = *order;
	size_t len, body;

	/* As for a request that has moved its connection: this node answers its repetitions. */
	answered.moved = 1;
	answered.next_request_seq = end_seq;
	answered.rejection.at_s = es_wall_ns() / 1000000000ULL;
	es_inspect_count(in, ES_WORKER_rejected);
	es_tally_rejected(in->tally, order->service, order->rejection.by);
	es_decision_table_put(&in->decisions, flow_hash, packet->seg.ack - 1, packet->seg.seq - 1,
			      ES_NODE_REJECT, &answered, es_inspect_now_ms(in));
	len = es_answer_send(in, packet, &answered, end_seq, &body);
	if (in->traces || in->log)
		es_inspect_trace(
			in, order,
			&(struct es_trace_subject){.flow = &packet->flow,
						   .text = (const char *)es_ip_packet_payload(packet),
						   .len = packet->seg.len,
						   .target = ES_NODE_REJECT,
						   .decision = ES_TRACE_REJECT,
						   .decided_ns = in->began_ns,
						   .status = order->rejection.status,
						   .bytes = body});
	/* Whatever the client sends after the answer acknowledges it; the datapath drops that. */
	es_decision_table_put(&in->decisions, flow_hash, packet->seg.ack + (uint32_t)len, end_seq - 1,
			      ES_NODE_REJECT, NULL, es_inspect_now_ms(in));
}

void es_inspect_reject_gathered(struct es_inspector *in, const struct es_gather *g)
{
	struct es_ip_packet packet;

	if (!es_ip_packet_parse(g->segment[0].bytes, g->segment[0].len, &packet))
		es_inspect_reject(in, g->flow_hash, &packet, g->first_seq + (uint32_t)g->text_len, &g->order);
}

void es_inspect_reject_again(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, const struct es_handover_order *order)
{
	uint32_t ack = order->next_request_seq;
	size_t body;

	/*
	 * It has sent more of a body before it has the answer. That may have been lost, so it goes with each
	 * acknowledgment.
	 */
	if (record->kind != ES_RECORD_FIRST)
		ack = packet->seg.seq + packet->seg.len + !!(packet->seg.flags & ES_TCP_FIN);
	es_inspect_count(in, ES_WORKER_repeated);
	es_answer_send(in, packet, order, ack, &body);
}
