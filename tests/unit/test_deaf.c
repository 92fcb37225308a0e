// SPDX-License-Identifier: GPL-2.0-or-later
/* When a node is deaf: what arrived, and what should have. */
#include "cmocka_all.h"
#include <string.h>
#include "inspector/self/deaf.h"

#define EVERY_MS 125

struct world {
	struct es_deaf deaf;
	struct es_deaf_signs signs;
	uint64_t now_ms;
	/* what goes on */
	int broadcasts, probes, clients;
};

/* Time passes; what is the node at the end? */
static enum es_deaf_kind run(struct world *w, unsigned int ms)
{
	enum es_deaf_kind kind = ES_DEAF_NOT;

	for (unsigned int i = 0; i < ms; i += EVERY_MS) {
		w->now_ms += EVERY_MS;
		w->signs.any += (uint64_t)(w->broadcasts + w->probes + w->clients);
		w->signs.clients += (uint64_t)w->clients;
		if (w->probes)
			w->signs.probe_ms = w->now_ms;
		kind = es_deaf_look(&w->deaf, &w->signs, w->now_ms);
	}
	return kind;
}

static struct world begin(void)
{
	struct world w = {
		.now_ms = 1000000,
		.signs = {.has_others = 1, .others_are_there = 1},
		.broadcasts = 1,
		.probes = 1,
	};

	assert_int_equal(run(&w, 5000), ES_DEAF_NOT);
	return w;
}

static void test_nothing_arrives(void **state)
{
	struct world w = begin();

	(void)state;
	w.broadcasts = w.probes = 0;
	assert_int_equal(run(&w, ES_DEAF_AFTER_MS - EVERY_MS), ES_DEAF_NOT);
	assert_int_equal(run(&w, EVERY_MS), ES_DEAF_ALL);
	/* It has left: no other is a member to it, and it stays away until it hears something. */
	w.signs.has_others = 0;
	assert_int_equal(run(&w, 1000), ES_DEAF_ALL);
	w.probes = 1;
	assert_int_equal(run(&w, EVERY_MS), ES_DEAF_NOT);
}

static void test_nobody_is_there(void **state)
{
	struct world w = begin();

	(void)state;
	w.broadcasts = w.probes = w.signs.has_others = w.signs.others_are_there = 0;
	assert_int_equal(run(&w, 60000), ES_DEAF_NOT);
}

/* The switch has forgotten the cluster MAC. */
static void test_broadcasts_only(void **state)
{
	struct world w = begin();

	(void)state;
	w.probes = 0;
	assert_int_equal(run(&w, ES_DEAF_AFTER_MS - EVERY_MS), ES_DEAF_NOT);
	assert_int_equal(run(&w, EVERY_MS), ES_DEAF_MAC);
	w.signs.has_others = 0;
	assert_int_equal(run(&w, 60000), ES_DEAF_MAC);
	/* Then not even those; and the other way round. */
	w.broadcasts = 0;
	assert_int_equal(run(&w, 2000), ES_DEAF_ALL);
	w.broadcasts = 1;
	assert_int_equal(run(&w, 2000), ES_DEAF_MAC);
	w.probes = 1;
	assert_int_equal(run(&w, EVERY_MS), ES_DEAF_NOT);
}

/* The other node is mute, or slow: a client that is heard here says that this port is well. */
static void test_client_is_heard(void **state)
{
	struct world w = begin();

	(void)state;
	w.probes = 0;
	w.clients = 1;
	assert_int_equal(run(&w, 10000), ES_DEAF_NOT);
	/* From then on the silence of the others says nothing. */
	w.clients = 0;
	assert_int_equal(run(&w, 60000), ES_DEAF_NOT);
	w.probes = 1;
	run(&w, 1000);
	w.probes = 0;
	assert_int_equal(run(&w, 2000), ES_DEAF_MAC);
	w.clients = 1;
	assert_int_equal(run(&w, EVERY_MS), ES_DEAF_NOT);
}

/* Their daemons are gone, or hang: what they do not send does not arrive. */
static void test_others_are_silent(void **state)
{
	struct world w = begin();

	(void)state;
	w.probes = w.signs.others_are_there = 0;
	assert_int_equal(run(&w, 60000), ES_DEAF_NOT);
}

/* A node that has left and is the last one comes back. */
static void test_last_one(void **state)
{
	struct world w = begin();

	(void)state;
	w.probes = 0;
	assert_int_equal(run(&w, 2000), ES_DEAF_MAC);
	w.signs.has_others = w.signs.others_are_there = 0;
	assert_int_equal(run(&w, ES_DEAF_ALONE_MS - EVERY_MS), ES_DEAF_MAC);
	assert_int_equal(run(&w, 60000), ES_DEAF_NOT);
}

/* Isolated switch ports, or nodes of a version that sends other frames: nothing was ever heard. */
static void test_never_met(void **state)
{
	struct world w = {
		.now_ms = 1000000,
		.signs = {.has_others = 1, .others_are_there = 1},
		.broadcasts = 1,
	};

	(void)state;
	assert_int_equal(run(&w, 60000), ES_DEAF_NOT);
}

/* Another daemon does not begin as if nothing were known. */
static void test_begins_deaf(void **state)
{
	struct world w = {
		.now_ms = 1000000,
		.signs = {.clients = 77, .others_are_there = 1},
		.broadcasts = 1,
	};

	(void)state;
	es_deaf_begin(&w.deaf, 77, w.now_ms);
	assert_int_equal(run(&w, 60000), ES_DEAF_MAC);
	w.clients = 1;
	assert_int_equal(run(&w, EVERY_MS), ES_DEAF_NOT);
	es_deaf_begin(&w.deaf, w.signs.clients, w.now_ms);
	w.clients = 0;
	w.signs.others_are_there = 0;
	assert_int_equal(run(&w, ES_DEAF_ALONE_MS - EVERY_MS), ES_DEAF_MAC);
	assert_int_equal(run(&w, EVERY_MS), ES_DEAF_NOT);
	es_deaf_begin(&w.deaf, w.signs.clients, w.now_ms);
	w.probes = 1;
	assert_int_equal(run(&w, EVERY_MS), ES_DEAF_NOT);
}

static void test_sleep(void **state)
{
	struct world w = begin();

	(void)state;
	w.now_ms += 20000;
	w.probes = w.broadcasts = 0;
	assert_int_equal(run(&w, EVERY_MS), ES_DEAF_NOT);
	w.probes = w.broadcasts = 1;
	assert_int_equal(run(&w, 3000), ES_DEAF_NOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_arrives),
		cmocka_unit_test(test_nobody_is_there),
		cmocka_unit_test(test_broadcasts_only),
		cmocka_unit_test(test_client_is_heard),
		cmocka_unit_test(test_others_are_silent),
		cmocka_unit_test(test_last_one),
		cmocka_unit_test(test_never_met),
		cmocka_unit_test(test_begins_deaf),
		cmocka_unit_test(test_sleep),
	};

	return cmocka_run_group_tests_name("deaf", tests, NULL, NULL);
}
