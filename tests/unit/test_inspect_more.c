// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules that need more of a request before they decide: it is gathered for them, they are asked again, and
 * told when it does not arrive. And a rule that refuses what came back.
 */
#include "cmocka_all.h"
#include <earshot/plugin.h>
#include <stdio.h>
#include "tests/unit/inspect_world.h"

/* A rule of the service: the debug plugin, which answers so. */
static void plugin_begin(const char *answer)
{
	struct es_conf_error err = {};

	conf->plugins = calloc(1, sizeof(*conf->plugins));
	assert_non_null(conf->plugins);
	conf->plugin_count = 1;
	snprintf(conf->plugins->name, sizeof(conf->plugins->name), "d");
	snprintf(conf->plugins->file, sizeof(conf->plugins->file), "%s/debug.so", EARSHOT_PLUGINS);
	snprintf(conf->plugins->config, sizeof(conf->plugins->config), "%s", answer);
	if (es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, &err))
		fail_msg("%s", err.text);
	cluster->plugins = plugins;
	es_router_fini(&in.router);
	assert_int_equal(es_router_init(&in.router, cluster, &health, NULL), 0);
}

/* So often was it asked, the last time about so many bytes; these of its answers were more,
 * and these wrong. */
static void expect_asked(unsigned long long calls, long long len, unsigned long long more,
			 unsigned long long bad_more)
{
	static struct es_plugin_report report;

	es_plugins_describe(plugins, 0, &report);
	assert_int_equal(report.calls, calls);
	assert_int_equal(report.metric[1].value, len);
	assert_int_equal(report.failures[ES_PLUGIN_FAILURE_bad_more], bad_more);
	assert_int_equal(report.answers[ES_PLUGIN_MORE], more);
}

/* All segments went, in order, to one node: so many of them. */
static void expect_segments(unsigned int count)
{
	struct message m;
	int node = sent_to(&m);

	assert_true(node >= 0);
	assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	while (--count) {
		assert_int_equal(sent_to(&m), node);
		assert_int_equal(m.h.kind, ES_HANDOVER_FOLLOW);
	}
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

#define SEGMENT	     "0123456789"
#define HEAD(fields) "POST / HTTP/1.1\r\nHost: x\r\n" fields "\r\n"
#define POST	     HEAD("Content-Length: 20\r\n")
#define LONG	     HEAD("Content-Length: 1000000\r\n")

/*
 * A rule wants more than the head: further bytes are gathered, and the rule is asked again when they are
 * enough.
 */
static void test_more(void **state)
{
	unsigned int number = flow_find(1, 1), at = sizeof(POST) - 1;
	struct message m;

	(void)state;
	plugin_begin("answer more 65");
	inspect(number, ES_FLOW_NEW, 0, POST);
	expect_asked(1, at, 1, 0);
	inspect(number, ES_FLOW_NEW, at, SEGMENT);
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(es_gather_count(in.gathers), 1);
	expect_asked(1, at, 1, 0); /* it has said what it wants, so it is left alone until that is there */
	inspect(number, ES_FLOW_NEW, at + 10, SEGMENT);
	expect_asked(2, at + 20, 1, 0);
	expect_segments(3);
	/* The same when the head itself was cut, and out of order. */
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_NEW, 8, &POST[8]);
	inspect(number, ES_FLOW_NEW, at, SEGMENT SEGMENT);
	expect_asked(2, at + 20, 1, 0);
	inspect(number, ES_FLOW_NEW, 0, "POST / H");
	expect_asked(3, at + 20, 1, 0);
	expect_segments(3);
	assert_int_equal(COUNT(gathered), 2);
	assert_int_equal(COUNT(requests), 2);
	assert_int_equal(COUNT(gather_timeout), 0);
}

/* A segment of a later request on a connection that this node has. */
static void inspect_here(unsigned int number, uint32_t at, const char *text)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, at, text, bytes);

	record.flow = ES_FLOW_HERE;
	record.requests = 3;
	es_inspect_record(&in, &record, bytes);
	es_handover_flush(in.sender);
}

static void expect_message(enum es_handover_kind kind, unsigned int requests)
{
	struct message m;

	assert_int_equal(sent_to(&m), in.cluster->self);
	assert_int_equal(m.h.kind, kind);
	assert_int_equal(ntohl(m.h.requests), requests);
}

