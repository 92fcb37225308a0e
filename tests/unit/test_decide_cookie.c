// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The proofs in a segment's cookie for the decision function: under which key and by which clock it was made,
 * and whether this node must have heard its SYN.
 */
#include "cmocka_all.h"
#include "decide_view.h"
#include "kmod/core/view.h"

/* The clock was set: a cookie is judged by the clock before, too; by neither, it is none. */
static void test_clock_set(void **state)
{
	struct es_config cfg = config();

	(void)state;
	for (int ahead = -40; ahead <= 40; ahead++) {
		struct es_view v = request(&cfg, 0, SLOT);
		struct es_verdict verdict;

		v.slot = SLOT + (__u32)ahead;
		v.slot_before = SLOT;
		EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
		v.seg.len = 0;
		v.seg.seq = ISN;
		EXPECT(&cfg, &v, ES_ANSWER_ACK, keepalive_answered);
		v.seg.seq = ISN + 1;
		EXPECT(&cfg, &v, ES_DROP, drop_handshake_ack);
		/* A cookie that is made now is made by the present clock, and is good by it. */
		v.seg = (struct es_segment){.seq = ISN, .flags = ES_TCP_SYN};
		verdict = decide(&cfg, &v);
		assert_int_equal(es_cookie_check(&cfg.cookie_key[0], FLOW, v.slot, verdict.cookie, ISN, NULL),
				 ES_COOKIE_VALID);
		v = request(&cfg, 0, SLOT + (__u32)ahead);
		v.slot = SLOT + (__u32)ahead;
		v.slot_before = SLOT;
		EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
		v = request(&cfg, 0, SLOT - 100);
		v.slot = SLOT + (__u32)ahead;
		v.slot_before = SLOT;
		verdict = decide(&cfg, &v);
		assert_int_not_equal(verdict.action, ES_QUEUE_FIRST);
	}
}

/* Without timestamps, a cookie proves an ISN only if there was a SYN with it. */
static void test_unheard(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT), old = request(&cfg, 0, SLOT - 3);

	(void)state;
	v.heard = old.heard = 0;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.seg.flags |= ES_TCP_FIN;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.inspect = ES_INSPECT_NEVER;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	v.seg.len = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	/* This node was not there: it asks about a request, and ends nobody's connection. */
	v = request(&cfg, 0, SLOT);
	v.heard = v.heard_all = 0;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_unheard);
	for (old.heard_all = 0; old.heard_all < 2; old.heard_all++)
		EXPECT(&cfg, &old, ES_DROP, cookie_invalid);
	/* During a rotation, too. */
	cfg.key_count = 2;
	v = request(&cfg, 1, SLOT);
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	v.heard = 0;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	assert_true(es_view_needs_heard(&v));
	v.seg.has_ts = 1;
	assert_false(es_view_needs_heard(&v));
}

/* A node that was not there when the SYN arrived: the others know more of it. */
static void test_earlier(void **state)
{
	static const struct {
		unsigned int inspect, len, flags, doubtful;
	} cases[] = {
		{ES_INSPECT_FIRST, 100, 0, 0},	      {ES_INSPECT_EVERY, 100, 0, 1},
		{ES_INSPECT_NEVER, 100, 0, 0},	      {ES_INSPECT_NEVER, 100, 0, 1},
		{ES_INSPECT_FIRST, 1, 0, 0},	      {ES_INSPECT_NEVER, 1, 0, 0},
		{ES_INSPECT_FIRST, 0, ES_TCP_FIN, 0},
	};
	struct es_packet pkt = {};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct es_config cfg = config();
		struct es_view v = request(&cfg, 0, SLOT);
		struct es_record record = {};
		struct es_verdict verdict;

		v.heard = v.heard_all = 0;
		v.inspect = (__u8)cases[i].inspect;
		v.seg.len = cases[i].len;
		v.seg.flags |= cases[i].flags;
		v.doubtful = (__u8)cases[i].doubtful;
		v.unsafe = ES_UNSAFE_ALL;
		v.again_ms = ES_STRAY_AGAIN_MS - 1;
		EXPECT(&cfg, &v, v.inspect == ES_INSPECT_NEVER ? ES_DROP : ES_QUEUE_LATER, request_unheard);
		v.again_ms++;
		verdict = decide(&cfg, &v);
		assert_int_equal(verdict.action, ES_QUEUE_STRAY);
		es_view_record(&v, &verdict, &pkt, 0, 0, &record);
		assert_int_equal(record.kind, ES_RECORD_STRAY);
		assert_int_equal(record.flow, v.doubtful ? ES_FLOW_EARLIER_DOUBTFUL : ES_FLOW_EARLIER);
		/* Where many guess, it is believed in no case, and its client told so later. */
		v.many_guesses = 1;
		EXPECT(&cfg, &v, v.inspect == ES_INSPECT_NEVER ? ES_DROP : ES_QUEUE_LATER, request_unheard);
		v.many_guesses = 0;
		/* Nobody can ask. */
		v.inspector_alive = 0;
		EXPECT(&cfg, &v, ES_DROP, request_unheard);
		/* A segment that was believed before, or is proven, raises no question. */
		v.inspector_alive = 1;
		v.decision = es_decision_value(ISN, SELF, NOW_MS);
		assert_int_not_equal(decide(&cfg, &v).action, ES_QUEUE_STRAY);
		v.decision = 0;
		v.heard = 1;
		assert_int_not_equal(decide(&cfg, &v).action, ES_QUEUE_STRAY);
	}
}

