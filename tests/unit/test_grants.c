// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leases by grants: when a node may ask, whom it grants one, how long its own lasts, and how long others wait
 * for it.
 */
#include "cmocka_all.h"
#include <errno.h>
#include "membership/grants.h"

#define LEASE_MS 500
#define RING	 7

static struct es_grants mine, its; /* of nodes 0 and 1 */

static struct es_grants_set set_of(unsigned int count)
{
	struct es_grants_set set = {};

	for (unsigned int i = 0; i < count; i++)
		es_grants_set_add(&set, i);
	return set;
}

static void ring(struct es_grants *grants, uint64_t id, unsigned int count)
{
	const struct es_grants_set members = set_of(count);

	es_grants_begin(grants, id, &members);
}

static int setup(void **state)
{
	(void)state;
	es_grants_init(&mine, 0);
	es_grants_init(&its, 1);
	es_grants_start(&mine, 1000, 0);
	es_grants_start(&its, 5000, 0);
	ring(&mine, RING, 5);
	ring(&its, RING, 5);
	es_grants_in_force(&mine);
	es_grants_in_force(&its);
	return 0;
}

static struct es_grants_ask ask_at(uint64_t now_ms)
{
	struct es_grants_ask ask;

	assert_int_equal(es_grants_ask(&mine, LEASE_MS, now_ms, &ask), 0);
	return ask;
}

/* Node 1 hears what node 0 asks for. Returns whether it grants that. */
static int granted(const struct es_grants_ask *ask, uint64_t now_ms)
{
	es_grants_hear(&its, 0, ask, now_ms);
	return es_grants_tell(&its, 0) == ask->number;
}

static void test_counts_from_the_question(void **state)
{
	struct es_grants_ask ask = ask_at(100);

	(void)state;
	assert_true(granted(&ask, 150));
	assert_int_equal(its.node[0].given_until_ms, 150 + LEASE_MS + LEASE_MS / 40 + 20);
	assert_int_equal(es_grants_until_ms(&mine, 2), 0);
	es_grants_take(&mine, 1, es_grants_tell(&its, 0));
	assert_int_equal(es_grants_until_ms(&mine, 2), 100 + LEASE_MS);
}

/* The lease reaches as far as the last of those that are needed, whoever they are. */
static void test_so_many(void **state)
{
	(void)state;
	for (unsigned int i = 1; i < 5; i++)
		es_grants_take(&mine, i, ask_at(100 * i).number);
	ask_at(1000);
	assert_int_equal(es_grants_until_ms(&mine, 1), 1000 + LEASE_MS);
	assert_int_equal(es_grants_until_ms(&mine, 3), 300 + LEASE_MS);
	assert_int_equal(es_grants_until_ms(&mine, 5), 100 + LEASE_MS);
	assert_int_equal(es_grants_until_ms(&mine, 6), 0);
	/* Those that are on no ring of this node any more do not count. */
	ring(&mine, RING + 1, 3);
	assert_int_equal(es_grants_until_ms(&mine, 3), 100 + LEASE_MS);
	assert_int_equal(es_grants_until_ms(&mine, 4), 0);
}

static void test_what_is_no_answer(void **state)
{
	struct es_grants_ask ask = ask_at(100);

	(void)state;
	es_grants_take(&mine, 1, 0);
	es_grants_take(&mine, 1, 1000);		  /* of the process before this one */
	es_grants_take(&mine, 1, ask.number + 1); /* was not asked yet */
	assert_int_equal(es_grants_until_ms(&mine, 2), 0);
	for (unsigned int i = 0; i < ES_GRANTS_ASKS; i++)
		ask_at(200);
	es_grants_take(&mine, 1, ask.number); /* too old */
	assert_int_equal(es_grants_until_ms(&mine, 2), 0);
}

/* Late and doubled, in any order: nothing goes back. */
static void test_late_and_doubled(void **state)
{
	struct es_grants_ask first = ask_at(100), second = ask_at(200);

	(void)state;
	assert_true(granted(&second, 210));
	es_grants_hear(&its, 0, &first, 300);
	es_grants_hear(&its, 0, &second, 400);
	assert_int_equal(es_grants_tell(&its, 0), second.number);
	assert_int_equal(its.node[0].given_until_ms, 210 + es_grants_wait_ms(LEASE_MS));
	es_grants_take(&mine, 1, second.number);
	es_grants_take(&mine, 1, first.number);
	assert_int_equal(es_grants_until_ms(&mine, 2), 200 + LEASE_MS);
}

