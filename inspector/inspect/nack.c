// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads what comes back to the worker's socket: NACKs, with which a target returns a whole request that is
 * then given to another node, and the kernel's word that a message did not arrive.
 */
#include <errno.h>
#include "inspector/base/clock.h"
#include "inspector/inspect/internal.h"

/* For how long a node that has refused a request gets no others: of its service, or none at all. */
#define ES_SUSPEND_NS 1000000000ULL

/* After so many attempts, a node that asks for another one does not get it. */
#define ES_ATTEMPTS_RETRY_MAX 32

/*
 * Is this attempt of a request still the current one? After the next one has begun, a node's word on this one
 * means nothing: the node has refused it before, or another node has the request by now. A NACK's @attempt
 * may be later than this node's, if the target knows it from a former inspecting node.
 */
static int es_inspect_is_open(const struct es_decided *decided, unsigned int node, unsigned int attempt)
{
	return decided->is_first && decided->node == node && attempt >= decided->order->attempt;
}

/*
 * The node for a request that came back from @node. Its head may span more segments than this one. @avoid:
 * nodes that it must not be
 */
static int es_inspect_route_again(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
				  unsigned int node, struct es_node_set avoid,
				  struct es_handover_order *order)
{
	struct es_request_view request = {
		.flow_hash = flow_hash,
		.current = -1,
		.client = &packet->flow.client,
		.client_port = es_ntohs(packet->flow.client_port),
		.truncated = 1, /* the other segments that were gathered are not here any more */
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
 * Decides again about a request that its node has refused, or that did not arrive there. The request came
 * back, so nothing of it is kept but the number of its attempt. By the node's own word, or the kernel's, it
 * has no socket for the request, and will make none for this attempt.
 * @reason: 0 if it did not arrive; @missing: bytes at the end of the request that did not come back
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
	/* The kernel's word is about one message. If another one was sent, nothing is known of that. */
	if (!reason && (decided.order->repeat || decided.is_inherited))
		return;
	if (is_layer4)
		es_inspect_layer4_answered(in, flow_hash, node);
	order->attempt++;
	if (!order->moved && !es_inspect_is_mine(in, flow_hash)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	/* That node may have executed it, and the client may not have heard the answer. */
	if (reason == ES_NACK_DOUBTFUL) {
		es_inspect_doubt(in, packet->bytes, packet->len);
		return;
	}
	/*
	 * One request does not tell whether the node or the client is why, so the node stays a target for
	 * other clients. A program that holds back packets may let them go later; so an unsafe request is not
	 * tried again.
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
		if (reason == ES_NACK_NO_LISTENER)
			es_health_suspend_service(in->params->health, node, order->service,
						  !es_addr_is_v4(&packet->flow.client),
						  in->now_ns + ES_SUSPEND_NS);
		else if (!reason)
			es_health_suspend_for(in->params->health, node, !es_addr_is_v4(&packet->flow.client),
					      in->now_ns + ES_SUSPEND_NS);
		else if (reason != ES_NACK_VANISHED)
			es_health_suspend(in->params->health, node, in->now_ns + ES_SUSPEND_NS);
		/*
		 * An earlier daemon may have made a later attempt, which is under way to the same node. A FIN
		 * before any request is for the server of this node, or for none.
		 */
		target = order->attempt > ES_ATTEMPTS_MAX || decided.is_inherited || !is_movable
				 ? -1
				 : es_inspect_route_again(in, flow_hash, packet, node, avoid, order);
	}
	/* Without another node it is tried there again: the loss may have been chance. */
	if (target == -1 && reason == ES_NACK_VANISHED && order->attempt <= ES_ATTEMPTS_MAX &&
	    !decided.is_inherited && is_movable)
		target = (int)node;
	if (target == ES_ROUTE_REJECT) {
		es_inspect_reject(in, flow_hash, packet,
				  packet->seg.seq + packet->seg.len + (uint32_t)missing, order);
		return;
	}
	if (target == ES_ROUTE_MORE) /* other nodes are tried with its client's first bytes */
		return;
	if (target < 0) {
		es_inspect_refuse(in, packet->bytes, packet->len);
		return;
	}
	order->unsafe = (uint8_t)es_inspect_packet_is_unsafe(in, order->service, packet);
	if (decided.is_inherited && target == (int)node)
		; /* it is still not known which attempt is the last one */
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

/* The family of the clients that a quoted message is about. */
static unsigned int es_message_family(const struct es_handover_back *back)
{
	if (back->header.kind == ES_HANDOVER_STRAYS || back->header.kind == ES_HANDOVER_STRAYS6)
		return back->header.kind == ES_HANDOVER_STRAYS6;
	return back->packet[0] >> 4 == 6;
}

/*
 * A node does not take handovers: an ICMP error says so that quotes one of the last messages with its MAC,
 * which nobody else could. The request goes to another node: at once, if the error quotes all of it (it has
 * 576 bytes at most, RFC 1812 section 4.3.2.3), else when its client repeats it. A message that was itself a
 * repetition proves nothing: its first copy may have arrived, and been served.
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
