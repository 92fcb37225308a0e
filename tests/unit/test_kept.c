// SPDX-License-Identifier: GPL-2.0-or-later
/* Other nodes' idle connections: notes of the datapath's, and what it tells the inspector. */
#include "cmocka_all.h"
#include "kmod/core/kept.h"
#include "kmod/core/plan.h"

#define FLOW 0x123456789abcdefULL
#define SEQ  0xfffffff0u /* the number after a few bytes is a small one */

static struct es_kept_slot slot_of(int is_orphan)
{
	return (struct es_kept_slot){.flow_hash = FLOW, .seq = SEQ, .is_orphan = (__u8)is_orphan};
}

/* A request is noted when it is heard, and told of when it comes again; nothing else is. */
static void test_repeated(void **state)
{
	struct es_kept_slot slot = slot_of(0);

	(void)state;
	assert_int_equal(es_kept_hear(&slot, FLOW + 1, SEQ, 1), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(es_kept_hear(&slot, FLOW, SEQ + 1, 1), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(slot.is_heard, 0);
	assert_int_equal(es_kept_hear(&slot, FLOW, SEQ, 1), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(slot.is_heard, 1);
	assert_int_equal(es_kept_hear(&slot, FLOW, SEQ + 1, 0), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(es_kept_hear(&slot, FLOW + 1, SEQ, 0), ES_KEPT_SAYS_NOTHING);
	for (int is_mine = 0; is_mine <= 1; is_mine++)
		assert_int_equal(es_kept_hear(&slot, FLOW, SEQ, is_mine), ES_KEPT_SAYS_TELL);
}

/* That of a lost node is this one's to go on with, if the flow is. */
static void test_orphan(void **state)
{
	struct es_kept_slot slot = slot_of(1);

	(void)state;
	assert_int_equal(es_kept_hear(&slot, FLOW, SEQ, 1), ES_KEPT_SAYS_MINE);
	assert_int_equal(es_kept_hear(&slot, FLOW, SEQ + ES_KEPT_REQUEST_MAX - 1, 1), ES_KEPT_SAYS_MINE);
	assert_int_equal(es_kept_hear(&slot, FLOW, SEQ + ES_KEPT_REQUEST_MAX, 1), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(es_kept_hear(&slot, FLOW, SEQ - 1, 1), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(slot.is_heard, 0);
	assert_int_equal(es_kept_hear(&slot, FLOW, SEQ, 0), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(es_kept_hear(&slot, FLOW, SEQ, 0), ES_KEPT_SAYS_TELL);
}

/* A client's answer: what it has sent is behind the request's first byte, and this node may go on with it. */
static void test_answer(void **state)
{
	struct es_kept_slot slot = slot_of(1);

	(void)state;
	assert_int_equal(es_kept_answers(&slot, FLOW, SEQ + 20, 1), ES_KEPT_SAYS_NOTHING);
	slot.is_asked = 1;
	assert_int_equal(es_kept_answers(&slot, FLOW + 1, SEQ + 20, 1), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(es_kept_answers(&slot, FLOW, SEQ + 20, 0), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(es_kept_answers(&slot, FLOW, SEQ, 1), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(es_kept_answers(&slot, FLOW, SEQ - 1, 1), ES_KEPT_SAYS_NOTHING);
	assert_int_equal(es_kept_answers(&slot, FLOW, SEQ + ES_KEPT_REQUEST_MAX + 1, 1),
			 ES_KEPT_SAYS_NOTHING);
	assert_int_equal(es_kept_answers(&slot, FLOW, SEQ + ES_KEPT_REQUEST_MAX, 1), ES_KEPT_SAYS_TELL);
	assert_int_equal(es_kept_answers(&slot, FLOW, SEQ + ES_KEPT_REQUEST_MAX, 1), ES_KEPT_SAYS_NOTHING);
}

/* Bare acknowledgments cost a look at the table only while somebody was asked. */
static void test_which(void **state)
{
	const __u64 now_ns = 100 * 1000000000ULL;
	struct es_view v = {.survives = 1, .mine = 1, .seg = {.flags = ES_TCP_ACK, .len = 1}};

	(void)state;
	assert_true(es_view_may_be_kept(&v, 0, now_ns));
	v.seg.len = 0;
	assert_false(es_view_may_be_kept(&v, 0, now_ns));
	assert_false(es_view_may_be_kept(&v, 100, now_ns));
	assert_true(es_view_may_be_kept(&v, 101, now_ns));
	v.seg.flags = ES_TCP_ACK | ES_TCP_FIN;
	assert_false(es_view_may_be_kept(&v, 101, now_ns));
	v.seg.flags = ES_TCP_ACK | ES_TCP_RST;
	assert_false(es_view_may_be_kept(&v, 101, now_ns));
	v.seg.flags = ES_TCP_ACK;
	v.mine = 0;
	assert_false(es_view_may_be_kept(&v, 101, now_ns));
	v.mine = 1;
	v.socket = ES_SOCKET_ESTABLISHED;
	assert_false(es_view_may_be_kept(&v, 101, now_ns));
	v.socket = ES_SOCKET_NONE;
	v.survives = 0;
	assert_false(es_view_may_be_kept(&v, 101, now_ns));
}

/*
 * A segment that is told of would be dropped otherwise, also as another node's; an inspector that is dead is
 * told nothing.
 */
static void test_told(void **state)
{
	static const struct es_config cfg = {.leased = 1, .race_window_ms = 1000, .self = 1};
	struct es_view v = {.seg = {.flags = ES_TCP_ACK, .len = 10, .has_ts = 1}, .kept_tells = 1};

	(void)state;
	for (int is_alive = 0; is_alive <= 1; is_alive++) {
		struct es_verdict verdict = {};
		struct es_public_plan plan;

		v.inspector_alive = (__u8)is_alive;
		assert_int_equal(es_is_anothers(&v), !is_alive);
		es_decide(&cfg, &v, &verdict);
		es_plan_public(&v, &verdict, ES_WAY_AGAIN, &plan);
		assert_int_equal(plan.steps, is_alive ? ES_PUBLIC_STEP(queue) : 0);
		assert_int_equal(plan.counter, is_alive ? ES_COUNT_kept_queued : ES_COUNT_drop_not_mine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeated), cmocka_unit_test(test_orphan), cmocka_unit_test(test_answer),
		cmocka_unit_test(test_which),	 cmocka_unit_test(test_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
