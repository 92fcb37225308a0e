// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * WARD by hand: core_hits 16, core_share 1%, core_size 1 MB, window 60 s. Node 3 is idle and not on the
 * content ring: it gets the core, and nothing else.
 */
#include "policy_view.h"
#include <stdio.h>

#define CORE 3

static void begin(struct world *w)
{
	world_init_ring(w, &es_policy_ward, 4, 3);
	ACTIVE(w, 1, 1, 1, 0);
}

static int get_sized(struct world *w, const char *uri, unsigned int size_bytes)
{
	struct es_request_view request = world_get(uri);

	request.size_bytes = size_bytes;
	return world_route(w, &request);
}

/* @count URIs that nobody asks for twice; each is the content ring's. */
static void others(struct world *w, unsigned int count)
{
	static unsigned int next;
	char uri[32];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(uri, sizeof(uri), "/other/%u", next++);
		assert_int_not_equal(world_first(w, uri), CORE);
	}
}

static void hits(struct world *w, const char *uri, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		assert_true(world_first(w, uri) >= 0);
}

static void test_core_hits(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	for (int i = 0; i < 15; i++)
		assert_int_equal(world_first(&w, "/index.html"), 1); /* test_policy.c: MD5("/index.html") */
	for (int i = 0; i < 5; i++)
		assert_int_equal(world_first(&w, "/index.html"), CORE);
	/* The least busy, by weight. */
	ACTIVE(&w, 3, 2, 4, 3);
	assert_int_equal(world_first(&w, "/index.html"), 1);
	w.node[0].weight = 200;
	assert_int_equal(world_first(&w, "/index.html"), 0);
	w.node[0].is_target = 0;
	assert_int_equal(world_first(&w, "/index.html"), 1);
	world_fini(&w);
}

/* Exactly one percent, and a little less. */
static void test_core_share(void **state)
{
	struct world w;

	(void)state;
	for (unsigned int more = 0; more < 2; more++) {
		begin(&w);
		hits(&w, "/hot", 16);
		others(&w, 1683 + more);
		assert_int_equal(world_first(&w, "/hot") == CORE, !more);
		world_fini(&w);
	}
	begin(&w);
	/* The total of a window ago counts half, too: 17 of 917, not of 1833. */
	hits(&w, "/hot", 32);
	others(&w, 1800);
	w.view.now_ns += 60 * SECOND;
	assert_int_equal(world_first(&w, "/hot"), CORE);
	world_param(&w, "core_share", 50);
	world_param(&w, "core_hits", 2);
	assert_int_not_equal(world_first(&w, "/hot"), CORE);
	assert_int_equal(world_first(&w, "/hot"), CORE);
	others(&w, 3);
	assert_int_equal(world_first(&w, "/hot"), CORE); /* 3 of 6 */
	others(&w, 2);
	assert_int_not_equal(world_first(&w, "/hot"), CORE); /* 4 of 9 */
	world_fini(&w);
}

static void test_core_size(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	hits(&w, "/hot", 20);
	assert_int_equal(get_sized(&w, "/hot", 1024 * 1024), CORE);
	assert_int_not_equal(get_sized(&w, "/hot", 1024 * 1024 + 1), CORE);
	world_param(&w, "core_size", 0);
	hits(&w, "/hot", 20);
	assert_int_equal(get_sized(&w, "/hot", 1024 * 1024 + 1), CORE);
	world_fini(&w);
}

/* Counts are halved when a window has passed: 30 are 15 then, and this one is the 16th. */
static void test_window(void **state)
{
	struct world w;

	(void)state;
	for (unsigned int less = 0; less < 2; less++) {
		begin(&w);
		hits(&w, "/hot", 30 - less);
		w.view.now_ns += 60 * SECOND - 1;
		assert_int_equal(world_first(&w, "/hot"), CORE);
		world_fini(&w);
		begin(&w);
		hits(&w, "/hot", 30 - less);
		w.view.now_ns += 60 * SECOND;
		assert_int_equal(world_first(&w, "/hot") == CORE, !less);
		world_fini(&w);
	}
	/* A long time without requests is many windows. */
	begin(&w);
	hits(&w, "/hot", 1000);
	w.view.now_ns += 6 * 60 * SECOND;
	assert_int_equal(world_first(&w, "/hot"), CORE); /* 15.6 + 1 */
	w.view.now_ns += 60 * SECOND;
	assert_int_not_equal(world_first(&w, "/hot"), CORE);
	world_fini(&w);
}

