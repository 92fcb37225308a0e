/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_STRAY_WORLD_H
#define ES_TESTS_STRAY_WORLD_H

/*
 * Segments that nobody takes, and nodes that are asked about them. Include after cmocka.h.
 */
#include "membership/wire.h"
#include "tests/unit/inspect_world.h"

#define RSTS COUNT(send_failed) /* there is no raw socket */

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
static inline void versions(unsigned char understands)
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
static inline void answer(struct message *m, __u64 here)
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

static inline int due_after(unsigned int ms, struct message *m)
{
	in.now_ns += ms * 1000000ULL;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	return sent_to(m);
}

/* @is_v6: the message is about clients of IPv6 */
static inline unsigned int count_in(const struct message *m, int is_v6)
{
	union es_stray_service_any service;
	struct es_packet pkt = {};
	struct es_flow flow;
	unsigned int count;

	assert_int_equal(m->h.kind, is_v6 ? ES_HANDOVER_STRAYS6 : ES_HANDOVER_STRAYS);
	memcpy(&service, m->packet, es_stray_service_len(is_v6));
	count = es_stray_service_read(&service, is_v6, &pkt);
	assert_int_equal(m->len, es_strays_len(is_v6, count));
	es_packet_flow(&pkt, &flow);
	assert_int_equal(es_addr_is_v4(&flow.service), !is_v6);
	assert_int_equal(flow.service.w[3], is_v6 ? htonl(0x64) : htonl(0x0a4d0064));
	assert_int_equal(flow.service_port, htons(80));
	return count;
}

static inline unsigned int count_of(const struct message *m)
{
	return count_in(m, 0);
}

static inline struct es_stray_question question_of(const struct message *m, unsigned int i)
{
	struct es_stray_question question;

	assert_true(i < count_of(m));
	memcpy(&question, m->packet + sizeof(struct es_stray_service) + i * sizeof(question),
	       sizeof(question));
	return question;
}

static inline struct es_stray_question6 question6_of(const struct message *m, unsigned int i)
{
	struct es_stray_question6 question;

	assert_true(i < count_in(m, 1));
	memcpy(&question, m->packet + sizeof(struct es_stray_service6) + i * sizeof(question),
	       sizeof(question));
	return question;
}

/* Asked in turn, twice; @away: nobody asks that one. @node: who is asked first. */
static inline void all_say_no_but(struct message *m, int node, int away)
{
	for (int round = 0; round < 2; round++) {
		for (int next = 0; next < NODES; next++) {
			if (next == away)
				continue;
			if (round || next)
				node = sent_to(m);
			assert_int_equal(node, next);
			assert_int_equal(m->h.attempt, round);
			answer(m, 0);
		}
	}
	assert_int_equal(sent_to(m), -1);
}

#endif
