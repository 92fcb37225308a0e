// SPDX-License-Identifier: GPL-2.0-or-later
/* Extended LARD by hand: L_idle 30, L_overload 130, miss_cost 50, disk_idle 0.3, K 20 s. */
#include "policy_view.h"

static int get(struct world *w, const char *uri, int current)
{
	struct es_request_view request = world_get(uri);

	request.current = current;
	return world_route(w, &request);
}

/* Costs of a first request: #1 has the content, the others have not. */
static void test_first(void **state)
{
	static const struct {
		double active[3];
		int node;
	} steps[] = {
		{{0, 29, 0}, 1},	/* 0 + 1 + 0 against 0 + 50 + 0 */
		{{10, 78.5, 20}, 1},	/* 48.5 + 1 against 50 */
		{{10, 79, 20}, 0},	/* 49 + 1 against 50: the less loaded of two that cost the same */
		{{29.5, 90, 31}, 0},	/* 61 against 50; #2 is not idle, and what it has would go: 101 */
		{{30, 128.5, 31}, 1},	/* 99.5 against 100: neither is idle */
		{{30.5, 129.2, 31}, 1}, /* 100.2 against 100.5 */
		{{30, 129.5, 31}, 0},	/* 100.5 against 100 */
		{{60, 130, 61}, 1},	/* 101 against 130 */
		{{60, 130.5, 61}, 0},	/* above L_overload */
		{{129, 131, 130}, 0},	/* anything is less than infinity */
		{{150, 135, 140}, 1},	/* all infinite: the least loaded */
		{{134, 135, 140}, 0},
	};
	struct world w;

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		world_init(&w, &es_policy_ext_lard, 3);
		ACTIVE(&w, 10, 5, 7);
		assert_int_equal(get(&w, "/a", -1), 1);
		assert_int_equal(world_set_of(&w, "/a"), SET(1));
		world_active(&w, steps[i].active);
		assert_int_equal(get(&w, "/a", -1), steps[i].node);
		assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(steps[i].node));
		/* By weight it is the same. */
		world_fini(&w);
		world_init(&w, &es_policy_ext_lard, 3);
		assert_true(get(&w, "/x", -1) >= 0);
		ACTIVE(&w, 10, 5, 7);
		assert_int_equal(get(&w, "/a", -1), 1);
		for (unsigned int n = 0; n < 3; n++) {
			w.node[n].weight = n ? 50 : 200;
			w.node[n].active = steps[i].active[n] * (n ? 0.5 : 2);
		}
		assert_int_equal(get(&w, "/a", -1), steps[i].node);
		world_fini(&w);
	}
}

static void test_later(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_ext_lard, 3);
	for (unsigned int i = 0; i < 3; i++)
		w.node[i].disk = 0.3;
	ACTIVE(&w, 10, 5, 7);
	assert_int_equal(get(&w, "/a", -1), 1);
	/* It is there, and has it. */
	ACTIVE(&w, 0, 1000, 0);
	assert_int_equal(get(&w, "/a", 1), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	/* It has not, and its disk is busy: 50 against 49.5, against 51. #2, which is idle, is not asked. */
	ACTIVE(&w, 10, 78.5, 0);
	assert_int_equal(get(&w, "/a", 0), 1);
	ACTIVE(&w, 10, 80, 0);
	assert_int_equal(get(&w, "/a", 0), 0);
	ACTIVE(&w, 40, 128.5, 0); /* 110 against 99.5 */
	assert_int_equal(get(&w, "/a", 0), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1)); /* and none is taken to keep it */
	/* A disk that does not have it is as good as one that is busy. */
	w.node[0].disk = 0;
	w.settings.content_off_disk = 1;
	assert_int_equal(get(&w, "/a", 0), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	w.settings.content_off_disk = 0;
	/* An idle disk: it reads the file, and has it then. */
	w.node[0].disk = 0.29;
	ACTIVE(&w, 100, 0, 0);
	assert_int_equal(get(&w, "/a", 0), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	assert_int_equal(get(&w, "/b", 0), 0);
	assert_int_equal(world_set_of(&w, "/b"), SET(0));
	/* Nobody has it, and the disk is busy: as a first request. */
	ACTIVE(&w, 10, 40, 9);
	assert_int_equal(get(&w, "/c", 1), 2);
	assert_int_equal(world_set_of(&w, "/c"), SET(2));
	world_fini(&w);
}

static void test_away(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_ext_lard, 3);
	ACTIVE(&w, 10, 5, 7);
	assert_int_equal(get(&w, "/a", -1), 1);
	/* The connection's node may not serve, idle as it is: as a first request. */
	w.node[0].is_target = 0;
	assert_int_equal(get(&w, "/a", 0), 1);
	/* Those that have it may not. */
	w.node[1].is_target = 0;
	assert_int_equal(get(&w, "/a", -1), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(2));
	w.node[2].is_target = 0;
	assert_int_equal(get(&w, "/a", 2), -1);
	/* The disk is busy, and what has it is away: any may. */
	w.node[0].is_target = 1;
	w.node[0].disk = 1;
	assert_int_equal(get(&w, "/a", 0), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(2));
	world_fini(&w);
}

static void test_shrinks(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_ext_lard, 3);
	ACTIVE(&w, 10, 5, 7);
	assert_int_equal(get(&w, "/a", -1), 1);
	w.view.now_ns += SECOND;
	assert_int_equal(get(&w, "/a", 0), 0);
	w.view.now_ns += 20 * SECOND;
	assert_int_equal(get(&w, "/a", 0), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	w.view.now_ns += 1;
	assert_int_equal(get(&w, "/a", 1), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	w.view.now_ns += 100 * SECOND;
	assert_int_equal(get(&w, "/a", 1), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	world_fini(&w);
}

static void test_parameters(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_ext_lard, 2);
	world_param(&w, "L_idle", 10);
	world_param(&w, "L_overload", 20);
	world_param(&w, "miss_cost", 5);
	world_param(&w, "disk_idle", 0.6);
	ACTIVE(&w, 1, 0);
	assert_int_equal(get(&w, "/a", -1), 1);
	ACTIVE(&w, 9, 13.5);
	assert_int_equal(get(&w, "/a", -1), 1); /* 3.5 + 1 against 5 */
	ACTIVE(&w, 10, 18.5);
	assert_int_equal(get(&w, "/a", -1), 1); /* 8.5 + 1 against 10 */
	ACTIVE(&w, 14, 20.5);
	assert_int_equal(get(&w, "/a", -1), 0);
	w.node[1].disk = 0.59;
	assert_int_equal(get(&w, "/b", -1), 0);
	assert_int_equal(get(&w, "/b", 1), 1);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first),	   cmocka_unit_test(test_later),
		cmocka_unit_test(test_away),	   cmocka_unit_test(test_shrinks),
		cmocka_unit_test(test_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
