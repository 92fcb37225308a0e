// SPDX-License-Identifier: GPL-2.0-or-later
/* LARD and LARD/R by hand: T_low 25, T_high 65, K 20 s. */
#include "inspector/policy/lard.h"
#include "policy_view.h"

static void test_lard_thresholds(void **state)
{
	static const struct {
		double active[3];
		int node;
	} steps[] = {
		{{10, 5, 7}, 1},	/* nobody has it: the least loaded */
		{{0, 60, 0}, 1},	/* stays, though others are idle */
		{{24, 65, 30}, 1},	/* not above T_high */
		{{25, 66, 30}, 1},	/* none below T_low */
		{{24, 65.5, 30}, 0},	/* above, and below */
		{{129.5, 140, 25}, 0},	/* not 2 * T_high, none below T_low */
		{{130, 140, 25}, 2},	/* 2 * T_high */
		{{200, 200, 200}, 2},	/* no better node */
		{{200, 199.5, 200}, 1}, /* one that is a little better */
		{{24, 64, 24}, 1},	/* where it was put last */
	};
	struct world w;

	(void)state;
	world_init(&w, &es_policy_lard, 3);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		world_active(&w, steps[i].active);
		assert_int_equal(world_first(&w, "/a"), steps[i].node);
		assert_int_equal(world_set_of(&w, "/a"), SET(steps[i].node));
		w.view.now_ns += 100 * SECOND; /* time does nothing */
	}
	/* Other content is another matter. */
	ACTIVE(&w, 24, 64, 23);
	assert_int_equal(world_first(&w, "/b"), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	world_fini(&w);
}

static void test_lard_parameters(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_lard, 2);
	world_param(&w, "T_low", 2);
	world_param(&w, "T_high", 3);
	assert_true(world_first(&w, "/a") >= 0);
	es_contents_clear(w.contents);
	ACTIVE(&w, 0, 1);
	assert_int_equal(world_first(&w, "/a"), 0);
	ACTIVE(&w, 4, 2);
	assert_int_equal(world_first(&w, "/a"), 0);
	ACTIVE(&w, 4, 1);
	assert_int_equal(world_first(&w, "/a"), 1);
	world_fini(&w);
}

static void capacities(struct world *w, double a, double b, double c)
{
	w->node[0].capacity = a;
	w->node[1].capacity = b;
	w->node[2].capacity = c;
}

/* The median of the known capacities is T_low, and 2.6 times that T_high; by weight. */
static void test_lard_measured(void **state)
{
	struct es_lard lard = {.low = ES_PARAM_AUTO, .high = ES_PARAM_AUTO}, now;
	struct world w;

	(void)state;
	world_init(&w, &es_policy_lard, 3);
	now = es_lard_now(&lard, &w.view);
	assert_true(now.low == 25 && now.high == 65);
	capacities(&w, 0, 10, 0);
	now = es_lard_now(&lard, &w.view);
	assert_true(now.low == 10 && now.high == 26);
	/* One that is far off decides nothing. */
	capacities(&w, 12, 10, 4000);
	assert_true(es_lard_now(&lard, &w.view).low == 12);
	w.node[0].weight = 200;
	assert_true(es_lard_now(&lard, &w.view).low == 10);
	w.node[1].is_target = 0;
	assert_true(es_lard_now(&lard, &w.view).low == 6);
	capacities(&w, 1, 1, 1);
	now = es_lard_now(&lard, &w.view);
	assert_true(now.low == 5 && now.high == 13);
	/* Those that are given count, and T_low never passes T_high. */
	lard.high = 4;
	now = es_lard_now(&lard, &w.view);
	assert_true(now.low == 4 && now.high == 4);
	lard = (struct es_lard){.low = 70, .high = ES_PARAM_AUTO};
	now = es_lard_now(&lard, &w.view);
	assert_true(now.low == 70 && now.high == 70);
	world_fini(&w);
}

/* The policies decide by it. */
static void test_lard_measured_moves(void **state)
{
	const struct es_policy *const policies[] = {&es_policy_lard, &es_policy_lard_r};
	struct world w;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		world_init(&w, policies[i], 3);
		assert_int_equal(world_first(&w, "/a"), world_first(&w, "/a"));
		ACTIVE(&w, 20, 5, 20);
		es_contents_clear(w.contents);
		assert_int_equal(world_first(&w, "/a"), 1);
		ACTIVE(&w, 9, 27, 20);
		assert_int_equal(world_first(&w, "/a"), 1);
		capacities(&w, 10, 10, 10);
		assert_int_equal(world_first(&w, "/a"), 0);
		world_fini(&w);
	}
}

