// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The agreement on the ring, over a bus that is played: partitions, crashes, joins, leaves, stalls and
 * changes of weight in random order. Two things must hold. At no time two nodes inspect the same slot, a
 * crashed daemon's datapath included, which goes on until its lease is over. And when all is whole again, all
 * slots are inspected.
 */
#include "cmocka_all.h"
#include "group_world.h"

static void test_forms(void **state)
{
	(void)state;
	seed = 1;
	begin();
	run(2000);
	assert_whole();
	assert_int_equal(process[0].group.epoch, 1);
	end();
}

static void test_leave_in_order(void **state)
{
	uint64_t before;

	(void)state;
	seed = 2;
	begin();
	run(2000);
	before = datapath[2].share;
	es_group_leave(&process[2].group);
	/* Nothing is held: it said so itself. */
	for (unsigned int i = 0; i < 100 && !process[2].has_left; i++)
		run(2);
	assert_true(process[2].has_left);
	run(50);
	assert_true(before != 0);
	for (unsigned int i = 0; i < NODES; i++)
		assert_true(i == 2 || process[i].group.phase == ES_GROUP_STABLE);
	assert_true(inspected() == ~0ULL);
	crash(2);
	run(500);
	assert_int_equal(process[0].group.node[2].reason, ES_GROUP_LEFT);
	assert_true(inspected() == ~0ULL);
	join(2, same);
	run(2000);
	assert_whole();
	assert_true(datapath[2].share == before);
	end();
}

static void test_crash(void **state)
{
	uint64_t gone;

	(void)state;
	seed = 3;
	begin();
	run(3000);
	gone = datapath[1].share;
	crash(1);
	run(LEASE_MS / 2);
	/* Its datapath may go on: nobody else does what it does. */
	assert_int_equal(process[0].group.phase, ES_GROUP_HOLDING);
	run(LEASE_MS * 2);
	assert_int_equal(process[0].group.phase, ES_GROUP_STABLE);
	assert_int_equal(process[0].group.node[1].reason, ES_GROUP_PROCESS);
	assert_true(gone && inspected() == ~0ULL);
	join(1, same);
	run(2000);
	assert_whole();
	end();
}

/* The node said that it leaves, but not that it has stopped. */
static void test_crash_while_leaving(void **state)
{
	(void)state;
	seed = 8;
	begin();
	run(3000);
	es_group_leave(&process[2].group);
	process[2].is_stalled = 1;
	run(100);
	assert_true(process[0].group.member[2].is_leaving);
	assert_int_equal(process[0].group.phase, ES_GROUP_STOPPING);
	crash(2);
	run(LEASE_MS / 2);
	assert_int_equal(process[0].group.phase, ES_GROUP_HOLDING);
	assert_int_equal(process[0].group.node[2].reason, ES_GROUP_PROCESS);
	run(LEASE_MS * 2);
	assert_true(inspected() == ~0ULL);
	end();
}

static void test_minority(void **state)
{
	const unsigned int to[NODES] = {0, 0, 0, 1, 1};

	(void)state;
	seed = 4;
	begin();
	run(2000);
	split(to);
	run(3000);
	assert_int_equal(process[3].group.phase, ES_GROUP_OUT);
	assert_int_equal(process[0].group.phase, ES_GROUP_STABLE);
	assert_true(datapath[3].share == 0 && datapath[4].share == 0);
	assert_true(inspected() == ~0ULL);
	merge();
	run(4000);
	assert_whole();
	end();
}

/*
 * A node starts, cut off from the others, and a quorum device gives it the vote that they had: they are cut
 * off from the device, too, and do not know for a while. With all nodes there, nobody need wait for that.
 */
static void test_vote_moves(void **state)
{
	uint64_t moved;

	(void)state;
	seed = 10;
	begin();
	run(2000);
	crash(0);
	run(3000);
	assert_true(inspected() == ~0ULL);
	part[0] = 1;
	tie_quorum = 1;
	vote_late_ms = 3 * LEASE_MS;
	moved = now;
	join(0, same);
	assert_true(process[0].in_view && process[1].in_view);
	run(vote_late_ms); /* check() watches that no slot is at two nodes */
	assert_int_equal(process[0].group.phase, ES_GROUP_HOLDING);
	for (unsigned int i = 1; i < NODES; i++) {
		process[i].in_view = 0;
		process[i].is_lost = 1;
		process[i].lost_at = now;
	}
	while (process[0].group.phase != ES_GROUP_STABLE && now < moved + 5 * LEASE_MS)
		run(5);
	assert_true(process[0].group.phase == ES_GROUP_STABLE && inspected() == ~0ULL);
	tie_quorum = 0;
	end();
	begin();
	crash(4);
	run(300);
	assert_true(process[0].group.vote_until_ms > 2 * LEASE_MS + now);
	join(4, same);
	run(2000);
	assert_whole();
	vote_late_ms = 0;
	end();
}

