// SPDX-License-Identifier: GPL-2.0-or-later
/* Ten minutes of figures in samples. */
#include "cmocka_all.h"
#include "inspector/status/history.h"

#define STEP_NS (ES_HISTORY_STEP_S * 1000000000ULL)

static struct es_history history;

/* Two counters and a gauge. */
static void test_samples(void **state)
{
	unsigned long long value[3] = {1000, 5, 40}, now_ns = STEP_NS;
	const struct es_history_figures figures = {.identity = 1, .series = 3, .counters = 2, .value = value};

	(void)state;
	assert_true(es_history_rate(&history, &figures, now_ns, 0) <= 0);
	es_history_add(&history, &figures, now_ns); /* what was before is not of these minutes */
	assert_int_equal(history.count, 0);
	for (unsigned int i = 1; i <= ES_HISTORY_SAMPLES + 3; i++) {
		value[0] += i;
		value[2] = 7 * i;
		es_history_add(&history, &figures, now_ns += STEP_NS);
	}
	assert_int_equal(history.count, ES_HISTORY_SAMPLES);
	assert_int_equal(es_history_get(&history, 0, 0), 4);
	assert_int_equal(es_history_get(&history, 0, ES_HISTORY_SAMPLES - 1), ES_HISTORY_SAMPLES + 3);
	assert_int_equal(es_history_get(&history, 1, 7), 0);
	assert_int_equal(es_history_get(&history, 2, 0), 28);
	value[1] += 77;
	assert_true(es_history_rate(&history, &figures, now_ns + STEP_NS, 0) * 10 == 123);
	assert_true(es_history_rate(&history, &figures, now_ns + STEP_NS, 1) * 10 == 77);
	value[2] = ~0ULL; /* nothing gets around */
	es_history_add(&history, &figures, now_ns + STEP_NS);
	assert_int_equal(es_history_get(&history, 2, ES_HISTORY_SAMPLES - 1), ~0U);
}

static void test_begins_anew(void **state)
{
	unsigned long long value[4] = {9, 0, 0, 0};
	struct es_history_figures figures = {.identity = 2, .series = 3, .counters = 3, .value = value};

	(void)state;
	es_history_add(&history, &figures, STEP_NS);
	assert_int_equal(history.count, 0);
	value[0] = 3; /* of a daemon that began anew */
	es_history_add(&history, &figures, 2 * STEP_NS);
	assert_int_equal(es_history_get(&history, 0, 0), 0);
	figures.identity = 3;
	assert_true(es_history_rate(&history, &figures, 3 * STEP_NS, 0) <= 0);
	figures.series = figures.counters = 4; /* there is one more */
	es_history_add(&history, &figures, 3 * STEP_NS);
	assert_true(history.series == 4 && !history.count);
	es_history_add(&history, &figures, 4 * STEP_NS);
	assert_int_equal(es_history_get(&history, 3, 0), 0);
	figures.series = 0;
	es_history_add(&history, &figures, 5 * STEP_NS);
	assert_int_equal(history.count, 1);
	es_history_fini(&history);
	assert_true(!history.value && es_history_rate(&history, &figures, 6 * STEP_NS, 0) <= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
