// SPDX-License-Identifier: GPL-2.0-or-later
/* Ten minutes of counters in samples. */
#include "cmocka_all.h"
#include "inspector/status/history.h"

#define STEP_NS (ES_HISTORY_STEP_S * 1000000000ULL)

static struct es_history history;

static void test_samples(void **state)
{
	struct es_history_totals totals = {.identity = 1, .node_count = 2, .requests = {1000, 5}};
	unsigned long long now_ns = STEP_NS;
	double errors;

	(void)state;
	assert_true(es_history_rate(&history, &totals, now_ns, &errors) <= 0);
	es_history_add(&history, &totals, now_ns); /* what was before is not of these minutes */
	assert_int_equal(history.count, 0);
	for (unsigned int i = 1; i <= ES_HISTORY_SAMPLES + 3; i++) {
		totals.requests[0] += i;
		totals.errors += 1;
		es_history_add(&history, &totals, now_ns += STEP_NS);
	}
	assert_int_equal(history.count, ES_HISTORY_SAMPLES);
	assert_int_equal(es_history_get(&history, 0, 0), 4);
	assert_int_equal(es_history_get(&history, 0, ES_HISTORY_SAMPLES - 1), ES_HISTORY_SAMPLES + 3);
	assert_int_equal(es_history_get(&history, 1, 7), 0);
	totals.requests[1] += 77;
	assert_true(es_history_rate(&history, &totals, now_ns + STEP_NS, &errors) * 10 == 123 + 77);
	assert_true(errors * 10 == 1);
}

static void test_begins_anew(void **state)
{
	struct es_history_totals totals = {.identity = 2, .node_count = 2, .requests = {9}};
	double errors;

	(void)state;
	es_history_add(&history, &totals, STEP_NS);
	assert_int_equal(history.count, 0);
	totals.requests[0] = 3; /* of a daemon that began anew */
	es_history_add(&history, &totals, 2 * STEP_NS);
	assert_int_equal(es_history_get(&history, 0, 0), 0);
	totals.identity = 3;
	assert_true(es_history_rate(&history, &totals, 3 * STEP_NS, &errors) <= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
