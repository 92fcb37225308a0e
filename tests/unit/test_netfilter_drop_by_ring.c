// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which packets the kernel is to drop for the netfilter datapath: of which services, and of which slots.
 */
#include "cmocka_all.h"
#include <stdlib.h>
#include <string.h>
#include "netfilter/rules/drop_by_ring.h"

struct world {
	struct es_config config;
	struct es_node_ring ring;
	struct es_nf_drop_by_ring made;
};

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct es_addr v6 = {.b = {0xfd, [15] = 1}};

	assert_non_null(w);
	w->config.ring_seed = 7;
	w->config.public_ifindex = 3;
	w->config.service_count = 3;
	w->config.service[0] = (struct es_service_entry){.address = es_addr_from_v4(es_htonl(0x0a000001)),
							 .port = es_htons(80),
							 .inspect = ES_INSPECT_FIRST};
	w->config.service[0].address6 = v6;
	w->config.service[1] = (struct es_service_entry){.address = es_addr_from_v4(es_htonl(0x0a000001)),
							 .port = es_htons(81),
							 .inspect = ES_INSPECT_EVERY};
	w->config.service[2] = (struct es_service_entry){.address = es_addr_from_v4(es_htonl(0x0a000001)),
							 .port = es_htons(82),
							 .inspect = ES_INSPECT_NEVER};
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void answer(struct world *w, __u32 slot)
{
	w->ring.answered[slot / 64] |= 1ULL << (slot % 64);
}

/* A service that inspects every request needs what the ring gives to others. */
static void test_services(void **state)
{
	struct world *w = *state;

	es_nf_drop_by_ring_of(&w->config, &w->ring, &w->made);
	assert_int_equal(w->made.count, 3);
	assert_true(es_addr_equal(&w->made.endpoint[0].address, &w->config.service[0].address));
	assert_true(es_addr_equal(&w->made.endpoint[1].address, &w->config.service[0].address6));
	assert_int_equal(w->made.endpoint[1].port, es_htons(80));
	assert_int_equal(w->made.endpoint[2].port, es_htons(82));
}

static void test_siphash_has_none(void **state)
{
	static const struct es_nf_drop_by_ring none;
	struct world *w = *state;

	w->config.ring_seed = 0;
	es_nf_drop_by_ring_of(&w->config, &w->ring, &w->made);
	assert_memory_equal(&w->made, &none, sizeof(none));
}

/* A slot is in one of the intervals if and only if this node does not answer there. */
static void assert_intervals(struct world *w)
{
	__u32 at = 0, from, to, behind = 0;

	es_nf_drop_by_ring_of(&w->config, &w->ring, &w->made);
	while (es_nf_drop_by_ring_next(&w->made, &at, &from, &to)) {
		assert_true(from < to && to <= ES_RING_SLOTS);
		for (; behind < from; behind++)
			assert_true(es_node_ring_answers(&w->ring, (__u64)behind << 48));
		for (; behind < to; behind++)
			assert_false(es_node_ring_answers(&w->ring, (__u64)behind << 48));
	}
	for (; behind < ES_RING_SLOTS; behind++)
		assert_true(es_node_ring_answers(&w->ring, (__u64)behind << 48));
}

static void test_intervals(void **state)
{
	struct world *w = *state;
	uint64_t seed = 1;

	assert_intervals(w); /* all are others' */
	answer(w, 0);
	answer(w, ES_RING_SLOTS - 1);
	assert_intervals(w);
	for (int i = 0; i < 200; i++) {
		__u32 slot = (__u32)(es_test_random(&seed) % ES_RING_SLOTS);

		for (__u32 k = slot; k < slot + 300 && k < ES_RING_SLOTS; k++)
			answer(w, k);
		if (i % 20 == 0)
			assert_intervals(w);
	}
	memset(w->ring.answered, 0xff, sizeof(w->ring.answered));
	assert_intervals(w); /* none is */
}

/* A slot whose packets were dropped so far was not heard. */
static void test_gains(void **state)
{
	struct world *w = *state;
	struct es_node_ring before;

	answer(w, 5);
	answer(w, 6);
	before = w->ring;
	assert_false(es_nf_drop_by_ring_gains(before.answered, w->ring.answered));
	w->ring.answered[0] = 1ULL << 5;
	assert_false(es_nf_drop_by_ring_gains(before.answered, w->ring.answered));
	answer(w, 60000);
	assert_true(es_nf_drop_by_ring_gains(before.answered, w->ring.answered));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_services, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_siphash_has_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_intervals, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gains, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