static void test_whom_it_grants_nothing(void **state)
{
	struct es_grants_ask ask = ask_at(100), other;

	(void)state;
	other = ask;
	other.lease_ms = ES_GRANTS_LEASE_MAX_MS + 1;
	assert_false(granted(&other, 100));
	other = ask;
	other.ring = RING + 1; /* one that this node does not know */
	assert_false(granted(&other, 100));
	es_grants_hear(&its, 7, &ask, 100); /* is on no ring */
	assert_int_equal(es_grants_tell(&its, 7), 0);
	assert_true(granted(&ask, 100));
	/* It has gone: until it stops for a ring with this node, it may have been replaced. */
	es_grants_gone(&its, 0, 0);
	assert_int_equal(es_grants_tell(&its, 0), 0);
	ask = ask_at(200);
	assert_false(granted(&ask, 200));
	ring(&its, RING + 1, 5);
	assert_false(granted(&ask, 200));
	ring(&mine, RING + 1, 5);
	ask = ask_at(300);
	assert_true(granted(&ask, 300));
}

/* One that lags behind is granted its lease, but not past a ring without it. */
static void test_lags_behind(void **state)
{
	const struct es_grants_set without = {.word = {0x1e}};
	struct es_grants_ask ask = ask_at(100);

	(void)state;
	ring(&its, RING + 1, 5);
	ring(&its, RING + 2, 6);
	assert_true(granted(&ask, 100));
	es_grants_begin(&its, RING + 3, &without);
	ask = ask_at(200);
	assert_false(granted(&ask, 200));
	assert_true(its.node[0].given_until_ms >= 100 + LEASE_MS);
	ring(&its, RING + 4, 5);
	assert_false(granted(&ask, 200));
}

static void test_no_member(void **state)
{
	struct es_grants_ask ask = ask_at(100);
	const struct es_grants_set without = {.word = {0x1e}};

	(void)state;
	assert_true(granted(&ask, 100));
	es_grants_take(&mine, 1, ask.number);
	es_grants_lost(&its);
	assert_int_equal(es_grants_tell(&its, 0), 0);
	assert_true(its.node[0].given_until_ms >= 100 + LEASE_MS); /* it counts all the same */
	es_grants_lost(&mine);
	assert_int_equal(es_grants_until_ms(&mine, 1), 0);
	assert_int_equal(es_grants_ask(&mine, LEASE_MS, 200, &ask), -ENOENT);
	es_grants_begin(&mine, RING + 1, &without);
	assert_int_equal(es_grants_ask(&mine, LEASE_MS, 200, &ask), -ENOENT);
	es_grants_gone(&its, 0, 1);
	assert_int_equal(its.node[0].given_until_ms, 0);
}

/* There are five nodes, and three must grant. */
static void test_meets(void **state)
{
	struct es_grants_set known = set_of(3);

	(void)state;
	assert_true(es_grants_meets(&mine, 4, &known, 5, 3));
	known = set_of(2);
	assert_false(es_grants_meets(&mine, 4, &known, 5, 3));
	/* But those three were all that were there, so it needs one of these two. */
	es_grants_lost(&mine);
	ring(&mine, RING + 1, 3);
	assert_true(es_grants_meets(&mine, 2, &known, 5, 3));
	assert_false(es_grants_meets(&mine, 4, &known, 5, 3)); /* was never seen on a ring */
	/* Two nodes need each other. */
	known = set_of(1);
	assert_true(es_grants_meets(&mine, 1, &known, 2, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_counts_from_the_question, setup),
		cmocka_unit_test_setup(test_so_many, setup),
		cmocka_unit_test_setup(test_what_is_no_answer, setup),
		cmocka_unit_test_setup(test_late_and_doubled, setup),
		cmocka_unit_test_setup(test_whom_it_grants_nothing, setup),
		cmocka_unit_test_setup(test_lags_behind, setup),
		cmocka_unit_test_setup(test_no_member, setup),
		cmocka_unit_test_setup(test_meets, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
