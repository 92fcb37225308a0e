// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When a server is put out for what it answers, and returns; and several nodes that judge themselves at once.
 */
#include "cmocka_all.h"
#include <string.h>
#include "inspector/health/outlier.h"

static const struct es_conf_outlier conf = {
	.max_errors = 50,
	.max_slow = 20,
	.slow_ms = 200,
	.interval_ms = 10000,
	.min_responses = 20,
	.out_s = 30,
	.out_max_s = 100,
	.max_out = 1,
};
static const struct es_place_others none = {.count = 2};

struct world {
	struct es_outlier o;
	struct es_outlier_counts counts;
	unsigned long long now_ms;
};

/* A second passes, in which so much is answered. */
static enum es_place_news second(struct world *w, const struct es_place_others *others,
				 unsigned int responses, unsigned int errors, unsigned int slow)
{
	w->now_ms += 1000;
	w->counts.responses += responses;
	w->counts.errors += errors;
	w->counts.timed += responses;
	w->counts.slow += slow;
	return es_outlier_look(&w->o, &conf, &w->counts, others, w->now_ms);
}

/* The seconds until @news; more than 1000 if there are none. Any other news in between are wrong. */
static unsigned int until(struct world *w, enum es_place_news news, unsigned int responses,
			  unsigned int errors, unsigned int slow)
{
	for (unsigned int s = 1; s <= 1000; s++) {
		enum es_place_news now = second(w, &none, responses, errors, slow);

		if (now == news)
			return s;
		assert_int_equal(now, ES_PLACE_NO_NEWS);
	}
	return 1001;
}

static struct world new_world(void)
{
	/* Responses from before this daemon began to judge are no matter. */
	return (struct world){.now_ms = 5000,
			      .counts = {.responses = 1000, .errors = 1000, .timed = 1000, .slow = 1000}};
}

static void test_limits(void **state)
{
	struct world w = new_world();

	(void)state;
	assert_int_equal(until(&w, ES_PLACE_WANTS, 10, 5, 1.9),
			 1001); /* half of them, 190 ms each: just so */
	assert_int_equal(w.o.place.kept + w.o.place.ejections, 0);
	w = new_world();
	assert_int_equal(until(&w, ES_PLACE_WANTS, 1, 1, 1), 1001); /* too few to say */
	assert_int_equal(w.o.place.kept + w.o.place.ejections, 0);

	w = new_world();
	assert_int_equal(until(&w, ES_PLACE_WANTS, 10, 6, 0), 11); /* the first look begins the interval */
	assert_string_equal(w.o.why, "60 of 100 responses were 5xx (max_errors = 50)");
	w = new_world();
	assert_int_equal(until(&w, ES_PLACE_WANTS, 10, 0, 3), 11);
	assert_string_equal(w.o.why, "30 of 100 responses took longer than 200 ms (max_slow = 20)");
}

static void test_limit_is_off(void **state)
{
	struct es_conf_outlier off = conf;
	struct world w = new_world();

	(void)state;
	off.max_errors = off.max_slow = 0;
	for (int i = 0; i < 100; i++) {
		w.now_ms += 1000;
		w.counts.responses += 100;
		w.counts.errors += 100;
		w.counts.timed += 100;
		w.counts.slow += 100;
		assert_int_equal(es_outlier_look(&w.o, &off, &w.counts, &none, w.now_ms), ES_PLACE_NO_NEWS);
	}
}

/*
 * Out for longer and longer while nothing is better, and at last for out_max_s; then the first time is
 * forgotten.
 */
static void test_repeats(void **state)
{
	static const unsigned int expected[] = {30, 60, 100, 100};
	struct world w = new_world();

	(void)state;
	assert_int_equal(until(&w, ES_PLACE_WANTS, 10, 10, 0), 11);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(w.o.place.state, ES_PLACE_CLAIMS);
		assert_int_equal(until(&w, ES_PLACE_GOES, 10, 10, 0), 2);
		assert_int_equal(w.o.place.state, ES_PLACE_OUT);
		assert_int_equal(until(&w, ES_PLACE_RETURNS, 0, 0, 0), expected[i]);
		assert_int_equal(w.o.place.state, ES_PLACE_IN);
		/* On probation, as soon as there are enough. */
		assert_int_equal(until(&w, ES_PLACE_WANTS, 10, 10, 0), 2);
	}
	assert_int_equal(w.o.place.ejections, 4);
	assert_int_equal(until(&w, ES_PLACE_GOES, 10, 10, 0), 2);
	assert_int_equal(until(&w, ES_PLACE_RETURNS, 0, 0, 0), 100);
	/* Without requests nothing is proven. */
	assert_int_equal(until(&w, ES_PLACE_WANTS, 0, 0, 0), 1001);
	assert_true(w.o.is_on_probation && w.o.place.hold_s == 100);
	assert_int_equal(until(&w, ES_PLACE_WANTS, 10, 0, 0), 1001);
	assert_true(!w.o.is_on_probation && !w.o.place.hold_s);
	assert_in_range(until(&w, ES_PLACE_WANTS, 10, 10, 0), 10, 20); /* as at first: an interval, no less */
	assert_int_equal(until(&w, ES_PLACE_GOES, 10, 10, 0), 2);
	assert_int_equal(until(&w, ES_PLACE_RETURNS, 0, 0, 0), 30);
}

