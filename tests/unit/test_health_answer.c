// SPDX-License-Identifier: GPL-2.0-or-later
/* Answers to checks: which are right, whatever pieces they arrive in. */
#include "cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/health/answer.h"

static struct es_conf_check conf_of(const char *body)
{
	struct es_conf_check conf = {.type = ES_CONF_CHECK_HTTP, .path = "/alive"};

	es_conf_status_add(&conf, 200, 299);
	es_conf_status_add(&conf, 401, 401);
	snprintf(conf.body, sizeof(conf.body), "%s", body);
	return conf;
}

/* In pieces of @piece bytes. */
static enum es_answer_result read_in(const struct es_conf_check *conf, const char *text, size_t len,
				     size_t piece, char *why)
{
	enum es_answer_result result = ES_ANSWER_MORE;
	struct es_answer answer = {};

	why[0] = 0;
	for (size_t at = 0; at < len && result == ES_ANSWER_MORE; at += piece)
		result = es_answer_read(&answer, conf, text + at, len - at < piece ? len - at : piece, why);
	if (result == ES_ANSWER_MORE)
		es_answer_ended(&answer, conf, 0, why);
	return result;
}

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
	const char *text;
	const char *body;
	enum es_answer_result result;
	const char *why;
} cases[] = {
	{OK, "", ES_ANSWER_RIGHT, ""},
	{"HTTP/1.1 401 No\r\n\r\n", "", ES_ANSWER_RIGHT, ""},
	{"HTTP/1.1 400 No\r\n\r\n", "", ES_ANSWER_WRONG, "the answer to GET /alive is 400"},
	{"HTTP/1.1 302 Found\r\n\r\n", "", ES_ANSWER_WRONG, "the answer to GET /alive is 302"},
	{"HTTP/1.1 20", "", ES_ANSWER_MORE, "the connection was closed without an answer"},
	{OK "\r\nall is well", "well", ES_ANSWER_RIGHT, ""},
	{OK "\r\nall is we", "well", ES_ANSWER_MORE,
	 "the answer to GET /alive does not have \"well\" in its body"},
	{OK "\r\naaab", "aab", ES_ANSWER_RIGHT, ""},
	/* In the head it does not count, nor in that of an interim answer. */
	{OK "X-State: well\r\n\r\nill", "well", ES_ANSWER_MORE,
	 "the answer to GET /alive does not have \"well\" in its body"},
	{"HTTP/1.1 103 well\r\n\r\n" OK "\r\nill", "well", ES_ANSWER_MORE,
	 "the answer to GET /alive does not have \"well\" in its body"},
	{"HTTP/1.1 103 Hints\r\n\r\n" OK "\r\nwell", "well", ES_ANSWER_RIGHT, ""},
	/* A status without a reason, and lines that end as some servers end them. */
	{"HTTP/1.1 200\r\nA: b\r\n\r\nwell", "well", ES_ANSWER_RIGHT, ""},
	{"HTTP/1.1 200\nA: b\n\nwell", "well", ES_ANSWER_RIGHT, ""},
	{"HTTP/1.1 503 No\r\n\r\nwell", "well", ES_ANSWER_WRONG, "the answer to GET /alive is 503"},
	/* The framing between chunks is no part of the body. */
	{OK "Transfer-Encoding: chunked\r\n\r\n2\r\nwe\r\n2\r\nll\r\n0\r\n\r\n", "well", ES_ANSWER_RIGHT, ""},
	{OK "transfer-encoding: gzip, Chunked\r\n\r\n2\r\nwe\r\n2\r\nll\r\n", "well", ES_ANSWER_RIGHT, ""},
	{OK "Transfer-Encoding: chunked\r\n\r\n2;well\r\nwe\r\n0\r\n\r\nwell", "well", ES_ANSWER_WRONG,
	 "the answer to GET /alive does not have \"well\" in its body"},
	{OK "Transfer-Encoding: chunked\r\n\r\nwell", "well", ES_ANSWER_WRONG,
	 "the answer's chunks are not those of HTTP/1.1"},
	{OK "X-Transfer-Encoding: chunked\r\n\r\n2\r\nwe\r\n2\r\nll\r\n", "well", ES_ANSWER_MORE,
	 "the answer to GET /alive does not have \"well\" in its body"},
};

static void test_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct es_conf_check conf = conf_of(cases[i].body);
		size_t len = strlen(cases[i].text);

		for (size_t piece = 1; piece <= len; piece++) {
			char why[ES_ANSWER_WHY_SIZE];
			enum es_answer_result result = read_in(&conf, cases[i].text, len, piece, why);

			if (result != cases[i].result || strcmp(why, cases[i].why) != 0)
				fail_msg("case %zu in pieces of %zu: %d, %s", i, piece, result, why);
		}
	}
}

static void put(char *at, const char *what)
{
	while (*what)
		*at++ = *what++;
}

/* Neither a head nor a body is read without an end; what is before the end counts. */
static void test_bounds(void **state)
{
	const size_t len = 200000;
	struct es_conf_check conf = conf_of("well");
	char why[ES_ANSWER_WHY_SIZE], *text = malloc(len);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', len);
	put(text, OK);
	assert_int_equal(read_in(&conf, text, len, 1000, why), ES_ANSWER_WRONG);
	assert_string_equal(why, "the head of the answer has more than 16384 bytes");
	put(text + strlen(OK), "\r\n");
	assert_int_equal(read_in(&conf, text, len, 1000, why), ES_ANSWER_WRONG);
	assert_string_equal(why, "the answer to GET /alive does not have \"well\" in its first 64 KiB");
	put(text + strlen(OK) + 2 + ES_ANSWER_BODY_BYTES - 4, "well");
	assert_int_equal(read_in(&conf, text, len, 1000, why), ES_ANSWER_RIGHT);
	/* A text as long as there can be, beyond many windows of it. */
	memset(conf.body, 'y', sizeof(conf.body) - 1);
	conf.body[sizeof(conf.body) - 1] = 0;
	memset(text + 50001, 'y', sizeof(conf.body) - 2);
	assert_int_equal(read_in(&conf, text, len, 7, why), ES_ANSWER_WRONG);
	text[50000] = 'y';
	assert_int_equal(read_in(&conf, text, len, 7, why), ES_ANSWER_RIGHT);
	free(text);
}

static void test_late(void **state)
{
	const struct es_conf_check conf = conf_of("well");
	struct es_answer answer = {};
	char why[ES_ANSWER_WHY_SIZE] = "";

	(void)state;
	es_answer_ended(&answer, &conf, 500, why);
	assert_string_equal(why, "no answer within 500 ms");
	assert_int_equal(es_answer_read(&answer, &conf, OK "\r\nwe", strlen(OK "\r\nwe"), why),
			 ES_ANSWER_MORE);
	es_answer_ended(&answer, &conf, 500, why);
	assert_string_equal(why, "the answer to GET /alive does not have \"well\" within 500 ms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
