// SPDX-License-Identifier: GPL-2.0-or-later
/* The segments of clients that wait for an answer: what is asked about each, and what it is told. */
#include "inspector/inspect/internal.h"
#include "inspector/inspect/waiting.h"

/* The client's acknowledgment, as it has sent it when it was asked, or of another byte. */
static size_t acknowledgment(const struct es_flow *flow, uint32_t seq, uint32_t ack, uint8_t *ret_bytes)
{
	const struct es_ip_packet from = {
		.flow = {.client = flow->service,
			 .service = flow->client,
			 .client_port = flow->service_port,
			 .service_port = flow->client_port},
		.seg = {.ack = seq},
	};

	return es_ip_packet_answer(&from, ack, ES_TCP_ACK, "", 0, ret_bytes);
}

/*
 * A node that has given a request away takes a segment that acknowledges no more than came before it for one
 * that may be on its way (es_stray_is_on_its_way()): for seconds, in which the client would wait on. This
 * request has arrived, as its node has told. So the question acknowledges a byte more, unless this node has
 * given the request to another one since.
 */
size_t es_waiting_question(const struct es_inspector *in, const struct es_waiting_client *client,
			   uint8_t *ret_bytes)
{
	struct es_decided decided;

	es_decision_table_look(&in->decisions, client->flow_hash, client->ack - 1, client->seq - 1,
			       es_inspect_now_ms(in), &decided);
	return acknowledgment(&client->flow, client->seq,
			      client->ack + (!decided.order || decided.node == client->owner), ret_bytes);
}

void es_waiting_reset(struct es_inspector *in, unsigned int service, const uint8_t *question, size_t len,
		      uint32_t ack)
{
	uint8_t bytes[ES_ANSWER_HEADER_MAX];
	struct es_ip_packet asked;

	/* This node is no member any more: another one tells the client. */
	if (es_ip_packet_parse(question, len, &asked) || es_inspect_cedes(in, service))
		return;
	es_inspect_count(in, ES_WORKER_waiting_resets);
	es_inspect_reset(in, bytes, acknowledgment(&asked.flow, asked.seg.seq, ack, bytes));
}
