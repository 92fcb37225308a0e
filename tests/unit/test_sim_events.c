// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The simulator's event queue: by time, and in the order of putting in what has the same time.
 */
#include "cmocka_all.h"
#include "sim/events.h"

static void test_order(void **state)
{
	static const __u64 times[] = {50, 10, 30, 10, 0, 50, 10};
	static const __u32 expected[] = {4, 1, 3, 6, 2, 0, 5};
	struct es_events events = {};
	struct es_sim_event event;

	(void)state;
	for (__u32 i = 0; i < 7; i++)
		assert_int_equal(es_events_put(&events, times[i], 3, i), 0);
	for (__u32 i = 0; i < 7; i++) {
		assert_int_equal(es_events_take(&events, &event), 1);
		assert_int_equal(event.whom, expected[i]);
		assert_int_equal(event.at_ns, times[expected[i]]);
		assert_int_equal(event.what, 3);
	}
	assert_int_equal(es_events_take(&events, &event), 0);
	es_events_fini(&events);
}

/* As a simulation does it: take one, put in some that are later. */
static void test_random(void **state)
{
	struct es_events events = {};
	struct es_sim_event event;
	__u64 last_ns = 0, last_order = 0;
	uint64_t seed = 7;
	unsigned int taken = 0, put = 0;

	(void)state;
	for (; put < 3000; put++)
		assert_int_equal(es_events_put(&events, es_test_random(&seed) % 1000, 0, put), 0);
	while (es_events_take(&events, &event)) {
		if (taken++) {
			assert_true(event.at_ns >= last_ns);
			assert_true(event.at_ns > last_ns || event.order > last_order);
		}
		last_ns = event.at_ns;
		last_order = event.order;
		if (put < 20000) {
			assert_int_equal(
				es_events_put(&events, last_ns + es_test_random(&seed) % 100, 0, put), 0);
			put++;
		}
	}
	assert_int_equal(taken, put);
	es_events_fini(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
