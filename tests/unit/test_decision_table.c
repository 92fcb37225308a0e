// SPDX-License-Identifier: GPL-2.0-or-later
/* Where requests went: found again, replaced, forgotten when the room is needed; and whose sets are whose. */
#include "cmocka_all.h"
#include <stdlib.h>
#include <string.h>
#include "inspector/inspect/decision_table.h"

/* The request's node, if its first segment has @client_isn; -1: that is not known. */
static int get(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie, __u32 client_isn)
{
	struct es_decided decided;

	es_decision_table_look(table, flow_hash, cookie, client_isn, 0, &decided);
	return decided.is_first ? (int)decided.node : -1;
}

static int is_moved(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie)
{
	struct es_decided decided;

	es_decision_table_look(table, flow_hash, cookie, 0, 0, &decided);
	return es_decided_is_moved(&decided);
}

static void test_decision_table(void **state)
{
	struct es_decision_set *sets = calloc(256, sizeof(*sets));
	struct es_handover_order *orders = calloc(256 * ES_DECISION_WAYS, sizeof(*orders));
	struct es_decision_table table = {.sets = sets, .count = 256, .orders = orders};
	__u64 flow = 0x1111222233334444ULL;
	struct es_decided decided;

	(void)state;
	assert_non_null(sets);
	assert_non_null(orders);
	assert_int_equal(get(&table, flow, 5, 6), -1);
	es_decision_table_put(&table, flow, 5, 6, 3, NULL, 0xffff00);
	assert_int_equal(get(&table, flow, 5, 6), 3);
	assert_int_equal(get(&table, flow, 5, 7), -1);		  /* another client ISN */
	assert_int_equal(get(&table, flow, 6, 6), -1);		  /* another cookie */
	es_decision_table_look(&table, flow, 5, 99, 7, &decided); /* of a later segment that is not known */
	assert_true(decided.order && !decided.is_first);
	assert_int_equal(decided.node, 3);
	es_decision_table_look(&table, flow, 6, 6, 7, &decided);
	assert_null(decided.order);
	es_decision_table_put(&table, flow, 5, 6, 4, NULL, 0xfffff0); /* after a NACK */
	assert_int_equal(get(&table, flow, 5, 6), 4);
	/* The same set fills up, and the oldest goes; also when the clock wrapped in between. */
	for (__u32 i = 1; i <= 3; i++)
		es_decision_table_put(&table, flow, 5 + i, 6, (__u8)i, NULL, 0xfffffe + i);
	es_decision_table_put(&table, flow, 50, 6, 9, NULL, 10);
	assert_int_equal(get(&table, flow, 50, 6), 9);
	assert_int_equal(get(&table, flow, 5, 6), -1);
	assert_int_equal(get(&table, flow, 6, 6), 1);
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
	free(orders);
	free(sets);
}

/*
 * A connection that goes from node to node quickly takes two entries of its set and no more: what others wait
 * for stays.
 */
static void test_busy_connection(void **state)
{
	struct es_decision_set sets[16] = {};
	struct es_handover_order orders[16 * ES_DECISION_WAYS] = {};
	struct es_decision_table table = {.sets = sets, .count = 16, .orders = orders};
	struct es_handover_order first = {.kind = ES_HANDOVER_REQUEST},
				 moved = {.kind = ES_HANDOVER_REQUEST, .moved = 1, .requests = 1},
				 stayed = {.kind = ES_HANDOVER_STAY, .requests = 1};
	__u64 quiet = 0x1234500000000001ULL, busy = 0x1234500000000002ULL, lone = 0x100003;

	(void)state;
	assert_int_equal(es_decision_index(quiet, 16), es_decision_index(busy, 16));
	es_decision_table_put(&table, quiet, 5, 6, 1, &moved, 1000);
	es_decision_table_put(&table, busy, 100, 6, 1, &first, 1001);
	for (__u32 i = 1; i <= 20; i++) {
		const struct es_handover_order *order = i % 3 ? &moved : &stayed;

		es_decision_table_put(&table, busy, 100 + i, 6 + i, 2, order, 1001 + i);
		assert_int_equal(get(&table, busy, 100 + i, 6 + i), 2);
		assert_int_equal(get(&table, busy, 99 + i, 5 + i), i == 1 ? 1 : -1);
		assert_int_equal(is_moved(&table, busy, 100 + i), i % 3 != 0);
	}
	assert_int_equal(get(&table, quiet, 5, 6), 1);
	assert_true(is_moved(&table, quiet, 5));
	/* A late copy of the first request would look like a new connection's. */
	assert_int_equal(get(&table, busy, 100, 6), 1);
	/* Another connection of the same ports: its first request forgets nothing. */
	es_decision_table_put(&table, busy, 200, 7, 3, &first, 1030);
	assert_int_equal(get(&table, busy, 120, 26), 2);
	assert_int_equal(get(&table, busy, 100, 6), 1);
	assert_int_equal(get(&table, quiet, 5, 6), 1);
	/* A first request in the place of a later one is none, and no later one replaces it. */
	es_decision_table_put(&table, lone, 5, 6, 1, &moved, 1000);
	es_decision_table_put(&table, lone, 5, 6, 1, &first, 1001);
	es_decision_table_put(&table, lone, 6, 7, 1, &moved, 1002);
	assert_int_equal(get(&table, lone, 5, 6), 1);
	assert_false(is_moved(&table, lone, 5));
}

