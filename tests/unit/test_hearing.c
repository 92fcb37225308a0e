// SPDX-License-Identifier: GPL-2.0-or-later
/* Worlds of nodes that hear each other on the public network, or do not: who finds itself mute, and when. */
#include "cmocka_all.h"
#include <string.h>
#include "membership/hearing.h"

#define NODES_MAX 6
#define TICK_MS	  20
#define PASSED	  8
#define SOON_MS	  1000 /* so fast a mute node is found */
/* A frame is heard, and that is told, after so long at the latest. */
#define TOLD_MS (ES_HEARING_EVERY_MS + 3 * TICK_MS)
#define BACK_MS (ES_HEARING_RETURN_MS + 600)

/*
 * struct world - @passes[from][to]: the switch passes that; @loss: percent of all frames; @is_old: of the
 * version before, which says nothing that the others understand; @sleeps_until: its process stands still
 */
struct world {
	unsigned int count;
	unsigned int loss;
	uint64_t now_ms;
	int passes[NODES_MAX][NODES_MAX];
	uint64_t passed_ms[NODES_MAX][NODES_MAX][PASSED]; /* when it did, the last times */
	int is_old[NODES_MAX];
	uint64_t sleeps_until[NODES_MAX];
	uint64_t slept_ms[NODES_MAX]; /* when it last did */
	uint64_t send_at[NODES_MAX];
	struct es_hearing hearing[NODES_MAX];
	struct {
		int is_there;
		struct es_hearing_word word;
	} queue[NODES_MAX][NODES_MAX]; /* [to][from]: what waits in its socket; the last one says all */
	int is_mute[NODES_MAX];
	uint64_t mute_ms[NODES_MAX]; /* when it found out */
	uint64_t random;
};

static unsigned int chance(struct world *w, unsigned int below)
{
	uint64_t random = es_test_random(&w->random);

	return below ? (unsigned int)(random % below) : 0;
}

static void node_start(struct world *w, unsigned int node)
{
	es_hearing_init(&w->hearing[node], node, w->count);
	w->is_mute[node] = 0;
	memset(w->queue[node], 0, sizeof(w->queue[node]));
}

static void world_init(struct world *w, unsigned int count, uint32_t seed)
{
	memset(w, 0, sizeof(*w));
	w->count = count;
	w->random = seed;
	w->now_ms = 5000;
	for (unsigned int i = 0; i < count; i++) {
		node_start(w, i);
		w->send_at[i] = w->now_ms + chance(w, ES_HEARING_EVERY_MS);
		for (unsigned int k = 0; k < count; k++)
			w->passes[i][k] = i != k;
	}
}

static void frame_pass(struct world *w, unsigned int from, const struct es_hearing_word *word)
{
	for (unsigned int to = 0; to < w->count; to++) {
		if (!w->passes[from][to] || chance(w, 100) < w->loss)
			continue;
		w->queue[to][from].is_there = 1;
		w->queue[to][from].word = *word;
		memmove(w->passed_ms[from][to] + 1, w->passed_ms[from][to],
			(PASSED - 1) * sizeof(w->passed_ms[from][to][0]));
		w->passed_ms[from][to][0] = w->now_ms;
	}
}

static void node_tick(struct world *w, unsigned int node)
{
	struct es_hearing *h = &w->hearing[node];
	struct es_hearing_word word;
	int is_mute;

	if (w->now_ms < w->sleeps_until[node])
		w->slept_ms[node] = w->now_ms;
	if (w->is_old[node] || w->slept_ms[node] == w->now_ms)
		return;
	for (unsigned int from = 0; from < w->count; from++) {
		if (w->queue[node][from].is_there)
			es_hearing_heard(h, from, &w->queue[node][from].word, w->now_ms);
		w->queue[node][from].is_there = 0;
	}
	if (w->now_ms >= w->send_at[node]) {
		w->send_at[node] = w->now_ms + ES_HEARING_EVERY_MS;
		es_hearing_say(h, w->now_ms, &word);
		frame_pass(w, node, &word);
		es_hearing_sent(h, w->now_ms);
	}
	is_mute = es_hearing_is_mute(h, w->now_ms);
	if (is_mute && !w->is_mute[node])
		w->mute_ms[node] = w->now_ms;
	w->is_mute[node] = is_mute;
}

