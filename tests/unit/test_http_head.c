// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inspector/http/head.h: the table of cases in one piece and cut in every way, look-ups, limits, garbage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "inspector/http/head.h"
#include "tests/unit/http_head_cases.h"

static enum es_http_result scan(struct es_http_head *h, const char *buf, size_t len)
{
	es_http_head_init(h);
	return es_http_head_scan(h, buf, len);
}

/* Scans a copy of exactly @len bytes, so that a sanitizer sees each read beyond them. */
static enum es_http_result scan_copy(struct es_http_head *h, const char *buf, size_t len)
{
	char *copy = malloc(len ? len : 1);
	enum es_http_result result;

	assert_non_null(copy);
	memcpy(copy, buf, len);
	result = es_http_head_scan(h, copy, len);
	free(copy);
	return result;
}

/* All of the state, the scanner's own included. */
static bool same(const struct es_http_head *a, const struct es_http_head *b)
{
	return !memcmp(a, b, offsetof(struct es_http_head, headers)) &&
	       !memcmp(a->headers, b->headers, es_http_head_headers(a) * sizeof(a->headers[0]));
}

static unsigned int flags_of(const struct es_http_head *h)
{
	return (h->keep_alive ? F_KEEP : 0) | (h->pin ? F_PIN : 0) | (h->upgrade ? F_UPGRADE : 0) |
	       (h->expect_continue ? F_EXPECT : 0) | (h->chunked ? F_CHUNKED : 0) |
	       (h->has_content_length ? F_LENGTH : 0) | (h->host_missing ? F_NO_HOST : 0) |
	       (h->connection_close ? F_CLOSE : 0) | (h->has_query ? F_QUERY : 0) |
	       (h->connection_keep_alive ? F_KEEP_TOKEN : 0) | (h->version_minor ? 0 : F_HTTP10);
}

static bool text_is(const char *buf, struct es_http_span span, const char *want)
{
	return !want || (strlen(want) == span.len && !memcmp(buf + span.off, want, span.len));
}

static void check_case(const struct http_head_case *c, const struct es_http_head *h)
{
	const char *host;
	size_t host_len;

	assert_int_equal(h->result, c->result);
	assert_int_equal(h->ambiguity, c->ambiguity);
	if (c->result == ES_HTTP_NOT_HTTP || c->result == ES_HTTP_TLS || c->result == ES_HTTP_H2) {
		assert_true(h->pin);
		return;
	}
	assert_int_equal(h->method, c->method);
	assert_int_equal(h->target_form, c->form);
	assert_int_equal(h->body, c->body);
	assert_true(text_is(c->in, h->target, c->target));
	assert_true(text_is(c->in, h->path, c->path));
	assert_true(text_is(c->in, h->query, c->query));
	assert_true(text_is(c->in, h->authority, c->authority));
	if (c->host) {
		assert_true(es_http_head_host(h, c->in, &host, &host_len));
		assert_int_equal(host_len, strlen(c->host));
		assert_memory_equal(host, c->host, host_len);
	}
	if (c->result == ES_HTTP_AMBIGUOUS)
		assert_true(h->pin && h->target_complete);
	if (c->result != ES_HTTP_DONE) {
		assert_int_equal(h->head_len_bytes, 0);
		return;
	}
	assert_true(h->target_complete);
	assert_int_equal(flags_of(h), c->flags);
	assert_int_equal(h->content_length_bytes, c->length);
	assert_int_equal(h->head_len_bytes, c->len - c->rest);
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < HTTP_HEAD_CASES; i++) {
		const struct http_head_case *c = &http_head_cases[i];
		struct es_http_head h;

		es_http_head_init(&h);
		scan_copy(&h, c->in, c->len);
		if (h.result != c->result || h.ambiguity != c->ambiguity)
			print_message("%s: %s (%s)\n", c->name, es_http_result_str(h.result),
				      es_http_ambiguity_str(h.ambiguity));
		check_case(c, &h);
	}
}