static void test_weight(void **state)
{
	(void)state;
	seed = 5;
	begin();
	run(2000);
	es_group_change(&process[0].group, 3, ES_WIRE_CHANGE_WEIGHT, 0);
	run(500);
	assert_true(datapath[3].share == 0);
	assert_true(inspected() == ~0ULL);
	es_group_change(&process[1].group, 3, ES_WIRE_CHANGE_STATE, ES_NODE_DRAINING);
	es_group_change(&process[1].group, 3, ES_WIRE_CHANGE_WEIGHT, 300);
	run(500);
	assert_whole();
	for (unsigned int i = 0; i < NODES; i++)
		assert_int_equal(process[i].group.node[3].state, ES_NODE_DRAINING);
	end();
}

/* Nobody wants a share, so all have one: requests are served, and by the same ring everywhere. */
static void test_weight_0_of_all(void **state)
{
	(void)state;
	seed = 6;
	begin();
	run(2000);
	for (unsigned int i = 0; i < NODES; i++) {
		es_group_change(&process[0].group, i, ES_WIRE_CHANGE_WEIGHT, 0);
		run(500);
		assert_true(inspected() == ~0ULL);
		assert_int_equal(datapath[i].share != 0, i == NODES - 1);
	}
	for (unsigned int i = 0; i < NODES; i++) {
		assert_true(datapath[i].share != 0);
		assert_int_equal(process[0].group.node[i].weight, 0);
	}
	es_group_change(&process[2].group, 1, ES_WIRE_CHANGE_WEIGHT, 1);
	run(500);
	assert_true(datapath[1].share == ~0ULL);
	assert_true(inspected() == ~0ULL);
	end();
}

static void test_refused(void **state)
{
	(void)state;
	seed = 6;
	begin();
	run(2000);
	crash(4);
	run(3000);
	join(4, "=protocol=1\n=key=cc\n");
	run(3000);
	assert_false(es_group_is_in(&process[4].group));
	for (unsigned int i = 0; i < NODES; i++)
		assert_string_equal(process[i].group.node[4].refused,
				    "key is cc there, aa bb in the cluster");
	assert_true(datapath[4].share == 0 && inspected() == ~0ULL);
	crash(4);
	run(3000);
	join(4, "=protocol=1\n=key=bb aa\n"); /* a rotation */
	run(3000);
	assert_whole();
	end();
}

static const char other_key[] = "=protocol=1\n=key=cc\n";

/*
 * Made alike, a node is in, without a start; and so it is if all others are made as it is, but not before all
 * are.
 */
static void test_made_alike(void **state)
{
	(void)state;
	seed = 13;
	begin();
	run(2000);
	crash(4);
	run(3000);
	join(4, other_key);
	run(3000);
	assert_false(es_group_is_in(&process[4].group));
	es_group_describe(&process[4].group, 100, same);
	run(1000);
	assert_whole();
	assert_string_equal(process[4].group.node[4].refused, "");
	crash(4);
	run(3000);
	join(4, other_key);
	run(3000);
	for (unsigned int i = 0; i < 4; i++) {
		uint32_t epoch = process[4].group.epoch;

		assert_false(es_group_is_in(&process[4].group));
		for (unsigned int k = 0; k < 4; k++)
			assert_true(es_group_is_in(&process[k].group));
		es_group_describe(&process[i].group, 100, other_key);
		run(1000);
		assert_int_equal(process[4].group.epoch != epoch, i == 3); /* it does not try in vain */
	}
	assert_whole();
	end();
}

/*
 * A change that makes one refused node alike leaves another one refused: each is judged for itself, and
 * nobody tries in vain.
 */
static void test_two_refused(void **state)
{
	uint32_t epoch;

	(void)state;
	seed = 14;
	begin();
	run(2000);
	for (unsigned int i = 3; i < NODES; i++) {
		crash(i);
		run(3000);
		join(i, i == 3 ? other_key : "=protocol=1\n=key=dd\n");
		run(3000);
	}
	es_group_describe(&process[4].group, 100, other_key);
	epoch = process[0].group.epoch;
	run(2000);
	assert_int_equal(process[0].group.epoch, epoch);
	es_group_describe(&process[4].group, 100, same);
	run(2000);
	assert_true(es_group_is_in(&process[4].group));
	assert_false(es_group_is_in(&process[3].group));
	assert_true(inspected() == ~0ULL && datapath[4].share);
	es_group_describe(&process[3].group, 100, same);
	run(2000);
	assert_whole();
	end();
}

static void test_stalled(void **state)
{
	(void)state;
	seed = 7;
	begin();
	run(2000);
	process[2].is_stalled = 1;
	run(PATIENCE_MS + 4000);
	assert_int_equal(process[0].group.node[2].reason, ES_GROUP_SUSPECTED);
	assert_int_equal(process[0].group.phase, ES_GROUP_STABLE);
	assert_true(inspected() == ~0ULL);
	process[2].is_stalled = 0;
	run(6000);
	assert_whole();
	end();
}

