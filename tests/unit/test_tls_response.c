// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/http/response.h: where responses end, whatever way they are cut, and which connections serve another
 * request.
 */
#include "cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tls/http/response.h"

/* How a request was made. */
enum asked { GET, HEAD, CONNECT };

/* Take @text, @step bytes at a time, to its end or the response's. */
static enum es_tls_response_end take(struct es_tls_response *response, enum asked asked, const char *text,
				     size_t step, size_t *ret_used)
{
	enum es_tls_response_end end = ES_TLS_RESPONSE_OPEN;
	size_t len = strlen(text), at = 0;

	es_tls_response_init(response, asked == HEAD, asked == CONNECT);
	while (at < len && (end == ES_TLS_RESPONSE_OPEN || end == ES_TLS_RESPONSE_AT_CLOSE)) {
		size_t part = len - at < step ? len - at : step, used;
		uint8_t *exact = part ? malloc(part) : NULL; /* the sanitizers know its end */

		if (!exact)
			abort();
		memcpy(exact, text + at, part);
		end = es_tls_response_take(response, exact, part, &used);
		free(exact);
		assert_true(used <= part && (used == part || end != ES_TLS_RESPONSE_OPEN));
		at += used;
	}
	*ret_used = at;
	return end;
}

static void responses_end_where_they_say(void **unused)
{
	static const struct {
		const char *text;
		const char *rest; /* what is none of it */
		enum asked asked;
		enum es_tls_response_end end;
		unsigned int status;
		int keeps;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP", GET, ES_TLS_RESPONSE_OVER, 200,
		 1},
		{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP", GET, ES_TLS_RESPONSE_OVER, 200, 1},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "", GET, ES_TLS_RESPONSE_OPEN, 200, 1},
		{"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "x", GET, ES_TLS_RESPONSE_OVER,
		 304, 1},
		{"HTTP/1.1 204 No Content\r\n\r\n", "x", GET, ES_TLS_RESPONSE_OVER, 204, 1},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "x", HEAD, ES_TLS_RESPONSE_OVER, 200, 1},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "x", GET,
		 ES_TLS_RESPONSE_OVER, 200, 1},
		{"HTTP/1.1 200 OK\r\n\r\nto the end", "", GET, ES_TLS_RESPONSE_AT_CLOSE, 200, 1},
		{"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "", GET, ES_TLS_RESPONSE_OVER, 200, 0},
		{"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", "", GET,
		 ES_TLS_RESPONSE_OVER, 200, 1},
		{"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", "", GET,
		 ES_TLS_RESPONSE_OVER, 200, 0},
		{"HTTP/1.1 200 OK\r\ncOnnection:CLOSE\r\nContent-Length: 1\r\n\r\nx", "", GET,
		 ES_TLS_RESPONSE_OVER, 200, 0},
		{"HTTP/1.1 200 OK\r\nConnection: a , close,b\r\nContent-Length: 1\r\n\r\nx", "", GET,
		 ES_TLS_RESPONSE_OVER, 200, 0},
		{"HTTP/1.1 200 OK\r\nConnection: closed\r\nContent-Length: 1\r\n\r\nx", "", GET,
		 ES_TLS_RESPONSE_OVER, 200, 1},
		{"HTTP/1.1 200 OK\r\nX-Connection: close, close, close\r\nContent-Length: 1\r\n\r\nx", "",
		 GET, ES_TLS_RESPONSE_OVER, 200, 1},
		/* Longer than a line that is looked at. */
		{"HTTP/1.1 200 OK\r\nConnection: "
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, "
		 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, "
		 "ccccccccccc\r\nContent-Length: 1\r\n\r\nx",
		 "", GET, ES_TLS_RESPONSE_OVER, 200, 0},
		/* Interim responses, whose headers say nothing of the final one. */
		{"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: "
		 "</a-long-line-of-a-header-that-says-nothing>\r\n\r\nHTTP/1.1 404 Not "
		 "Found\r\nContent-Length: "
		 "2\r\n\r\nno",
		 "x", GET, ES_TLS_RESPONSE_OVER, 404, 1},
		{"HTTP/1.1 100 Continue\r\n\r\n", "", GET, ES_TLS_RESPONSE_OPEN, 100, 1},
		{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "anything", GET,
		 ES_TLS_RESPONSE_TUNNEL, 101, 1},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello", CONNECT, ES_TLS_RESPONSE_TUNNEL,
		 200, 1},
		{"HTTP/1.1 299 OK\r\n\r\n", "", CONNECT, ES_TLS_RESPONSE_TUNNEL, 299, 1},
		{"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", "x", CONNECT, ES_TLS_RESPONSE_OVER, 403,
		 1},
	};
	struct es_tls_response response;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = strlen(cases[i].text), used;
		char text[1024];

		snprintf(text, sizeof(text), "%s%s", cases[i].text, cases[i].rest);
		for (size_t step = 1; step <= len + 8; step++) {
			assert_int_equal(take(&response, cases[i].asked, text, step, &used), cases[i].end);
			assert_int_equal(used, len);
			assert_int_equal(response.status, cases[i].status);
			assert_int_equal(response.keeps, cases[i].keeps);
		}
	}
	(void)unused;
}

