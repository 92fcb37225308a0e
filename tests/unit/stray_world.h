/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_STRAY_WORLD_H
#define ES_TESTS_STRAY_WORLD_H

/*
 * Segments that nobody takes, and nodes that are asked about them. Include after cmocka.h.
 */
#include "membership/wire.h"
#include "tests/unit/inspect_world.h"

static inline void stray_of(unsigned int number, const char *text, uint8_t flags, enum es_record_flow flow)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, 1, text, bytes);

	record.kind = ES_RECORD_STRAY;
	record.flow = (uint8_t)flow;
	bytes[tcp_at() + 13] = flags;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

/* All nodes are of this version, or of the one before. */
static void versions(unsigned char understands)
{
	for (int node = 0; node < NODES; node++)
		health.understands[node] = understands;
}

/* Take one message that went to @node; returns 0 if there is none. */
static inline int taken_by(int node, struct message *m)
{
	socklen_t len = sizeof(m->from);
	ssize_t got = recvfrom(receiver[node], m, sizeof(m->h) + sizeof(m->packet), 0,
			       (struct sockaddr *)&m->from, &len);

	m->len = got < 0 ? 0 : (size_t)got - sizeof(m->h);
	return got > 0;
}

/* A datapath's answer to the message; @here: a bit for each connection that the node may have. */
static void answer(struct message *m, __u64 here)
{
	struct es_handover h = m->h;

	if (m->h.kind == ES_HANDOVER_STRAY) {
		nack(m, here ? ES_NACK_HERE : ES_NACK_NOT_HERE);
		return;
	}
	m->h.here = (__be64)es_cpu_be64(here);
	m->len = ES_STRAYS_KEPT;
	m->h.packet_len = htons((uint16_t)m->len);
	nack(m, ES_NACK_STRAYS);
	m->h = h;
}

#endif