/* Has a ring been in force that this node was not in? Where all are late, and where one dies, it has not. */
static void test_others_served(void **state)
{
	const unsigned int cut_off[NODES] = {0, 0, 0, 0, 1};

	(void)state;
	seed = 8;
	begin();
	run(3000);
	for (unsigned int i = 0; i < NODES; i++)
		frozen_until[i] = now + 2 * LEASE_MS;
	run(2 * LEASE_MS);
	assert_int_equal(inspected(), 0);
	crash(3);
	run(4000);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(process[i].group.phase, ES_GROUP_STABLE);
		assert_true(process[i].group.others_ahead && !process[i].group.others_served);
	}
	join(3, same);
	run(3000);
	assert_whole();
	assert_true(process[3].group.others_served && !process[0].group.others_served);
	split(cut_off);
	run(4000);
	merge();
	run(4000);
	assert_whole();
	for (unsigned int i = 0; i < NODES; i++)
		assert_int_equal(process[i].group.others_served, i == 4);
	end();
}

static void test_settings(void **state)
{
	char text[256];

	(void)state;
	assert_int_equal(es_group_settings_differ("=a=1\nx=2\n", "=a=1\nx=3\n", text, sizeof(text)), 0);
	assert_int_equal(es_group_settings_differ("=a=1\n", "=a=2\n", text, sizeof(text)), 1);
	assert_string_equal(text, "a is 1 there, 2 in the cluster");
	assert_int_equal(es_group_settings_differ("=a=1\n", "=a=1\n=b=x\n", text, sizeof(text)), 1);
	assert_string_equal(text, "b is missing there, x in the cluster");
	assert_int_equal(es_group_settings_differ("=k=1 2\n", "=k=2 3\n", text, sizeof(text)), 1);
	assert_int_equal(es_group_settings_differ("=k=1 2\n", "=k=2 1\n", text, sizeof(text)), 0);
	assert_int_equal(es_group_settings_differ("junk", "=", text, sizeof(text)), 0);
}

/*
 * A reload: the others know at once, and nobody is judged by it before it joins anew, as by a version before.
 */
static void test_reload(void **state)
{
	static const char other[] = "=protocol=1\n=key=aa bb\n=service=x\n";

	(void)state;
	seed = 12;
	begin();
	run(2000);
	es_group_describe(&process[1].group, 100, other);
	run(500);
	for (unsigned int i = 0; i < NODES; i++)
		assert_string_equal(process[i].group.node[1].settings, other);
	assert_whole();
	crash(3);
	es_group_describe(&process[2].group, 100, other); /* while they agree on another ring */
	run(3000);
	for (unsigned int i = 0; i < NODES; i++)
		assert_true(i == 3 || !strcmp(process[i].group.node[2].settings, other));
	crash(1);
	run(3000);
	assert_string_equal(process[0].group.node[2].settings, other);
	end();
}

static void come_back(unsigned int node)
{
	if (process[node].is_running)
		crash(node);
	join(node, same);
}

static void test_random_worlds(void **state)
{
	static const enum deed deeds[] = {SPLIT, MERGE, CRASH, COME_BACK, LEAVE, STALL, CHANGE, CHANGE};
	uint64_t first = world_setting("EARSHOT_SEED", 1000), worlds = world_setting("EARSHOT_WORLDS", 60);

	(void)state;
	for (uint64_t world = first; world < first + worlds; world++) {
		seed = world;
		begin();
		for (unsigned int i = 0; i < 25; i++) {
			unsigned int node = random_below(NODES);
			enum deed deed;

			run(1 + random_below(random_below(4) ? 60 : 4000));
			trace("world", node, "");
			deed = deeds[random_below(sizeof(deeds) / sizeof(deeds[0]))];
			if (deed != COME_BACK)
				world_do(deed, node);
			else if (!process[node].is_running || process[node].has_left)
				come_back(node);
		}
		print_message("world %llu\n", (unsigned long long)world);
		world_mend(come_back);
		for (unsigned int i = 0; i < NODES; i++)
			es_group_change(&process[i].group, i, ES_WIRE_CHANGE_WEIGHT, 100);
		run(3000);
		assert_whole();
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),	   cmocka_unit_test(test_leave_in_order),
		cmocka_unit_test(test_crash),	   cmocka_unit_test(test_crash_while_leaving),
		cmocka_unit_test(test_minority),   cmocka_unit_test(test_vote_moves),
		cmocka_unit_test(test_weight),	   cmocka_unit_test(test_weight_0_of_all),
		cmocka_unit_test(test_refused),	   cmocka_unit_test(test_stalled),
		cmocka_unit_test(test_settings),   cmocka_unit_test(test_random_worlds),
		cmocka_unit_test(test_reload),	   cmocka_unit_test(test_others_served),
		cmocka_unit_test(test_made_alike), cmocka_unit_test(test_two_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
