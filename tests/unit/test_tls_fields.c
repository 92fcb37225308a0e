// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/http/fields.h: a request of HTTP/2 is one head of HTTP/1.1 or none, and a response's head is its
 * fields.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/http/head.h"
#include "tls/http/fields.h"
#include "tls/http/request.h"

#define FIELDS_MAX 12
#define GET                                                                                                  \
	{":method", "GET"}, {":scheme", "https"}, {":authority", "a.example"},                               \
	{                                                                                                    \
		":path", "/x?y=z"                                                                            \
	}

struct pair {
	const char *name;
	const char *value;
};

static void add(struct es_fields *fields, const struct pair *pairs)
{
	for (; pairs->name; pairs++)
		assert_int_equal(es_fields_add(fields, pairs->name, strlen(pairs->name), pairs->value,
					       strlen(pairs->value)),
				 0);
}

static void test_requests(void **state)
{
	static const struct {
		struct pair pairs[FIELDS_MAX];
		int has_body;
		const char *head;
	} cases[] = {
		{{GET}, 0, "GET /x?y=z HTTP/1.1\r\nHost: a.example\r\n\r\n"},
		{{{":path", "*"}, {":authority", "b"}, {":method", "OPTIONS"}, {":scheme", "https"}},
		 0,
		 "OPTIONS * HTTP/1.1\r\nHost: b\r\n\r\n"},
		{{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {"host", "c:8443"}, {"a", ""}},
		 0,
		 "GET / HTTP/1.1\r\nHost: c:8443\r\na: \r\n\r\n"},
		{{GET, {"host", "a.example"}, {"te", "trailers"}, {"x", "1"}, {"x", "2"}},
		 0,
		 "GET /x?y=z HTTP/1.1\r\nHost: a.example\r\nx: 1\r\nx: 2\r\n\r\n"},
		{{GET, {"cookie", "a=1"}, {"x", "\tin \xc3\xa9side\t."}, {"cookie", "b=2; c=3"}},
		 0,
		 NULL}, /* white space in front */
		{{GET, {"cookie", "a=1"}, {"x", "in \xc3\xa9side\t."}, {"cookie", "b=2; c=3"}},
		 0,
		 "GET /x?y=z HTTP/1.1\r\nHost: a.example\r\nx: in \xc3\xa9side\t.\r\n"
		 "Cookie: a=1; b=2; c=3\r\n\r\n"},
		{{GET, {"content-length", "7"}},
		 1,
		 "GET /x?y=z HTTP/1.1\r\nHost: a.example\r\ncontent-length: 7\r\n\r\n"},
		{{GET}, 1, "GET /x?y=z HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"},
		/* Another host, two of it, none; a URL that names one. */
		{{GET, {"host", "b.example"}}, 0, NULL},
		{{GET, {"host", "a.example"}, {"host", "a.example"}}, 0, NULL},
		{{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}}, 0, NULL},
		{{{":method", "GET"}, {":scheme", "https"}, {":authority", "a"}, {":path", "http://b/"}},
		 0,
		 NULL},
		/* Pseudo-header fields: missing, twice, unknown, empty, behind others, with white space. */
		{{{":method", "GET"}, {":authority", "a"}, {":path", "/"}}, 0, NULL},
		{{GET, {":path", "/"}}, 0, NULL},
		{{GET, {":protocol", "websocket"}}, 0, NULL},
		{{{":method", "GET"}, {":scheme", "https"}, {":authority", "a"}, {":path", ""}}, 0, NULL},
		{{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {"x", "1"}, {":authority", "a"}},
		 0,
		 NULL},
		{{{":method", "GET"}, {":scheme", "https"}, {":authority", "a"}, {":path", "/ HTTP/1.1"}},
		 0,
		 NULL},
		{{{":method", "GET /b HTTP/1.1\r\nA:"},
		  {":scheme", "https"},
		  {":authority", "a"},
		  {":path", "/"}},
		 0,
		 NULL},
		/* Bytes that end a line, or a name; names of two meanings. */
		{{GET, {"x", "1\r\nTransfer-Encoding: chunked"}}, 0, NULL},
		{{GET, {"x", "1\ny: 2"}}, 0, NULL},
		{{GET, {"x", "1\x7f"}}, 0, NULL},
		{{GET, {"x: 1\r\ny", "2"}}, 0, NULL},
		{{GET, {"x ", "2"}}, 0, NULL},
		{{GET, {"X", "2"}}, 0, NULL},
		{{GET, {"", "2"}}, 0, NULL},
		{{GET, {"transfer-encoding", "chunked"}}, 1, NULL},
		{{GET, {"connection", "x-real-ip"}}, 0, NULL},
		{{GET, {"upgrade", "websocket"}}, 0, NULL},
		{{GET, {"content-length", "7"}, {"content-length", "7"}}, 1, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct es_fields fields = {};
		struct es_http_head head;
		char *text = NULL;
		long len;

		add(&fields, cases[i].pairs);
		len = es_fields_head(&fields, cases[i].has_body, &text);
		es_fields_fini(&fields);
		if (!cases[i].head) {
			assert_int_equal(len, -EBADMSG);
			continue;
		}
		assert_int_equal(len, strlen(cases[i].head));
		assert_memory_equal(text, cases[i].head, (size_t)len);
		es_http_head_init(&head);
		assert_int_equal(es_http_head_scan(&head, text, (size_t)len), ES_HTTP_DONE);
		assert_int_equal(head.head_len_bytes, len);
		free(text);
	}
}

