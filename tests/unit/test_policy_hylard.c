// SPDX-License-Identifier: GPL-2.0-or-later
/* HyLARD by hand: threshold 500 KB, M 2, P 1, Q 60 s. */
#include "policy_view.h"

#define LARGE (500 * 1024)

/* With the paper's M. */
static void hylard_init(struct world *w, unsigned int count)
{
	world_init(w, &es_policy_hylard, count);
	world_param(w, "M", 2);
}

static int get(struct world *w, unsigned int size_bytes, int current)
{
	struct es_request_view request = world_get("/a");

	request.size_bytes = size_bytes;
	request.current = current;
	return world_route(w, &request);
}

/* From the threshold on, one node, whatever its load. */
static void test_large(void **state)
{
	struct world w;

	(void)state;
	hylard_init(&w, 3);
	ACTIVE(&w, 10, 5, 7);
	assert_int_equal(get(&w, LARGE, -1), 1);
	ACTIVE(&w, 0, 1000, 0);
	w.view.now_ns += 1000 * SECOND;
	assert_int_equal(get(&w, LARGE, 0), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	/* Away: another one instead, not besides. */
	ACTIVE(&w, 5, 1000, 0);
	w.node[1].is_target = 0;
	assert_int_equal(get(&w, LARGE, -1), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(2));
	/* One byte less is a small file. */
	w.node[1].is_target = 1;
	ACTIVE(&w, 5, 0, 10);
	assert_int_equal(get(&w, LARGE, -1), 2);
	assert_int_equal(get(&w, LARGE - 1, -1), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(2));
	/* Found to be large when it has a set: the least loaded of it, and it shrinks in time. */
	ACTIVE(&w, 0, 20, 10);
	assert_int_equal(get(&w, LARGE, -1), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(2));
	w.view.now_ns += 60 * SECOND + 1;
	assert_int_equal(get(&w, LARGE, -1), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(2));
	world_fini(&w);
}

/* Threshold 0 is pure LARD, for responses of unknown size too; else those are small files. */
static void test_threshold_0(void **state)
{
	struct world w;

	(void)state;
	for (int pure = 0; pure < 2; pure++) {
		hylard_init(&w, 2);
		if (pure)
			world_param(&w, "threshold", 0);
		ACTIVE(&w, 0, 1);
		assert_int_equal(get(&w, 0, -1), 0);
		ACTIVE(&w, 9, 1);
		assert_int_equal(get(&w, 0, -1), pure ? 0 : 1);
		world_fini(&w);
	}
}

static void test_overload(void **state)
{
	struct world w;

	(void)state;
	hylard_init(&w, 3);
	ACTIVE(&w, 10, 5, 7);
	assert_int_equal(get(&w, 1000, -1), 1);
	ACTIVE(&w, 5, 6, 4.5);
	assert_int_equal(get(&w, 1000, -1), 1); /* 1.5 more than the least loaded */
	ACTIVE(&w, 5, 6, 4);
	assert_int_equal(get(&w, 1000, -1), 2); /* M */
	assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(2));
	ACTIVE(&w, 0, 1.9, 7);
	assert_int_equal(get(&w, 1000, -1), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(2));
	/* By weight: 8 of 200 are 4. */
	w.node[1].weight = 200;
	ACTIVE(&w, 2.5, 8, 7);
	assert_int_equal(get(&w, 1000, -1), 1);
	ACTIVE(&w, 2, 8, 7);
	assert_int_equal(get(&w, 1000, -1), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(2));
	world_fini(&w);
}

/* Unless somebody gives it, M is T_high - T_low: 40, as long as no node's capacity is known. */
static void test_measured(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_hylard, 3);
	ACTIVE(&w, 10, 5, 7);
	assert_int_equal(get(&w, 1000, -1), 1);
	ACTIVE(&w, 5, 44.5, 5);
	assert_int_equal(get(&w, 1000, -1), 1);
	for (unsigned int i = 0; i < 3; i++)
		w.node[i].capacity = 20; /* T_low; T_high is 52 */
	ACTIVE(&w, 8, 39, 7.5);
	assert_int_equal(get(&w, 1000, -1), 1);
	ACTIVE(&w, 8, 39, 7);
	assert_int_equal(get(&w, 1000, -1), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(2));
	world_fini(&w);
}

static void test_handoff(void **state)
{
	struct world w;

	(void)state;
	hylard_init(&w, 4);
	ACTIVE(&w, 1, 0, 3, 3);
	assert_int_equal(get(&w, 1000, -1), 1);
	ACTIVE(&w, 0, 2, 3, 3);
	assert_int_equal(get(&w, 1000, -1), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	ACTIVE(&w, 5, 4, 4, 4);
	assert_int_equal(get(&w, 1000, -1), 1);
	assert_int_equal(get(&w, 1000, 0), 0); /* P more than #1: not worth it */
	assert_int_equal(get(&w, 1000, 1), 1); /* it is there */
	ACTIVE(&w, 5.1, 4, 4, 4);
	assert_int_equal(get(&w, 1000, 0), 1); /* more than P */
	ACTIVE(&w, 5, 4, 4, 4);
	assert_int_equal(get(&w, 1000, 2), 1); /* not of the set */
	/* In the set, and away: it cannot stay. */
	w.node[0].is_target = 0;
	assert_int_equal(get(&w, 1000, 0), 1);
	w.node[0].is_target = 1;
	/* As published, one that joined stays in the set though the connection does not go there. */
	world_param(&w, "P", 3);
	ACTIVE(&w, 6, 7, 3, 4);
	assert_int_equal(get(&w, 1000, 0), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(2));
	world_fini(&w);
}

static void test_shrinks(void **state)
{
	struct world w;

	(void)state;
	hylard_init(&w, 3);
	ACTIVE(&w, 1, 0, 3);
	assert_int_equal(get(&w, 1000, -1), 1);
	w.view.now_ns += SECOND;
	ACTIVE(&w, 0, 2, 3);
	assert_int_equal(get(&w, 1000, -1), 0);
	w.view.now_ns += 60 * SECOND;
	ACTIVE(&w, 4, 5, 4);
	assert_int_equal(get(&w, 1000, -1), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	w.view.now_ns += 1;
	assert_int_equal(get(&w, 1000, -1), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0));
	w.view.now_ns += 61 * SECOND;
	assert_int_equal(get(&w, 1000, -1), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0));
	/* Old and overloaded: #1 joins; #0, which now has the most, leaves. */
	ACTIVE(&w, 5, 3, 4);
	assert_int_equal(get(&w, 1000, -1), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	/* None of the set is there. */
	w.view.now_ns += 61 * SECOND;
	w.node[1].is_target = 0;
	assert_int_equal(get(&w, 1000, 1), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(2));
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large),	 cmocka_unit_test(test_threshold_0),
		cmocka_unit_test(test_overload), cmocka_unit_test(test_measured),
		cmocka_unit_test(test_handoff),	 cmocka_unit_test(test_shrinks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