/* A caller that makes room is told how young the forgotten decision was, if it was about a first request. */
static void test_forgotten(void **state)
{
	struct es_decision_set sets[16] = {};
	struct es_handover_order orders[16 * ES_DECISION_WAYS] = {};
	struct es_decision_table table = {.sets = sets, .count = 16, .orders = orders};
	const struct es_handover_order later = {.requests = 1};

	(void)state;
	for (__u32 i = 1; i <= ES_DECISION_WAYS; i++) {
		assert_int_equal(es_decision_table_put(&table, i, 5, 6, 1, i == 2 ? &later : NULL, 1000 * i),
				 ES_DECISION_NONE_MS);
		assert_int_equal(es_decision_table_put(&table, i, 5, 6, 2, i == 2 ? &later : NULL, 1000 * i),
				 ES_DECISION_NONE_MS);
	}
	assert_int_equal(es_decision_table_put(&table, 8, 5, 6, 1, NULL, 11000), 10000);
	assert_int_equal(es_decision_table_put(&table, 9, 5, 6, 1, NULL, 11000), ES_DECISION_NONE_MS);
	assert_int_equal(get(&table, 2, 5, 6), -1);
	assert_int_equal(es_decision_table_put(&table, 10, 5, 6, 1, NULL, 11500), 8500);
}

/* A quiet night's entries: they are old, however long ago it was, and make room for new ones. */
static void test_old(void **state)
{
	static const __u32 minutes[] = {1, 59, 139, 140, 141, 180, 200, 240, 279};
	struct es_decision_set sets[16] = {};
	struct es_handover_order orders[16 * ES_DECISION_WAYS] = {};
	struct es_decision_table table = {.sets = sets, .count = 16, .orders = orders};
	__u32 evening = 36000000;

	(void)state;
	for (size_t m = 0; m < sizeof(minutes) / sizeof(minutes[0]); m++) {
		__u32 morning = evening + minutes[m] * 60000;

		memset(sets, 0, sizeof(sets));
		for (__u32 i = 1; i <= 3; i++)
			es_decision_table_put(&table, 0x100000 + i, 5, 6, 1, NULL, evening + i);
		assert_int_equal(es_decision_age_ms(es_decision_value(5, 1, evening), morning),
				 minutes[m] * 60000);
		es_decision_table_put(&table, 0x100008, 5, 6, 2, NULL, morning);
		es_decision_table_put(&table, 0x100009, 5, 6, 3, NULL, morning + 200);
		assert_int_equal(get(&table, 0x100008, 5, 6), 2);
		assert_int_equal(get(&table, 0x100009, 5, 6), 3);
		assert_int_equal(get(&table, 0x100001, 5, 6), -1);
		/* They are forgotten before it is so long ago that it cannot be told. */
		for (__u32 i = 0; i < 16; i++)
			es_decision_table_forget(&table, i, morning + 200);
		assert_int_equal(get(&table, 0x100002, 5, 6), minutes[m] > 60 ? -1 : 1);
		assert_int_equal(get(&table, 0x100008, 5, 6), 2);
		assert_int_equal(get(&table, 0x100009, 5, 6), 3);
	}
	/* The datapath's clock may lie a tick behind. */
	assert_int_equal(es_decision_age_ms(es_decision_value(1, 1, evening), evening - 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decision_table),
		cmocka_unit_test(test_busy_connection),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