static void test_each_ambiguity_is_in_the_table(void **state)
{
	(void)state;
	for (unsigned int why = 1; why < ES_HTTP_AMBIGUITY_COUNT; why++) {
		bool found = why == ES_HTTP_AMBIGUITY_TRUNCATED || why == ES_HTTP_AMBIGUITY_URGENT;

		for (size_t i = 0; i < HTTP_HEAD_CASES; i++)
			found |= http_head_cases[i].ambiguity == why;
		if (!found)
			print_message("no case for: %s\n", es_http_ambiguity_str(why));
		assert_true(found);
		assert_string_not_equal(es_http_ambiguity_str(why), "?");
	}
	assert_string_equal(es_http_ambiguity_str(ES_HTTP_AMBIGUITY_COUNT), "?");
	assert_string_equal(es_http_result_str((enum es_http_result)99), "?");
}

/* Whatever was read before, nothing of it is used, and more bytes change nothing. */
static void test_distrust(void **state)
{
	static const char text[] = "GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n";
	struct es_http_head h;

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		es_http_head_init(&h);
		es_http_head_scan(&h, text, len);
		assert_int_equal(es_http_head_distrust(&h), ES_HTTP_AMBIGUOUS);
		assert_int_equal(es_http_head_scan(&h, text, sizeof(text) - 1), ES_HTTP_AMBIGUOUS);
		assert_int_equal(h.ambiguity, ES_HTTP_AMBIGUITY_URGENT);
		assert_true(h.pin && !h.target_complete && !h.truncated && !h.path.len && !h.header_count);
		assert_int_equal(es_http_head_truncate(&h), ES_HTTP_AMBIGUOUS);
	}
}

/* After every byte, the state is that of a scanner that was given all of them at once. */
static void test_growth_by_one_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < HTTP_HEAD_CASES; i++) {
		const struct http_head_case *c = &http_head_cases[i];
		struct es_http_head grown, whole;

		es_http_head_init(&grown);
		for (size_t len = 0; len <= c->len; len++) {
			scan_copy(&grown, c->in, len);
			scan(&whole, c->in, len);
			assert_true(same(&grown, &whole));
		}
		check_case(c, &grown);
	}
}

static void test_every_cut_in_two_and_three(void **state)
{
	(void)state;
	for (size_t i = 0; i < HTTP_HEAD_CASES; i++) {
		const struct http_head_case *c = &http_head_cases[i];
		struct es_http_head whole, cut;

		scan(&whole, c->in, c->len);
		for (size_t first = 0; first <= c->len; first++) {
			for (size_t second = first; second <= c->len; second++) {
				es_http_head_init(&cut);
				es_http_head_scan(&cut, c->in, first);
				es_http_head_scan(&cut, c->in, second);
				es_http_head_scan(&cut, c->in, c->len);
				assert_true(same(&whole, &cut));
			}
		}
	}
}

static void test_outcomes_are_final(void **state)
{
	static const char more[] = GET H "\r\n";

	(void)state;
	for (size_t i = 0; i < HTTP_HEAD_CASES; i++) {
		const struct http_head_case *c = &http_head_cases[i];
		struct es_http_head h, before;

		if (scan(&h, c->in, c->len) == ES_HTTP_MORE)
			continue;
		before = h;
		assert_int_equal(es_http_head_scan(&h, more, sizeof(more) - 1), c->result);
		assert_int_equal(es_http_head_truncate(&h), c->result);
		assert_true(same(&h, &before));
	}
}

/* Whatever follows a head must not matter to it. */
static void test_the_body_is_not_looked_at(void **state)
{
	char buf[1024];

	(void)state;
	for (size_t i = 0; i < HTTP_HEAD_CASES; i++) {
		const struct http_head_case *c = &http_head_cases[i];
		struct es_http_head plain, followed;

		if (c->result != ES_HTTP_DONE)
			continue;
		scan(&plain, c->in, c->len);
		assert_true(plain.head_len_bytes < 512);
		for (int byte = 0; byte < 256; byte++) {
			memcpy(buf, c->in, plain.head_len_bytes);
			memset(buf + plain.head_len_bytes, byte, sizeof(buf) - plain.head_len_bytes);
			scan(&followed, buf, sizeof(buf));
			assert_true(same(&plain, &followed));
		}
	}
}