/* The ISN that was heard is the one that the verdict is about. */
static void test_heard_isn(void **state)
{
	struct es_segment seg = {.seq = 0, .flags = ES_TCP_ACK};

	(void)state;
	assert_int_equal(es_syn_isn(&seg, 0), 0);
	assert_int_equal(es_syn_isn(&seg, 1), 0xffffffff);
	seg.flags |= ES_TCP_FIN;
	assert_int_equal(es_syn_isn(&seg, 0), 0xffffffff);
	seg = (struct es_segment){.seq = 0, .len = 1, .flags = ES_TCP_ACK};
	assert_int_equal(es_syn_isn(&seg, 0), 0xffffffff);
}

/*
 * A later segment that looks like a first one, as 1 of 2,048 does without timestamps: here is one. With a
 * decision for another first byte it counts as a later one; so do the FIN and the bare ACK after a request.
 */
static void test_later_segment_that_looks_first(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);
	unsigned int found = 0;

	(void)state;
	v.decision = es_decision_value(ISN, 1, NOW_MS - 60);
	for (__u32 at = 2; at < 100000; at++) {
		v.seg.seq = ISN + at;
		v.seg.len = 100;
		v.seg.flags = ES_TCP_ACK;
		if (es_cookie_check(&cfg.cookie_key[0], FLOW, SLOT, v.seg.ack - 1, v.seg.seq - 1, NULL) !=
		    ES_COOKIE_VALID)
			continue;
		found++;
		EXPECT(&cfg, &v, ES_DROP, drop_decided);
		v.seg.len = 0;
		v.seg.flags = ES_TCP_ACK | ES_TCP_FIN;
		EXPECT(&cfg, &v, ES_DROP, drop_decided);
		v.inspector_alive = 0;
		EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
		v.inspector_alive = 1;
	}
	assert_in_range(found, 20, 90);
	/* The handshake's ACK is never taken for a probe, whatever the cookie. */
	for (__u64 flow = 0; flow < 20000; flow++) {
		struct es_tcp_options o = {.mss = 1460};
		__u32 tsval;

		v = request(&cfg, 0, SLOT);
		v.flow_hash = flow;
		v.seg.ack = es_cookie_make_packed(&cfg.cookie_key[0], flow, SLOT, ISN,
						  es_cookie_options_pack(&o), &tsval) +
			    1;
		v.seg.len = 0;
		v.seg.flags = ES_TCP_ACK;
		EXPECT(&cfg, &v, ES_DROP, drop_handshake_ack);
	}
}

static void test_key_rotation(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 1, SLOT);

	(void)state;
	EXPECT(&cfg, &v, ES_DROP, cookie_invalid);
	cfg.key_count = 2;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	v = request(&cfg, 0, SLOT);
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	/* Some of these have the flow tag of the first key by chance: they are still first segments. */
	for (__u32 isn = 0; isn < 20000; isn++) {
		struct es_tcp_options o = {.mss = 1460, .wscale_ok = 1, .snd_wscale = 7, .sack_ok = 1};
		__u32 tsval;

		v = request(&cfg, 1, SLOT);
		v.flow_hash = FLOW + isn;
		v.seg.seq = isn + 1;
		v.seg.ack = es_cookie_make_packed(&cfg.cookie_key[1], v.flow_hash, SLOT, isn,
						  es_cookie_options_pack(&o), &tsval) +
			    1;
		EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock_set),
		cmocka_unit_test(test_unheard),
		cmocka_unit_test(test_earlier),
		cmocka_unit_test(test_heard_isn),
		cmocka_unit_test(test_later_segment_that_looks_first),
		cmocka_unit_test(test_key_rotation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