/* Well for a moment only: the next time is twice as long all the same. */
static void test_flaps(void **state)
{
	struct world w = new_world();

	(void)state;
	until(&w, ES_PLACE_WANTS, 10, 10, 0);
	until(&w, ES_PLACE_GOES, 10, 10, 0);
	until(&w, ES_PLACE_RETURNS, 0, 0, 0);
	for (int i = 0; i < 12; i++)
		assert_int_equal(second(&w, &none, 10, 0, 0), ES_PLACE_NO_NEWS);
	until(&w, ES_PLACE_WANTS, 10, 10, 0);
	until(&w, ES_PLACE_GOES, 10, 10, 0);
	assert_int_equal(until(&w, ES_PLACE_RETURNS, 0, 0, 0), 60);
}

/* No more than max_out: whoever is away, or out before, has the place. */
static void test_no_place(void **state)
{
	static const struct es_place_others full[] = {
		{.count = 2, .away = 1}, {.count = 2, .before = 1}, {.count = 2, .after = 1}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct world w = new_world();
		int told = 0;

		for (int s = 0; s < 100; s++) {
			enum es_place_news news = second(&w, &full[i], 10, 10, 0);

			assert_true(news == ES_PLACE_NO_NEWS || news == ES_PLACE_KEPT);
			told += news == ES_PLACE_KEPT;
			assert_int_equal(w.o.place.state, ES_PLACE_IN);
		}
		assert_int_equal(told, 1);
		assert_int_equal(w.o.place.kept, 9);
		assert_int_equal(w.o.place.ejections, 0);
	}
}

/* A node that is out returns when another node goes that cannot be asked back. */
static void test_recalled(void **state)
{
	struct es_place_others others = {.count = 2};
	struct world w = new_world();

	(void)state;
	until(&w, ES_PLACE_WANTS, 10, 10, 0);
	until(&w, ES_PLACE_GOES, 10, 10, 0);
	others.after = 1; /* which will give way */
	assert_int_equal(second(&w, &others, 0, 0, 0), ES_PLACE_NO_NEWS);
	others.away = 1;
	assert_int_equal(second(&w, &others, 0, 0, 0), ES_PLACE_RECALLED);
	assert_int_equal(w.o.place.state, ES_PLACE_IN);
	assert_int_equal(second(&w, &others, 10, 10, 0), ES_PLACE_NO_NEWS);
	assert_int_equal(second(&w, &others, 10, 10, 0), ES_PLACE_KEPT);
}

#define NODES 5

/* Several nodes, each of which hears of the others late by up to a second. */
struct cluster {
	struct world node[NODES];
	enum es_place_state heard[NODES];
	unsigned int seed;
};

static unsigned int draw(struct cluster *c, unsigned int below)
{
	c->seed = c->seed * 1103515245 + 12345;
	return c->seed / 65536 % below;
}

static unsigned int count_out(const struct cluster *c)
{
	unsigned int out = 0;

	for (int i = 0; i < NODES; i++)
		out += c->node[i].o.place.state == ES_PLACE_OUT;
	return out;
}

static void one_looks(struct cluster *c, unsigned int self, const struct es_conf_outlier *limits)
{
	struct es_place_others others = {.count = NODES - 1};
	struct world *w = &c->node[self];

	for (unsigned int i = 0; i < NODES; i++) {
		others.before += i < self && c->heard[i] != ES_PLACE_IN;
		others.after += i > self && c->heard[i] != ES_PLACE_IN;
	}
	if (w->o.place.state != ES_PLACE_OUT) {
		w->counts.responses += 10;
		w->counts.errors += draw(c, 3) ? 10 : 0;
	}
	es_outlier_look(&w->o, limits, &w->counts, &others, w->now_ms);
}

/*
 * All are bad at once, and look at any moment of a second: there are never more than max_out out, and mostly
 * so many.
 */
static void test_all_at_once(void **state)
{
	struct es_conf_outlier limits = conf;

	(void)state;
	for (unsigned int seed = 0; seed < 200; seed++) {
		struct cluster c = {.seed = seed};
		unsigned int at_most = 0, phase[NODES], told[NODES];

		limits.max_out = 1 + seed % 3;
		for (int i = 0; i < NODES; i++) {
			phase[i] = seed % 4 ? draw(&c, 10) : 0;
			told[i] = draw(&c, 10);
		}
		/* Each looks once a second, and is heard once a second: in steps of 100 ms. */
		for (unsigned int step = 1; step < 3000; step++) {
			for (unsigned int i = 0; i < NODES; i++) {
				c.node[i].now_ms = step * 100;
				if (step % 10 == phase[i])
					one_looks(&c, i, &limits);
			}
			for (unsigned int i = 0; i < NODES; i++)
				if (step % 10 == told[i])
					c.heard[i] = c.node[i].o.place.state;
			assert_in_range(count_out(&c), 0, limits.max_out);
			at_most = count_out(&c) > at_most ? count_out(&c) : at_most;
		}
		assert_int_equal(at_most, limits.max_out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),	    cmocka_unit_test(test_limit_is_off),
		cmocka_unit_test(test_repeats),	    cmocka_unit_test(test_flaps),
		cmocka_unit_test(test_no_place),    cmocka_unit_test(test_recalled),
		cmocka_unit_test(test_all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
