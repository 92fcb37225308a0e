// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What comes back to the worker's socket: requests that their target refused (NACK), whole, which are given
 * to another node, and the kernels' word that a message was not received.
 */
#include <errno.h>
#include "inspector/base/clock.h"
#include "inspector/inspect/internal.h"

/* How long a node that refused a request is left alone. */
#define ES_SUSPEND_NS 1000000000ULL

/* After so many attempts a node is not asked once more. */
#define ES_ATTEMPTS_RETRY_MAX 32

/*
 * Is this attempt of a request still the one that counts? After the next one has begun, its node's word is
 * about something that is over: that node has refused it before, or another one has it by now. @attempt: of a
 * NACK it may be a later one than this node's, which the target knows from an inspecting node before.
 */
static int es_inspect_is_open(const struct es_decided *decided, unsigned int node, unsigned int attempt)
{
	return decided->is_first && decided->node == node && attempt >= decided->order->attempt;
}

/* The node for a request that came back from @node, whose head may be in more segments than this one. @avoid: none of
 * these */
static int es_inspect_route_again(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
				  unsigned int node, struct es_node_set avoid,
				  struct es_handover_order *order)
{
	struct es_request_view request = {
		.flow_hash = flow_hash,
		.current = -1,
		.client = &packet->flow.client,
		.client_port = es_ntohs(packet->flow.client_port),
		.truncated = 1, /* what was gathered of it is not here any more */
		.avoid = avoid,
		.attempts = order->attempt,
		.before = node,
	};
	const char *text = (const char *)es_ip_packet_payload(packet);

	if (es_inspect_is_layer4(in, order->service))
		return es_inspect_layer4_route(in, order->service, &request, packet);
	if (order->service >= in->cluster->conf->service_count ||
	    es_inspect_is_poison(in, flow_hash, packet->bytes, packet->len))
		return es_route_fallback(&in->router, order->service, &request, in->now_ns);
	es_http_head_init(&in->head);
	if (packet->seg.flags & ES_TCP_URG)
		es_http_head_distrust(&in->head);
	else
		es_http_head_scan(&in->head, text, packet->seg.len);
	es_inspect_describe(in, order->service, &request, &in->head, text, packet->seg.len);
	if (in->head.result != ES_HTTP_DONE && in->head.result != ES_HTTP_AMBIGUOUS)
		return es_route_fallback(&in->router, order->service, &request, in->now_ns);
	return es_route_again(&in->router, order->service, &request, in->now_ns, &order->rejection);
}

/*
 * A request that its node refused, or that did not arrive there: it came back, so it is decided again without
 * more state kept for it than its attempt. The node's own word, or the kernels', is that it has no socket for
 * it, and will make none of this attempt.
 * @reason: 0 if it did not arrive; @missing: bytes at the end of @packet that did not come back
 */
static void es_inspect_decide_again(struct es_inspector *in, __u64 flow_hash, unsigned int node,
				    enum es_nack_reason reason, const struct es_ip_packet *packet,
				    struct es_handover_order *order, size_t missing)
{
	uint32_t cookie = packet->seg.ack - 1;
	int is_layer4 = es_inspect_is_layer4(in, order->service);
	int is_movable = packet->seg.len || is_layer4;
	struct es_node_set avoid = {};
	struct es_decided decided;
	int target;

