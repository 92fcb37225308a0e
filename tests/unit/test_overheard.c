// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Noted connections: one is never forgotten within a life, always after two, and seldom found without having
 * been noted.
 */
#include <string.h>
#include "cmocka_all.h"
#include "kmod/core/syns.h"

#define FLOW   0x123456789abcdef0ULL
#define SLOTS  256u
#define LIFE_S 512u
#define SLOT_S 128u
#define SECOND 1000000000ULL

static void note(struct es_overheard *table, __u64 flow, __u32 what, __u32 now_s)
{
	__u64 key = es_overheard_key(flow, what);

	es_overheard_note(&table[es_overheard_index(key, SLOTS)], key,
			  es_overheard_generation(now_s, LIFE_S));
}

static int has(const struct es_overheard *table, __u64 flow, __u32 what, __u32 now_s)
{
	__u64 key = es_overheard_key(flow, what);

	return es_overheard_has(&table[es_overheard_index(key, SLOTS)], key,
				es_overheard_generation(now_s, LIFE_S));
}

/* At the machine's start, years later, and where the generation's number, of 16 bits in a word, wraps. */
static const __u32 starts[] = {0, 1, LIFE_S - 1, LIFE_S, 100000000, 0xffffu * LIFE_S, 0x10000u * LIFE_S - 1};

static void test_a_life(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		for (__u32 into = 0; into <= LIFE_S; into += LIFE_S / 16) {
			struct es_overheard table[SLOTS] = {};
			__u32 at = starts[i] + into;

			assert_false(has(table, FLOW, 1, at));
			note(table, FLOW, 1, at);
			assert_true(has(table, FLOW, 1, at));
			assert_true(has(table, FLOW, 1, at + LIFE_S));
			assert_false(has(table, FLOW, 1, at + 2 * LIFE_S));
			/* Words that are out of date do not get in between. */
			note(table, FLOW, 1, at + 2 * LIFE_S);
			assert_true(has(table, FLOW, 1, at + 3 * LIFE_S));
			note(table, FLOW, 1, at + 10 * LIFE_S);
			assert_true(has(table, FLOW, 1, at + 11 * LIFE_S));
			assert_false(has(table, FLOW, 1, at + 12 * LIFE_S));
		}
	}
}

static void test_again_changes_nothing(void **state)
{
	struct es_overheard table[SLOTS] = {}, before[SLOTS];

	(void)state;
	note(table, FLOW, 7, LIFE_S);
	memcpy(before, table, sizeof(before));
	note(table, FLOW, 7, 2 * LIFE_S - 1);
	assert_memory_equal(before, table, sizeof(before));
}

/* Noted by the thousand, none is lost, and what was not noted is found as often as bits are set. */
static void test_many(void **state)
{
	struct es_overheard table[SLOTS] = {};
	const __u32 count = SLOTS * ES_OVERHEARD_BITS / 8;
	unsigned int found = 0;

	(void)state;
	for (__u32 i = 0; i < count; i++)
		note(table, FLOW + (i & 7) * 0x9e3779b97f4a7c15ULL, i, LIFE_S);
	for (__u32 i = 0; i < count; i++) {
		assert_true(has(table, FLOW + (i & 7) * 0x9e3779b97f4a7c15ULL, i, 2 * LIFE_S));
		found += (unsigned int)has(table, FLOW + (i & 7) * 0x9e3779b97f4a7c15ULL, i + count,
					   2 * LIFE_S);
	}
	/* Each word has six keys of three bits, 31% of its bits: 3% of the others have all their bits by
	 * chance. */
	assert_in_range(found, count * 15 / 1000, count * 60 / 1000);
	/* Two flows, and two connections of one flow, are two things. */
	assert_int_not_equal(es_overheard_key(FLOW, 1), es_overheard_key(FLOW, 2));
	assert_int_not_equal(es_overheard_key(FLOW, 1), es_overheard_key(FLOW + 1, 1));
}

static void test_bits_stay_in_their_word(void **state)
{
	__u64 all = 0;

	(void)state;
	for (__u32 i = 0; i < 10000; i++)
		all |= es_overheard_bits(es_overheard_key(FLOW, i));
	assert_true(all == (1ULL << ES_OVERHEARD_BITS) - 1);
	assert_true(es_overheard_bit(~0u) == 1ULL << (ES_OVERHEARD_BITS - 1));
}

/* A SYN is remembered for as long as its cookie is good, whenever the SYN arrived. */
static void test_syns(void **state)
{
	const struct es_tcp_options o = {.mss = 1460};
	const struct es_sipkey key = {1, 2};

	(void)state;
	for (__u32 at = 100000; at < 100000 + 2 * es_syn_life_s(SLOT_S); at++) {
		struct es_overheard slot = {};
		__u64 syn = es_overheard_key(FLOW, 5);
		__u32 tsval, now = at;
		/* The next slot's, at worst. */
		__u32 cookie = es_cookie_make_packed(&key, FLOW, at / SLOT_S + 1, 5,
						     es_cookie_options_pack(&o), &tsval);

		es_overheard_note(&slot, syn, es_syn_generation(at, SLOT_S));
		while (es_cookie_check(&key, FLOW, now / SLOT_S, cookie, 5, NULL) == ES_COOKIE_VALID)
			assert_true(es_overheard_has(&slot, syn, es_syn_generation(now++, SLOT_S)));
		assert_true(now - at >= 3 * SLOT_S);
	}
}

static void test_syns_are_complete(void **state)
{
	const __u64 life_ns = es_syn_life_s(SLOT_S) * SECOND;

	(void)state;
	assert_false(es_syns_are_complete(0, 1ULL << 60, SLOT_S));
	assert_false(es_syns_are_complete(5 * SECOND, 5 * SECOND + life_ns - 1, SLOT_S));
	assert_true(es_syns_are_complete(5 * SECOND, 5 * SECOND + life_ns, SLOT_S));
	assert_false(es_syns_are_complete(5 * SECOND, 4 * SECOND, SLOT_S)); /* the coarse clock lies behind */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_life), cmocka_unit_test(test_again_changes_nothing),
		cmocka_unit_test(test_many),   cmocka_unit_test(test_bits_stay_in_their_word),
		cmocka_unit_test(test_syns),   cmocka_unit_test(test_syns_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