static void test_first_byte(void **state)
{
	static const char tokens[] = "!#$%&'*+-.^_`|~0123456789"
				     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	(void)state;
	for (int byte = 0; byte < 256; byte++) {
		char c = (char)byte;
		bool more = c == '\r' || c == '\n' || c == 0x16 || (c && strchr(tokens, c));
		struct es_http_head h;

		assert_int_equal(scan(&h, &c, 1), more ? ES_HTTP_MORE : ES_HTTP_NOT_HTTP);
	}
}

/* Each byte at each place of a head: never DONE with a byte that a server may read in another way. */
static void test_each_byte_everywhere(void **state)
{
	static const char head[] =
		"POST /ab?c=d HTTP/1.1\r\nHost: example\r\nContent-Length: 12\r\nX-Y: z z\r\n\r\n";
	size_t len = sizeof(head) - 1;
	char buf[sizeof(head)];

	(void)state;
	for (size_t at = 0; at < len; at++) {
		for (int byte = 0; byte < 256; byte++) {
			struct es_http_head h;
			bool special = (byte < 0x20 && byte != '\t') || byte == 0x7f;

			memcpy(buf, head, len);
			buf[at] = (char)byte;
			scan(&h, buf, len);
			if (byte == head[at])
				assert_int_equal(h.result, ES_HTTP_DONE);
			else if (special || head[at] == '\r' || head[at] == '\n')
				assert_int_not_equal(h.result, ES_HTTP_DONE);
			if (h.result == ES_HTTP_DONE)
				assert_int_equal(h.head_len_bytes, len);
		}
	}
}

static void assert_header(const struct es_http_head *h, const char *buf, const char *name, const char *want)
{
	const char *value = "untouched";
	size_t len = 9;

	if (!want) {
		assert_false(es_http_head_find(h, buf, name, &value, &len));
		assert_true(len == 9 && !strcmp(value, "untouched"));
		return;
	}
	assert_true(es_http_head_find(h, buf, name, &value, &len));
	assert_int_equal(len, strlen(want));
	assert_memory_equal(value, want, len);
}

static void test_find(void **state)
{
	static const char in[] =
		GET "Host: h\r\nAccept: */*\r\nX-Empty:\r\naccept: second\r\nBad : x\r\n\r\n";
	struct es_http_head h;

	(void)state;
	scan(&h, in, sizeof(in) - 1);
	assert_int_equal(h.header_count, 5);
	assert_header(&h, in, "host", "h");
	assert_header(&h, in, "ACCEPT", "*/*");
	assert_header(&h, in, "x-empty", "");
	assert_header(&h, in, "Bad", NULL);
	assert_header(&h, in, "Accep", NULL);
	assert_header(&h, in, "", NULL);
}

static void assert_cookie(const struct es_http_head *h, const char *buf, const char *name, const char *want)
{
	const char *value = "untouched";
	size_t len = 9;

	if (!want) {
		assert_false(es_http_head_cookie(h, buf, name, &value, &len));
		assert_true(len == 9 && !strcmp(value, "untouched"));
		return;
	}
	assert_true(es_http_head_cookie(h, buf, name, &value, &len));
	assert_int_equal(len, strlen(want));
	assert_memory_equal(value, want, len);
}

