// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leases by grants, in the worlds of group_world.h: clocks that run apart by 2%, datagrams that are lost,
 * late, doubled or pass where the bus does not, daemons that sleep, a bus that stands still, machines that
 * lose power. At no time two nodes inspect the same slot; and who is left when one of them is lost does not
 * pause.
 */
#include "cmocka_all.h"
#include "group_world.h"

static const char grants[] = "=protocol=1\n=key=aa bb\ngrants=5\n";
static const char before_grants[] = "=protocol=1\n=key=aa bb\n";

#define LOSE_MS (LEASE_MS * 22 / 10) /* until corosync has formed anew without a node */

static uint64_t kept[NODES]; /* what each node may not pause with, now */

static void on_tick(void)
{
	for (unsigned int i = 0; i < NODES; i++) {
		if (kept[i] & ~datapath[i].share)
			fail_msg("n%u lacks %016llx of its share at %llu ms", i + 1,
				 (unsigned long long)(kept[i] & ~datapath[i].share), (unsigned long long)now);
		if (kept[i] && local(i) >= datapath[i].lease_until)
			fail_msg("n%u has no lease at %llu ms", i + 1, (unsigned long long)now);
	}
}

static void none(struct process *p)
{
	(void)p;
}

static void no_proofs(struct process *p, unsigned int node, const struct es_wire_proof *proofs, size_t count)
{
	(void)p;
	(void)node;
	(void)proofs;
	(void)count;
}

static const struct world_hooks watching = {none, none, no_proofs, none, on_tick};

static void nobody_is_watched(void)
{
	memset(kept, 0, sizeof(kept));
}

static void all_are_watched_but(unsigned int node)
{
	for (unsigned int i = 0; i < NODES; i++)
		kept[i] = i == node || !process[i].is_running ? 0 : datapath[i].share;
}

static void world_new(uint64_t number, const char *settings)
{
	seed = number;
	hooks = &watching;
	nobody_is_watched();
	begin();
	for (unsigned int i = 0; i < NODES; i++) {
		clock_drift[i] = (int)random_below(21) - 10;
		start(i, settings);
		process[i].in_view = 1;
	}
	lose_percent = late_percent = pass_percent = tie_quorum = lost_late_ms = 0;
	late_ms = 1;
	world_changed(&(const struct views){}, ES_GROUP_PROCESS);
}

/* The machine is off, and the bus stands still until its loss is noticed. */
static void power_off(unsigned int node)
{
	struct views was;

	trace("loses power", node, "");
	process[node].is_running = 0;
	datapath[node] = (struct datapath){};
	for (unsigned int i = 0; i < NODES; i++)
		frozen_until[i] = now + LOSE_MS;
	run(LOSE_MS);
	snapshot(&was);
	process[node].in_view = 0;
	drop_events(&process[node]);
	world_changed(&was, ES_GROUP_NODE);
}

/* Three to five nodes, and one is lost: only its own share waits. */
static void test_one_is_lost(void **state)
{
	uint64_t began, worlds = world_setting("EARSHOT_WORLDS", 60);

	(void)state;
	for (uint64_t world = 1; world <= worlds; world++) {
		unsigned int node = (unsigned int)(world % NODES);

		world_new(world, grants);
		run(4000);
		assert_whole();
		lose_percent = 5;
		late_percent = 5;
		late_ms = LEASE_MS / 10;
		run(2000);
		if (world % 3 == 0) {
			crash((node + 2) % NODES);
			run(4000);
		}
		all_are_watched_but(node);
		began = now;
		power_off(node);
		while (inspected() != ~0ULL && now < began + 5 * LEASE_MS / 2)
			run(5);
		print_message("world %llu: its share is served after %llu ms\n", (unsigned long long)world,
			      (unsigned long long)(now - began));
		assert_true(inspected() == ~0ULL);
		run(LEASE_MS);
		nobody_is_watched();
		end();
	}
}

/* Without grants, all are silent meanwhile. */
static void test_version_before(void **state)
{
	static const char *const settings[] = {grants, grants, before_grants, grants, grants};
	uint64_t was;

	(void)state;
	world_new(7, grants);
	crash(2);
	run(4000);
	join(2, settings[2]);
	run(4000);
	assert_whole();
	for (unsigned int i = 0; i < NODES; i++)
		assert_false(es_group_grants_are_for_all(&process[i].group));
	process[4].is_running = 0;
	for (unsigned int i = 0; i < NODES; i++)
		frozen_until[i] = now + LOSE_MS;
	run(LEASE_MS + LEASE_MS / 2);
	was = inspected();
	assert_true(was == 0);
	end();
}

/* A node that leaves in order is noticed by nobody: nothing is held. */
static void test_leaves(void **state)
{
	uint64_t began;

	(void)state;
	world_new(8, grants);
	run(4000);
	all_are_watched_but(3);
	es_group_leave(&process[3].group);
	for (began = now; (!process[3].has_left || inspected() != ~0ULL) && now < began + 300;)
		run(2);
	assert_true(process[3].has_left && inspected() == ~0ULL);
	crash(3);
	run(100);
	assert_true(inspected() == ~0ULL);
	for (unsigned int i = 0; i < NODES; i++)
		assert_true(i == 3 || process[i].group.phase == ES_GROUP_STABLE);
	nobody_is_watched();
	end();
}

/*
 * The others cannot know whom a node has grants of if more are gone than may be missing: they wait until no
 * grant counts any more.
 */
