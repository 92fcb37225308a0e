// SPDX-License-Identifier: GPL-2.0-or-later
/* WLC and CAP by hand. */
#include "policy_view.h"

static int get(struct world *w, int current)
{
	struct es_request_view request = world_get("/a");

	request.current = current;
	return world_route(w, &request);
}

static void test_wlc(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_wlc, 3);
	LOAD(&w, 0, 100, 100);
	ACTIVE(&w, 5, 4, 4.5);
	assert_int_equal(get(&w, -1), 1);
	assert_int_equal(get(&w, 0), 1);
	/* By weight: 9 of 200 are 4.5. */
	w.node[0].weight = 200;
	ACTIVE(&w, 9, 4.6, 4.7);
	assert_int_equal(get(&w, -1), 0);
	ACTIVE(&w, 9.3, 4.6, 4.7);
	assert_int_equal(get(&w, -1), 1);
	w.node[1].is_target = 0;
	assert_int_equal(get(&w, 1), 0);
	/* Among nodes that are alike, the connection's is chosen. */
	w.node[1].is_target = 1;
	ACTIVE(&w, 4, 2, 2);
	for (int current = 0; current < 3; current++)
		assert_int_equal(get(&w, current), current);
	world_fini(&w);
}

/* Idle nodes get new content in turn, not all the first one. */
static void test_idle(void **state)
{
	static const struct es_policy *const policies[] = {&es_policy_wlc,	&es_policy_lard,
							   &es_policy_cawll,	&es_policy_xlard_r,
							   &es_policy_ext_lard, NULL};
	struct world w;

	(void)state;
	for (const struct es_policy *const *p = policies; *p; p++) {
		world_init(&w, *p, 5);
		for (unsigned int content = 1; content < 12; content++) {
			struct es_request_view request = world_get("/a");

			request.content = content;
			assert_int_equal(world_route(&w, &request), content % 5);
		}
		world_fini(&w);
	}
}

static void test_wlc_handover_cost(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_wlc, 3);
	world_handover_cost(&w, 5);
	ACTIVE(&w, 9, 4, 9.1);
	assert_int_equal(get(&w, 0), 0); /* gains no more than it costs */
	assert_true(world_explained(&w, "#1 would be 5.0 cheaper, a move costs 5.0: it stays"));
	assert_int_equal(get(&w, 2), 1); /* just worth it */
	assert_true(world_explained(&w, "#1 would be 5.1 cheaper, a move costs 5.0: it moves"));
	assert_int_equal(get(&w, -1), 1);
	/* Gains are by weight, too. */
	w.node[0].weight = 50;
	ACTIVE(&w, 4.5, 4, 9);
	assert_int_equal(get(&w, 0), 0);
	ACTIVE(&w, 4.6, 4, 9);
	assert_int_equal(get(&w, 0), 1);
	/* It cannot stay where it may not be. */
	ACTIVE(&w, 1, 1.5, 2);
	w.node[2].is_target = 0;
	assert_int_equal(get(&w, 2), 1);
	world_fini(&w);
}

static int get_class(struct world *w, enum es_request_class class, int current)
{
	struct es_request_view request = world_get("/a");

	request.class = class;
	request.current = current;
	return world_route(w, &request);
}

/* Each class takes its own turns. */
static void test_cap(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_cap, 3);
	for (int i = 0; i < 6; i++)
		assert_int_equal(get_class(&w, ES_CLASS_NORMAL, 1), i % 3);
	assert_int_equal(get_class(&w, ES_CLASS_NORMAL, -1), 0);
	assert_int_equal(get_class(&w, ES_CLASS_DISK, -1), 0);
	assert_int_equal(get_class(&w, ES_CLASS_DISK, -1), 1);
	assert_int_equal(get_class(&w, ES_CLASS_CPU, -1), 0);
	assert_int_equal(get_class(&w, ES_CLASS_DISK_CPU, -1), 0);
	assert_int_equal(get_class(&w, ES_CLASS_NORMAL, -1), 1);
	assert_int_equal(get_class(&w, ES_CLASS_DISK, -1), 2);
	w.node[1].is_target = 0;
	assert_int_equal(get_class(&w, ES_CLASS_CPU, -1), 2);
	assert_int_not_equal(get_class(&w, ES_CLASS_CPU, -1), 1);
	/* A class that no version of ours has. */
	assert_true(get_class(&w, (enum es_request_class)0x10000000, -1) >= 0);
	world_fini(&w);
}

static void test_cap_weights(void **state)
{
	static const int smooth[] = {0, 1, 2, 0, 0, 1, 2, 0};
	struct world w;

	(void)state;
	world_init(&w, &es_policy_cap, 3);
	w.node[0].weight = 200;
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(get_class(&w, ES_CLASS_DISK_CPU, -1), smooth[i]);
		assert_int_equal(get_class(&w, ES_CLASS_CPU, -1), smooth[i]);
	}
	world_fini(&w);
}

static void test_cap_handover_cost(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, &es_policy_cap, 3);
	world_handover_cost(&w, 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(get_class(&w, ES_CLASS_NORMAL, 2), 2);
	for (int i = 0; i < 4; i++)
		assert_int_equal(get_class(&w, ES_CLASS_DISK, 2), i % 3);
	w.node[2].is_target = 0;
	assert_int_equal(get_class(&w, ES_CLASS_NORMAL, 2), 0);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wlc),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_wlc_handover_cost),
		cmocka_unit_test(test_cap),
		cmocka_unit_test(test_cap_weights),
		cmocka_unit_test(test_cap_handover_cost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