static void test_cookie(void **state)
{
	static const char in[] =
		GET "Cookie: a=1; b=\"x y\";c=d=e;; flag ;empty=; sid2=no\r\nX: sid=wrong\r\n"
		    "cookie: sid=abc ; a=2\r\nCookie:\r\n\r\n";
	struct es_http_head h;
	const char *value;
	size_t len;

	(void)state;
	assert_int_equal(scan(&h, in, sizeof(in) - 1), ES_HTTP_DONE);
	assert_cookie(&h, in, "a", "1");
	assert_cookie(&h, in, "b", "\"x y\"");
	assert_cookie(&h, in, "c", "d=e");
	assert_cookie(&h, in, "sid", "abc");
	assert_cookie(&h, in, "empty", "");
	assert_cookie(&h, in, "flag", NULL);
	assert_cookie(&h, in, "A", NULL);
	assert_cookie(&h, in, "d", NULL);
	assert_cookie(&h, in, "", NULL);
	assert_true(es_http_head_cookie_nth(&h, in, "a", 1, &value, &len));
	assert_true(len == 1 && *value == '2');
	assert_false(es_http_head_cookie_nth(&h, in, "a", 2, &value, &len));
	scan(&h, GET "\r\n", sizeof(GET "\r\n") - 1);
	assert_cookie(&h, in, "a", NULL);
}

static size_t append(char *buf, size_t at, const char *text)
{
	while (*text)
		buf[at++] = *text++;
	return at;
}

/* Framing headers count wherever they stand, look-ups end at ES_HTTP_HEADERS_MAX. */
static void test_more_headers_than_recorded(void **state)
{
	char buf[8192], line[32];
	struct es_http_head h;
	size_t len = append(buf, 0, GET);

	(void)state;
	for (unsigned int i = 0; i < ES_HTTP_HEADERS_MAX + 10; i++) {
		snprintf(line, sizeof(line), "X%u: %u\r\n", i, i);
		len = append(buf, len, line);
	}
	len = append(buf, len, "Host: late\r\nContent-Length: 4\r\nConnection: close\r\n\r\n");
	assert_int_equal(scan(&h, buf, len), ES_HTTP_DONE);
	assert_int_equal(h.header_count, ES_HTTP_HEADERS_MAX + 13);
	assert_int_equal(es_http_head_headers(&h), ES_HTTP_HEADERS_MAX);
	assert_int_equal(h.content_length_bytes, 4);
	assert_true(h.connection_close && h.has_host);
	assert_header(&h, buf, "x255", "255");
	assert_header(&h, buf, "x256", NULL);
	assert_header(&h, buf, "host", NULL);
	len = append(buf, len - 2, "Content-Length: 5\r\n\r\n");
	assert_int_equal(scan(&h, buf, len), ES_HTTP_AMBIGUOUS);
}

static void test_head_of_12_kb(void **state)
{
	static char buf[16384];
	struct es_http_head whole, grown;
	size_t len = append(buf, 0, GET H "Cookie: first=1; ");

	(void)state;
	for (int i = 0; len < 12000; i++) {
		char pair[64];

		snprintf(pair, sizeof(pair), "c%d=0123456789abcdef0123456789abcdef; ", i);
		len = append(buf, len, pair);
	}
	len = append(buf, len, "last=z\r\nX: y\r\n\r\n");
	assert_int_equal(scan(&whole, buf, len), ES_HTTP_DONE);
	assert_int_equal(whole.head_len_bytes, len);
	assert_cookie(&whole, buf, "last", "z");
	es_http_head_init(&grown);
	for (size_t at = 0; at < len; at++)
		assert_int_equal(es_http_head_scan(&grown, buf, at), ES_HTTP_MORE);
	assert_int_equal(es_http_head_scan(&grown, buf, len), ES_HTTP_DONE);
	assert_true(same(&whole, &grown));
}

/* A head of @total bytes. */
static void make_head(char *buf, size_t total)
{
	size_t at = append(buf, 0, GET H "X: ");

	memset(buf + at, 'x', total - at);
	append(buf, total - 4, "\r\n\r\n");
}

