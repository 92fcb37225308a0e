// SPDX-License-Identifier: GPL-2.0-or-later
/* How long responses took: which bucket counts what, and quantiles of the last seconds. */
#include "cmocka_all.h"
#include <math.h>
#include <string.h>
#include "inspector/health/durations.h"

#define S_NS 1000000000ULL

static void test_buckets(void **state)
{
	struct es_durations d = {};

	(void)state;
	es_durations_add(&d, 1);
	es_durations_add(&d, 100000); /* its bound is in it */
	es_durations_add(&d, 100001);
	es_durations_add(&d, 60 * S_NS);
	es_durations_add(&d, 60 * S_NS + 1);
	assert_int_equal(d.count[0], 2);
	assert_int_equal(d.count[1], 1);
	assert_int_equal(d.count[ES_DURATION_BOUNDS - 1], 1);
	assert_int_equal(d.count[ES_DURATION_BOUNDS], 1);
	assert_true(fabs(d.sum_s - 120.0002) < 1e-6);
	for (int i = 1; i < ES_DURATION_BOUNDS; i++)
		assert_true(es_duration_bound_ns[i - 1] < es_duration_bound_ns[i]);
}

/* If there is one value only, all quantiles are that value, to 6.25%, whatever it is. */
static void test_one(void **state)
{
	(void)state;
	for (unsigned long long n = 1; n < 60000000000; n += n / 33 + 1) {
		struct es_durations_lately l = {};
		double us = (double)n, found;

		es_durations_lately_add(&l, n * 1000, S_NS);
		found = (double)es_durations_lately_us(&l, 0.99, S_NS);
		if (found < us / 1.0675 - 1 || found > us * 1.0675 + 1)
			fail_msg("%f us: got %f", us, found);
		assert_true(es_durations_lately_us(&l, 0.01, S_NS) == (unsigned long long)found);
	}
}

static void test_quantiles(void **state)
{
	struct es_durations_lately l = {};

	(void)state;
	assert_int_equal(es_durations_lately_us(&l, 0.99, 100 * S_NS), 0);
	for (int i = 1; i <= 1000; i++)
		es_durations_lately_add(&l, (unsigned long long)i * 1000000, 100 * S_NS);
	assert_in_range(es_durations_lately_us(&l, 0.5, 100 * S_NS), 469000, 531000);
	assert_in_range(es_durations_lately_us(&l, 0.99, 100 * S_NS), 929000, 1052000);
	/* One of a thousand is beyond the 99%, and the longest of all. */
	memset(&l, 0, sizeof(l));
	for (int i = 0; i < 999; i++)
		es_durations_lately_add(&l, 1000000, 100 * S_NS);
	es_durations_lately_add(&l, 3000 * S_NS, 100 * S_NS);
	assert_in_range(es_durations_lately_us(&l, 0.99, 100 * S_NS), 930, 1070);
	assert_in_range(es_durations_lately_us(&l, 1, 100 * S_NS), 2800000000, 3200000000);
}

/*
 * Values older than ten seconds are forgotten, values younger than five are not, with and without newer ones.
 */
static void test_lately(void **state)
{
	struct es_durations_lately l = {};

	(void)state;
	es_durations_lately_add(&l, 8000000, 100 * S_NS);
	assert_true(es_durations_lately_us(&l, 0.99, 104 * S_NS) > 7000);
	assert_true(es_durations_lately_us(&l, 0.99, 109 * S_NS) > 7000);
	assert_int_equal(es_durations_lately_us(&l, 0.99, 110 * S_NS), 0);
	es_durations_lately_add(&l, 50000, 106 * S_NS);
	assert_true(es_durations_lately_us(&l, 0.99, 106 * S_NS) > 7000);
	assert_in_range(es_durations_lately_us(&l, 0.99, 111 * S_NS), 48, 52);
	es_durations_lately_add(&l, 20000, 130 * S_NS);
	assert_in_range(es_durations_lately_us(&l, 1, 130 * S_NS), 19, 21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_quantiles),
		cmocka_unit_test(test_lately),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
