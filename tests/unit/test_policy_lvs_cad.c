// SPDX-License-Identifier: GPL-2.0-or-later
/* CAWLL, xLARD/R and CAHRD by hand: handoff 20, disk 10 times the request cost, capacity 650, K 20 s. */
#include "policy_view.h"

static int get(struct world *w, const char *uri, unsigned int cost, int current)
{
	struct es_request_view request = world_get(uri);

	request.cost = cost;
	request.current = current;
	return world_route(w, &request);
}

static void test_cawll(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_cawll, 3);
	/* Costs count, not requests. */
	ACTIVE(&w, 0, 0, 100);
	LOAD(&w, 51, 60, 50);
	assert_int_equal(get(&w, "/a", 10, -1), 2);
	/* The cost of a handoff does not count. */
	assert_int_equal(get(&w, "/a", 10, 0), 2);
	LOAD(&w, 50, 60, 50);
	assert_int_equal(get(&w, "/a", 10, 0), 0);
	assert_int_equal(get(&w, "/a", 10, 2), 2);
	/* By weight. */
	w.node[1].weight = 200;
	LOAD(&w, 50, 101, 50.6);
	assert_int_equal(get(&w, "/a", 10, -1), 0);
	LOAD(&w, 50, 99, 50.6);
	assert_int_equal(get(&w, "/a", 10, -1), 1);
	w.node[1].is_target = 0;
	assert_int_equal(get(&w, "/a", 10, -1), 0);
	assert_int_equal(world_set_of(&w, "/a"), 0);
	world_fini(&w);
}

/* Line 4: the least load_B, in which staying is worth 20. */
static void test_xlard_r_first(void **state)
{
	static const struct {
		double load[3];
		int current, node;
	} steps[] = {
		{{100, 80, 90}, -1, 1},	 {{100, 80, 90}, 0, 0}, {{100.5, 80, 90}, 0, 1},
		{{100, 80, 120}, 2, 1},	 {{99, 80, 100}, 2, 2}, {{100, 80, 80.5}, 2, 2},
		{{79.5, 80, 90}, -1, 0},
	};
	char uri[] = "/0";
	struct world w;

	(void)state;
	world_init(&w, &es_policy_xlard_r, 3);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++, uri[1]++) {
		world_load(&w, steps[i].load);
		assert_int_equal(get(&w, uri, 10, steps[i].current), steps[i].node);
		assert_int_equal(world_set_of(&w, uri), SET(steps[i].node));
	}
	/* The disk's cost tells only nodes of different weight apart: (240 + 110 + 20) / 2 = 185 are less
	 * than 100 + 110 + 20, though (240 + 10 + 20) / 2 are more than 100 + 10 + 20. */
	w.node[0].weight = 200;
	LOAD(&w, 240, 100, 1000);
	assert_int_equal(get(&w, "/disk", 10, -1), 0);
	/* In the set its file is cached: load_A. */
	world_add(&w, es_content_hash("/disk", 5), 1);
	assert_int_equal(get(&w, "/disk", 10, -1), 1);
	world_fini(&w);
}

/* Line 6: the least load_A of the set. */
static void test_xlard_r_of_the_set(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_xlard_r, 3);
	LOAD(&w, 50, 60, 70);
	assert_int_equal(get(&w, "/a", 10, -1), 0);
	world_add(&w, es_content_hash("/a", 2), 1);
	assert_int_equal(get(&w, "/a", 10, -1), 0);
	assert_int_equal(get(&w, "/a", 10, 1), 1);
	LOAD(&w, 50, 70, 0);
	assert_int_equal(get(&w, "/a", 10, 1), 1);
	LOAD(&w, 50, 70.5, 0);
	assert_int_equal(get(&w, "/a", 10, 1), 0);
	assert_int_equal(get(&w, "/a", 10, 2), 0); /* where it is, but not of the set */
	w.node[0].is_target = 0;
	assert_int_equal(get(&w, "/a", 10, 2), 1);
	w.node[1].is_target = 0;
	assert_int_equal(get(&w, "/a", 10, 0), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(2));
	/* By weight, with the request's own cost: 100 + 30 against (38 + 30) * 2. */
	w.node[0].is_target = w.node[1].is_target = 1;
	w.node[1].weight = 50;
	LOAD(&w, 100, 38, 1000);
	assert_int_equal(get(&w, "/a", 10, -1), 0);
	LOAD(&w, 100, 34, 1000);
	assert_int_equal(get(&w, "/a", 10, -1), 1);
	world_fini(&w);
}

