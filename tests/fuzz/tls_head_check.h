/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_TLS_HEAD_CHECK_H
#define ES_TESTS_TLS_HEAD_CHECK_H

/*
 * The property of tls/http/request.h that must hold of any head: it is the same request afterwards, with all
 * its other lines in their order, and of the headers about the client it has ours alone. It cuts lines and
 * knows names by itself.
 */
#include <ctype.h>
#include <stdbool.h>
#include "tests/fuzz/fuzz.h"
#include "tls/http/request.h"

/* Without regard to case, any character that is no letter and no digit being a hyphen. */
static bool head_check_begins(const char *name, size_t len, const char *with)
{
	size_t i;

	for (i = 0; i < len && with[i]; i++) {
		unsigned char c = (unsigned char)name[i];
		char folded = c < 0x80 && isalnum(c) ? (char)tolower(c) : '-';

		if (folded != with[i])
			return false;
	}
	return !with[i];
}

static bool head_check_is_about_client(const char *name, size_t len)
{
	static const char *const names[] = {"x-forwarded", "client-cert", "x-client-cert", "ssl-client",
					    "x-ssl"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (head_check_begins(name, len, names[i]))
			return true;
	return (len == 9 && head_check_begins(name, len, "forwarded")) ||
	       (len == 9 && head_check_begins(name, len, "x-real-ip"));
}

static bool head_check_is_connection(const char *line, size_t len)
{
	return len == 10 && head_check_begins(line, len, "connection");
}

/* The line after @line, which ends before @end; @ret_name: the bytes before its colon. */
static const char *head_check_line(const char *line, const char *end, size_t *ret_name)
{
	const char *next = memchr(line, '\n', (size_t)(end - line));
	const char *colon = memchr(line, ':', (size_t)(end - line));

	FUZZ_CHECK(next && next[-1] == '\r');
	*ret_name = colon && colon < next ? (size_t)(colon - line) : 0;
	return next + 1;
}

static bool head_check_same_span(struct es_http_span a, const char *a_text, struct es_http_span b,
				 const char *b_text)
{
	return a.len == b.len && !memcmp(a_text + a.off, b_text + b.off, a.len);
}

static void head_check_same(const struct es_http_head *a, const char *a_text, const struct es_http_head *b,
			    const char *b_text)
{
	FUZZ_CHECK(head_check_same_span(a->method_name, a_text, b->method_name, b_text));
	FUZZ_CHECK(head_check_same_span(a->target, a_text, b->target, b_text));
	FUZZ_CHECK(head_check_same_span(a->host, a_text, b->host, b_text));
	FUZZ_CHECK(a->has_host == b->has_host && a->host_missing == b->host_missing);
	FUZZ_CHECK(a->version_minor == b->version_minor && a->body == b->body);
	FUZZ_CHECK(a->has_content_length == b->has_content_length && a->chunked == b->chunked);
	FUZZ_CHECK(!a->has_content_length || a->content_length_bytes == b->content_length_bytes);
	FUZZ_CHECK(a->expect_continue == b->expect_continue && a->upgrade == b->upgrade);
	FUZZ_CHECK(a->connection_close == b->connection_close && a->keep_alive == b->keep_alive);
	FUZZ_CHECK(a->pin == b->pin);
}

/* Each line of the client's that may stay is the next one of @out; returns what is left of that. */
static const char *head_check_lines(const char *line, const char *end, const char *out, const char *out_end)
{
	size_t name, out_name;

	for (const char *next; end - line > 2; line = next) {
		const char *out_next;

		next = head_check_line(line, end, &name);
		if (head_check_is_about_client(line, name))
			continue;
		out_next = head_check_line(out, out_end, &out_name);
		if (!head_check_is_connection(line, name))
			FUZZ_CHECK(next - line == out_next - out &&
				   !memcmp(line, out, (size_t)(next - line)));
		else if (!head_check_is_connection(out, out_name))
			continue; /* it may be shorter, or not be there */
		out = out_next;
	}
	return out;
}

/* The rest is ours; returns how many headers. */
static unsigned int head_check_ours(const char *line, const char *end)
{
	unsigned int count = 0;
	size_t name;

	for (const char *next; end - line > 2; line = next) {
		next = head_check_line(line, end, &name);
		FUZZ_CHECK(head_check_is_about_client(line, name));
		count++;
	}
	FUZZ_CHECK(end - line == 2 && !memcmp(line, "\r\n", 2));
	return count;
}

/* No option of Connection is about the client. */
static void head_check_options(const struct es_http_head *head, const char *text)
{
	const char *value;
	size_t len;

	for (uint32_t n = 0; es_http_head_find_nth(head, text, "connection", n, &value, &len); n++) {
		for (size_t from = 0; from < len;) {
			size_t to = from;

			while (to < len && value[to] != ',' && value[to] != ' ' && value[to] != '\t')
				to++;
			FUZZ_CHECK(!head_check_is_about_client(value + from, to - from));
			from = to + 1;
		}
	}
}

/* head_check() - @text: of @head, which is ES_HTTP_DONE */
static void head_check(const struct es_http_head *head, const char *text, enum es_tls_tell tell,
		       const struct es_flow *flow, const struct es_tls_state *state)
{
	static const unsigned int headers[] = {3, 1, 0, 0};
	unsigned int told = headers[tell] + (headers[tell] && state->has_client);
	char *out = malloc(head->head_len_bytes + ES_TLS_HEAD_EXTRA);
	struct es_http_head again;
	const char *rest;
	size_t len;
	char *exact;

	FUZZ_CHECK(out);
	len = es_tls_request_head(head, text, tell, flow, state, out);
	FUZZ_CHECK(len <= head->head_len_bytes + ES_TLS_HEAD_EXTRA);
	exact = fuzz_copy((const uint8_t *)out, len);
	free(out);
	es_http_head_init(&again);
	es_http_head_scan(&again, exact, len);
	/* It may have become longer than a head is read. */
	if (len <= ES_HTTP_HEAD_MAX) {
		FUZZ_CHECK(again.result == ES_HTTP_DONE && again.head_len_bytes == len);
		head_check_same(head, text, &again, exact);
		if (again.header_count <= ES_HTTP_HEADERS_MAX)
			head_check_options(&again, exact);
	}
	rest = head_check_lines(text + head->method_name.off, text + head->head_len_bytes, exact,
				exact + len);
	FUZZ_CHECK(head_check_ours(rest, exact + len) == told);
	free(exact);
}

#endif
