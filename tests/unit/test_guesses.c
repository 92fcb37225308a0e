// SPDX-License-Identifier: GPL-2.0-or-later
/* Guessed cookies: how many there are, and what is believed without timestamps while there are many. */
#include <string.h>
#include "cmocka_all.h"
#include "decide_view.h"
#include "kmod/core/guesses.h"

#define NOW_S 1000000u

static void note(struct es_guesses *guesses, __u32 now_s, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		es_guess_note(guesses, now_s);
}

static void test_rate(void **state)
{
	struct es_guesses guesses = {};

	(void)state;
	assert_false(es_guesses_are_many(&guesses, 0));
	assert_false(es_guesses_are_many(&guesses, NOW_S));
	note(&guesses, NOW_S, ES_GUESSES_MAX);
	assert_false(es_guesses_are_many(&guesses, NOW_S));
	note(&guesses, NOW_S, 1);
	for (__u32 since = 0; since < 2; since++)
		assert_true(es_guesses_are_many(&guesses, NOW_S + since));
	for (__u32 since = 2; since < 6; since++)
		assert_false(es_guesses_are_many(&guesses, NOW_S + since));
	/* Few in many seconds are not many. */
	for (__u32 since = 2; since < 1000; since++) {
		note(&guesses, NOW_S + since, ES_GUESSES_MAX);
		assert_false(es_guesses_are_many(&guesses, NOW_S + since));
	}
}

/* Beyond the limit nothing is written, so that CPUs do not wait for each other. */
static void test_flood(void **state)
{
	struct es_guesses guesses = {}, before;

	(void)state;
	note(&guesses, NOW_S, ES_GUESSES_MAX + 1);
	before = guesses;
	note(&guesses, NOW_S, 100000);
	assert_memory_equal(&guesses, &before, sizeof(guesses));
	/* It goes on from second to second. */
	for (__u32 since = 1; since < 100; since++) {
		assert_true(es_guesses_are_many(&guesses, NOW_S + since));
		note(&guesses, NOW_S + since, 2 * ES_GUESSES_MAX);
	}
}

/* While many guess, a cookie alone is no proof, whatever this node has heard since when. */
static void test_many_guesses(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.many_guesses = 1;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	v.heard_all = 0;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	v.heard = 0;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_unheard);
	v.seg.flags |= ES_TCP_FIN;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_unheard);
	v.seg.len = 0;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_unheard);
	v.inspect = ES_INSPECT_NEVER;
	EXPECT(&cfg, &v, ES_DROP, request_unheard);
	v.inspect = ES_INSPECT_FIRST;
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_DROP, request_unheard);
	v.inspector_alive = 1;
	/* A client that goes on with the connection is told in the end: all nodes are asked. */
	v.again_ms = ES_STRAY_AGAIN_LATER_MS;
	EXPECT(&cfg, &v, ES_QUEUE_STRAY, stray_queued);
	/* The one that was believed before comes again. */
	v = request(&cfg, 0, SLOT);
	v.many_guesses = 1;
	v.heard = v.heard_all = 0;
	v.decision = es_decision_value(ISN, 1, NOW_MS - 300);
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	v.many_guesses = v.decision = 0;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_unheard);
	/* A client with timestamps proves more. */
	v.many_guesses = 1;
	v.seg.has_ts = 1;
	(void)es_cookie_make_packed(&cfg.cookie_key[0], FLOW, SLOT, ISN,
				    es_cookie_options_pack(&(struct es_tcp_options){
					    .mss = 1460, .wscale_ok = 1, .snd_wscale = 7, .sack_ok = 1}),
				    &v.seg.tsecr);
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
}

/*
 * A segment counts as a guess if its cookie is none, and it has neither timestamps nor a request that was
 * decided.
 */
static void test_guess(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	assert_int_equal(decide(&cfg, &v).guess, 0);
	v.seg.ack ^= 1;
	assert_int_equal(decide(&cfg, &v).counter, ES_COUNT_cookie_invalid);
	assert_int_equal(decide(&cfg, &v).guess, 1);
	v.seg.has_ts = 1;
	assert_int_equal(decide(&cfg, &v).guess, 0);
	v.seg.has_ts = 0;
	v.decision = es_decision_value(ISN, 1, NOW_MS);
	assert_int_equal(decide(&cfg, &v).guess, 0);
	v.decision = 0;
	v.mine = 0;
	assert_int_equal(decide(&cfg, &v).guess, 0);
	v.mine = 1;
	v.seg.len = 0;
	assert_int_equal(decide(&cfg, &v).guess, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_many_guesses),
		cmocka_unit_test(test_guess),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
