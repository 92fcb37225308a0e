// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests on idle connections of a node that is lost: which go on at another node, and which end.
 */
#include "cmocka_all.h"
#include "tests/unit/survive_world.h"

static void test_safe(void **state)
{
	struct message m;

	(void)state;
	node_is_lost();
	comes(0, REQUEST);
	comes(0, REQUEST); /* asked about once */
	nobody_has_it(&m);
	expect_goes_on(&m);
	assert_int_equal(COUNT(strays), 1);
	assert_int_equal(COUNT(survive_long), 0);
}

/* Until its lease is over, a node may go on with what it has. */
static void test_lease(void **state)
{
	struct message m;

	(void)state;
	comes(0, REQUEST); /* nobody is lost: it is a stray like any other */
	assert_int_equal(COUNT(strays), 1);
	es_inspect_strays_forget(&in);
	es_health_set_lost(&health, LOST, NOW_NS - S);
	comes(0, REQUEST);
	later(1000);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(strays), 1);
}

/* A node is lost while all are asked about what was a stray like any other: it is not nobody's. */
static void test_lost_meanwhile(void **state)
{
	struct message m;

	(void)state;
	comes(0, REQUEST);
	node_is_lost();
	later(100);
	assert_int_equal(sent_to(&m), LOST);
	later(200);
	for (int i = 0; i < 2 * (NODES - 1); i++) {
		assert_int_equal(sent_to(&m), i % (NODES - 1));
		answer(&m, 0);
	}
	assert_int_equal(COUNT(stray_resets), 0);
	comes(0, REQUEST);
	nobody_has_it(&m);
	expect_goes_on(&m);
}

/* Some node has it, and is left alone. */
static void test_somebodys(void **state)
{
	struct message m;

	(void)state;
	node_is_lost();
	assert_true(slot()->is_orphan);
	comes(0, REQUEST);
	later(0);
	assert_int_equal(sent_to(&m), LOST);
	answer(&m, 1);
	later(20);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(survived) + COUNT(stray_resets), 0);
	assert_int_equal(slot()->flow_hash, 0);
}

/* A segment of which one number is right, and the other is not. */
static void test_guess(void **state)
{
	uint8_t bytes[1500];
	struct es_record record;
	struct message m;

	(void)state;
	node_is_lost();
	for (int i = 0; i < 2; i++) {
		record = segment(number, 0, REQUEST, bytes);
		record.kind = ES_RECORD_STRAY;
		bytes[tcp_at() + (i ? 11 : 4)] ^= 0x40; /* its acknowledgment, its number */
		es_inspect_record(&in, &record, bytes);
	}
	later(100);
	while (sent_to(&m) >= 0)
		assert_int_equal(m.h.kind, ES_HANDOVER_STRAYS);
	assert_int_equal(COUNT(survived), 0);
	assert_int_equal(slot()->seq, ISN + 1);
}

enum known { ALL, HEARD, OVERHEARD, DEAF, UNWATCHED, SOON };

/* A request that is not safe goes on only if nobody can have heard it while its node might take it. */
static void unsafe(enum known what)
{
	struct es_kept_slot other = {.flow_hash = 1};
	struct message m;

	if (what == HEARD)
		assert_int_equal(es_kept_hear(slot(), hash_of(number), ISN + 1, 1), 0);
	if (what == DEAF)
		hears_ns = NOW_NS - 10 * S;
	if (what == UNWATCHED)
		*slot() = other;
	node_is_lost();
	/* It was another node's to take, which may have executed it. */
	if (what == OVERHEARD)
		assert_int_equal(es_kept_hear(slot(), hash_of(number), ISN + 1, 0), 0);
	if (what != SOON)
		in.now_ns += S;
	comes(0, post);
	nobody_has_it(&m);
	if (what == ALL) {
		expect_goes_on(&m);
		assert_int_equal(COUNT(survive_unsafe), 0);
		return;
	}
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(survived), 0);
	assert_int_equal(COUNT(survive_unsafe), 1);
	assert_int_equal(COUNT(doubtful), 1);
}

