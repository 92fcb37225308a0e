// SPDX-License-Identifier: GPL-2.0-or-later
/* The replay window against a model that remembers everything. */
#include "cmocka_all.h"
#include <stdlib.h>
#include <string.h>
#include "kmod/core/replay.h"

#define SPAN 100000

static void test_exactly_once(void **state)
{
	unsigned char *seen = calloc(SPAN, 1);
	struct es_replay window = {};
	uint64_t seed = 4;
	__u64 base = 0, last = 0;

	(void)state;
	assert_non_null(seen);
	for (int i = 0; i < 400000 && base < SPAN - 4000; i++) {
		__u64 r = es_test_random(&seed);
		__u64 sequence = 1 + base + r % 3000;
		int inside, got;

		/* mostly forward by little, sometimes by much */
		base += r >> 40 & 1;
		if ((r >> 41) % 5000 == 0)
			base += 2500;
		inside = sequence > last || last - sequence <= ES_REPLAY_WINDOW;
		got = es_replay_accept(&window, sequence);
		if (inside)
			assert_int_equal(got, !seen[sequence]);
		else
			assert_int_equal(got, 0);
		if (got)
			seen[sequence] = 1;
		if (sequence > last)
			last = sequence;
	}
	free(seen);
}

static void test_jumps(void **state)
{
	struct es_replay window = {};

	(void)state;
	assert_true(es_replay_accept(&window, 1ULL << 60));
	assert_false(es_replay_accept(&window, 1ULL << 60));
	assert_false(es_replay_accept(&window, 5));
	assert_true(es_replay_accept(&window, (1ULL << 60) - ES_REPLAY_WINDOW));
	assert_false(es_replay_accept(&window, (1ULL << 60) - ES_REPLAY_WINDOW - 1));
	for (__u64 i = 1; i <= 10000; i++)
		assert_true(es_replay_accept(&window, (1ULL << 60) + i));
	for (__u64 i = 1; i <= 10000; i++)
		assert_false(es_replay_accept(&window, (1ULL << 60) + i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exactly_once),
		cmocka_unit_test(test_jumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