/*
 * A later request that stays is seen by no rule twice: what the client has repeated meanwhile goes where it
 * went.
 */
static void repeat_what_stayed(int is_gathered)
{
	unsigned int number = flow_find(1, 1), at = sizeof(POST) - 1;
	unsigned long long asked = 1 + (unsigned int)is_gathered;
	long long len = at + (is_gathered ? 20 : 0);
	struct message m;

	plugin_begin(is_gathered ? "answer more 65" : "answer pass");
	only(in.cluster->self);
	inspect_here(number, 0, POST);
	if (is_gathered)
		inspect_here(number, at, SEGMENT SEGMENT);
	expect_message(ES_HANDOVER_STAY, 3);
	if (is_gathered)
		expect_message(ES_HANDOVER_FOLLOW, 3);
	expect_asked(asked, len, asked - 1, 0);
	assert_int_equal(COUNT(stayed), 1);
	inspect_here(number, 0, POST);
	expect_asked(asked, len, asked - 1, 0);
	assert_int_equal(es_gather_count(in.gathers), 0);
	assert_int_equal(COUNT(repeated), 1);
	assert_int_equal(COUNT(stayed), 1);
	expect_message(ES_HANDOVER_STAY, 3);
	if (is_gathered) {
		inspect_here(number, at, SEGMENT SEGMENT);
		expect_message(ES_HANDOVER_FOLLOW, 0);
	}
	assert_int_equal(sent_to(&m), -1);
}

static void test_repeated_request_that_stayed(void **state)
{
	(void)state;
	repeat_what_stayed(0);
}

static void test_repeated_request_that_was_gathered_and_stayed(void **state)
{
	(void)state;
	repeat_what_stayed(1);
}

/* No more arrives: the rule is told so, and its answer to that counts. */
static void test_more_does_not_come(void **state)
{
	unsigned int number = flow_find(1, 1), at = sizeof(POST) - 1;
	struct message m;

	(void)state;
	plugin_begin("answer more 65");
	/* In time. */
	inspect(number, ES_FLOW_NEW, 0, POST);
	in.now_ns += 199000000;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	assert_int_equal(sent_to(&m), -1);
	in.now_ns += 2000000;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	expect_asked(2, at, 1, 0);
	expect_segments(1);
	assert_int_equal(COUNT(gather_timeout), 1);
	/* The client repeats what it has sent: it waits for an answer, and will send no more. */
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_NEW, 0, POST);
	inspect(number, ES_FLOW_NEW, 0, POST);
	assert_int_equal(COUNT(gather_timeout), 2);
	expect_segments(1);
	assert_int_equal(COUNT(requests), 2);
}

/* More than a client sends unasked, or than is gathered of one request. */
static void test_more_than_there_is_room(void **state)
{
	char text[1201];
	unsigned int number = flow_find(1, 1), at = sizeof(LONG) - 1, segments = 1;
	struct message m;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	plugin_begin("answer more 1000000");
	inspect(number, ES_FLOW_NEW, 0, LONG);
	while (es_gather_count(in.gathers)) {
		assert_true(++segments < 8);
		assert_int_equal(sent_to(&m), -1);
		inspect(number, ES_FLOW_NEW, at, text);
		at += sizeof(text) - 1;
	}
	assert_int_equal(COUNT(gather_timeout), 1);
	assert_int_equal(COUNT(requests), 1);
	assert_true(sent_to(&m) >= 0);
}

