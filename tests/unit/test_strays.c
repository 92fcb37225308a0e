// SPDX-License-Identifier: GPL-2.0-or-later
/* When a segment that nobody takes is worth a question. */
#include "cmocka_all.h"
#include "kmod/core/handover.h"
#include "kmod/core/strays.h"

#define FLOW 0x123456789abcdefULL
#define NOW  0xffffff00u /* the clock wraps soon */

static void test_again_and_again(void **state)
{
	struct es_stray s = {};

	(void)state;
	assert_int_equal(es_stray_note(&s, FLOW, 1000, NOW), 0);
	assert_int_equal(es_stray_note(&s, FLOW, 1000, NOW), 0);
	assert_int_equal(es_stray_note(&s, FLOW, 1000, NOW + 499), 499);
	assert_int_equal(es_stray_note(&s, FLOW, 1000, NOW + 1400), 1400);
	es_stray_asked(&s, NOW + 1400);
	assert_int_equal(es_stray_note(&s, FLOW, 1000, NOW + 1500), 100);
	/* A client that waits long between two tries: 120 s at most, RFC 6298 section 2. */
	assert_int_equal(es_stray_note(&s, FLOW, 1000, NOW + 241400), 240000);
}

/* A connection that goes on is acknowledged by somebody. */
static void test_another_segment(void **state)
{
	struct es_stray s = {};
	__u32 now = NOW;

	(void)state;
	for (__u32 seq = 0xfffff000; seq != 0x1000; seq += 0x100, now += 1000)
		assert_int_equal(es_stray_note(&s, FLOW, seq, now), 0);
	assert_int_equal(es_stray_note(&s, FLOW + 1, 0xf00, now), 0);
	assert_int_equal(es_stray_note(&s, FLOW, 0xf00, now + 1000), 0); /* the newest has the slot */
}

/* A decision of this node about a request that acknowledged @ack. */
static struct es_decision decided(__u64 flow_hash, __u32 ack, __u64 value)
{
	return (struct es_decision){.key = es_decision_key(flow_hash, ack - 1), .value = value};
}

/* A request that this node gave away, with the segment's acknowledgment. */
static void test_on_its_way(void **state)
{
	const struct es_decision_set none = {};
	struct es_decision_set set = {.way[3] = decided(FLOW, 77, es_decision_value(1000, 2, NOW))};

	(void)state;
	assert_false(es_stray_is_on_its_way(&none, FLOW, 1, 1001, 77, NOW));
	assert_false(es_stray_is_on_its_way(&set, FLOW + 1, 1, 1001, 77, NOW));
	/* Its first segment: sent again to its target, however long ago that was. */
	assert_true(es_stray_is_on_its_way(&set, FLOW, 1, 1001, 77, NOW));
	assert_true(es_stray_is_on_its_way(&set, FLOW, 1, 1001, 77, NOW + 1000000));
	/* Another node inspects the flow by now: nobody here sends it again, but it may be under way yet. */
	assert_true(es_stray_is_on_its_way(&set, FLOW, 0, 1001, 77, NOW + ES_STRAY_ON_ITS_WAY_MS - 1));
	assert_false(es_stray_is_on_its_way(&set, FLOW, 0, 1001, 77, NOW + ES_STRAY_ON_ITS_WAY_MS));
	/* Where it moved its connection, that is no matter of the ring. */
	set.way[3].value |= ES_DECISION_MOVED;
	assert_true(es_stray_is_on_its_way(&set, FLOW, 0, 1001, 77, NOW + 1000000));
	set.way[3].value &= ~ES_DECISION_MOVED;
	/* Segments after its first one. */
	assert_true(es_stray_is_on_its_way(&set, FLOW, 1, 5001, 77, NOW));
	assert_true(es_stray_is_on_its_way(&set, FLOW, 1, 5001, 77, NOW - 10)); /* another CPU's clock */
	assert_true(es_stray_is_on_its_way(&set, FLOW, 1, 5001, 77, NOW + ES_STRAY_ON_ITS_WAY_MS - 1));
	assert_false(es_stray_is_on_its_way(&set, FLOW, 1, 5001, 77, NOW + ES_STRAY_ON_ITS_WAY_MS));
}

/*
 * The client was answered while the question was on its way, and has sent another request, which moved its
 * connection. Then nobody may have it at this moment, and nobody remembers that one.
 */
