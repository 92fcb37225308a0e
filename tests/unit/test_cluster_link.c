// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which of the nodes that join take a share of the ring: single cases, and worlds of nodes that start, end
 * and hear each other or not, on a bus that all of them have.
 */
#include "cmocka_all.h"
#include <stdlib.h>
#include <string.h>
#include "inspector/self/cluster_link.h"

#define TICK_MS 20

/* --- single cases */

static void test_heard(void **state)
{
	struct es_cluster_link link = {};

	(void)state;
	assert_true(es_cluster_link_may_join(&link, 1, 5000));
	assert_false(es_cluster_link_join(&link, 1, 1, 5000));
	assert_int_equal(es_cluster_link_look(&link, 1, 1, 1, 5020), ES_CLUSTER_LINK_NOTHING);
	/*
	 * A link that fails later costs no node its share: the fault may be in the network that all nodes
	 * share.
	 */
	assert_int_equal(es_cluster_link_look(&link, 0, 1, 1, 99000), ES_CLUSTER_LINK_NOTHING);
}

static void test_first_words(void **state)
{
	struct es_cluster_link link = {};

	(void)state;
	assert_false(es_cluster_link_may_join(&link, 0, 5000));
	assert_false(es_cluster_link_may_join(&link, 0, 5000 + ES_CLUSTER_LINK_FIRST_MS - 1));
	assert_true(es_cluster_link_may_join(&link, 1, 5000 + ES_CLUSTER_LINK_FIRST_MS - 1));
	assert_true(es_cluster_link_may_join(&link, 0, 5000 + ES_CLUSTER_LINK_FIRST_MS));
	/* After each time that it was in, they have as long again. */
	es_cluster_link_join(&link, 0, 0, 6000);
	assert_false(es_cluster_link_may_join(&link, 0, 90000));
}

static void test_alone(void **state)
{
	struct es_cluster_link link = {};

	(void)state;
	assert_false(es_cluster_link_join(&link, 0, 0, 5000));
	assert_int_equal(es_cluster_link_look(&link, 0, 1, 0, 90000), ES_CLUSTER_LINK_NOTHING);
}

static void test_waits(void **state)
{
	struct es_cluster_link link = {};

	(void)state;
	assert_true(es_cluster_link_join(&link, 1, 0, 5000));
	/* Until a ring is in force, it is not known that nobody serves. */
	assert_int_equal(es_cluster_link_look(&link, 0, 0, 0, 5500), ES_CLUSTER_LINK_NOTHING);
	assert_int_equal(es_cluster_link_look(&link, 0, 1, 1, 5000 + ES_CLUSTER_LINK_TELL_MS - 1),
			 ES_CLUSTER_LINK_NOTHING);
	assert_int_equal(es_cluster_link_look(&link, 0, 1, 1, 5000 + ES_CLUSTER_LINK_TELL_MS),
			 ES_CLUSTER_LINK_TELL);
	assert_int_equal(es_cluster_link_look(&link, 0, 1, 1, 900000), ES_CLUSTER_LINK_TELL);
	assert_int_equal(es_cluster_link_look(&link, 1, 1, 1, 900020), ES_CLUSTER_LINK_TAKE);
	assert_false(link.is_waiting);
	assert_int_equal(es_cluster_link_look(&link, 1, 1, 1, 900040), ES_CLUSTER_LINK_NOTHING);
}

static void test_the_other_goes(void **state)
{
	struct es_cluster_link link = {};

	(void)state;
	assert_true(es_cluster_link_join(&link, 1, 0, 5000));
	assert_int_equal(es_cluster_link_look(&link, 0, 1, 1, 20000), ES_CLUSTER_LINK_TELL);
	assert_int_equal(es_cluster_link_look(&link, 0, 0, 0, 20020), ES_CLUSTER_LINK_TELL);
	assert_int_equal(es_cluster_link_look(&link, 0, 1, 0, 20040), ES_CLUSTER_LINK_TAKE);
}

/* --- worlds */

#define NODES_MAX 5

struct node {
	int runs, is_in, has_share;
	uint64_t view_ms; /* when the bus has it, 0: it does not join */
	uint64_t take_ms; /* when its word that it takes its share is back, 0: it has said none */
	struct es_cluster_link link;
};

