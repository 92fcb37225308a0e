// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests that are remembered for a second. */
#include "cmocka_all.h"
#include "netfilter/rebuild/copies.h"

#define ROOM	 64
#define SECOND	 1000000000ULL
#define THE_TIME (1000 * SECOND)

static struct es_flow flow(unsigned int number)
{
	struct es_flow f = {
		.client = es_addr_from_v4(es_htonl(0x0a000000 + number)),
		.service = es_addr_from_v4(es_htonl(0x0a010001)),
		.client_port = es_htons(40000),
		.service_port = es_htons(80),
	};

	return f;
}

static int set_up(void **state)
{
	struct es_nf_copies *copies;

	assert_int_equal(es_nf_copies_new(ROOM, &copies), 0);
	*state = copies;
	return 0;
}

static int tear_down(void **state)
{
	struct es_nf_copies *copies = *state;

	es_nf_copies_free(&copies);
	assert_null(copies);
	return 0;
}

static void test_the_same_request_within_a_second(void **state)
{
	struct es_flow f = flow(1), other = flow(2);

	assert_false(es_nf_copies_has(*state, &f, 1, 2, THE_TIME));
	es_nf_copies_add(*state, &f, 1, 2, THE_TIME);
	assert_true(es_nf_copies_has(*state, &f, 1, 2, THE_TIME));
	assert_true(es_nf_copies_has(*state, &f, 1, 2, THE_TIME + SECOND - 1));
	assert_false(es_nf_copies_has(*state, &f, 1, 2, THE_TIME + SECOND));
	assert_false(es_nf_copies_has(*state, &f, 2, 2, THE_TIME));
	assert_false(es_nf_copies_has(*state, &f, 1, 3, THE_TIME));
	assert_false(es_nf_copies_has(*state, &other, 1, 2, THE_TIME));
}

static void test_a_later_request_replaces_it(void **state)
{
	struct es_flow f = flow(1);

	es_nf_copies_add(*state, &f, 1, 2, THE_TIME);
	es_nf_copies_add(*state, &f, 11, 12, THE_TIME);
	assert_false(es_nf_copies_has(*state, &f, 1, 2, THE_TIME));
	assert_true(es_nf_copies_has(*state, &f, 11, 12, THE_TIME));
}

static void test_forgotten_when_the_connection_leaves(void **state)
{
	struct es_flow f = flow(1);

	es_nf_copies_forget(*state, &f);
	es_nf_copies_add(*state, &f, 1, 2, THE_TIME);
	es_nf_copies_forget(*state, &f);
	assert_false(es_nf_copies_has(*state, &f, 1, 2, THE_TIME));
}

/* However many arrive, the table does not grow, and the last ones are there. */
static void test_a_flood(void **state)
{
	unsigned int last = 100000;
	struct es_flow f;

	for (unsigned int i = 0; i <= last; i++) {
		f = flow(i);
		es_nf_copies_add(*state, &f, i, i, THE_TIME + i);
		assert_true(es_nf_copies_has(*state, &f, i, i, THE_TIME + i));
	}
	for (unsigned int i = last - 2; i <= last; i++) {
		f = flow(i);
		assert_true(es_nf_copies_has(*state, &f, i, i, THE_TIME + last));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_same_request_within_a_second, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_later_request_replaces_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_forgotten_when_the_connection_leaves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_flood, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