static void world_run(struct world *w, uint64_t ms)
{
	for (uint64_t end = w->now_ms + ms; w->now_ms < end; w->now_ms += TICK_MS)
		for (unsigned int i = 0; i < w->count; i++)
			node_tick(w, i);
}

/* Everything that @node sends is lost from now on, or not any more. */
static void make_mute(struct world *w, unsigned int node, int is_mute)
{
	for (unsigned int to = 0; to < w->count; to++)
		w->passes[node][to] = to != node && !is_mute;
}

static unsigned int count_mute(const struct world *w)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < w->count; i++)
		count += (unsigned int)w->is_mute[i];
	return count;
}

static void test_found_and_back(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t seed = 0; seed < 200; seed++) {
		unsigned int one, other;

		world_init(&w, 3 + seed % 4, seed);
		world_run(&w, 2000 + seed);
		assert_int_equal(count_mute(&w), 0);
		make_mute(&w, 1, 1);
		world_run(&w, SOON_MS);
		assert_true(w.is_mute[1]);
		assert_int_equal(count_mute(&w), 1);
		assert_int_equal(es_hearing_witnesses(&w.hearing[1], w.now_ms, &one, &other), 0);
		assert_true(one != 1 && other != 1 && one != other);
		assert_false(es_hearing_hears(&w.hearing[0], 1, w.now_ms));
		world_run(&w, 3000);
		assert_true(w.is_mute[1]);
		make_mute(&w, 1, 0);
		world_run(&w, BACK_MS);
		assert_int_equal(count_mute(&w), 0);
		assert_true(es_hearing_hears(&w.hearing[0], 1, w.now_ms));
	}
}

/* Some 1 in 10 frames lost is no reason to leave. */
static void test_bad_cables(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t seed = 0; seed < 50; seed++) {
		world_init(&w, 4, seed);
		w.loss = 10;
		for (unsigned int i = 0; i < 100; i++) {
			world_run(&w, 100);
			assert_int_equal(count_mute(&w), 0);
		}
	}
}

static void test_isolated_ports(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 4, 1);
	memset(w.passes, 0, sizeof(w.passes));
	world_run(&w, 5000);
	assert_int_equal(count_mute(&w), 0);
	/* Two that hear each other have never heard the third, be it that it hears them, and a fourth it. */
	w.passes[0][1] = w.passes[1][0] = w.passes[0][2] = w.passes[1][2] = 1;
	w.passes[2][3] = w.passes[3][2] = 1;
	world_run(&w, 5000);
	w.passes[2][3] = 0;
	world_run(&w, 5000);
	assert_int_equal(count_mute(&w), 0);
}

static void test_too_few(void **state)
{
	struct world w;

	(void)state;
	/* If one of two nodes is mute, nobody can tell which one it is. */
	world_init(&w, 2, 1);
	world_run(&w, 3000);
	make_mute(&w, 1, 1);
	world_run(&w, 3000);
	assert_int_equal(count_mute(&w), 0);
	/* Nor can anybody tell which, if two of three are mute. */
	world_init(&w, 3, 2);
	world_run(&w, 3000);
	make_mute(&w, 1, 1);
	make_mute(&w, 2, 1);
	world_run(&w, 3000);
	assert_int_equal(count_mute(&w), 0);
	/* If two of four are mute, the other two say so. */
	world_init(&w, 4, 3);
	world_run(&w, 3000);
	make_mute(&w, 1, 1);
	make_mute(&w, 2, 1);
	world_run(&w, SOON_MS);
	assert_true(w.is_mute[1] && w.is_mute[2]);
	assert_int_equal(count_mute(&w), 2);
}

/* A node that slept was unheard only because it did not speak, and is told so when it wakes up. */
static void test_sleepers(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t seed = 0; seed < 200; seed++) {
		world_init(&w, 4, seed);
		world_run(&w, 2000);
		w.sleeps_until[seed % 4] = w.now_ms + 640 + 10 * seed;
		for (unsigned int i = 0; i < 300; i++) {
			world_run(&w, TICK_MS);
			assert_int_equal(count_mute(&w), 0);
		}
	}
}

