// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heads that pause where a rule may refuse their request: the rest of the head is waited for, for ten
 * seconds, and a request whose head is not whole by then is refused.
 *
 * A client that has repeated a segment twice takes it for lost, and many clients send nothing new before it
 * is acknowledged. So the inspector acknowledges what is here, as much of it as one message holds. The client
 * does not repeat that, so until the node has it, it is here only: all of it is in the first segment then,
 * whose message is sent more than once. The end of the head is never acknowledged. So the client goes on
 * sending that, and is told if no node has its connection (stray.c).
 */
#include "inspector/inspect/internal.h"

#define ES_WAIT_MS 10000

/* So often it is given again, once every gather_timeout_ms. */
#define ES_GIVEN_MAX 4

double es_inspect_deadline(const struct es_inspector *in)
{
	return (double)in->now_ns / 1e6 + in->cluster->conf->inspector.gather_timeout_ms;
}

int es_inspect_is_unfinished(struct es_inspector *in, const struct es_gather *g)
{
	struct es_request_view request = {.flow_hash = g->flow_hash};
	struct es_http_head head = g->head;
	struct es_ip_packet packet;

	if (g->head.result != ES_HTTP_MORE || es_gather_is_closed(g))
		return 0;
	es_http_head_truncate(&head);
	if (!es_ip_packet_parse(g->segment[0].bytes, g->segment[0].len, &packet))
		request.client = &packet.flow.client;
	es_inspect_describe(in, g->order.service, &request, &head, g->text, g->text_len);
	return es_rules_wait(in->router.rules, g->order.service, &request);
}

int es_inspect_is_waited_for(struct es_inspector *in, struct es_gather *g)
{
	if (!es_inspect_is_unfinished(in, g))
		return 0;
	if (!g->is_patient) {
		es_inspect_count(in, ES_WORKER_gather_waited);
		es_gather_wait(in->gathers, g, (double)in->now_ns / 1e6 + ES_WAIT_MS);
	}
	return 1;
}

/* Makes one packet of all that is here, unless it would be too long for a message. */
static void merge(struct es_inspector *in, struct es_gather *g)
{
	uint8_t whole[ES_HANDOVER_PACKET_MAX], bytes[ES_HANDOVER_PACKET_MAX];
	struct es_ip_packet packet;

	if (es_ip_packet_parse(g->segment[0].bytes, g->segment[0].len, &packet) ||
	    packet.header_len + g->text_len > *in->params->packet_max)
		return;
	memcpy(whole, packet.bytes, packet.header_len);
	memcpy(whole + packet.header_len, g->text, g->text_len);
	packet.bytes = whole;
	packet.len = (uint32_t)(packet.header_len + g->text_len);
	packet.seg.len = (uint32_t)g->text_len;
	es_gather_merge(g, bytes, es_ip_packet_cut(&packet, 0, g->text_len, bytes));
}

/* A node that does not have the connection says nothing to its client without a lease. */
static int may_tell(const struct es_inspector *in, const struct es_gather *g)
{
	return g->flow == ES_FLOW_HERE || es_inspect_is_mine(in, g->flow_hash);
}

static void acknowledge(struct es_inspector *in, struct es_gather *g, const struct es_ip_packet *packet)
{
	uint8_t bytes[ES_ANSWER_HEADER_MAX];

	if (!may_tell(in, g))
		return;
	merge(in, g);
	g->acked = g->segment[0].payload_len;
	es_inspect_count(in, ES_WORKER_gather_acked);
	es_inspect_reply(
		in, &packet->flow, bytes,
		es_ip_packet_ack(packet, g->first_seq + g->acked, g->order.options.rcv_wscale, bytes));
}

/* The first repetition may be a probe (TLP), after which the client sends what it has. */
int es_inspect_is_waited_on(struct es_inspector *in, struct es_gather *g, const struct es_ip_packet *packet)
{
	if (!es_inspect_is_waited_for(in, g))
		return 0;
	if (g->repeated)
		acknowledge(in, g, packet);
	g->repeated = 1;
	return 1;
}

/* Gives it to its node once more, unless that was done often enough. Returns 0 if it is over. */
static int give_again(struct es_inspector *in, struct es_gather *g)
{
	const struct es_record record = {.flow_hash = g->flow_hash};
	struct es_handover_order order = g->order;
	struct es_decided decided;
	struct es_ip_packet packet;

	if (g->given++ == ES_GIVEN_MAX || !may_tell(in, g) ||
	    es_ip_packet_parse(g->segment[0].bytes, g->segment[0].len, &packet))
		return 0;
	es_decision_table_look(&in->decisions, g->flow_hash, g->cookie, g->first_seq - 1,
			       es_inspect_now_ms(in), &decided);
	if (!decided.is_first || decided.node == ES_NODE_REJECT)
		return 0;
	es_inspect_give_again(in, &record, &packet, &order, &decided);
	return 1;
}

void es_inspect_given(struct es_inspector *in, struct es_gather *g)
{
	if (g->acked && !g->given) {
		g->given = 1;
		g->leaving = ES_GATHER_STAYS;
	} else if (!g->acked || !give_again(in, g)) {
		es_gather_remove(in->gathers, g);
		return;
	}
	es_gather_renew(in->gathers, g, es_inspect_deadline(in));
}

void es_inspect_forsake(struct es_inspector *in, const struct es_gather *g)
{
	if (g->acked && !g->given && may_tell(in, g))
		es_inspect_reset(in, g->segment[0].bytes, g->segment[0].len);
}