/* 130 requests on a node of weight 200 are what 65 are on one of 100, and so on. */
static void test_lard_weights(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_lard, 3);
	w.node[0].weight = 200;
	w.node[1].weight = 50;
	ACTIVE(&w, 19, 5, 10);
	assert_int_equal(world_first(&w, "/a"), 0);
	ACTIVE(&w, 130, 12, 25);
	assert_int_equal(world_first(&w, "/a"), 0);
	ACTIVE(&w, 131, 12.5, 25);
	assert_int_equal(world_first(&w, "/a"), 0);
	ACTIVE(&w, 131, 12, 25);
	assert_int_equal(world_first(&w, "/a"), 1);
	world_fini(&w);
}

/* The content's node may not be given the request: the least loaded takes its place. */
static void test_lard_away(void **state)
{
	struct es_request_view request = world_get("/a");
	struct world w;

	(void)state;
	world_init(&w, &es_policy_lard, 3);
	ACTIVE(&w, 10, 5, 7);
	assert_int_equal(world_first(&w, "/a"), 1);
	w.node[1].is_target = 0;
	assert_int_equal(world_first(&w, "/a"), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(2));
	w.node[1].is_target = 1;
	assert_int_equal(world_first(&w, "/a"), 2);
	request.has_allowed = 1;
	es_node_set_add(&request.allowed, 0);
	assert_int_equal(world_route(&w, &request), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0));
	/* The nodes that are not allowed do not tempt. */
	ACTIVE(&w, 100, 0, 0);
	assert_int_equal(world_route(&w, &request), 0);
	/* A set of several, as LARD/R had left it: the least loaded; and it is that one that moves. */
	world_add(&w, request.content, 1);
	ACTIVE(&w, 80, 70, 50);
	assert_int_equal(world_first(&w, "/a"), 1);
	ACTIVE(&w, 80, 70, 10);
	assert_int_equal(world_first(&w, "/a"), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(2));
	for (unsigned int i = 0; i < 3; i++)
		w.node[i].is_target = 0;
	assert_int_equal(world_first(&w, "/a"), -1);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(2));
	world_fini(&w);
}

/* The connection's node is preferred among nodes that are alike, and only then. */
static void test_lard_current(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_lard, 4);
	for (int current = 0; current < 4; current++) {
		struct es_request_view request = world_get("/a");

		request.current = current;
		assert_int_equal(world_route(&w, &request), current);
		es_contents_clear(w.contents);
	}
	ACTIVE(&w, 1, 1, 0, 1);
	for (int current = 0; current < 4; current++) {
		struct es_request_view request = world_get("/a");

		request.current = current;
		assert_int_equal(world_route(&w, &request), 2);
	}
	world_fini(&w);
}

static void test_lard_r_grows_and_shrinks(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_lard_r, 3);
	ACTIVE(&w, 10, 5, 7);
	assert_int_equal(world_first(&w, "/a"), 1);
	w.view.now_ns += SECOND;
	ACTIVE(&w, 25, 66, 30);
	assert_int_equal(world_first(&w, "/a"), 1);
	ACTIVE(&w, 24, 65, 30);
	assert_int_equal(world_first(&w, "/a"), 1);
	ACTIVE(&w, 24, 66, 30);
	assert_int_equal(world_first(&w, "/a"), 0);
	assert_true(world_explained(&w, "#0 joins"));
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	/* The least loaded of the set, whoever is less loaded outside. */
	ACTIVE(&w, 40, 30, 0);
	assert_int_equal(world_first(&w, "/a"), 1);
	ACTIVE(&w, 30, 40, 0);
	assert_int_equal(world_first(&w, "/a"), 0);
	/* All of it at 2 * T_high. */
	ACTIVE(&w, 130, 129.5, 129);
	assert_int_equal(world_first(&w, "/a"), 1);
	ACTIVE(&w, 130, 130, 130);
	assert_true(world_first(&w, "/a") < 2);
	ACTIVE(&w, 130, 130, 129);
	w.view.now_ns += SECOND;
	assert_int_equal(world_first(&w, "/a"), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(2));
	/* K: at 20 s nothing, then one after the other. */
	ACTIVE(&w, 10, 20, 30);
	w.view.now_ns += 20 * SECOND;
	assert_int_equal(world_first(&w, "/a"), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(2));
	w.view.now_ns += 1;
	assert_int_equal(world_first(&w, "/a"), 0);
	assert_true(world_explained(&w, "#2 leaves"));
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	w.view.now_ns += 20 * SECOND;
	assert_int_equal(world_first(&w, "/a"), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	w.view.now_ns += 1;
	ACTIVE(&w, 10, 9, 30);
	assert_int_equal(world_first(&w, "/a"), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	w.view.now_ns += 1000 * SECOND;
	assert_int_equal(world_first(&w, "/a"), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(1));
	world_fini(&w);
}

/* lastMod is written last: an old set gains one and loses the one that was the most loaded before. */
static void test_lard_r_old_set(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_lard_r, 3);
	world_param(&w, "K", 5);
	ACTIVE(&w, 10, 5, 7);
	assert_int_equal(world_first(&w, "/a"), 1);
	w.view.now_ns += 5 * SECOND + 1;
	ACTIVE(&w, 24, 66, 30);
	assert_int_equal(world_first(&w, "/a"), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0));
	w.view.now_ns += SECOND;
	ACTIVE(&w, 66, 24, 30);
	assert_int_equal(world_first(&w, "/a"), 1);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	world_fini(&w);
}

