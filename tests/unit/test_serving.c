// SPDX-License-Identifier: GPL-2.0-or-later
/* What follows from what is wrong with a node, or with one of its services. */
#include "cmocka_all.h"
#include <string.h>
#include "inspector/member/serving.h"

/* Who claims a place among the outliers serves: where that comes to nothing, he has not been away. */
static void test_away(void **state)
{
	(void)state;
	assert_int_equal(es_serving_away(6, ES_TROUBLE_NONE, 1), 0);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_OUTLIER, 1), 6);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_CHECK, 0), 6);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_CHECK, 1), 6);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_KEPT, 0), 0);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_NONE, 0),
			 6); /* of a version that does not know outliers */
}

static void test_out(void **state)
{
	static struct es_conf conf = {.service_count = 3,
				      .services = {{.name = "a"}, {.name = "b"}, {.name = "c"}}};
	struct es_serving s = {
		.trouble = ES_TROUBLE_NO_SERVER, .text = "of another service", .listens = {5, 1}};

	(void)state;
	es_serving_claims(&s, 0, 0);
	assert_true(s.failing == 1 && s.yields && !s.refused && !s.is_down &&
		    s.trouble == ES_TROUBLE_NO_SERVER);
	es_serving_is_out(&s, &conf, 0, ES_TROUBLE_VANISHING, "not heard of again");
	assert_true(s.refused == 1 && !s.is_down && s.trouble == ES_TROUBLE_VANISHING);
	assert_string_equal(s.text, "service a: not heard of again");
	es_serving_is_out(&s, &conf, 2, ES_TROUBLE_OUTLIER, "slow");
	assert_true(s.failing == 5 && s.refused == 5 && s.is_down && s.trouble == ES_TROUBLE_VANISHING);
	assert_true(s.yields);
	for (unsigned int i = 0; i < 300; i++)
		assert_int_equal(!*es_trouble_text(i), i == ES_TROUBLE_NONE);
}

/* A server that fails and is given requests is told of unless something worse is; its node has no place. */
static void test_kept(void **state)
{
	static struct es_conf conf = {.service_count = 2, .services = {{.name = "a"}, {.name = "b"}}};
	struct es_serving s = {.listens = {3, 0}};

	(void)state;
	es_serving_is_kept(&s, &conf, 0, "the answer is 503", "max_out = 1, and others are out");
	assert_true(s.failing == 1 && !s.refused && !s.is_down && !s.yields && s.trouble == ES_TROUBLE_KEPT);
	assert_string_equal(s.text,
			    "service a: the server fails its check: the answer is 503; this node serves all "
			    "the same: max_out = 1, and others are out");
	es_serving_claims(&s, 1, 0);
	assert_true(s.failing == 3 && s.yields && !s.refused && s.trouble == ES_TROUBLE_KEPT);
	es_serving_claims(&s, 1, 1);
	assert_true(s.refused == 2 && !s.is_down);
	es_serving_is_out(&s, &conf, 1, ES_TROUBLE_CHECK, "no answer within 2000 ms");
	assert_true(s.failing == 3 && s.yields && s.refused == 2 && s.trouble == ES_TROUBLE_CHECK);
	assert_string_equal(s.text, "service b: the server fails its check: no answer within 2000 ms");
	es_serving_is_kept(&s, &conf, 0, "the answer is 503", "max_out = 1, and others are out");
	assert_true(s.trouble == ES_TROUBLE_CHECK && s.refused == 2);
}

/* What is wrong is still told, but it takes nobody's last node away. */
static void test_spared(void **state)
{
	struct es_serving s = {.trouble = ES_TROUBLE_MTU, .listens = {3, 0}, .refused = 3, .is_down = 1};

	(void)state;
	es_serving_spares(&s, 1);
	assert_true(s.refused == 1 && !s.is_down && s.trouble == ES_TROUBLE_MTU);
}

/* A server that is not checked yet is no trouble, and yet its node does not serve. */
static void test_unchecked(void **state)
{
	static const struct es_conf conf = {.service_count = 2,
					    .services = {{.name = "web"}, {.name = "shop"}}};
	struct es_serving s = {.listens = {3, 0}};

	(void)state;
	es_serving_is_unchecked(&s, &conf, 1, 1);
	assert_true(s.failing == 2 && s.refused == 2 && !s.yields && s.is_open && !s.is_down && !s.trouble);
	assert_true(es_serving_waits(s.failing, s.trouble, s.yields));
	assert_int_equal(es_serving_away(s.failing, s.trouble, s.yields), 2);
	es_serving_is_unchecked(&s, &conf, 0, 0); /* no other node serves it */
	assert_true(s.failing == 3 && s.refused == 2 && !s.is_down);
	es_serving_is_unchecked(&s, &conf, 0, 1);
	assert_true(s.is_down && strstr(s.text, "service web: its server has not been checked"));
	es_serving_fails(&s, &conf, 1, "why", 1);
	assert_true(s.trouble == ES_TROUBLE_CHECK &&
		    strstr(s.text, "service shop: the server fails its check: why"));
	assert_false(es_serving_waits(s.failing, s.trouble, s.yields));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_away),   cmocka_unit_test(test_out),	 cmocka_unit_test(test_kept),
		cmocka_unit_test(test_spared), cmocka_unit_test(test_unchecked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
