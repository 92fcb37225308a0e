// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inspector/http/chunked.h: bodies in one piece and cut in every way, and each way to be malformed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "inspector/http/chunked.h"

struct chunked_case {
	const char *name;
	const char *in;
	size_t len;
	enum es_http_chunked_result result;
	enum es_http_chunked_error error;
	size_t used;
	uint64_t body;
};

#define IN(s) (s), sizeof(s) - 1
/* @rest bytes after the end. */
#define DONE(s, rest, body)                                                                                  \
	IN(s), ES_HTTP_CHUNKED_DONE, ES_HTTP_CHUNKED_ERROR_NONE, sizeof(s) - 1 - (rest), body
#define MORE(s, body)	      IN(s), ES_HTTP_CHUNKED_MORE, ES_HTTP_CHUNKED_ERROR_NONE, sizeof(s) - 1, body
#define BAD(s, why, at, body) IN(s), ES_HTTP_CHUNKED_ERROR, ES_HTTP_CHUNKED_ERROR_##why, at, body

static const struct chunked_case cases[] = {
	{"empty body", DONE("0\r\n\r\n", 0, 0)},
	{"one chunk", DONE("5\r\nhello\r\n0\r\n\r\n", 0, 5)},
	{"a request behind it", DONE("1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n", 16, 1)},
	{"empty lines behind it", DONE("0\r\n\r\n\r\n\r\n", 4, 0)},
	{"two chunks", DONE("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 0, 5)},
	{"hexadecimal", DONE("a\r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n", 0, 21)},
	{"data that looks like framing", DONE("7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", 0, 7)},
	{"leading zeros", DONE("0000000000000001\r\nx\r\n0000\r\n\r\n", 0, 1)},
	{"extension", DONE("1;a\r\nx\r\n0;b=\"c d\";e=\t1\r\n\r\n", 0, 1)},
	{"empty extension", DONE("1;\r\nx\r\n0\r\n\r\n", 0, 1)},
	{"high bytes in an extension", DONE("0;\xc3\xa4\r\n\r\n", 0, 0)},
	{"trailers", DONE("0\r\nX: y\r\nA-b:\t\xff z \r\nE:\r\n\r\nG", 1, 0)},

	{"nothing", MORE("", 0)},
	{"size", MORE("5", 0)},
	{"size, CR", MORE("5\r", 0)},
	{"size line", MORE("5\r\n", 0)},
	{"half a chunk", MORE("5\r\nhel", 3)},
	{"chunk data", MORE("5\r\nhello", 5)},
	{"chunk", MORE("5\r\nhello\r\n", 5)},
	{"last chunk", MORE("0\r\n", 0)},
	{"half an empty line", MORE("0\r\n\r", 0)},
	{"trailer", MORE("0\r\nX: y\r\n", 0)},
	{"largest chunk", MORE("7fffffffffffffff\r\nx", 1)},

	{"no size", BAD("\r\n", SIZE, 0, 0)},
	{"no size, LF", BAD("\n", SIZE, 0, 0)},
	{"no size but an extension", BAD(";a\r\n", SIZE, 0, 0)},
	{"SP before the size", BAD(" 5\r\n", SIZE, 0, 0)},
	{"SP behind the size", BAD("5 \r\n", SIZE, 1, 0)},
	{"SP before the extension", BAD("5 ;a\r\n", SIZE, 1, 0)},
	{"TAB behind the size", BAD("5\t\r\n", SIZE, 1, 0)},
	{"0x", BAD("0x5\r\n", SIZE, 1, 0)},
	{"sign", BAD("+5\r\n", SIZE, 0, 0)},
	{"minus", BAD("-1\r\n", SIZE, 0, 0)},
	{"no digit", BAD("g\r\n", SIZE, 0, 0)},
	{"underscore", BAD("1_0\r\n", SIZE, 1, 0)},
	{"NUL in the size", BAD("5\0\r\n", SIZE, 1, 0)},
	{"byte that is '0' but for a bit", BAD("\x10\r\n", SIZE, 0, 0)},
	{"high byte", BAD("\xc1\r\n", SIZE, 0, 0)},
	{"17 digits", BAD("00000000000000001\r\n", SIZE, 16, 0)},
	{"2^63", BAD("8000000000000000\r\n", OVERFLOW, 15, 0)},
	{"2^64", BAD("10000000000000000\r\n", SIZE, 16, 0)},
	{"all digits f", BAD("ffffffffffffffff\r\n", OVERFLOW, 15, 0)},
	{"sum above INT64_MAX", BAD("1\r\nx\r\n7fffffffffffffff\r\n", OVERFLOW, 21, 1)},
	{"bare LF behind the size", BAD("5\nhello\r\n", LINE_END, 1, 0)},
	{"CR and no LF behind the size", BAD("5\rhello\r\n", LINE_END, 2, 0)},
	{"CR CR", BAD("5\r\r\n", LINE_END, 2, 0)},
	{"bare LF behind an extension", BAD("5;a\nhello\r\n", LINE_END, 3, 0)},
	{"bare CR in an extension", BAD("5;a\rb\r\n", LINE_END, 4, 0)},
	{"NUL in an extension", BAD("5;a\0\r\n", EXT, 3, 0)},
	{"DEL in an extension", BAD("5;\x7f\r\n", EXT, 2, 0)},
	{"data too long", BAD("2\r\nabc\r\n", DATA_END, 5, 2)},
	{"data too short", BAD("3\r\nab\r\n0\r\n\r\n", DATA_END, 6, 3)},
	{"bare LF behind data", BAD("1\r\na\n0\r\n\r\n", DATA_END, 4, 1)},
	{"bare CR behind data", BAD("1\r\na\r0\r\n\r\n", DATA_END, 5, 1)},
	{"no line end behind data", BAD("1\r\na0\r\n\r\n", DATA_END, 4, 1)},
	{"bare LF at the end", BAD("0\r\n\n", LINE_END, 3, 0)},
	{"bare CR at the end", BAD("0\r\n\rG", LINE_END, 4, 0)},
	{"a request instead of the end", BAD("0\r\nGET / HTTP/1.1\r\n\r\n", TRAILER, 6, 0)},
	{"trailer without colon", BAD("0\r\nXY\r\n\r\n", TRAILER, 5, 0)},
	{"trailer without name", BAD("0\r\n: y\r\n\r\n", TRAILER, 3, 0)},
	{"folded trailer", BAD("0\r\nX: y\r\n z\r\n\r\n", TRAILER, 9, 0)},
	{"SP before a trailer's colon", BAD("0\r\nX : y\r\n\r\n", TRAILER, 4, 0)},
	{"NUL in a trailer", BAD("0\r\nX: \0\r\n\r\n", TRAILER, 6, 0)},
	{"high byte in a trailer's name", BAD("0\r\n\xe4: \r\n\r\n", TRAILER, 3, 0)},
	{"bare LF in a trailer", BAD("0\r\nX: y\n\r\n", LINE_END, 7, 0)},
	{"bare LF in a trailer's name", BAD("0\r\nX\n\r\n", LINE_END, 4, 0)},
	{"bare CR in a trailer", BAD("0\r\nX: y\rz\r\n\r\n", LINE_END, 8, 0)},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

static size_t scan(struct es_http_chunked *c, const char *buf, size_t len)
{
	size_t used = SIZE_MAX;
	enum es_http_chunked_result result = es_http_chunked_scan(c, buf, len, &used);

	assert_int_equal(result, c->result);
	assert_true(used <= len);
	return used;
}

static void check_case(const struct chunked_case *want, const struct es_http_chunked *c, size_t used)
{
	if (c->result != want->result || c->error != want->error || used != want->used)
		print_message("%s: %d, %d, used %zu\n", want->name, (int)c->result, (int)c->error, used);
	assert_int_equal(c->result, want->result);
	assert_int_equal(c->error, want->error);
	assert_int_equal(used, want->used);
	assert_int_equal(c->body_bytes, want->body);
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		char *copy = malloc(cases[i].len + 1);
		struct es_http_chunked c;

		assert_non_null(copy);
		memcpy(copy, cases[i].in, cases[i].len);
		es_http_chunked_init(&c);
		check_case(&cases[i], &c, scan(&c, copy, cases[i].len));
		free(copy);
	}
}

static void test_byte_by_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		struct es_http_chunked c;
		size_t used = 0;

		es_http_chunked_init(&c);
		for (size_t at = 0; at < cases[i].len; at++)
			used += scan(&c, cases[i].in + at, 1);
		check_case(&cases[i], &c, used);
	}
}