/* Lines 7 to 11: n.load_A > capacity, and some l.load_C < capacity / 2. */
static void test_xlard_r_overload(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_xlard_r, 3);
	LOAD(&w, 0, 10, 10);
	assert_int_equal(get(&w, "/a", 10, -1), 0);
	LOAD(&w, 620, 10, 9);
	assert_int_equal(get(&w, "/a", 10, -1), 0); /* 620 + 10 + 20 = 650 */
	LOAD(&w, 640, 10, 9);
	assert_int_equal(get(&w, "/a", 10, 0), 0); /* it is there: 640 + 10 */
	LOAD(&w, 620.5, 315, 316);
	assert_int_equal(get(&w, "/a", 10, -1), 0); /* 315 + 10 are not below 325 */
	assert_int_equal(world_set_of(&w, "/a"), SET(0));
	LOAD(&w, 640.5, 314.5, 316);
	assert_int_equal(get(&w, "/a", 10, 0), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	/* A heavier request is more of a load. */
	LOAD(&w, 500, 500, 0);
	assert_int_equal(get(&w, "/a", 130, 0), 0);
	assert_int_equal(get(&w, "/a", 151, 0), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(2));
	/* p is the least loaded by load_B, which may not be l: the connection's node. */
	LOAD(&w, 1000, 100, 110);
	assert_int_equal(get(&w, "/b", 10, 0), 1);
	LOAD(&w, 0, 1000, 10);
	assert_int_equal(get(&w, "/b", 10, 2), 2);
	assert_int_equal(world_set_of(&w, "/b"), SET(1) | SET(2));
	/* By weight: 1270 and 30 on a node of 200 are 650. */
	LOAD(&w, 0, 1, 1);
	assert_int_equal(get(&w, "/c", 10, -1), 0);
	w.node[0].weight = 200;
	LOAD(&w, 1270, 1, 2);
	assert_int_equal(get(&w, "/c", 10, -1), 0);
	LOAD(&w, 1271, 1, 2);
	assert_int_equal(get(&w, "/c", 10, -1), 1);
	world_fini(&w);
}

/* Lines 12 to 15: the most load_C leaves when K has passed. */
static void test_xlard_r_shrinks(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_xlard_r, 3);
	LOAD(&w, 0, 10, 10);
	assert_int_equal(get(&w, "/a", 10, -1), 0);
	world_add(&w, es_content_hash("/a", 2), 1);
	/* By weight (100 + 10) and (48 + 10) * 2. */
	w.node[1].weight = 50;
	LOAD(&w, 100, 48, 0);
	w.view.now_ns += 20 * SECOND;
	assert_true(get(&w, "/a", 10, -1) < 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	w.view.now_ns += 1;
	assert_int_equal(get(&w, "/a", 10, -1), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0));
	w.view.now_ns += 100 * SECOND;
	assert_int_equal(get(&w, "/a", 10, -1), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0));
	/* Old and overloaded: one for the other. */
	LOAD(&w, 700, 400, 0);
	assert_int_equal(get(&w, "/a", 10, -1), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(2));
	/* Not the last one that is there, however old. */
	world_add(&w, es_content_hash("/a", 2), 1);
	w.node[1].is_target = 0;
	w.view.now_ns += 100 * SECOND;
	assert_int_equal(get(&w, "/a", 10, -1), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(2));
	world_fini(&w);
}

static void test_parameters(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_xlard_r, 2);
	world_param(&w, "handoff_cost", 5);
	world_param(&w, "capacity", 100);
	world_param(&w, "disk_cost", 0);
	world_param(&w, "K", 1);
	LOAD(&w, 15, 10);
	assert_int_equal(get(&w, "/a", 10, 0), 0);
	LOAD(&w, 15.5, 10);
	assert_int_equal(get(&w, "/b", 10, 0), 1);
	LOAD(&w, 90, 39);
	assert_int_equal(get(&w, "/a", 10, 0), 0);
	LOAD(&w, 91, 40);
	assert_int_equal(get(&w, "/a", 10, 0), 0);
	LOAD(&w, 91, 39);
	assert_int_equal(get(&w, "/a", 10, 0), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	w.view.now_ns += SECOND + 1;
	assert_int_equal(get(&w, "/a", 10, 1), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	w.node[0].weight = 200;
	LOAD(&w, 40, 10);
	assert_int_equal(get(&w, "/c", 10, -1), 1); /* no disk cost: (40 + 15) / 2 are more than 10 + 15 */
	world_fini(&w);
}

static void test_cahrd(void **state)
{
	struct es_request_view request = world_get("/cgi");
	struct world w;

	(void)state;
	world_init(&w, &es_policy_cahrd, 3);
	request.is_dynamic = 1;
	request.cost = 50;
	request.current = 0;
	/* CAWLL, where moving costs 20. */
	LOAD(&w, 70, 60, 50);
	assert_int_equal(world_route(&w, &request), 0);
	LOAD(&w, 70.5, 60, 50);
	assert_int_equal(world_route(&w, &request), 2);
	request.current = -1;
	LOAD(&w, 60, 50, 50.5);
	assert_int_equal(world_route(&w, &request), 1);
	assert_int_equal(world_set_of(&w, "/cgi"), 0);
	/* xLARD/R for all others. */
	assert_int_equal(get(&w, "/a", 10, -1), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	LOAD(&w, 60, 600, 70);
	assert_int_equal(get(&w, "/a", 10, 2), 1);
	LOAD(&w, 60, 621, 70);
	assert_int_equal(get(&w, "/a", 10, 2), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(1) | SET(2));
	world_fini(&w);
}

static void test_without_table(void **state)
{
	static const struct es_policy *const policies[] = {&es_policy_cawll, &es_policy_xlard_r,
							   &es_policy_cahrd};
	struct es_request_view request = world_get("/a");
	struct world w;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		world_init(&w, policies[i], 3);
		w.view.contents = NULL;
		ACTIVE(&w, 1, 2, 3);
		LOAD(&w, 2, 1, 3);
		assert_int_equal(w.policy->route(w.state, &request, &w.view), 1);
		world_fini(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cawll),
		cmocka_unit_test(test_xlard_r_first),
		cmocka_unit_test(test_xlard_r_of_the_set),
		cmocka_unit_test(test_xlard_r_overload),
		cmocka_unit_test(test_xlard_r_shrinks),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_cahrd),
		cmocka_unit_test(test_without_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
