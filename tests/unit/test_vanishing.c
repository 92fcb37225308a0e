// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When connections are taken to vanish on a node, by what inspecting nodes tell of it: and that no client can
 * bring it about.
 */
#include "cmocka_all.h"
#include "inspector/health/vanishing.h"

static const struct es_place_others two = {.count = 2};

struct world {
	struct es_vanishing v;
	unsigned long long now_ms;
	__u64 request;
};

/* @client is the number of an address, of which 256 are a network. */
static void vanished(struct world *w, unsigned int client)
{
	const struct es_vanishing_event e = {w->now_ms, 1000 + client, 1 + client / 256, ++w->request};

	es_vanishing_note(&w->v, &e);
}

static void heard(struct world *w, unsigned int client)
{
	const struct es_vanishing_event e = {w->now_ms, 1000 + client, 1 + client / 256, 0};

	es_vanishing_note(&w->v, &e);
}

static int is_bad_after(struct world *w, unsigned int ms)
{
	w->now_ms += ms;
	return es_vanishing_is_bad(&w->v, w->now_ms);
}

/* Where nobody is heard, a few requests of one client are enough, once others could have been heard. */
static void test_nobody_is_heard(void **state)
{
	struct world w = {.now_ms = 5000};

	(void)state;
	assert_false(is_bad_after(&w, 0));
	vanished(&w, 1);
	vanished(&w, 1);
	assert_false(is_bad_after(&w, ES_VANISHING_WAIT_MS));
	vanished(&w, 1);
	assert_true(is_bad_after(&w, 0));
	assert_false(is_bad_after(&w, ES_VANISHING_LATELY_MS)); /* nothing new */
}

/* The same request, told by several, or again. */
static void test_copies(void **state)
{
	struct world w = {.now_ms = 5000};

	(void)state;
	for (int i = 0; i < 10; i++) {
		w.request = 7;
		vanished(&w, 1);
		assert_false(is_bad_after(&w, 1000));
	}
}

/* While others are heard, neither one client nor one network is enough, however much it asks. */
static void test_one_network(void **state)
{
	struct world w = {.now_ms = 5000};

	(void)state;
	for (unsigned int i = 0; i < 60; i++) {
		vanished(&w, i % 3 ? i : 0);
		if (i % 4 == 0)
			heard(&w, 5000);
		assert_false(is_bad_after(&w, 500));
	}
}

/* Clients of several networks, and more of them than are heard. */
static void test_most_clients(void **state)
{
	struct world w = {.now_ms = 5000};

	(void)state;
	for (unsigned int i = 0; i < ES_VANISHING_NETWORKS; i++)
		vanished(&w, i * 256);
	w.now_ms += ES_VANISHING_WAIT_MS;
	for (unsigned int i = 0; i <= ES_VANISHING_NETWORKS; i++)
		heard(&w, 50000 + i * 256);
	assert_false(is_bad_after(&w, 0));
	vanished(&w, 90000);
	assert_true(is_bad_after(&w, 0));
	/* One that was heard after all says nothing. */
	heard(&w, 90000);
	assert_false(is_bad_after(&w, 0));
}

/* The node goes, tries again, and goes for longer; what was told before it went is no reason. */
static void test_goes(void **state)
{
	struct world w = {.now_ms = 5000};
	unsigned int hold_s = ES_VANISHING_OUT_S;

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 4; i++)
			vanished(&w, i);
		w.now_ms += ES_VANISHING_WAIT_MS;
		assert_int_equal(es_vanishing_look(&w.v, 1, &two, w.now_ms), ES_PLACE_WANTS);
		w.now_ms += 1000;
		assert_int_equal(es_vanishing_look(&w.v, 1, &two, w.now_ms), ES_PLACE_NO_NEWS);
		w.now_ms += 1000;
		assert_int_equal(es_vanishing_look(&w.v, 1, &two, w.now_ms), ES_PLACE_GOES);
		assert_int_equal(w.v.place.hold_s, hold_s);
		w.now_ms += hold_s * 500;
		for (unsigned int i = 0; i < 4; i++)
			vanished(&w, i); /* and heard of it late */
		w.now_ms += hold_s * 500;
		assert_int_equal(es_vanishing_look(&w.v, 1, &two, w.now_ms), ES_PLACE_RETURNS);
		assert_int_equal(es_vanishing_look(&w.v, 1, &two, w.now_ms), ES_PLACE_NO_NEWS);
		hold_s *= 2;
	}
}

/* While it claims its place, somebody is heard: it stays. */
static void test_heard_in_time(void **state)
{
	struct world w = {.now_ms = 5000};

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		vanished(&w, i);
	w.now_ms += ES_VANISHING_WAIT_MS;
	assert_int_equal(es_vanishing_look(&w.v, 1, &two, w.now_ms), ES_PLACE_WANTS);
	heard(&w, 7);
	w.now_ms += 1000;
	assert_int_equal(es_vanishing_look(&w.v, 1, &two, w.now_ms), ES_PLACE_NO_NEWS);
	assert_int_equal(w.v.place.state, ES_PLACE_IN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_is_heard),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_one_network),
		cmocka_unit_test(test_most_clients),
		cmocka_unit_test(test_goes),
		cmocka_unit_test(test_heard_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