static void test_unsafe(void **state)
{
	(void)state;
	unsafe(ALL);
}

static void test_unsafe_heard(void **state)
{
	(void)state;
	unsafe(HEARD);
}

static void test_unsafe_deaf(void **state)
{
	(void)state;
	unsafe(DEAF);
}

static void test_unsafe_unwatched(void **state)
{
	(void)state;
	unsafe(UNWATCHED);
}

/* This node may have missed its first copy, a moment before the lease was over. */
static void test_unsafe_soon(void **state)
{
	(void)state;
	unsafe(SOON);
}

static void test_unsafe_overheard(void **state)
{
	(void)state;
	unsafe(OVERHEARD);
}

/* The node was lost so soon after it told that a request before that may have been missed. */
static void test_unsafe_unsettled(void **state)
{
	const unsigned long long over_ns[ES_NODES_MAX] = {[LOST] = NOW_NS - S};
	const unsigned long long alive_ns[ES_NODES_MAX] = {[LOST] = NOW_NS - 20 * S + S / 2};
	struct message m;

	(void)state;
	es_health_set_lost(&health, LOST, NOW_NS - S);
	es_health_set_state(&health, LOST, ES_NODE_ABSENT);
	es_directory_orphan(directory, over_ns, alive_ns, NOW_NS);
	in.now_ns += S;
	comes(0, post);
	nobody_has_it(&m);
	assert_int_equal(COUNT(survived), 0);
	assert_int_equal(COUNT(survive_unsafe), 1);
}

/* A head in two segments, in either order. */
static void long_head(int is_swapped)
{
	static const char a[] = "GET / HTTP/1.1\r\nHost: x\r\nCookie: ", b[] = "abc\r\n\r\n";
	struct message m;

	node_is_lost();
	if (is_swapped)
		comes(sizeof(a) - 1, b);
	comes(0, a);
	if (!is_swapped)
		comes(sizeof(a) - 1, b);
	assert_int_equal(sent_to(&m), -1);
	nobody_has_it(&m);
	assert_true(sent_to(&m) >= 0 || COUNT(survived));
	assert_int_equal(COUNT(survived), 1);
	assert_int_equal(COUNT(survive_long), 1);
	assert_int_equal(COUNT(strays), 1);
}

static void test_long(void **state)
{
	(void)state;
	long_head(0);
}

static void test_long_swapped(void **state)
{
	(void)state;
	long_head(1);
}

/* The rest of the head comes when all have been asked already. */
static void test_long_late(void **state)
{
	static const char a[] = "GET / HTTP/1.1\r\nHost: x\r\nCookie: ", b[] = "abc\r\n\r\n";
	struct message m;

	(void)state;
	node_is_lost();
	comes(0, a);
	nobody_has_it(&m);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(survived), 0);
	comes(sizeof(a) - 1, b);
	assert_int_equal(COUNT(survived), 1);
	assert_int_equal(slot()->flow_hash, 0);
}

/*
 * Its node is back, and has told another request, or that nobody else can go on: that was asked about in
 * vain.
 */
static void test_taken_back(void **state)
{
	struct message m;

	(void)state;
	node_is_lost();
	comes(0, REQUEST);
	es_directory_forget(directory, hash_of(number), LOST);
	nobody_has_it(&m);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(COUNT(survived), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, world, unmade)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_safe),
		CASE(test_lease),
		CASE(test_somebodys),
		CASE(test_guess),
		CASE(test_unsafe),
		CASE(test_unsafe_heard),
		CASE(test_unsafe_deaf),
		CASE(test_unsafe_unwatched),
		CASE(test_unsafe_overheard),
		CASE(test_unsafe_unsettled),
		CASE(test_long),
		CASE(test_long_swapped),
		CASE(test_long_late),
		CASE(test_taken_back),
		CASE(test_lost_meanwhile),
		CASE(test_unsafe_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