static void test_lard_r_away(void **state)
{
	struct es_request_view request = world_get("/a");
	struct world w;

	(void)state;
	world_init(&w, &es_policy_lard_r, 4);
	ACTIVE(&w, 1, 0, 3, 4);
	assert_int_equal(world_first(&w, "/a"), 1);
	world_add(&w, request.content, 0);
	w.node[1].is_target = 0;
	assert_int_equal(world_first(&w, "/a"), 0);
	/* None of the set: another joins; and nobody leaves, old as it is, where one is all there is. */
	w.view.now_ns += 100 * SECOND;
	w.node[0].is_target = 0;
	assert_int_equal(world_first(&w, "/a"), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(2));
	w.view.now_ns += 100 * SECOND;
	assert_int_equal(world_first(&w, "/a"), 2);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(2));
	/* If two are there, the more loaded of them leaves, not the one that is away and had more. */
	ACTIVE(&w, 1, 90, 3, 4);
	w.node[0].is_target = 1;
	assert_int_equal(world_first(&w, "/a"), 0);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1));
	request.has_allowed = 1;
	es_node_set_add(&request.allowed, 3);
	assert_int_equal(world_route(&w, &request), 3);
	assert_int_equal(world_set_of(&w, "/a"), SET(0) | SET(1) | SET(3));
	world_fini(&w);
}

/* Two inspectors that do not know of each other yet end with the first one's node. */
static void test_two_inspectors(void **state)
{
	struct es_content_change first[4], second[4];
	struct es_request_view request = world_get("/a");
	struct world a, b;
	size_t n, m;

	(void)state;
	world_init(&a, &es_policy_lard, 3);
	world_init(&b, &es_policy_lard, 3);
	ACTIVE(&a, 0, 1, 1);
	ACTIVE(&b, 1, 0, 1);
	assert_int_equal(world_decide(&a, &request), 0);
	assert_int_equal(world_decide(&b, &request), 1);
	n = es_contents_take(a.contents, first, 4);
	m = es_contents_take(b.contents, second, 4);
	assert_int_equal(n, 1);
	assert_int_equal(m, 1);
	es_contents_deliver(a.contents, first, n, 1, 0);
	es_contents_deliver(b.contents, first, n, 0, 0);
	es_contents_deliver(a.contents, second, m, 0, 0);
	es_contents_deliver(b.contents, second, m, 1, 0);
	assert_int_equal(world_decide(&a, &request), 0);
	assert_int_equal(world_decide(&b, &request), 0);
	world_fini(&a);
	world_fini(&b);
}

static void test_without_table(void **state)
{
	static const struct es_policy *const policies[] = {&es_policy_lard, &es_policy_lard_r,
							   &es_policy_hylard, &es_policy_ext_lard, NULL};
	struct world w;

	(void)state;
	for (const struct es_policy *const *p = policies; *p; p++) {
		struct es_request_view unknown = {.current = -1, .cost = 1};

		world_init(&w, *p, 3);
		ACTIVE(&w, 2, 1, 3);
		LOAD(&w, 1, 2, 3);
		assert_int_equal(world_route(&w, &unknown), 1);
		assert_int_equal(world_set(&w, 0).nodes.bits[0], 0);
		w.view.contents = NULL;
		assert_int_equal(w.policy->route(w.state, &unknown, &w.view), 1);
		world_fini(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lard_thresholds), cmocka_unit_test(test_lard_parameters),
		cmocka_unit_test(test_lard_measured),	cmocka_unit_test(test_lard_measured_moves),
		cmocka_unit_test(test_lard_weights),	cmocka_unit_test(test_lard_away),
		cmocka_unit_test(test_lard_current),	cmocka_unit_test(test_lard_r_grows_and_shrinks),
		cmocka_unit_test(test_lard_r_old_set),	cmocka_unit_test(test_lard_r_away),
		cmocka_unit_test(test_two_inspectors),	cmocka_unit_test(test_without_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