static void test_every_cut_in_three(void **state)
{
	(void)state;
	for (size_t i = 0; i < CASES; i++) {
		size_t len = cases[i].len;

		for (size_t first = 0; first <= len; first++) {
			for (size_t second = first; second <= len; second++) {
				struct es_http_chunked c;
				size_t used;

				es_http_chunked_init(&c);
				used = scan(&c, cases[i].in, first);
				used += scan(&c, cases[i].in + first, second - first);
				used += scan(&c, cases[i].in + second, len - second);
				check_case(&cases[i], &c, used);
			}
		}
	}
}

static void test_each_error_is_in_the_table(void **state)
{
	(void)state;
	for (unsigned int error = 0; error < ES_HTTP_CHUNKED_ERROR_COUNT; error++) {
		bool found = false;

		for (size_t i = 0; i < CASES; i++)
			found |= cases[i].error == error;
		assert_true(found);
	}
}

static void test_outcomes_are_final(void **state)
{
	struct es_http_chunked c;

	(void)state;
	es_http_chunked_init(&c);
	assert_int_equal(scan(&c, "0\r\n\r\n", 5), 5);
	assert_int_equal(scan(&c, "0\r\n\r\n", 5), 0);
	assert_int_equal(c.result, ES_HTTP_CHUNKED_DONE);
	es_http_chunked_init(&c);
	assert_int_equal(scan(&c, "x", 1), 0);
	assert_int_equal(scan(&c, "0\r\n\r\n", 5), 0);
	assert_int_equal(c.result, ES_HTTP_CHUNKED_ERROR);
}

