// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sends the segments that no socket sends.
 */
#include <linux/if_ether.h>
#include "netfilter/answer.h"

int es_nf_answer_send(const struct es_nf_node *node, const struct es_nf_frame *frame,
		      const struct es_answer *a)
{
	union es_answer_wire wire;
	union es_answer_wire6 wire6;
	__u32 len;

	if (a->is_v6) {
		len = es_answer_write6(a, 0, &wire6);
		return node->hands.frame(node->hands.ctx, frame->source, ETH_P_IPV6, wire6.bytes, len);
	}
	len = es_answer_write(a, 0, &wire);
	return node->hands.frame(node->hands.ctx, frame->source, ETH_P_IP, wire.bytes, len);
}