/* Windows follow one another, whenever requests arrive; and a dry run leaves them where they are. */
static void test_window_begins(void **state)
{
	struct es_request_view request = world_get("/other");
	struct world w;

	(void)state;
	for (int is_dry = 0; is_dry < 2; is_dry++) {
		begin(&w);
		hits(&w, "/hot", 61);
		w.view.now_ns += 119 * SECOND;
		(void)(is_dry ? world_explain(&w, &request) : world_route(&w, &request));
		w.view.now_ns += SECOND;
		assert_int_equal(world_first(&w, "/hot"), CORE); /* 15.25 + 1 */
		w.view.now_ns += 59 * SECOND;
		assert_int_equal(world_first(&w, "/hot"), CORE);
		w.view.now_ns += SECOND;
		assert_int_not_equal(world_first(&w, "/hot"), CORE); /* 8.625 + 1 */
		world_fini(&w);
	}
}

/* A slot is not free: content that arrives late takes over a count, and does not profit from it. */
static void test_late(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	others(&w, 25600); /* each slot has 100 */
	for (int i = 0; i < 258; i++)
		assert_int_not_equal(world_first(&w, "/late"), CORE);
	assert_int_equal(world_first(&w, "/late"), CORE); /* 259 of 25,859 */
	world_fini(&w);
}

/* The rest is where uri-hash has it, nodes that are away included; and an open connection is moved for the
 * core only if that is worth it. */
static void test_rest(void **state)
{
	struct es_request_view request;
	struct world w, hash;
	char uri[32];

	(void)state;
	begin(&w);
	world_init_ring(&hash, &es_policy_uri_hash, 4, 3);
	for (unsigned int i = 0; i < 500; i++) {
		if (i == 250)
			w.node[1].is_target = hash.node[1].is_target = 0;
		snprintf(uri, sizeof(uri), "/rest/%u", i);
		assert_int_equal(world_first(&w, uri), world_first(&hash, uri));
	}
	w.node[1].is_target = 1;
	world_handover_cost(&w, 5);
	hits(&w, "/hot", 20);
	ACTIVE(&w, 4.5, 5, 5, 0);
	request = world_get("/hot");
	request.current = 0;
	assert_int_equal(world_route(&w, &request), 0);
	request.current = 1;
	assert_int_equal(world_route(&w, &request), 1); /* moving gains as much as it costs */
	ACTIVE(&w, 4.5, 5.1, 5, 0);
	assert_int_equal(world_route(&w, &request), CORE);
	for (unsigned int i = 0; i < 4; i++)
		w.node[i].is_target = 0;
	assert_int_equal(world_first(&w, "/hot"), -1);
	assert_int_equal(world_first(&w, "/cold"), -1);
	world_fini(&w);
	world_fini(&hash);
}

/* A hundred URIs of about the share that makes core, among others: what is core truly has the share, so
 * there are never more than a hundred; and what has clearly more is core. */
static void test_core_is_bounded(void **state)
{
	enum { URIS = 120, REQUESTS = 30000 };
	unsigned int count[URIS] = {}, core = 0, rest = 0;
	uint64_t seed = 3;
	struct world w;
	char uri[32];

	(void)state;
	begin(&w);
	for (unsigned int i = 1; i <= REQUESTS; i++) {
		unsigned int r = (unsigned int)(es_test_random(&seed) % 1000), t = r / 8;
		int is_core;

		if (r >= 800) {
			others(&w, 1);
			continue;
		}
		/* The first ten are asked for twice as often. */
		if (t >= 90)
			t -= 90;
		count[t]++;
		snprintf(uri, sizeof(uri), "/t/%u", t);
		is_core = world_first(&w, uri) == CORE;
		if (is_core)
			assert_true(count[t] >= 16 && count[t] >= i * 0.01);
		if (count[t] >= 16 && count[t] > i * (0.01 + 1.0 / 256))
			assert_true(is_core);
		core += is_core;
		rest += !is_core;
	}
	assert_true(core > 1000 && rest > 1000);
	world_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_core_hits),     cmocka_unit_test(test_core_share),
		cmocka_unit_test(test_core_size),     cmocka_unit_test(test_window),
		cmocka_unit_test(test_window_begins), cmocka_unit_test(test_late),
		cmocka_unit_test(test_rest),	      cmocka_unit_test(test_core_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
