// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/response.h: where responses end, in one piece and cut at every byte.
 */
#include "cmocka_all.h"
#include <string.h>
#include "kmod/core/response.h"

struct response_case {
	const char *name;
	const char *in;
	enum es_response_phase phase; /* after all of it */
	int rest;		      /* bytes after the end of the response */
	int is_head;
};

#define OK "HTTP/1.1 200 OK\r\n"

static const struct response_case cases[] = {
	{"length", OK "Content-Length: 5\r\n\r\nhello", ES_RESPONSE_DONE, 0, 0},
	{"length, half", OK "Content-Length: 5\r\n\r\nhel", ES_RESPONSE_BODY, 0, 0},
	{"length 0", OK "Content-Length: 0\r\n\r\n", ES_RESPONSE_DONE, 0, 0},
	{"name in any case", OK "cOnTENT-lENGTH:5\r\n\r\nhello", ES_RESPONSE_DONE, 0, 0},
	{"white space", OK "Content-Length: \t 5 \t\r\n\r\nhello", ES_RESPONSE_DONE, 0, 0},
	{"other lines", OK "Server: x\r\nContent-Lengthy: 9\r\nContent-Length: 1\r\nX: y\r\n\r\nz",
	 ES_RESPONSE_DONE, 0, 0},
	{"a prefix of the name", OK "Content: 9\r\nC: 8\r\nContent-Length: 1\r\n\r\nz", ES_RESPONSE_DONE, 0,
	 0},
	{"bare LF", "HTTP/1.1 200 OK\nContent-Length: 2\n\nab", ES_RESPONSE_DONE, 0, 0},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", ES_RESPONSE_DONE, 0, 0},
	{"no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nab", ES_RESPONSE_DONE, 0, 0},
	{"HEAD", OK "Content-Length: 5\r\n\r\n", ES_RESPONSE_DONE, 0, 1},
	{"HEAD, chunked", OK "Transfer-Encoding: chunked\r\n\r\n", ES_RESPONSE_DONE, 0, 1},
	{"204", "HTTP/1.1 204 No Content\r\n\r\n", ES_RESPONSE_DONE, 0, 0},
	{"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", ES_RESPONSE_DONE, 0, 0},
	{"100", "HTTP/1.1 100 Continue\r\n\r\n", ES_RESPONSE_STATUS, 0, 0},
	{"100, 103, 200",
	 "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nContent-Length: 7\r\n\r\n" OK
	 "Content-Length: 1\r\n\r\nx",
	 ES_RESPONSE_DONE, 0, 0},
	{"100, HEAD", "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\n", ES_RESPONSE_DONE, 0, 1},
	{"101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", ES_RESPONSE_UPGRADED, 0, 0},
	{"until close", OK "Server: x\r\n\r\nabc", ES_RESPONSE_UNTIL_CLOSE, 0, 0},
	{"chunked", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", ES_RESPONSE_DONE, 0, 0},
	{"Chunked", OK "transfer-encoding:\tChunked \r\n\r\n1\r\nx\r\n0\r\n\r\n", ES_RESPONSE_DONE, 0, 0},
	{"chunks", OK "Transfer-Encoding: chunked\r\n\r\n001\r\nx\r\nA;e=1\r\n0123456789\r\n0\r\n\r\n",
	 ES_RESPONSE_DONE, 0, 0},
	{"trailers", OK "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
	 ES_RESPONSE_DONE, 0, 0},
	{"chunk data like framing", OK "Transfer-Encoding: chunked\r\n\r\n7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n",
	 ES_RESPONSE_DONE, 0, 0},
	{"before the last chunk", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	 ES_RESPONSE_CHUNK_SIZE, 0, 0},
	{"before the trailer's end", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
	 ES_RESPONSE_TRAILER_LINE, 0, 0},
	{"inside a chunk", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhe", ES_RESPONSE_CHUNK, 0, 0},
	{"long", OK "Content-Length: 1000000000000\r\n\r\nhe", ES_RESPONSE_BODY, 0, 0},
	{"empty", "", ES_RESPONSE_STATUS, 0, 0},
	{"half a head", OK "Content-Le", ES_RESPONSE_NAME, 0, 0},

	{"a byte too many", OK "Content-Length: 5\r\n\r\nhello!", ES_RESPONSE_UNCLEAR, 1, 0},
	{"two responses", OK "Content-Length: 0\r\n\r\n" OK, ES_RESPONSE_UNCLEAR, 17, 0},
	{"a body to HEAD", OK "Content-Length: 1\r\n\r\nx", ES_RESPONSE_UNCLEAR, 1, 1},
	{"length and chunked", OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	 ES_RESPONSE_UNCLEAR, 0, 0},
	{"two lengths", OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"length list", OK "Content-Length: 1, 1\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"length of nothing", OK "Content-Length: \r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"negative length", OK "Content-Length: -1\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"length overflow", OK "Content-Length: 99999999999999999999\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"other coding", OK "Transfer-Encoding: gzip\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"coding list", OK "Transfer-Encoding: gzip, chunked\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"half a coding", OK "Transfer-Encoding: chunke\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"folded", OK "X: y\r\n z\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"space before the colon", OK "Content-Length : 1\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"no HTTP", "SSH-2.0-OpenSSH\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"no status", "HTTP/1.1 OK\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"short status", "HTTP/1.1 20\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"status 0", "HTTP/1.1 000\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"no chunk size", OK "Transfer-Encoding: chunked\r\n\r\n\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"bad chunk size", OK "Transfer-Encoding: chunked\r\n\r\ng\r\n", ES_RESPONSE_UNCLEAR, 0, 0},
	{"chunk size overflow", OK "Transfer-Encoding: chunked\r\n\r\n1234567890abcdef0\r\n",
	 ES_RESPONSE_UNCLEAR, 0, 0},
	{"no line end behind a chunk", OK "Transfer-Encoding: chunked\r\n\r\n1\r\nxy", ES_RESPONSE_UNCLEAR, 0,
	 0},
};

static void feed(struct es_response *r, const char *in, __u32 len)
{
	__u32 at = 0;
	__u64 word;

	while (at < len) {
		if (at + 8 <= len) {
			memcpy(&word, in + at, 8);
			if (es_response_reads(r) && es_response_word(r, word)) {
				at += 8;
				continue;
			}
		}
		if (es_response_reads(r))
			es_response_byte(r, (__u8)in[at++]);
		else
			at += es_response_skip(r, len - at);
	}
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct response_case *c = &cases[i];
		__u32 len = (__u32)strlen(c->in);

		for (__u32 cut = 0; cut <= len; cut++) {
			struct es_response r;

			es_response_init(&r, c->is_head);
			feed(&r, c->in, cut);
			if (c->phase == ES_RESPONSE_DONE || c->rest)
				assert_true((r.phase >= ES_RESPONSE_DONE) == (cut >= len - (__u32)c->rest));
			feed(&r, c->in + cut, len - cut);
			if (r.phase != c->phase)
				fail_msg("%s: phase %d, expected %d", c->name, r.phase, c->phase);
		}
	}
}

/* Whatever a server sends, every byte is used up, and nothing but an end ends. */
static void test_random(void **state)
{
	static const char letters[] = "HTTP/1. 0\r\n:;Content-Length5Transfer-Encodingchunked\xff";
	static const char status[] = "HTTP/1.1 200\r\n";
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char in[200];
		struct es_response r;

		for (size_t k = 0; k < sizeof(in); k++)
			in[k] = k < sizeof(status) - 1
					? status[k]
					: letters[es_test_random(&seed) % (sizeof(letters) - 1)];
		es_response_init(&r, 0);
		feed(&r, in, sizeof(in));
		assert_true(r.phase <= ES_RESPONSE_UNCLEAR);
	}
}

static void test_head_limit(void **state)
{
	struct es_response r;

	(void)state;
	es_response_init(&r, 0);
	feed(&r, "HTTP/1.1 200\r\nX: ", 17);
	for (int i = 17; i < ES_RESPONSE_HEAD_MAX; i++)
		feed(&r, "y", 1);
	assert_int_equal(r.phase, ES_RESPONSE_SKIP);
	feed(&r, "y", 1);
	assert_int_equal(r.phase, ES_RESPONSE_UNCLEAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_head_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
