// SPDX-License-Identifier: GPL-2.0-or-later
/* The times that a node takes the nodes' clocks to show. */
#include "cmocka_all.h"
#include "inspector/peers/node_clocks.h"
#include "kmod/core/handover.h"

#define NOW_NS 1700000000000000000ULL
#define MS     1000000LL

static struct es_node_clocks clocks;

static int hear(unsigned int node, long long ahead_ms)
{
	return es_node_clock_hear(&clocks, node, (__u64)((long long)NOW_NS + ahead_ms * MS), NOW_NS);
}

static void test_wrong(void **state)
{
	(void)state;
	for (int sign = -1; sign <= 1; sign += 2) {
		assert_int_equal(hear(1, 0), 0);
		assert_int_equal(hear(1, sign * (ES_CLOCK_WRONG_MS - 1)), 0);
		assert_int_equal(hear(1, sign * ES_CLOCK_WRONG_MS), 1);
		assert_int_equal(clocks.node[1].ahead_ms, sign * ES_CLOCK_WRONG_MS);
		/* It wavers about the limit: said once. */
		assert_int_equal(hear(1, sign * (ES_CLOCK_WRONG_MS - 1)), 0);
		assert_false(es_node_clock_is_useless(&clocks, 1));
		assert_int_equal(hear(1, sign * ES_CLOCK_USELESS_MS), 0);
		assert_true(es_node_clock_is_useless(&clocks, 1));
		assert_false(es_node_clock_is_useless(&clocks, 2));
		assert_int_equal(hear(1, sign * (ES_CLOCK_RIGHT_MS - 1)), 1);
		assert_false(es_node_clock_is_useless(&clocks, 1));
	}
}

static void test_told(void **state)
{
	(void)state;
	clocks = (struct es_node_clocks){};
	assert_true(es_node_clocks_are_told(&clocks, 1, 0));
	assert_false(es_node_clocks_are_told(&clocks, 3, 0));
	hear(1, 5);
	assert_false(es_node_clocks_are_told(&clocks, 3, 0));
	hear(2, -5);
	assert_true(es_node_clocks_are_told(&clocks, 3, 0));
	/* A node of the version before again, which says nothing of its clock. */
	hear(2, ES_CLOCK_WRONG_MS);
	assert_int_equal(es_node_clock_hear(&clocks, 2, 0, NOW_NS), 1);
	assert_false(clocks.node[2].is_wrong);
	assert_false(es_node_clocks_are_told(&clocks, 3, 0));
}

/* A clock's reading at a moment that is over, as several datagrams tell it. */
static void test_began(void **state)
{
	__u64 second = 1000 * MS;
	__u32 began, stamp = (__u32)(NOW_NS / ES_HANDOVER_STAMP_NS);

	(void)state;
	began = es_node_clock_began(0, NOW_NS, 0);
	assert_int_equal(began, stamp);
	for (unsigned int since = 0; since < 200; since += 10)
		assert_int_equal(es_node_clock_began(began, NOW_NS + since * second, since * second), began);
	/* Some were under way for long; the fastest is nearest to the truth. */
	assert_int_equal(es_node_clock_began(began, NOW_NS, second / 2), began);
	assert_int_equal(es_node_clock_began(began, NOW_NS + second / 2, second / 4), began + 64);
	/* The clock was set. */
	assert_int_equal(es_node_clock_began(began, NOW_NS - 5 * second, 0), began - 5 * 256);
	assert_int_equal(es_node_clock_began(began, NOW_NS + 5 * second, 0), began + 5 * 256);
	assert_int_equal(es_node_clock_began(0, (__u64)ES_HANDOVER_STAMP_NS << 32, 0),
			 1); /* 0 says that it is not known */
}

/* A recorded datagram is older than what the node tells. */
static void test_credible(void **state)
{
	(void)state;
	assert_true(es_node_clock_is_credible(10000, 10000, 0));
	assert_true(es_node_clock_is_credible(30000, 10000, 0));
	assert_true(es_node_clock_is_credible(10000 - 255, 10000, 0));
	assert_false(es_node_clock_is_credible(10000 - 256, 10000, 0));
	assert_false(es_node_clock_is_credible(1000, 10000, ES_CLOCK_TOLD_NS - 1));
	assert_true(es_node_clock_is_credible(1000, 10000, ES_CLOCK_TOLD_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_began),
		cmocka_unit_test(test_credible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
