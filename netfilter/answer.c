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
	__u32 len = es_answer_write(a, 0, &wire);

	return node->hands.frame(node->hands.ctx, frame->source, ETH_P_IP, wire.bytes, len);
}