/* Two of whom one alone hears the other may both be deaf, or mute. */
static void test_witnesses_hear_each_other(void **state)
{
	struct world w;

	(void)state;
	for (unsigned int from = 0; from < 3; from += 2) {
		world_init(&w, 3, 1);
		world_run(&w, 2000);
		w.passes[from][2 - from] = 0;
		make_mute(&w, 1, 1);
		world_run(&w, 5000);
		assert_int_equal(count_mute(&w), 0);
	}
}

/* A cluster that is upgraded node by node: who says nothing is neither mute nor a witness. */
static void test_older_versions(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 4, 1);
	w.is_old[0] = w.is_old[1] = 1;
	world_run(&w, 3000);
	make_mute(&w, 0, 1);
	make_mute(&w, 2, 1);
	world_run(&w, 3000);
	assert_int_equal(count_mute(&w), 0);
	make_mute(&w, 0, 0);
	make_mute(&w, 2, 0);
	w.is_old[1] = 0;
	node_start(&w, 1);
	world_run(&w, 3000);
	make_mute(&w, 2, 1);
	world_run(&w, SOON_MS);
	assert_true(w.is_mute[2]);
	assert_int_equal(count_mute(&w), 1);
}

static void test_never_heard(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 4, 1);
	make_mute(&w, 3, 1);
	world_run(&w, 5000);
	assert_int_equal(count_mute(&w), 0);
	assert_false(es_hearing_is_heard_by(&w.hearing[3], 0, w.now_ms)); /* `earshot check` says so */
	assert_true(es_hearing_hears(&w.hearing[3], 0, w.now_ms));
}

/* Must @to know by now that @node has heard it? Then a frame has passed each way, in time. */
static int must_know(const struct world *w, unsigned int to, unsigned int node)
{
	if (w->now_ms - w->passed_ms[node][to][0] > TOLD_MS ||
	    w->now_ms - w->slept_ms[node] < ES_HEARING_LOST_MS)
		return 0;
	for (unsigned int i = 0; i < PASSED; i++) {
		uint64_t ago_ms = w->now_ms - w->passed_ms[to][node][i];

		if (ago_ms > 2 * TOLD_MS && ago_ms < ES_HEARING_LOST_MS - TOLD_MS)
			return 1;
	}
	return 0;
}

/*
 * Anything in any order, without loss: a node that takes itself for mute was heard by no other that it hears
 * and that was awake.
 */
static void test_random_worlds(void **state)
{
	unsigned int found = 0;
	struct world w;

	(void)state;
	for (uint32_t seed = 0; seed < 3000; seed++) {
		world_init(&w, 3 + seed % 4, seed);
		for (unsigned int step = 0; step < 400; step++) {
			unsigned int from = chance(&w, w.count), to = chance(&w, w.count);
			int was_mute[NODES_MAX];

			if (chance(&w, 12) == 0)
				w.passes[from][to] = from != to && chance(&w, 2);
			if (chance(&w, 40) == 0)
				make_mute(&w, from, (int)chance(&w, 2));
			if (chance(&w, 40) == 0)
				w.sleeps_until[to] = w.now_ms + chance(&w, 3000);
			if (chance(&w, 60) == 0)
				node_start(&w, from);
			memcpy(was_mute, w.is_mute, sizeof(was_mute));
			world_run(&w, TICK_MS);
			for (unsigned int i = 0; i < w.count; i++) {
				if (!w.is_mute[i] || was_mute[i])
					continue;
				found++;
				for (unsigned int k = 0; k < w.count; k++)
					assert_false(must_know(&w, i, k));
			}
		}
	}
	assert_true(found > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_and_back), cmocka_unit_test(test_bad_cables),
		cmocka_unit_test(test_isolated_ports), cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_older_versions), cmocka_unit_test(test_never_heard),
		cmocka_unit_test(test_sleepers),       cmocka_unit_test(test_witnesses_hear_each_other),
		cmocka_unit_test(test_random_worlds),
	};

	return cmocka_run_group_tests_name("hearing", tests, NULL, NULL);
}