struct world {
	unsigned int count;
	uint64_t now_ms, changed_ms;
	int hears[NODES_MAX][NODES_MAX];
	struct node node[NODES_MAX];
};

static unsigned int up_to(unsigned int n)
{
	return (unsigned int)rand() % n;
}

static int is_heard(const struct world *w, unsigned int self)
{
	for (unsigned int i = 0; i < w->count; i++)
		if (i != self && w->node[i].runs && w->hears[self][i])
			return 1;
	return 0;
}

static int others(const struct world *w, unsigned int self, int with_share)
{
	int count = 0;

	for (unsigned int i = 0; i < w->count; i++)
		count += i != self && w->node[i].is_in && (!with_share || w->node[i].has_share);
	return count;
}

static void turn(struct world *w, unsigned int i)
{
	struct node *n = &w->node[i];
	int heard = is_heard(w, i), serves = others(w, i, 1) > 0;
	int is_settled = w->now_ms - w->changed_ms > 100;

	if (!n->runs)
		return;
	if (!n->is_in && !n->view_ms && es_cluster_link_may_join(&n->link, heard, w->now_ms))
		n->view_ms = w->now_ms + up_to(300);
	if (!n->is_in && n->view_ms && w->now_ms >= n->view_ms) {
		n->is_in = 1;
		n->has_share = !es_cluster_link_join(&n->link, others(w, i, 0) > 0, heard, w->now_ms);
		w->changed_ms = w->now_ms;
		/* The point of it all: where somebody serves, nobody serves too who hears none. */
		assert_false(n->has_share && serves && !heard);
	}
	if (n->is_in && !n->has_share && !n->take_ms &&
	    es_cluster_link_look(&n->link, heard, is_settled, serves, w->now_ms) == ES_CLUSTER_LINK_TAKE) {
		assert_true(heard || !serves);
		n->take_ms = w->now_ms + 1 + up_to(60);
	}
	if (n->take_ms && w->now_ms >= n->take_ms) {
		n->has_share = 1;
		n->take_ms = 0;
		w->changed_ms = w->now_ms;
	}
}

static void run(struct world *w, unsigned int ms)
{
	for (unsigned int at = 0; at < ms; at += TICK_MS) {
		w->now_ms += TICK_MS;
		for (unsigned int i = 0; i < w->count; i++)
			turn(w, i);
	}
}

static void node_end(struct world *w, unsigned int i)
{
	memset(&w->node[i], 0, sizeof(w->node[i]));
	w->changed_ms = w->now_ms;
}

/* After so long without a change: whoever hears another one serves, and somebody does in any case. */
static void expect_service(const struct world *w)
{
	int running = 0, serving = 0;

	for (unsigned int i = 0; i < w->count; i++) {
		running += w->node[i].runs;
		serving += w->node[i].has_share;
		assert_true(!w->node[i].runs || w->node[i].has_share || !is_heard(w, i));
	}
	assert_true(!running || serving);
}

static void test_worlds(void **state)
{
	unsigned int waited = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= 3000; seed++) {
		struct world w = {.now_ms = 1000};

		srand(seed);
		w.count = 2 + up_to(NODES_MAX - 1);
		for (unsigned int step = 0; step < 8; step++) {
			unsigned int dead = up_to(3); /* of three links, so many */

			for (unsigned int i = 0; i < w.count; i++) {
				for (unsigned int j = 0; j < w.count; j++)
					w.hears[i][j] = up_to(3) >= dead;
				if (!up_to(2) && w.node[i].runs)
					node_end(&w, i);
				else if (!up_to(2))
					w.node[i].runs = 1;
				if (up_to(2))
					run(&w, up_to(1000));
			}
			run(&w, 3000);
			expect_service(&w);
			for (unsigned int i = 0; i < w.count; i++)
				waited += (unsigned int)w.node[i].link.is_waiting;
		}
	}
	assert_true(waited > 100); /* else nothing was tried */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heard),  cmocka_unit_test(test_first_words),
		cmocka_unit_test(test_alone),  cmocka_unit_test(test_waits),
		cmocka_unit_test(test_worlds), cmocka_unit_test(test_the_other_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
