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
	assert_int_equal(es_serving_away(6, ES_TROUBLE_NONE, 0),
			 6); /* of a version that does not know outliers */
}

static void test_out(void **state)
{
	static struct es_conf conf = {.service_count = 3,
				      .services = {{.name = "a"}, {.name = "b"}, {.name = "c"}}};
	struct es_serving s = {.trouble = ES_TROUBLE_NO_SERVER,
			       .text = "of another service",
			       .listens = {5, 1},
			       .yields = 1};

	(void)state;
	es_serving_is_out(&s, &conf, 0, ES_TROUBLE_VANISHING, NULL);
	assert_true(s.failing == 1 && !s.refused && !s.is_down && s.trouble == ES_TROUBLE_NO_SERVER);
	es_serving_is_out(&s, &conf, 0, ES_TROUBLE_VANISHING, "not heard of again");
	assert_true(s.refused == 1 && !s.is_down && s.trouble == ES_TROUBLE_VANISHING);
	assert_string_equal(s.text, "service a: not heard of again");
	es_serving_is_out(&s, &conf, 2, ES_TROUBLE_OUTLIER, "slow");
	assert_true(s.failing == 5 && s.refused == 5 && s.is_down && s.trouble == ES_TROUBLE_VANISHING);
	assert_true(s.yields);
	for (unsigned int i = 0; i < 300; i++)
		assert_int_equal(!*es_trouble_text(i), i == ES_TROUBLE_NONE);
}

/* What is wrong is still told, but it takes nobody's last node away. */
static void test_spared(void **state)
{
	struct es_serving s = {.trouble = ES_TROUBLE_MTU, .listens = {3, 0}, .refused = 3, .is_down = 1};

	(void)state;
	es_serving_spares(&s, 1);
	assert_true(s.refused == 1 && !s.is_down && s.trouble == ES_TROUBLE_MTU);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_away),
		cmocka_unit_test(test_out),
		cmocka_unit_test(test_spared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
