// SPDX-License-Identifier: GPL-2.0-or-later
/* Which segments are of a connection that was ended here with a RST. */
#include <netinet/in.h>
#include "cmocka_all.h"
#include "kmod/core/resets.h"

#define FLOW 0x123456789abcdefULL
#define NOW  0xfffffff0u /* the clock wraps soon */

static void test_nothing_noted(void **state)
{
	const struct es_reset empty = {};

	(void)state;
	assert_false(es_reset_is_of(&empty, FLOW, 0, 0));
	assert_false(es_reset_is_of(&empty, FLOW, 0, ES_RESET_HOLD_MS));
}

static void test_for_a_while(void **state)
{
	struct es_reset r = {};

	(void)state;
	es_reset_note(&r, FLOW, 1000, 100, NOW);
	assert_true(es_reset_is_of(&r, FLOW, 1000, NOW));
	assert_true(es_reset_is_of(&r, FLOW, 1000, NOW + ES_RESET_HOLD_MS - 1));
	assert_false(es_reset_is_of(&r, FLOW, 1000, NOW + ES_RESET_HOLD_MS));
	assert_false(es_reset_is_of(&r, FLOW ^ 1ULL << 63, 1000, NOW));
}

/* Nobody looks when nothing can be found. */
static void test_worth_a_look(void **state)
{
	const __u64 at_ns = 5000000000ULL, hold_ns = ES_RESET_HOLD_MS * 1000000ULL;

	(void)state;
	assert_false(es_resets_are_fresh(0, 0));
	assert_false(es_resets_are_fresh(0, at_ns));
	assert_true(es_resets_are_fresh(at_ns, at_ns));
	assert_true(es_resets_are_fresh(at_ns, at_ns - 1)); /* another CPU's clock */
	assert_true(es_resets_are_fresh(at_ns, at_ns + hold_ns - 1));
	assert_false(es_resets_are_fresh(at_ns, at_ns + hold_ns));
}

/* Sequence numbers wrap too. */
static void test_what_was_under_way(void **state)
{
	static const __u32 firsts[] = {0, 1000, 0x80000000, 0xfffffff0};

	(void)state;
	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		struct es_reset r = {};
		__u32 first = firsts[i];

		es_reset_note(&r, FLOW, first, 5000, NOW);
		assert_true(es_reset_is_of(&r, FLOW, first, NOW));
		assert_true(es_reset_is_of(&r, FLOW, first + 5000, NOW));
		assert_false(es_reset_is_of(&r, FLOW, first - 1, NOW));
		assert_false(es_reset_is_of(&r, FLOW, first + 5001, NOW));
		assert_false(es_reset_is_of(&r, FLOW, first + 0x80000000, NOW));
		es_reset_note(&r, FLOW, first, 0, NOW);
		assert_true(es_reset_is_of(&r, FLOW, first, NOW));
		assert_false(es_reset_is_of(&r, FLOW, first + 1, NOW));
	}
}

/* A RST from no socket of the connection's: the inspector that sends it knows that nothing was under way. */
static void test_raw(void **state)
{
	(void)state;
	assert_int_equal(es_reset_under_way(IPPROTO_RAW), 0);
	assert_int_equal(es_reset_under_way(IPPROTO_TCP), ES_RESET_UNDER_WAY);
	assert_int_equal(es_reset_under_way(0), ES_RESET_UNDER_WAY);
}

static void test_begins_anew(void **state)
{
	struct es_reset r = {};

	(void)state;
	es_reset_note(&r, FLOW, 1000, 100, NOW);
	es_reset_forget(&r, FLOW + 1); /* another flow's */
	assert_true(es_reset_is_of(&r, FLOW, 1000, NOW));
	es_reset_forget(&r, FLOW);
	assert_false(es_reset_is_of(&r, FLOW, 1000, NOW));
	es_reset_note(&r, FLOW, 2000, 100, NOW);
	es_reset_note(&r, FLOW + 1, 3000, 100, NOW); /* the newest has the slot */
	assert_false(es_reset_is_of(&r, FLOW, 2000, NOW));
	assert_true(es_reset_is_of(&r, FLOW + 1, 3000, NOW));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_noted), cmocka_unit_test(test_for_a_while),
		cmocka_unit_test(test_worth_a_look),  cmocka_unit_test(test_what_was_under_way),
		cmocka_unit_test(test_begins_anew),   cmocka_unit_test(test_raw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
