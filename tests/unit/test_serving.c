// SPDX-License-Identifier: GPL-2.0-or-later
/* When connections are taken to vanish, by what is counted each second; and what is said then. */
#include "cmocka_all.h"
#include <string.h>
#include "inspector/member/serving.h"

struct world {
	struct es_vanishing v;
	unsigned long long vanished, taken, s;
};

/* A second passes. */
static int look(struct world *w, unsigned int vanished, unsigned int taken)
{
	w->vanished += vanished;
	w->taken += taken;
	return es_vanishing_look(&w->v, w->vanished, w->taken, w->s++);
}

/* Who claims a place among the outliers serves: where that comes to nothing, he has not been away. */
static void test_away(void **state)
{
	(void)state;
	assert_int_equal(es_serving_away(6, ES_TROUBLE_NONE, 1), 0);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_OUTLIER, 1), 6);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_CHECK, 0), 6);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_NONE, 0),
			 6); /* of a version that does not know outliers */
}

static void test_begins(void **state)
{
	struct world w = {.vanished = 500, .taken = 1000, .s = 77};

	(void)state;
	assert_false(look(&w, 0, 0)); /* what was before this daemon is nothing new */
	assert_false(look(&w, ES_VANISHING_LEAST - 1, 0));
	assert_true(look(&w, 1, 0));
}

/* Seldom, or few of many: chance, as an accept queue that is full just then. */
static void test_chance(void **state)
{
	struct world w = {.s = 77};

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_false(look(&w, i % 2, i % 2));
	for (int i = 0; i < 1000; i++)
		assert_false(look(&w, 10, 50));
	assert_false(look(&w, 0, 0));
	assert_true(look(&w, 20, 0));
}

static unsigned int lasts(struct world *w)
{
	unsigned int s = 0;

	while (look(w, 0, 0))
		s++;
	return s;
}

/* It is tried again, more and more seldom; and forgotten when all was well for a minute. */
static void test_comes_back(void **state)
{
	struct world w = {.s = 77};
	unsigned int expected = ES_VANISHING_S;

	(void)state;
	look(&w, 0, 0);
	for (int i = 0; i < 8; i++) {
		assert_true(look(&w, 9, 9));
		assert_int_equal(lasts(&w), expected - 1);
		expected = expected * 2 > ES_VANISHING_MAX_S ? ES_VANISHING_MAX_S : expected * 2;
	}
	for (int i = 0; i < 60; i++)
		assert_false(look(&w, 0, 9));
	assert_true(look(&w, 40, 0));
	assert_int_equal(lasts(&w), ES_VANISHING_S - 1);
}

static void test_told(void **state)
{
	static struct es_conf conf = {.service_count = 3};
	struct es_serving s = {.trouble = ES_TROUBLE_NO_SERVER, .text = "of another service"};

	(void)state;
	es_serving_vanishes(&s, &conf);
	assert_true(s.is_down && s.refused == 7 && s.trouble == ES_TROUBLE_VANISHING);
	assert_non_null(strstr(s.text, "not heard of again"));
	conf.service_count = 64;
	s = (struct es_serving){.trouble = ES_TROUBLE_ADDRESS, .text = "missing"};
	es_serving_vanishes(&s, &conf);
	assert_true(s.refused == ~0ULL && s.trouble == ES_TROUBLE_ADDRESS && !strcmp(s.text, "missing"));
	for (unsigned int i = 0; i < 300; i++)
		assert_int_equal(!*es_trouble_text(i), i == ES_TROUBLE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_away),   cmocka_unit_test(test_begins),
		cmocka_unit_test(test_chance), cmocka_unit_test(test_comes_back),
		cmocka_unit_test(test_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
