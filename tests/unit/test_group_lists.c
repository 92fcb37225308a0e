// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Nodes that are added and removed while the others serve: whose lists of nodes go together, and that no two
 * nodes inspect one slot while some have the longer list, some the shorter one, and any of them restarts,
 * reloads or is cut off.
 */
#include "cmocka_all.h"
#include "group_world.h"
#include "membership/group_internal.h"

#define MAY "nodes_may_differ=yes\n"
#define ALL "=nodes=n1@a,n2@b,n3@c,n4@d,n5@e\n"

static int fit(const char *a, const char *b)
{
	char of_a[256], of_b[256];

	snprintf(of_a, sizeof(of_a), "=nodes=%s\n" MAY, a);
	snprintf(of_b, sizeof(of_b), "=nodes=%s\n" MAY, b);
	assert_int_equal(es_group_lists_fit(of_a, of_b), es_group_lists_fit(of_b, of_a));
	return es_group_lists_fit(of_a, of_b);
}

static void test_fit(void **state)
{
	(void)state;
	assert_true(fit("n1@a,n2@b", "n1@a,n2@b"));
	assert_true(fit("n1@a,n2@b", "n1@a,n2@b,n3@c"));
	assert_true(fit("n1@a,n2@b,n3@c", "n1@a,n2@removed,n3@c"));
	assert_true(fit("n1@a,n2@removed", "n1@a,n2@b,n3@c"));
	assert_false(fit("n1@a,n2@b", "n1@a,n3@c"));
	assert_false(fit("n1@a,n2@b", "n1@a,n2@c"));
	assert_false(fit("n1@a,n2@b", "n2@b,n1@a"));
	assert_false(fit("n1@a,n2@removed", "n1@a,n3@c"));
	assert_false(fit("n1@a,n22@b", "n1@a,n2@removed"));
	/* A version before says nothing of it, and judges by one list for all. */
	assert_false(es_group_lists_fit("=nodes=n1@a\n" MAY, "=nodes=n1@a,n2@b\n"));
	assert_false(es_group_lists_may_differ("=nodes=n1@a\n"));
	/* One that is too long is not told. */
	assert_false(es_group_lists_may_differ(MAY));
	assert_false(es_group_lists_fit(MAY, MAY));
}

static void test_admit(void **state)
{
	static struct es_wire_hello a = {.name = "n1", .settings = "=nodes=n1@a,n2@b\n" MAY},
				    b = {.name = "n2", .settings = "=nodes=n1@a,n2@b,n3@c\n" MAY},
				    c = {.name = "n3", .settings = "=nodes=n1@a,n2@b,n3@c\n" MAY},
				    d = {.name = "n2", .settings = "=nodes=n1@removed,n2@b\n" MAY};

	(void)state;
	assert_true(es_group_lists_admit(&a, &b));
	assert_true(es_group_lists_admit(&b, &c));
	assert_false(es_group_lists_admit(&a, &c));
	assert_false(es_group_lists_admit(&c, &a));
	assert_false(es_group_lists_admit(&a, &d));
}

struct drift {
	unsigned int must, should;
};

static void on_difference(void *ctx, const struct es_group_setting *s)
{
	struct drift *drift = ctx;

	*(s->must ? &drift->must : &drift->should) += 1;
}

/* People are told about settings that should be alike; a difference in them costs nobody its place. */
static void test_drift(void **state)
{
	struct drift drift = {};

	(void)state;
	es_group_settings_each(ALL MAY, "=nodes=n1@a\n" MAY, on_difference, &drift);
	assert_int_equal(drift.must, 0);
	assert_int_equal(drift.should, 1);
	es_group_settings_each(ALL MAY, "=nodes=n2@a\n" MAY, on_difference, &drift);
	es_group_settings_each(ALL, "=nodes=n1@a\n" MAY, on_difference, &drift);
	assert_int_equal(drift.must, 2);
}

/* --- worlds */

static const char *settings_of(const char *const *names)
{
	static char text[256];
	size_t used = (size_t)snprintf(text, sizeof(text), "=protocol=1\n=nodes=");

	for (unsigned int i = 0; i < NODES; i++)
		if (names[i])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%sn%u@%s", i ? "," : "",
						 i + 1, *names[i] ? "x" : "removed");
	snprintf(text + used, sizeof(text) - used, "\n" MAY);
	return text;
}

static const char *const all[NODES] = {"n1", "n2", "n3", "n4", "n5"},
			 *const four[NODES] = {"n1", "n2", "n3", "n4"},
			 *const without_2[NODES] = {"n1", "", "n3", "n4", "n5"};

/* As a reload does, which refuses what would move a member. */
static void reload(unsigned int node, const char *const *names)
{
	struct es_group *group = &process[node].group;
	unsigned int count = names[NODES - 1] ? NODES : NODES - 1;

	for (unsigned int i = 0; i < NODES; i++)
		if ((!names[i] || !*names[i]) && (i == node || !es_group_node_is_gone(group, i)))
			return;
	es_group_set_nodes(group, names, count);
	es_group_describe(group, 100, settings_of(names));
}

static void restart(unsigned int node, const char *const *names)
{
	if (process[node].is_running)
		crash(node);
	join(node, settings_of(names));
	es_group_set_nodes(&process[node].group, names, names[NODES - 1] ? NODES : NODES - 1);
}

