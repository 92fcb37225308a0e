// SPDX-License-Identifier: GPL-2.0-or-later
/* When a segment that nobody takes is worth a question. */
#include "cmocka_all.h"
#include "kmod/core/strays.h"

#define FLOW 0x123456789abcdefULL
#define NOW  0xffffff00u /* the clock wraps soon */

static void test_again_and_again(void **state)
{
	struct es_stray s = {};

	(void)state;
	assert_false(es_stray_came_again(&s, FLOW, 1000, NOW));
	assert_false(es_stray_came_again(&s, FLOW, 1000, NOW));
	assert_false(es_stray_came_again(&s, FLOW, 1000, NOW + ES_STRAY_AGAIN_MS - 1));
	assert_true(es_stray_came_again(&s, FLOW, 1000, NOW + ES_STRAY_AGAIN_MS));
	/* Not with each segment from now on. */
	assert_false(es_stray_came_again(&s, FLOW, 1000, NOW + ES_STRAY_AGAIN_MS));
	assert_false(es_stray_came_again(&s, FLOW, 1000, NOW + 2 * ES_STRAY_AGAIN_MS - 1));
	assert_true(es_stray_came_again(&s, FLOW, 1000, NOW + 2 * ES_STRAY_AGAIN_MS));
	/* A client that waits long between two tries: 120 s at most, RFC 6298 section 2. */
	assert_true(es_stray_came_again(&s, FLOW, 1000, NOW + 240000));
}

/* What goes on is acknowledged by somebody. */
static void test_another_segment(void **state)
{
	struct es_stray s = {};
	__u32 now = NOW;

	(void)state;
	for (__u32 seq = 0xfffff000; seq != 0x1000; seq += 0x100, now += ES_STRAY_AGAIN_MS)
		assert_false(es_stray_came_again(&s, FLOW, seq, now));
	assert_false(es_stray_came_again(&s, FLOW + 1, 0xf00, now));
	assert_false(
		es_stray_came_again(&s, FLOW, 0xf00, now + ES_STRAY_AGAIN_MS)); /* the newest has the slot */
}

static void test_index(void **state)
{
	(void)state;
	for (__u64 i = 0; i < 100000; i++)
		assert_in_range(es_stray_index(i * 0x9e3779b97f4a7c15ULL), 0, ES_STRAYS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again_and_again),
		cmocka_unit_test(test_another_segment),
		cmocka_unit_test(test_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
