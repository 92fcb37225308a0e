// SPDX-License-Identifier: GPL-2.0-or-later
/* Sends segments without a socket. */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include "netfilter/node/answer.h"
#include "netfilter/rules/rules.h"

/*
 * The kernel does not tell the MAC of a merged packet that it has split again (GRO, GSO). Then the stack
 * looks for it. Where nodes have leases, the answer must not wait for that: it would leave after the look at
 * the lease.
 */
static int send_to(const struct es_nf_node *node, const struct es_nf_frame *frame, const struct es_answer *a,
		   const void *packet, size_t len)
{
	static const uint8_t unknown[sizeof(frame->source)];
	const struct es_flow flow = {
		.client = a->is_v6 ? a->dest : es_addr_from_v4(a->daddr),
		.service = a->is_v6 ? a->source : es_addr_from_v4(a->saddr),
		.client_port = a->dport,
		.service_port = a->sport,
	};
	const struct es_nf_hands *hands = &node->hands;

	if (memcmp(frame->source, unknown, sizeof(unknown)) != 0)
		return hands->frame(hands->ctx, frame->source, a->is_v6 ? ETH_P_IPV6 : ETH_P_IP, packet, len);
	if (node->config.leased && !hands->reaches(hands->ctx, &flow, ES_NF_RULES_MARK, node->now_ns))
		return -EHOSTUNREACH;
	return hands->answer(hands->ctx, packet, len);
}

int es_nf_answer_send(const struct es_nf_node *node, const struct es_nf_frame *frame,
		      const struct es_answer *a)
{
	union es_answer_wire wire;
	union es_answer_wire6 wire6;

	if (a->is_v6)
		return send_to(node, frame, a, wire6.bytes, es_answer_write6(a, 0, &wire6));
	return send_to(node, frame, a, wire.bytes, es_answer_write(a, 0, &wire));
}