static void test_outdated(void **state)
{
	static const __u32 acks[] = {1, 77, 0x80000000, 0xfffffff0};

	(void)state;
	for (size_t i = 0; i < sizeof(acks) / sizeof(acks[0]); i++) {
		__u32 later = acks[i] + 1000, now = NOW + ES_STRAY_ON_ITS_WAY_MS - 1;
		struct es_decision_set set = {
			.way[1] = decided(FLOW, later, es_decision_value(3000, 2, NOW) | ES_DECISION_MOVED)};

		assert_true(es_stray_is_on_its_way(&set, FLOW, 1, 1001, acks[i], now));
		assert_false(es_stray_is_on_its_way(&set, FLOW, 1, 1001, acks[i], now + 1));
		assert_false(es_stray_is_on_its_way(&set, FLOW + 1, 1, 1001, acks[i], now));
		/* It is about another request: who has moved this one's connection away has it no more. */
		assert_false(es_stray_is_on_its_way(&set, FLOW, 1, 5001, later + 1, now));
	}
}

static void test_index(void **state)
{
	(void)state;
	for (__u64 i = 0; i < 100000; i++)
		assert_in_range(es_stray_index(i * 0x9e3779b97f4a7c15ULL), 0, ES_STRAYS - 1);
}

static void test_many(void **state)
{
	union es_stray_question_any question = {
		.v4 = {.client = 1, .port = 2, .seq = es_htonl(7), .ack = es_htonl(9)}};
	const union es_stray_service_any service = {.v4 = {.address = 3, .port = 4, .count = es_htons(5)}};
	struct es_packet pkt = {};
	struct es_segment seg = {};

	(void)state;
	assert_int_equal(es_strays_len(0, 0), 0);
	assert_int_equal(es_strays_len(0, 1), 24);
	assert_int_equal(es_strays_len(0, 64), 1032);
	assert_int_equal(es_strays_len(0, 65), 0);
	assert_int_equal(es_stray_service_read(&service, 0, &pkt), 5);
	assert_true(pkt.daddr == 3 && pkt.dport == 4 && !pkt.is_v6);
	for (unsigned int flags = 0; flags < 256; flags++) {
		question.v4.flags = (__u8)flags;
		assert_int_equal(!es_stray_question_read(&question, &pkt, &seg),
				 (flags & ES_TCP_ACK) && !(flags & (ES_TCP_SYN | ES_TCP_RST)));
	}
	question.v4.flags = ES_TCP_ACK | ES_TCP_FIN;
	assert_int_equal(es_stray_question_read(&question, &pkt, &seg), 0);
	assert_true(seg.seq == 7 && seg.ack == 9 && seg.flags == (ES_TCP_ACK | ES_TCP_FIN));
	assert_true(pkt.saddr == 1 && pkt.sport == 2 && pkt.daddr == 3 && pkt.dport == 4);
}

/*
 * Questions about IPv6 have a format of their own; with its envelope the longest fits into the smallest frame
 * that IPv6 demands.
 */
static void test_many_of_v6(void **state)
{
	union es_stray_question_any question = {.v6 = {.client = {.b = {[0] = 0x20, [15] = 1}},
						       .port = 2,
						       .flags = ES_TCP_ACK,
						       .seq = es_htonl(7),
						       .ack = es_htonl(9)}};
	const union es_stray_service_any service = {
		.v6 = {.address = {.b = {[0] = 0x20, [15] = 3}}, .port = 4, .count = es_htons(5)}};
	struct es_packet pkt = {};
	struct es_segment seg = {};

	(void)state;
	assert_int_equal(es_strays_len(1, 0), 0);
	assert_int_equal(es_strays_len(1, 1), 52);
	assert_int_equal(es_strays_len(1, 40), 1144);
	assert_in_range(es_strays_len(1, 40) + ES_HANDOVER_OVERHEAD_V6, 0, 1280);
	assert_int_equal(es_strays_len(1, 41), 0);
	assert_int_equal(es_stray_service_read(&service, 1, &pkt), 5);
	assert_int_equal(es_stray_question_read(&question, &pkt, &seg), 0);
	assert_true(pkt.is_v6 && es_addr_equal(&pkt.source, &question.v6.client) && pkt.sport == 2 &&
		    es_addr_equal(&pkt.dest, &service.v6.address) && pkt.dport == 4);
	assert_true(seg.seq == 7 && seg.ack == 9 && seg.flags == ES_TCP_ACK);
	question.v6.flags = ES_TCP_SYN | ES_TCP_ACK;
	assert_int_equal(es_stray_question_read(&question, &pkt, &seg), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again_and_again), cmocka_unit_test(test_another_segment),
		cmocka_unit_test(test_on_its_way),	cmocka_unit_test(test_outdated),
		cmocka_unit_test(test_index),		cmocka_unit_test(test_many),
		cmocka_unit_test(test_many_of_v6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