/* A NUL is a byte like others to nghttp2, and ends a line for some. */
static void test_nul(void **state)
{
	struct es_fields fields = {};
	char *text;

	(void)state;
	add(&fields, (const struct pair[]){GET, {NULL, NULL}});
	assert_int_equal(es_fields_add(&fields, "x", 1, "a\0b", 3), 0);
	assert_int_equal(es_fields_head(&fields, 0, &text), -EBADMSG);
	es_fields_fini(&fields);
}

/* However many there are, no more than a head's length is kept. */
static void test_long(void **state)
{
	struct es_fields fields = {};
	char value[4000];
	char *text;

	(void)state;
	memset(value, 'a', sizeof(value));
	add(&fields, (const struct pair[]){GET, {NULL, NULL}});
	for (int i = 0; i < 1000; i++)
		assert_int_equal(
			es_fields_add(&fields, i & 1 ? "cookie" : "x", i & 1 ? 6 : 1, value, sizeof(value)),
			0);
	assert_true(fields.bytes.len + fields.cookie.len <= ES_TLS_HEAD_MAX);
	assert_int_equal(es_fields_head(&fields, 0, &text), -EMSGSIZE);
	es_fields_fini(&fields);
}

static void test_responses(void **state)
{
	static const struct {
		const char *text;
		int is_trailer;
		const char *fields; /* NULL: they are none */
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A:  b c \r\n\r\n", 0,
		 "content-type=text/plain|x-a=b c|"},
		{"HTTP/1.1 200\r\n\r\n", 0, ""},
		{"HTTP/1.1 200 OK\r\nConnection: close, X-Own\r\nx-own: 1\r\nX-Other: 2\r\nKeep-Alive: 3\r\n"
		 "Transfer-Encoding: chunked\r\nUpgrade: h2c\r\n\r\n",
		 0, "x-other=2|"},
		{"HTTP/1.1 200 OK\nServer: old\nSet-Cookie: a=b\nSet-Cookie: c=d\n\n", 0,
		 "server=old|set-cookie=a=b|set-cookie=c=d|"},
		{"X-Trailer: yes\r\nContent-Length: 3\r\n\r\n", 1, "x-trailer=yes|"},
		{"\r\n", 1, ""},
		{"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", 0, NULL},
		{"HTTP/1.1 200 OK\r\na b: 1\r\n\r\n", 0, NULL},
		{"HTTP/1.1 200 OK\r\n: 1\r\n\r\n", 0, NULL},
		{"HTTP/1.1 200 OK\r\na: 1\r2\r\n\r\n", 0, NULL},
		{"HTTP/1.1 200 OK\r\na: 1\x01\r\n\r\n", 0, NULL},
		{"HTTP/1.1 200 OK\r\na: 1", 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct es_field fields[ES_FIELDS_MAX];
		char *text = strdup(cases[i].text), told[512] = "";
		long count = es_fields_of_head(text, strlen(text), cases[i].is_trailer, fields);

		assert_int_equal(count < 0, !cases[i].fields);
		for (long f = 0; f < count; f++) {
			size_t used = strlen(told);

			snprintf(told + used, sizeof(told) - used, "%.*s=%.*s|", (int)fields[f].name_len,
				 fields[f].name, (int)fields[f].value_len, fields[f].value);
		}
		if (cases[i].fields)
			assert_string_equal(told, cases[i].fields);
		free(text);
	}
}

static void test_many_fields(void **state)
{
	struct es_field fields[ES_FIELDS_MAX];
	char text[8192];
	size_t head = (size_t)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n"), len;

	(void)state;
	for (int more = 0; more < 2; more++) {
		len = head;
		for (int i = 0; i < ES_FIELDS_MAX + more; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "a: b\r\n");
		len += (size_t)snprintf(text + len, sizeof(text) - len, "\r\n");
		assert_int_equal(es_fields_of_head(text, len, 0, fields), more ? -EBADMSG : ES_FIELDS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),    cmocka_unit_test(test_nul),
		cmocka_unit_test(test_long),	    cmocka_unit_test(test_responses),
		cmocka_unit_test(test_many_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
