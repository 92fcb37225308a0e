// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inspector/http/boundary.h: where the next request starts, or why that is not known.
 */
#include "cmocka_all.h"
#include <string.h>
#include "inspector/http/boundary.h"

static struct es_boundary find(const char *text, int truncate)
{
	struct es_boundary boundary;
	struct es_http_head head;

	es_http_head_init(&head);
	es_http_head_scan(&head, text, strlen(text));
	if (truncate)
		es_http_head_truncate(&head);
	es_boundary_find(&head, text, strlen(text), &boundary);
	return boundary;
}

static void test_boundaries(void **state)
{
#define GET	"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
#define POST	"POST / HTTP/1.1\r\nHost: h\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
	static const struct {
		const char *text;
		size_t len;
		enum es_pin pin;
		int is_head;
		int truncate;
	} cases[] = {
		{GET, sizeof(GET) - 1, ES_PIN_none, 0, 0},
		{"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", sizeof(GET), ES_PIN_none, 1, 0},
		{POST "Content-Length: 5\r\n\r\nhello", sizeof(POST) - 1 + 26, ES_PIN_none, 0, 0},
		{POST "Content-Length: 5\r\n\r\nhe", sizeof(POST) - 1 + 26, ES_PIN_none, 0, 0},
		{POST "Content-Length: 5\r\n\r\nhello!", 0, ES_PIN_pipelined, 0, 0},
		{POST "Content-Length: 99999999999\r\n\r\n", 0, ES_PIN_length, 0, 0},
		{GET "G", 0, ES_PIN_pipelined, 0, 0},
		{CHUNKED "1\r\nx\r\n0\r\n\r\n", sizeof(CHUNKED) - 1 + 11, ES_PIN_none, 0, 0},
		{CHUNKED "1;a=b\r\nx\r\n0\r\nT: u\r\n\r\n", sizeof(CHUNKED) - 1 + 21, ES_PIN_none, 0, 0},
		{CHUNKED "1\r\nx\r\n0\r\n", 0, ES_PIN_chunked, 0, 0},
		{CHUNKED "1\r\nx\r\n0\r\n\r\n" GET, 0, ES_PIN_pipelined, 0, 0},
		{CHUNKED "x\r\n", 0, ES_PIN_ambiguous, 0, 0},
		{CHUNKED "fffffffffffffffff\r\n", 0, ES_PIN_ambiguous, 0, 0},
		{POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, ES_PIN_ambiguous,
		 0, 0},
		{POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 0, ES_PIN_ambiguous, 0, 0},
		{"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 0, ES_PIN_connect, 0, 0},
		/* An upgrade shows in the response. */
		{POST "Connection: upgrade\r\nUpgrade: x\r\n\r\n", sizeof(POST) - 1 + 35, ES_PIN_none, 0, 0},
		{"\x16\x03\x01\x02\x00\x01", 0, ES_PIN_tls, 0, 0},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, ES_PIN_http2, 0, 0},
		{"\xff\xfe", 0, ES_PIN_not_http, 0, 0},
		{"GET / HTTP/1.1\r\nHost: h\r\n", 0, ES_PIN_truncated, 0, 1},
		{"GET /", 0, ES_PIN_truncated, 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct es_boundary got = find(cases[i].text, cases[i].truncate);

		if (got.pin != cases[i].pin || got.len_bytes != cases[i].len ||
		    got.is_head != cases[i].is_head)
			fail_msg("%s: pin %d length %u, expected %d and %zu", cases[i].text, got.pin,
				 got.len_bytes, cases[i].pin, cases[i].len);
	}
}

/* @len bytes of @text have arrived: does its client wait? */
static int is_reached(const char *text, size_t len)
{
	struct es_http_head head;

	es_http_head_init(&head);
	es_http_head_scan(&head, text, len);
	return es_boundary_is_reached(&head, text, len);
}

static void test_reached(void **state)
{
#define EXPECT POST "Expect: 100-continue\r\n"
	static const struct {
		const char *text;
		size_t at; /* the fewest bytes after which the client waits; 0: none */
	} cases[] = {
		{GET, sizeof(GET) - 1},
		{GET "G", sizeof(GET) - 1},
		{POST "Content-Length: 5\r\n\r\nhello", sizeof(POST) - 1 + 26},
		{POST "Content-Length: 5\r\n\r\nhello!", sizeof(POST) - 1 + 26},
		{POST "Content-Length: 5\r\n\r\nhell", 0},
		{POST "Content-Length: 99999999999\r\n\r\nhello", 0},
		{EXPECT "Content-Length: 5\r\n\r\nhello", sizeof(EXPECT) - 1 + 21},
		{EXPECT "Transfer-Encoding: chunked\r\n\r\n", sizeof(EXPECT) - 1 + 30},
		{CHUNKED "1\r\nx\r\n0\r\n\r\n", sizeof(CHUNKED) - 1 + 11},
		{CHUNKED "1\r\nx\r\n0\r\nT: u\r\n\r\n" GET, sizeof(CHUNKED) - 1 + 17},
		{CHUNKED "1\r\nx\r\n0\r\nT: u\r\n", 0},
		{CHUNKED "1\r\nxy\r\n0\r\n\r\n", 0},
		{POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
		{"\x16\x03\x01\x02\x00\x01", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t len = 0; len <= strlen(cases[i].text); len++)
			if (is_reached(cases[i].text, len) != (cases[i].at && len >= cases[i].at))
				fail_msg("%s: %zu bytes, expected it at %zu", cases[i].text, len,
					 cases[i].at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_boundaries), cmocka_unit_test(test_reached)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
