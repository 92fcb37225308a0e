// SPDX-License-Identifier: GPL-2.0-or-later
/* Where requests went: found again, replaced, forgotten when the room is needed; and whose sets are whose. */
#include "cmocka_all.h"
#include <stdlib.h>
#include <string.h>
#include "inspector/decision_table.h"

static void test_decision_table(void **state)
{
	struct es_decision_set *sets = calloc(256, sizeof(*sets));
	struct es_decision_table table = {.sets = sets, .count = 256};
	__u64 flow = 0x1111222233334444ULL;

	(void)state;
	assert_non_null(sets);
	assert_int_equal(es_decision_table_get(&table, flow, 5, 6), -1);
	es_decision_table_put(&table, flow, 5, 6, 3, NULL, 0xffff00);
	assert_int_equal(es_decision_table_get(&table, flow, 5, 6), 3);
	assert_int_equal(es_decision_table_get(&table, flow, 5, 7), -1); /* another client ISN */
	assert_int_equal(es_decision_table_get(&table, flow, 6, 6), -1); /* another cookie */
	assert_int_equal(es_decision_table_get_any(&table, flow, 5), 3);
	es_decision_table_put(&table, flow, 5, 6, 4, NULL, 0xfffff0); /* after a NACK */
	assert_int_equal(es_decision_table_get(&table, flow, 5, 6), 4);
	/* The same set fills up, and the oldest goes; also when the clock wrapped in between. */
	for (__u32 i = 1; i <= 3; i++)
		es_decision_table_put(&table, flow, 5 + i, 6, (__u8)i, NULL, 0xfffffe + i);
	es_decision_table_put(&table, flow, 50, 6, 9, NULL, 10);
	assert_int_equal(es_decision_table_get(&table, flow, 50, 6), 9);
	assert_int_equal(es_decision_table_get(&table, flow, 5, 6), -1);
	assert_int_equal(es_decision_table_get(&table, flow, 6, 6), 1);
	/* A worker owns its sets: all flows of a set have the same one. */
	for (__u32 workers = 1; workers <= 8; workers++) {
		uint64_t seed = 9;
		int owner[256];

		memset(owner, -1, sizeof(owner));
		for (int i = 0; i < 20000; i++) {
			__u64 hash = es_test_random(&seed);
			__u32 index = es_decision_index(hash, 256), worker = es_worker_of(hash, workers);

			assert_true(worker < workers);
			assert_true(owner[index] < 0 || owner[index] == (int)worker);
			owner[index] = (int)worker;
		}
	}
	free(sets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decision_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
