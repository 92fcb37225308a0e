// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What comes back to the worker's socket: requests that their target refused (NACK), whole, which are given
 * to another node, and the kernel's word that no datapath runs there.
 */
#include <errno.h>
#include "inspector/inspect_internal.h"

/* How long a node that refused a request is left alone. */
#define ES_SUSPEND_NS 1000000000ULL

/* The node for a request that came back from another, whose head may be in more segments than this one. */
static int es_inspect_route_again(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
				  struct es_handover_order *order)
{
	struct es_request_view request = {
		.flow_hash = flow_hash,
		.current = -1,
		.client = &packet->flow.client,
		.client_port = es_ntohs(packet->flow.client_port),
		.truncated = 1, /* what was gathered of it is not here any more */
	};
	const char *text = (const char *)es_ip_packet_payload(packet);

	es_http_head_init(&in->head);
	es_http_head_scan(&in->head, text, packet->seg.len);
	es_request_describe(&request, &in->head, text, packet->seg.len);
	if (order->service >= in->cluster->conf->service_count ||
	    (in->head.result != ES_HTTP_DONE && in->head.result != ES_HTTP_AMBIGUOUS))
		return es_route_fallback(&in->router, &request, in->now_ns);
	return es_route_again(&in->router, order->service, &request, in->now_ns, &order->rejection);
}

/* A target refused: the packet comes back whole, so it is decided again without any state kept for it. */
static void es_inspect_nack(struct es_inspector *in, const struct es_handover *nack, const uint8_t *bytes,
			    size_t len)
{
	struct es_handover_order order;
	struct es_ip_packet packet;
	unsigned int source = nack->source;
	__u64 flow_hash;
	uint32_t cookie;
	int target;

	if (source >= in->cluster->conf->node_count || es_ip_packet_parse(bytes, len, &packet)) {
		es_inspect_count(in, ES_WORKER_nack_bad);
		return;
	}
	es_handover_order_of(nack, &order);
	order.attempt++;
	cookie = packet.seg.ack - 1;
	flow_hash = es_flow_hash(&in->keys.ring, &packet.flow);
	if (!order.moved && !es_inspect_is_mine(in, flow_hash)) {
		es_inspect_count(in, ES_WORKER_not_mine);
		return;
	}
	if (nack->nack == ES_NACK_SILENT)
		in->unsure_until_ns = in->now_ns + ES_SUSPEND_NS;
	if (nack->nack == ES_NACK_RETRY && order.attempt <= in->cluster->conf->node_count) {
		target = (int)source;
	} else {
		es_inspect_count(in, ES_WORKER_nacks);
		es_health_suspend(in->params->health, source, in->now_ns + ES_SUSPEND_NS);
		target = order.attempt > in->cluster->conf->node_count
				 ? -1
				 : es_inspect_route_again(in, flow_hash, &packet, &order);
	}
	if (target == ES_ROUTE_REJECT) {
		es_inspect_reject(in, flow_hash, &packet, packet.seg.seq + packet.seg.len, &order);
		return;
	}
	if (target < 0) {
		es_inspect_refuse(in, bytes, len);
		return;
	}
	if (order.moved)
		es_inspect_note(in, flow_hash, cookie, packet.seg.seq, (unsigned int)target, &order);
	else
		es_inspect_note_first(in, flow_hash, cookie, packet.seg.seq, (unsigned int)target, &order);
	es_inspect_send(in, &order, &packet, 0, (unsigned int)target);
}

void es_inspect_messages(struct es_inspector *in)
{
	uint8_t packet[ES_HANDOVER_PACKET_MAX];
	struct es_sipkey keys[ES_KEYS_MAX];
	struct es_handover header;
	unsigned int node = 0;
	int len;

	for (unsigned int i = 0; i < in->keys.count; i++)
		keys[i] = in->keys.key[i].handover;
	for (unsigned int i = 0; i < ES_HANDOVER_BATCH; i++) {
		len = es_handover_receive(in->sender, keys, in->keys.count, &node, &header, packet);
		if (!len)
			break;
		if (len > 0 && header.kind == ES_HANDOVER_NACK) {
			es_inspect_nack(in, &header, packet, (size_t)len);
		} else if (len == -ECONNREFUSED) {
			es_inspect_count(in, ES_WORKER_unreachable);
			es_health_suspend(in->params->health, node, in->now_ns + ES_SUSPEND_NS);
		} else {
			es_inspect_count(in, ES_WORKER_nack_bad);
		}
	}
}
