// SPDX-License-Identifier: GPL-2.0-or-later
/* Gathering first requests: any order gives the same text, and every bound holds. */
#include "cmocka_all.h"
#include <stdlib.h>
#include <string.h>
#include "inspector/inspect/gather.h"

#define HEADER 40

static enum es_gather_result add(struct es_gather_table *table, struct es_gather *g, const char *text,
				 uint32_t at, size_t len)
{
	uint8_t bytes[HEADER + 2000] = {};

	memcpy(bytes + HEADER, text + at, len);
	return es_gather_add(table, g, bytes, HEADER + len, HEADER, 1000 + at, at == 0);
}

static void test_any_order(void **state)
{
	static const char text[] = "GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n";
	size_t len = sizeof(text) - 1;
	struct es_gather_table *table = NULL;
	uint64_t seed = 7;

	(void)state;
	assert_int_equal(es_gather_table_new(16, 65536, &table), 0);
	for (int round = 0; round < 2000; round++) {
		uint32_t cut[6] = {0}, n = 1 + (uint32_t)(es_test_random(&seed) % 5);
		int evicted = 0, order[5];
		struct es_gather *g = es_gather_insert(table, 1, 2, 0, &evicted);

		assert_non_null(g);
		for (uint32_t i = 1; i < n; i++) {
			cut[i] = cut[i - 1] + 1 + (uint32_t)(es_test_random(&seed) % 7);
		}
		cut[n] = (uint32_t)len;
		for (uint32_t i = 0; i < n; i++)
			order[i] = (int)i;
		for (uint32_t i = n - 1; i > 0; i--) {
			uint32_t k = (uint32_t)(es_test_random(&seed) % (i + 1));
			int t = order[i];

			order[i] = order[k];
			order[k] = t;
		}
		for (uint32_t i = 0; i < n; i++) {
			uint32_t from = cut[order[i]], to = cut[order[i] + 1];

			/* now and then a segment overlaps the one before it */
			if (from && es_test_random(&seed) % 4 == 0)
				from--;
			assert_int_not_equal(add(table, g, text, from, to - from), ES_GATHER_FULL);
		}
		assert_true(g->has_first);
		assert_int_equal(g->text_len, len);
		assert_memory_equal(g->text, text, len);
		assert_int_equal(es_http_head_scan(&g->head, g->text, g->text_len), ES_HTTP_DONE);
		es_gather_remove(table, g);
	}
	assert_int_equal(es_gather_count(table), 0);
	es_gather_table_free(&table);
}

static enum es_gather_result add_at(struct es_gather_table *table, struct es_gather *g, uint32_t seq,
				    const char *text, int is_first)
{
	uint8_t bytes[HEADER + 100] = {};
	size_t len = strlen(text);

	memcpy(bytes + HEADER, text, len + 1);
	return es_gather_add(table, g, bytes, HEADER + len, HEADER, seq, is_first);
}

/*
 * A segment that begins below the first byte is not part of the request, whether it arrives before that byte
 * or after.
 */
static void test_below_the_first_byte(void **state)
{
	static const uint32_t firsts[] = {1000, 0, 1, 2}; /* and where sequence numbers wrap */
	struct es_gather_table *table = NULL;
	int evicted;

	(void)state;
	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		uint32_t first = firsts[i];
		struct es_gather *g;

		assert_int_equal(es_gather_table_new(16, 65536, &table), 0);
		g = es_gather_insert(table, 1, 2, 0, &evicted);
		assert_int_equal(add_at(table, g, first - 1, "?", 0), ES_GATHER_ADDED);
		assert_int_equal(add_at(table, g, first - 2, "?????", 0), ES_GATHER_ADDED);
		assert_int_equal(add_at(table, g, first + 3, "def", 0), ES_GATHER_ADDED);
		assert_int_equal(g->count, 3);
		assert_int_equal(add_at(table, g, first, "abc", 1), ES_GATHER_ADDED);
		assert_int_equal(add_at(table, g, first - 1, "?", 0), ES_GATHER_REPEATED);
		assert_int_equal(add_at(table, g, first - 1, "?xyz", 0), ES_GATHER_REPEATED);
		assert_int_equal(g->count, 2);
		assert_int_equal(g->bytes, 6);
		assert_true(g->segment[0].seq == first && g->segment[1].seq == first + 3);
		assert_int_equal(g->text_len, 6);
		assert_memory_equal(g->text, "abcdef", 6);
		es_gather_table_free(&table);
	}
}

static void test_repeated(void **state)
{
	struct es_gather_table *table = NULL;
	struct es_gather *g;
	int evicted;

	(void)state;
	assert_int_equal(es_gather_table_new(16, 65536, &table), 0);
	g = es_gather_insert(table, 1, 2, 0, &evicted);
	assert_int_equal(add(table, g, "abcdef", 0, 3), ES_GATHER_ADDED);
	assert_int_equal(add(table, g, "abcdef", 0, 3), ES_GATHER_REPEATED);
	assert_int_equal(add(table, g, "abcdef", 0, 6), ES_GATHER_ADDED); /* longer: something new */
	assert_int_equal(g->text_len, 6);
	es_gather_table_free(&table);
	assert_null(table);
}

static void test_bounds(void **state)
{
	struct es_gather_table *table = NULL;
	struct es_gather *g = NULL;
	char text[3000] = {};
	int evicted;

	(void)state;
	assert_int_equal(es_gather_table_new(4, 2500, &table), 0);
	for (unsigned int i = 0; i < 10; i++) {
		g = es_gather_insert(table, i, 7, i, &evicted);
		assert_non_null(g);
		assert_int_equal(evicted, i >= 4);
		assert_int_equal(es_gather_count(table), i < 4 ? i + 1 : 4);
	}
	/* The oldest went: what is left is in order of deadline. */
	assert_null(es_gather_lookup(table, 5, 7));
	assert_true(es_gather_oldest(table) == es_gather_lookup(table, 6, 7));
	assert_null(es_gather_lookup(table, 6, 8)); /* another incarnation */
	assert_int_equal(add(table, g, text, 0, 2000), ES_GATHER_ADDED);
	assert_int_equal(add(table, g, text, 2000, 501), ES_GATHER_FULL);
	assert_int_equal(add(table, g, text, 2000, 500), ES_GATHER_ADDED);
	g = es_gather_lookup(table, 8, 7);
	for (uint32_t i = 0; i < ES_GATHER_SEGMENTS; i++)
		assert_int_equal(add(table, g, text, i, 1), ES_GATHER_ADDED);
	assert_int_equal(add(table, g, text, ES_GATHER_SEGMENTS, 1), ES_GATHER_FULL);
	es_gather_remove(table, es_gather_oldest(table));
	assert_true(es_gather_oldest(table) == es_gather_lookup(table, 7, 7));
	es_gather_table_free(&table);
}

static void test_nothing_without_the_first(void **state)
{
	struct es_gather_table *table = NULL;
	struct es_gather *g;
	int evicted;

	(void)state;
	assert_int_equal(es_gather_table_new(4, 2500, &table), 0);
	g = es_gather_insert(table, 1, 7, 0, &evicted);
	assert_int_equal(add(table, g, "abcdef", 3, 3), ES_GATHER_ADDED);
	assert_false(g->has_first);
	assert_int_equal(g->text_len, 0);
	assert_int_equal(add(table, g, "abcdef", 0, 3), ES_GATHER_ADDED);
	assert_int_equal(g->text_len, 6);
	assert_memory_equal(g->text, "abcdef", 6);
	es_gather_table_free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_below_the_first_byte),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_nothing_without_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
