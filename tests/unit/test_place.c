// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The nodes that may be out, for how long, and that the last node never goes. test_outlier.c has what several
 * nodes do at once.
 */
#include "cmocka_all.h"
#include "inspector/health/place.h"

static const struct es_place_limits limits = {.max_out = 2, .out_s = 10, .out_max_s = 30};

static void test_the_last_stays(void **state)
{
	const struct es_place_others nobody = {}, away = {.count = 1, .away = 1}, one = {.count = 1};
	struct es_place p = {};

	(void)state;
	assert_int_equal(es_place_claim(&p, &limits, &nobody, 1000), ES_PLACE_KEPT);
	assert_int_equal(es_place_claim(&p, &limits, &away, 2000), ES_PLACE_NO_NEWS); /* told once */
	assert_int_equal(p.kept, 2);
	/* The other one dies while this one claims, and while it is out. */
	assert_int_equal(es_place_claim(&p, &limits, &one, 3000), ES_PLACE_WANTS);
	assert_int_equal(es_place_look(&p, &limits, &away, 3000 + ES_PLACE_CLAIM_MS), ES_PLACE_NO_NEWS);
	assert_int_equal(p.state, ES_PLACE_IN);
	assert_int_equal(es_place_claim(&p, &limits, &one, 6000), ES_PLACE_WANTS);
	assert_int_equal(es_place_look(&p, &limits, &one, 6000 + ES_PLACE_CLAIM_MS), ES_PLACE_GOES);
	assert_int_equal(es_place_look(&p, &limits, &one, 8001), ES_PLACE_NO_NEWS);
	assert_int_equal(es_place_look(&p, &limits, &away, 8002), ES_PLACE_RECALLED);
	assert_int_equal(p.state, ES_PLACE_IN);
}

/* A claim ends when nothing speaks against the node any more; being out does not. */
static void test_well(void **state)
{
	const struct es_place_others two = {.count = 2};
	struct es_place p = {};

	(void)state;
	es_place_claim(&p, &limits, &two, 1000);
	es_place_is_well(&p, 1500);
	assert_int_equal(p.state, ES_PLACE_IN);
	assert_int_equal(es_place_look(&p, &limits, &two, 9000), ES_PLACE_NO_NEWS);
	es_place_claim(&p, &limits, &two, 10000);
	es_place_look(&p, &limits, &two, 12000);
	assert_true(p.state == ES_PLACE_OUT && p.hold_s == 10);
	assert_int_equal(es_place_look(&p, &limits, &two, 22000), ES_PLACE_RETURNS);
	/* So soon, it is the same trouble; later it is forgotten. */
	es_place_is_well(&p, 31999);
	assert_int_equal(p.hold_s, 10);
	es_place_is_well(&p, 32000);
	assert_int_equal(p.hold_s, 0);
}

/*
 * Where something else tells how the node is, no time ends its being out; but the news that others go does,
 * and the news that it is well.
 */
static void test_no_time(void **state)
{
	static const struct es_place_limits one = {.max_out = 1};
	const struct es_place_others free = {.count = 3}, full = {.count = 3, .before = 1};
	struct es_place p = {};

	(void)state;
	assert_int_equal(es_place_claim(&p, &one, &free, 1000), ES_PLACE_WANTS);
	assert_int_equal(es_place_look(&p, &one, &free, 1000 + ES_PLACE_CLAIM_MS), ES_PLACE_GOES);
	assert_int_equal(es_place_look(&p, &one, &free, 1000000000), ES_PLACE_NO_NEWS);
	assert_int_equal(es_place_look(&p, &one, &full, 1000000001), ES_PLACE_RECALLED);
	assert_int_equal(es_place_claim(&p, &one, &full, 1000001000), ES_PLACE_KEPT);
	assert_int_equal(es_place_claim(&p, &one, &free, 1000002000), ES_PLACE_WANTS);
	assert_int_equal(es_place_look(&p, &one, &free, 1000002000 + ES_PLACE_CLAIM_MS), ES_PLACE_GOES);
	es_place_is_well(&p, 1000006000);
	assert_true(p.state == ES_PLACE_IN && !p.hold_s);
	assert_int_equal(es_place_look(&p, &one, &free, 1000007000), ES_PLACE_NO_NEWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_stays),
		cmocka_unit_test(test_well),
		cmocka_unit_test(test_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