	es_decision_table_look(&in->decisions, flow_hash, cookie, packet->seg.seq - 1, es_inspect_now_ms(in),
			       &decided);
	if (!es_inspect_is_open(&decided, node, order->attempt)) {
		es_inspect_count(in, ES_WORKER_nack_late);
		return;
	}
	/* What its kernel says is about one message; of another one that was sent there nothing is known. */
	if (!reason && (decided.order->repeat || decided.is_inherited))
		return;
	if (is_layer4)
		es_inspect_layer4_answered(in, flow_hash, node);
	order->attempt++;
	if (!order->moved && !es_inspect_is_mine(in, flow_hash)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	/* That node may have executed it, and its client has not heard so. */
	if (reason == ES_NACK_DOUBTFUL) {
		es_inspect_doubt(in, packet->bytes, packet->len);
		return;
	}
	/*
	 * Whether the node or the client is why, one request does not say, so no other client loses the node. A program that holds
	 * packets back may let go of it later: what must not be executed twice, is not tried.
	 */
	if (reason == ES_NACK_VANISHED) {
		int is_own = es_inspect_fate_vanished(in, order->service, packet, flow_hash, node, &avoid);

		if (is_own || es_inspect_packet_is_unsafe(in, order->service, packet)) {
			es_inspect_count(in, ES_WORKER_nacks);
			es_inspect_refuse(in, packet->bytes, packet->len);
			return;
		}
	}
	if (reason == ES_NACK_RETRY && order->attempt <= ES_ATTEMPTS_RETRY_MAX) {
		target = (int)node;
	} else {
		if (reason) {
			es_inspect_count(in, ES_WORKER_nacks);
			es_tally_handed(in->tally, order->service, node, ES_TALLY_refused);
		}
		if (reason == ES_NACK_NO_LISTENER || !reason)
			es_health_suspend_for(in->params->health, node, !es_addr_is_v4(&packet->flow.client),
					      in->now_ns + ES_SUSPEND_NS);
		else if (reason != ES_NACK_VANISHED)
			es_health_suspend(in->params->health, node, in->now_ns + ES_SUSPEND_NS);
		/* An earlier daemon may have made a later attempt, which is under way to the same node. A FIN
		 * before any request is for the server here, or for none. */
		target = order->attempt > ES_ATTEMPTS_MAX || decided.is_inherited || !is_movable
				 ? -1
				 : es_inspect_route_again(in, flow_hash, packet, node, avoid, order);
	}
	/* Where nobody else is, it may have been chance. */
	if (target == -1 && reason == ES_NACK_VANISHED && order->attempt <= ES_ATTEMPTS_MAX &&
	    !decided.is_inherited && is_movable)
		target = (int)node;
	if (target == ES_ROUTE_REJECT) {
		es_inspect_reject(in, flow_hash, packet,
				  packet->seg.seq + packet->seg.len + (uint32_t)missing, order);
		return;
	}
	if (target == ES_ROUTE_MORE) /* its client's first bytes are tried with other nodes */
		return;
	if (target < 0) {
		es_inspect_refuse(in, packet->bytes, packet->len);
		return;
	}
	order->unsafe = (uint8_t)es_inspect_packet_is_unsafe(in, order->service, packet);
	if (decided.is_inherited && target == (int)node)
		; /* which attempt is the last one is still not known */
	else if (order->moved)
		es_inspect_note(in, flow_hash, cookie, packet->seg.seq, (unsigned int)target, order);
	else
		es_inspect_note_first(in, flow_hash, cookie, packet->seg.seq, (unsigned int)target, order);
	if (target != (int)node)
		es_inspect_tally(in, packet, order, (unsigned int)target, ES_TALLY_again, in->began_ns);
	if (missing)
		return;
	es_inspect_send(in, order, packet, 0, (unsigned int)target);
	if (is_layer4)
		es_inspect_layer4_given(in, flow_hash, packet, order, (unsigned int)target);
	if (!order->moved)
		es_inspect_fate_given(in, order->service, packet, (unsigned int)target);
}

static void es_inspect_again(struct es_inspector *in, unsigned int node, enum es_nack_reason reason,
			     const struct es_ip_packet *packet, struct es_handover_order *order,
			     size_t missing)
{
	__u64 flow_hash = es_flow_hash(&in->keys.ring, in->keys.ring_seed, &packet->flow);

	in->began_ns = es_clock_now_ns();
	es_mark_set(in->params->mark, flow_hash, order->service, packet->bytes, packet->len);
	es_inspect_decide_again(in, flow_hash, node, reason, packet, order, missing);
	es_mark_clear(in->params->mark);
}

static void es_inspect_nack(struct es_inspector *in, const struct es_handover_back *back, size_t len)
{
	const struct es_handover *nack = &back->header;
	struct es_handover_order order;
	struct es_ip_packet packet;

	if (nack->source < in->cluster->conf->node_count && nack->nack == ES_NACK_STRAYS) {
		es_inspect_strays_answer(in, nack);
		return;
	}
	if (nack->source >= in->cluster->conf->node_count || es_ip_packet_parse(back->packet, len, &packet)) {
		es_inspect_count(in, ES_WORKER_nack_bad);
		return;
	}
	if (es_nack_is_stray(nack->nack)) {
		es_inspect_stray_answer(in, nack, &packet);
		return;
	}
	if (es_nack_is_fate(nack->nack)) {
		es_inspect_fate_answer(in, nack, &packet);
		return;
	}
	if (nack->nack == ES_NACK_BEYOND) {
		es_inspect_beyond(in, nack, &packet);
		return;
	}
	if (nack->nack == ES_NACK_MADE) {
		es_inspect_layer4_answered(in, es_flow_hash(&in->keys.ring, in->keys.ring_seed, &packet.flow),
					   nack->source);
		return;
	}
	es_handover_order_of(nack, &order);
	if (nack->nack == ES_NACK_SILENT)
		es_health_set_unsure(in->params->health, in->now_ns + ES_SUSPEND_NS);
	es_inspect_again(in, nack->source, (enum es_nack_reason)nack->nack, &packet, &order, 0);
}

/* Of whose clients a message is, as far as it is quoted. */
static unsigned int es_message_family(const struct es_handover_back *back)
{
	if (back->header.kind == ES_HANDOVER_STRAYS || back->header.kind == ES_HANDOVER_STRAYS6)
		return back->header.kind == ES_HANDOVER_STRAYS6;
	return back->packet[0] >> 4 == 6;
}

/*
 * Nobody takes handovers there, as one of the last messages says that is quoted with its MAC: anybody could send another
 * error. The request goes to another node, at once if the error quotes it whole (an
 * ICMP error has 576 bytes at most, RFC 1812 section 4.3.2.3), else when its client sends it again. Not so a
 * request that was repeated: of its first message nothing is known, and the node may have served it.
 */
static void es_inspect_unreachable(struct es_inspector *in, struct es_handover_back *back)
{
	const struct es_handover *h = &back->header;
	size_t missing = es_ntohs(h->packet_len) - back->quoted;
	struct es_handover_order order;
	struct es_ip_packet packet;

	es_inspect_count(in, ES_WORKER_unreachable);
	es_health_suspend_for(in->params->health, back->node, es_message_family(back),
			      in->now_ns + ES_SUSPEND_NS);
	if (h->kind != ES_HANDOVER_REQUEST || (h->flags & ES_HANDOVER_F_REPEAT))
		return;
	if (missing)
		es_ip_packet_truncate(back->packet, back->quoted);
	es_handover_order_of(h, &order);
	if (es_ip_packet_parse(back->packet, back->quoted, &packet) ||
	    (!packet.seg.len && !es_inspect_is_layer4(in, order.service)))
		return;
	es_tally_handed(in->tally, order.service, back->node, ES_TALLY_unreachable);
	es_inspect_again(in, back->node, 0, &packet, &order, missing);
}

void es_inspect_messages(struct es_inspector *in)
{
	struct es_sipkey keys[ES_KEYS_MAX];
	struct es_handover_back back;
	int len;

	for (unsigned int i = 0; i < in->keys.count; i++)
		keys[i] = in->keys.key[i].handover;
	for (unsigned int i = 0; i < ES_HANDOVER_BATCH; i++) {
		len = es_handover_receive(in->sender, keys, in->keys.count, &back);
		if (!len)
			break;
		if (len > 0 && back.header.kind == ES_HANDOVER_NACK)
			es_inspect_nack(in, &back, (size_t)len);
		else if (len == -ECONNREFUSED)
			es_inspect_unreachable(in, &back);
		else if (len == -ENOMSG)
			es_inspect_count(in, ES_WORKER_errors_ignored);
		else
			es_inspect_count(in, ES_WORKER_nack_bad);
	}
}