static void test_few_are_left(void **state)
{
	const unsigned int to[NODES] = {0, 0, 1, 1, 1};
	uint64_t began;

	(void)state;
	world_new(9, grants);
	run(4000);
	assert_whole();
	tie_quorum = 2;
	lost_late_ms = 1;
	split(to);
	for (unsigned int i = 2; i < NODES; i++)
		process[i].lost_at = now + 60000; /* their corosync has no time to tell them */
	began = now;
	run(LEASE_MS);
	for (unsigned int i = 2; i < NODES; i++)
		assert_true(datapath[i].share && local(i) < datapath[i].lease_until);
	while (process[0].group.phase != ES_GROUP_STABLE && now < began + 8 * LEASE_MS)
		run(5);
	assert_int_equal(process[0].group.phase, ES_GROUP_STABLE);
	run(1000);
	assert_true(inspected() == ~0ULL && datapath[0].share && datapath[1].share);
	end();
}

/*
 * The last node is cut off, and back before its daemon has looked: corosync hands out both views together.
 * The others have stopped for a ring without it meanwhile, which comes into force where two of them have
 * gone. So it must not go on with what it had, though it has never been without a lease.
 */
static void test_others_began(void **state)
{
	const unsigned int away = NODES - 1, back[NODES] = {0, 0, 2, 2, 0};
	uint64_t began, had, taken = 0;
	struct views was;

	(void)state;
	world_new(10, grants);
	run(4000);
	assert_whole();
	pass_percent = 100;
	had = datapath[away].share;
	snapshot(&was);
	part[away] = 1;
	world_changed(&was, ES_GROUP_NODE);
	process[away].is_lost = 0;
	process[away].in_view = 1;
	began = now;
	run(6 * LEASE_MS / 10);
	assert_int_equal(process[2].group.phase, ES_GROUP_HOLDING);
	assert_true(process[away].group.is_serving && local(away) < datapath[away].lease_until);
	views_give(1, &was, ES_GROUP_NODE);
	snapshot(&was);
	memcpy(part, back, sizeof(part));
	world_changed(&was, ES_GROUP_NODE);
	for (unsigned int i = 2; i < away; i++)
		process[i].lost_at = now + 60000;
	/* check() watches that no slot is at two nodes. */
	while (now < began + 3 * LEASE_MS) {
		run(5);
		taken |= local(2) < datapath[2].lease_until ? datapath[2].share & had : 0;
	}
	assert_true(taken);
	run(8 * LEASE_MS);
	assert_true(inspected() == ~0ULL);
	end();
}

static const char *settings_of(unsigned int node)
{
	static const char *const all[] = {grants, grants, grants, before_grants};

	(void)node;
	return all[random_below(random_below(3) ? 3 : 4)];
}

static void come_back(unsigned int node)
{
	if (process[node].is_running)
		crash(node);
	join(node, settings_of(node));
}

static void come_back_with_grants(unsigned int node)
{
	if (process[node].is_running)
		crash(node);
	join(node, grants);
}

static void bus_stands_still(unsigned int node)
{
	frozen_until[part[node]] = now + random_below(6 * LEASE_MS);
}

static void test_random_worlds(void **state)
{
	static const enum deed deeds[] = {SPLIT, SPLIT,	    MERGE, MERGE, CRASH,     COME_BACK,
					  LEAVE, COME_BACK, STALL, STALL, POWER_OFF, CHANGE};
	uint64_t first = world_setting("EARSHOT_SEED", 1000), worlds = world_setting("EARSHOT_WORLDS", 120);

	(void)state;
	for (uint64_t world = first; world < first + worlds; world++) {
		world_new(world, grants);
		lose_percent = random_below(2) ? random_below(60) : 0;
		late_percent = random_below(40);
		late_ms = 1 + random_below(3 * LEASE_MS);
		pass_percent = random_below(2) ? 100 : random_below(100);
		tie_quorum = random_below(3) ? 0 : 1 + random_below(2);
		lost_late_ms = random_below(3) ? random_below(4 * LEASE_MS) : 0;
		for (unsigned int i = 0; i < 25; i++) {
			unsigned int node = random_below(NODES);
			enum deed deed;

			run(1 + random_below(random_below(4) ? 100 : 4000));
			trace("world", node, "");
			deed = deeds[random_below(sizeof(deeds) / sizeof(deeds[0]))];
			if (deed == POWER_OFF && process[node].in_view && random_below(2))
				power_off(node);
			else if (deed == POWER_OFF)
				bus_stands_still(node);
			else if (deed != COME_BACK)
				world_do(deed, node);
			else if (!process[node].is_running || process[node].has_left)
				come_back(node);
		}
		print_message("world %llu\n", (unsigned long long)world);
		run(6 * LEASE_MS); /* the bus may stand still yet, and nodes be suspected for that */
		merge();
		tie_quorum = lost_late_ms = 0;
		world_mend(come_back_with_grants);
		for (unsigned int i = 0; i < NODES; i++)
			es_group_change(&process[i].group, i, ES_WIRE_CHANGE_WEIGHT, 100);
		run(8 * LEASE_MS);
		assert_whole();
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_is_lost),  cmocka_unit_test(test_version_before),
		cmocka_unit_test(test_leaves),	     cmocka_unit_test(test_few_are_left),
		cmocka_unit_test(test_others_began), cmocka_unit_test(test_random_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