static void what_has_no_end_is_bad(void **unused)
{
	static const char *const texts[] = {
		"SSH-2.0-x\r\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1 20x OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
	};
	struct es_tls_response response;
	size_t used;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		for (size_t step = 1; step < 100; step++)
			assert_int_equal(take(&response, GET, texts[i], step, &used), ES_TLS_RESPONSE_BAD);
	(void)unused;
}

/* A body of more than 32 bits can count. */
static void long_bodies_are_counted(void **unused)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n";
	static uint8_t body[1 << 20];
	struct es_tls_response response;
	size_t used;

	assert_int_equal(take(&response, GET, head, sizeof(head), &used), ES_TLS_RESPONSE_OPEN);
	for (uint64_t left = 10737418240; left > sizeof(body); left -= sizeof(body)) {
		assert_int_equal(es_tls_response_take(&response, body, sizeof(body), &used),
				 ES_TLS_RESPONSE_OPEN);
		assert_int_equal(used, sizeof(body));
	}
	assert_int_equal(es_tls_response_take(&response, body, sizeof(body), &used), ES_TLS_RESPONSE_OVER);
	assert_int_equal(used, sizeof(body));
	assert_int_equal(es_tls_response_take(&response, body, 5, &used), ES_TLS_RESPONSE_OVER);
	assert_int_equal(used, 0);
	(void)unused;
}

/*
 * The parts of a response, in whichever pieces it comes: H head, B body, C coding, T trailer; | ends a head.
 */
static void parts_are_told_apart(void **unused)
{
	static const struct {
		const char *text;
		const char *parts;
		enum es_tls_response_end end;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP", "H|B", ES_TLS_RESPONSE_OVER},
		{"HTTP/1.1 204 No\r\n\r\n", "H|", ES_TLS_RESPONSE_OVER},
		{"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
		 "H|H|B", ES_TLS_RESPONSE_OVER},
		{"HTTP/1.1 200 OK\r\n\r\nto the end", "H|B", ES_TLS_RESPONSE_AT_CLOSE},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
		 "H|CBCBCT", ES_TLS_RESPONSE_OVER},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n", "H|CT",
		 ES_TLS_RESPONSE_OVER},
		{"HTTP/1.1 101 Go on\r\n\r\n", "H|", ES_TLS_RESPONSE_TUNNEL},
		{"HTTP/2 200\r\n\r\n", "H", ES_TLS_RESPONSE_BAD},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t step = 1; step < 40; step++) {
			size_t len = strlen(cases[i].text), at = 0, used;
			enum es_tls_response_end end = ES_TLS_RESPONSE_OPEN;
			struct es_tls_response response;
			char parts[64] = "";
			size_t seen = 0;

			es_tls_response_init(&response, 0, 0);
			while (at < len && (end == ES_TLS_RESPONSE_OPEN || end == ES_TLS_RESPONSE_AT_CLOSE)) {
				size_t there = step - at % step < len - at ? step - at % step : len - at;
				unsigned int heads = response.heads;
				enum es_tls_response_part part;

				end = es_tls_response_part(&response, (const uint8_t *)cases[i].text + at,
							   there, &used, &part);
				assert_true(used && used <= there);
				assert_true(seen + 2 < sizeof(parts));
				if (!seen || parts[seen - 1] != "HBCT"[part])
					parts[seen++] = "HBCT"[part];
				if (response.heads != heads)
					parts[seen++] = '|';
				at += used;
			}
			assert_string_equal(parts, cases[i].parts);
			assert_int_equal(end, cases[i].end);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(responses_end_where_they_say),
		cmocka_unit_test(what_has_no_end_is_bad),
		cmocka_unit_test(long_bodies_are_counted),
		cmocka_unit_test(parts_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