static void test_limit(void **state)
{
	char *buf = malloc(ES_HTTP_HEAD_MAX + 10);
	struct es_http_head h, grown;

	(void)state;
	assert_non_null(buf);
	make_head(buf, ES_HTTP_HEAD_MAX);
	assert_int_equal(scan(&h, buf, ES_HTTP_HEAD_MAX - 1), ES_HTTP_MORE);
	assert_int_equal(scan(&h, buf, ES_HTTP_HEAD_MAX), ES_HTTP_DONE);
	assert_int_equal(h.head_len_bytes, ES_HTTP_HEAD_MAX);
	assert_false(h.truncated);

	make_head(buf, ES_HTTP_HEAD_MAX + 3);
	assert_int_equal(scan(&h, buf, ES_HTTP_HEAD_MAX + 3), ES_HTTP_AMBIGUOUS);
	assert_int_equal(h.ambiguity, ES_HTTP_AMBIGUITY_TRUNCATED);
	assert_true(h.truncated && h.target_complete && h.pin);
	assert_header(&h, buf, "host", "a");
	assert_header(&h, buf, "x", NULL);
	es_http_head_init(&grown);
	assert_int_equal(es_http_head_scan(&grown, buf, ES_HTTP_HEAD_MAX - 1), ES_HTTP_MORE);
	assert_int_equal(es_http_head_scan(&grown, buf, ES_HTTP_HEAD_MAX + 3), ES_HTTP_AMBIGUOUS);
	assert_true(same(&h, &grown));

	memset(buf, '/', ES_HTTP_HEAD_MAX);
	append(buf, 0, "GET ");
	assert_int_equal(scan(&h, buf, ES_HTTP_HEAD_MAX - 1), ES_HTTP_MORE);
	assert_int_equal(scan(&h, buf, ES_HTTP_HEAD_MAX), ES_HTTP_NOT_HTTP);
	assert_true(h.truncated && !h.target_complete);
	free(buf);
}

static void test_truncate(void **state)
{
	static const char in[] = "GET /x HTTP/1.1\r\nHost: a\r\nCookie: half";
	struct es_http_head h;

	(void)state;
	scan(&h, in, sizeof(in) - 1);
	assert_true(h.result == ES_HTTP_MORE && h.target_complete);
	assert_int_equal(es_http_head_truncate(&h), ES_HTTP_AMBIGUOUS);
	assert_int_equal(es_http_head_scan(&h, in, sizeof(in) - 1), ES_HTTP_AMBIGUOUS);
	assert_int_equal(h.ambiguity, ES_HTTP_AMBIGUITY_TRUNCATED);
	assert_true(text_is(in, h.path, "/x"));
	assert_header(&h, in, "host", "a");
	assert_header(&h, in, "cookie", NULL);
	scan(&h, in, 10);
	assert_int_equal(es_http_head_truncate(&h), ES_HTTP_NOT_HTTP);
	scan(&h, "\x16", 1);
	assert_int_equal(es_http_head_truncate(&h), ES_HTTP_NOT_HTTP);
}

/* Seeded, so that a failure is the same each time. */
static void test_garbage(void **state)
{
	uint64_t seed = 42;
	char buf[256];

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct es_http_head whole, cut;
		size_t prefix = (size_t)round % 3 ? append(buf, 0, round % 3 == 1 ? "GET /" : GET) : 0;

		for (size_t i = prefix; i < sizeof(buf); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			buf[i] =
				round % 2 ? (char)(seed >> 33) : "GET /:HTTP1.\r\n\r\n\t0"[(seed >> 33) % 18];
		}
		scan(&whole, buf, sizeof(buf));
		es_http_head_init(&cut);
		for (size_t len = 0; len < sizeof(buf); len += 1 + (seed >> 40) % 7)
			es_http_head_scan(&cut, buf, len);
		es_http_head_scan(&cut, buf, sizeof(buf));
		assert_true(same(&whole, &cut));
		assert_true(whole.head_len_bytes <= sizeof(buf));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_each_ambiguity_is_in_the_table),
		cmocka_unit_test(test_distrust),
		cmocka_unit_test(test_growth_by_one_byte),
		cmocka_unit_test(test_every_cut_in_two_and_three),
		cmocka_unit_test(test_outcomes_are_final),
		cmocka_unit_test(test_the_body_is_not_looked_at),
		cmocka_unit_test(test_first_byte),
		cmocka_unit_test(test_each_byte_everywhere),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_cookie),
		cmocka_unit_test(test_more_headers_than_recorded),
		cmocka_unit_test(test_head_of_12_kb),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_truncate),
		cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
