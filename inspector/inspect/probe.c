// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks the client of an open connection here whether it still has that connection, since the datapath wants
 * to know (kmod/core/challenges.h). The question is a keep-alive probe, which a client answers however idle
 * the connection is; the socket gets the answer.
 */
#include "inspector/inspect/internal.h"

void es_inspect_probe(struct es_inspector *in, const struct es_ip_packet *next)
{
	struct es_ip_packet before = *next;
	uint8_t probe[ES_ANSWER_HEADER_MAX];

	before.seg.ack--;
	es_inspect_reply(in, &next->flow, probe,
			 es_ip_packet_answer(&before, next->seg.seq, ES_TCP_ACK, next->bytes, 0, probe));
}