/* Nobody waits where no more can arrive: after the end of the request, and before the server's 100. */
static void test_nothing_more_comes(void **state)
{
	static const struct {
		const char *first, *second;
	} cases[] = {
		{REQUEST, NULL},
		{POST SEGMENT SEGMENT, NULL},
		{POST, SEGMENT SEGMENT},
		{POST SEGMENT, SEGMENT "GET "},
		{HEAD("Content-Length: 20\r\nExpect: 100-continue\r\n"), NULL},
		{HEAD("Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n"), NULL},
		{HEAD("Transfer-Encoding: chunked\r\n") "a\r\n" SEGMENT "\r\n0\r\n\r\n", NULL},
		{HEAD("Transfer-Encoding: chunked\r\n") "a\r\n" SEGMENT "\r\n0", "\r\n\r\n"},
		{HEAD("Transfer-Encoding: chunked\r\n") "a\r\n" SEGMENT "\r\n0\r\nTrailer: x\r\n", "\r\n"},
	};
	unsigned int number = 0;

	(void)state;
	plugin_begin("answer more 1000");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t len = (uint32_t)strlen(cases[i].first);

		number = flow_find(number + 1, 1);
		inspect(number, ES_FLOW_NEW, 0, cases[i].first);
		assert_int_equal(es_gather_count(in.gathers), cases[i].second != NULL);
		if (cases[i].second) {
			inspect(number, ES_FLOW_NEW, len, cases[i].second);
			len += (uint32_t)strlen(cases[i].second);
		}
		expect_asked(2 * (i + 1), len, i + 1, 0);
		expect_segments(cases[i].second ? 2 : 1);
	}
	assert_int_equal(COUNT(gather_timeout), 0);
	/* Chunks that are none may go on for ever. */
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_NEW, 0, HEAD("Transfer-Encoding: chunked\r\n") "a\r\n" SEGMENT "0\r\n\r\n");
	assert_int_equal(es_gather_count(in.gathers), 1);
}

#define SACK_OK (1u << 16) /* in the cookie, see kmod/core/cookie.h */

/*
 * More than a client may send before a socket acknowledges anything, though it is asked: what it has sent
 * then decides at once.
 */
static void test_more_than_the_client_may_send(void **state)
{
	unsigned int number = flow_find(1, 1), at = sizeof(LONG) - 1;
	uint32_t ack = htonl((COOKIE | SACK_OK) + 1);
	struct es_record record;
	uint8_t bytes[1500];
	char text[1301] = "";

	(void)state;
	es_gather_table_free(&in.gathers);
	conf->inspector.gather_bytes = 100000;
	conf->datapath.receive_window_scale = 10;
	assert_int_equal(es_gather_table_new(16, 100000, &in.gathers), 0);
	memset(text, 'x', sizeof(text) - 1);
	plugin_begin("answer more 70000");
	for (unsigned int sent = 0; !sent || es_gather_count(in.gathers); sent += sizeof(text) - 1) {
		record = segment(number, sent ? at : 0, sent ? text : LONG, bytes);
		if (sent)
			at += sizeof(text) - 1;
		memcpy(bytes + tcp_at() + 8, &ack, sizeof(ack));
		es_inspect_record(&in, &record, bytes);
		assert_true(at <= 64512);
	}
	assert_true(at + sizeof(text) - 1 > 64512);
	expect_asked(2, at, 1, 0);
	assert_int_equal(COUNT(gather_asked), 1);
	assert_int_equal(COUNT(gather_full), 1);
}

/* A rule that does not understand that no more arrives has given a wrong answer, and the policy decides. */
static void test_more_for_ever(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	plugin_begin("answer once-more 5000");
	inspect(number, ES_FLOW_NEW, 0, POST);
	in.now_ns += 300000000;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	expect_asked(2, sizeof(POST) - 1, 1, 1);
	expect_segments(1);
}

/* A rule refuses a request whose node is not there, and of which the error quotes the beginning only: the
 * answer acknowledges all of it. */
static void test_refused_when_unreachable(void **state)
{
	char text[1200] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
	unsigned int number = flow_find(1, 1);
	struct es_decided decided;

	(void)state;
	memset(text + strlen(text), 'b', 1000);
	only(2);
	vanish(2);
	inspect(number, ES_FLOW_NEW, 0, text);
	plugin_begin("answer reject 403 7");
	es_inspect_messages(&in);
	assert_int_equal(COUNT(unreachable), 1);
	assert_int_equal(COUNT(rejected), 1);
	es_decision_table_look(&in.decisions, hash_of(number), COOKIE, ISN, 0, &decided);
	assert_true(es_decided_is_moved(&decided));
	assert_int_equal(decided.order->next_request_seq, ISN + 1 + strlen(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_more),
		TEST(test_repeated_request_that_stayed),
		TEST(test_repeated_request_that_was_gathered_and_stayed),
		TEST(test_more_does_not_come),
		TEST(test_more_than_there_is_room),
		TEST(test_nothing_more_comes),
		TEST(test_more_than_the_client_may_send),
		TEST(test_more_for_ever),
		TEST(test_refused_when_unreachable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