static void begin_with(const char *const *names)
{
	begin();
	for (unsigned int i = 0; i < NODES; i++)
		restart(i, names);
}

static unsigned int serving(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < NODES; i++)
		n += now < datapath[i].lease_until && datapath[i].share;
	return n;
}

static void one_leaves(unsigned int node)
{
	es_group_leave(&process[node].group);
	for (unsigned int i = 0; i < 200 && !process[node].has_left; i++)
		run(2);
	assert_true(process[node].has_left);
}

/*
 * Four of them know each other; a fifth one is written down by one after the other, each of which restarts.
 */
static void test_one_by_one(void **state)
{
	(void)state;
	seed = 21;
	begin_with(four);
	crash(4);
	run(4000);
	assert_int_equal(serving(), 4);
	for (unsigned int i = 0; i < 4; i++) {
		one_leaves(i);
		run(300);
		assert_int_equal(serving(), 3);
		restart(i, all);
		run(3000);
		assert_int_equal(serving(), 4);
		assert_string_equal(process[0].group.node[i].refused, "");
		if (i != 1)
			continue;
		/* Too early: n3 and n4 would not know whom n1 and n2 mean. */
		restart(4, all);
		run(3000);
		assert_int_equal(serving(), 4);
		assert_false(es_group_is_in(&process[4].group));
		assert_string_equal(process[0].group.node[4].refused,
				    "n5 and n3 are not both in both of their lists of nodes");
		crash(4);
		run(3000);
	}
	restart(4, all);
	run(4000);
	assert_whole();
	assert_int_equal(serving(), 5);
	end();
}

/* Without a restart; and one of the middle goes, whose place stays. */
static void test_reloads(void **state)
{
	(void)state;
	seed = 22;
	begin_with(four);
	crash(4);
	run(4000);
	for (unsigned int i = 0; i < 4; i++) {
		reload(i, all);
		run(300);
		assert_int_equal(serving(), 4);
	}
	restart(4, all);
	run(4000);
	assert_whole();
	one_leaves(1);
	crash(1);
	run(2000);
	assert_int_equal(serving(), 4);
	for (unsigned int i = 0; i < NODES; i++)
		if (i != 1)
			reload(i, without_2);
	run(300);
	/* A node that does not know the new list yet returns, and is one of them; the removed node is not. */
	crash(2);
	run(3000);
	restart(2, all);
	run(3000);
	assert_int_equal(serving(), 4);
	restart(1, all);
	run(3000);
	assert_int_equal(serving(), 4);
	assert_false(es_group_is_in(&process[1].group));
	end();
}

/* Where one node of a version before is there, all judge as that does: by one list. */
static void test_a_version_before(void **state)
{
	(void)state;
	seed = 23;
	begin_with(four);
	crash(4);
	run(4000);
	crash(0);
	run(3000);
	join(0, "=protocol=1\n=nodes=n1@x,n2@x,n3@x,n4@x\n");
	run(3000);
	assert_int_equal(serving(), 4);
	crash(3);
	run(3000);
	restart(3, all);
	run(3000);
	assert_int_equal(serving(), 3);
	assert_string_equal(process[1].group.node[3].refused,
			    "nodes is n1@x,n2@x,n3@x,n4@x,n5@x there, n1@x,n2@x,n3@x,n4@x in the cluster");
	end();
}

static void come_back(unsigned int node)
{
	restart(node, node == 4 || random_below(2) ? all : four);
}

/*
 * n5 is written down and deleted, by nodes that restart or reload, while everything else goes wrong; never is
 * a slot two nodes'.
 */
static void test_random_worlds(void **state)
{
	static const enum deed deeds[] = {SPLIT, MERGE, CRASH, COME_BACK, COME_BACK, LEAVE, STALL};
	uint64_t first = world_setting("EARSHOT_SEED", 5000), worlds = world_setting("EARSHOT_WORLDS", 60);

	(void)state;
	for (uint64_t world = first; world < first + worlds; world++) {
		seed = world;
		begin_with(random_below(2) ? all : four);
		for (unsigned int i = 0; i < 30; i++) {
			unsigned int node = random_below(NODES);
			enum deed deed = deeds[random_below(sizeof(deeds) / sizeof(deeds[0]))];

			run(1 + random_below(random_below(4) ? 60 : 4000));
			if (random_below(2) && process[node].is_running && node != 4)
				reload(node, random_below(2) ? all : four);
			else if (deed != COME_BACK)
				world_do(deed, node);
			else if (!process[node].is_running || process[node].has_left)
				come_back(node);
		}
		print_message("world %llu\n", (unsigned long long)world);
		for (unsigned int i = 0; i < NODES; i++)
			if (process[i].is_running)
				reload(i, all);
		world_mend(come_back);
		for (unsigned int i = 0; i < NODES; i++) {
			reload(i, all);
			run(300);
		}
		restart(4, all);
		run(6000);
		for (unsigned int i = 0; i < NODES; i++)
			if (!es_group_is_in(&process[i].group))
				restart(i, all);
		run(6000);
		assert_whole();
		assert_int_equal(serving(), NODES);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fit),	      cmocka_unit_test(test_admit),
		cmocka_unit_test(test_drift),	      cmocka_unit_test(test_one_by_one),
		cmocka_unit_test(test_reloads),	      cmocka_unit_test(test_a_version_before),
		cmocka_unit_test(test_random_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