static void test_chunk_left(void **state)
{
	struct es_http_chunked c;

	(void)state;
	es_http_chunked_init(&c);
	scan(&c, "10\r\nabc", 7);
	assert_int_equal(c.chunk_left_bytes, 13);
	assert_int_equal(c.body_bytes, 3);
}

/* The limits are reached without an error and passed with one. */
static void test_limits(void **state)
{
	struct es_http_chunked c;
	size_t i;

	(void)state;
	es_http_chunked_init(&c);
	scan(&c, "0;", 2);
	for (i = 0; i < ES_HTTP_CHUNK_EXT_MAX; i++)
		assert_int_equal(scan(&c, "e", 1), 1);
	assert_int_equal(scan(&c, "e", 1), 0);
	assert_int_equal(c.error, ES_HTTP_CHUNKED_ERROR_EXT);

	es_http_chunked_init(&c);
	scan(&c, "0\r\n", 3);
	for (i = 0; i + 6 <= ES_HTTP_TRAILER_MAX; i += 5) /* the LF is not counted */
		assert_int_equal(scan(&c, "X: y\r\n", 6), 6);
	assert_int_equal(i, ES_HTTP_TRAILER_MAX - 1);
	assert_int_equal(scan(&c, "X", 1), 1);
	assert_int_equal(scan(&c, ":", 1), 0);
	assert_int_equal(c.error, ES_HTTP_CHUNKED_ERROR_TRAILER);
}

/* Extensions of one chunk do not count against those of the next. */
static void test_many_chunks(void **state)
{
	static const char chunk[] = "1;abcdefghijklmnopqrstuvwxyz\r\nx\r\n";
	struct es_http_chunked c;

	(void)state;
	es_http_chunked_init(&c);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(scan(&c, chunk, sizeof(chunk) - 1), sizeof(chunk) - 1);
	assert_int_equal(c.body_bytes, 10000);
	assert_int_equal(scan(&c, "0\r\n\r\nGET", 8), 5);
	assert_int_equal(c.result, ES_HTTP_CHUNKED_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_every_cut_in_three),
		cmocka_unit_test(test_each_error_is_in_the_table),
		cmocka_unit_test(test_outcomes_are_final),
		cmocka_unit_test(test_chunk_left),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_many_chunks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
