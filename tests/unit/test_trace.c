// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Decisions for those who watch: which a filter admits, what a bad one is told, what a full ring counts, and
 * what a worker says of its own decisions, as long as somebody watches and no longer.
 */
#include "tests/unit/config_text.h"
#include "tests/unit/inspect_world.h"
#include "inspector/base/escape.h"
#include "inspector/inspect/trace.h"
#include "inspector/rules/rules.h"

#define CLUSTER DATAPATH "node n1 { address = 10.78.0.1 }\nnode n2 { address = 10.78.0.2 }\n"
#define WEB	"service web { address = 10.77.0.100  port = 80 }\n"
#define API	"service api { address = 10.77.0.100  port = 81 }\n"
#define DEAR	"rule dear { path = \"/dear/\"  nodes = n1  otherwise = reject }\n"

static struct es_trace_entry entry_of(const char *request, const char *client)
{
	struct es_trace_entry entry = {.service = "web", .node = "n2", .why = "policy"};

	assert_int_equal(es_conf_addr_parse(client, &entry.client), 0);
	es_trace_request(&entry, request, strlen(request));
	return entry;
}

static int admits(const char *filter_text, const struct es_trace_entry *entry)
{
	struct es_conf *c = parse_ok(CLUSTER WEB API DEAR);
	struct es_trace_filter filter = {};
	struct es_conf_error err = {};

	if (es_trace_filter_add(&filter, c, filter_text, &err))
		fail_msg("%s", err.text);
	es_conf_free(&c);
	return es_trace_admits(&filter, entry);
}

static void test_filter_admits(void **state)
{
	struct es_trace_entry v4 = entry_of("GET /a/b HTTP/1.1\r\n", "198.51.100.7");
	struct es_trace_entry v6 = entry_of("GET http://x/a/b HTTP/1.1\r\n", "2001:db8:1::7");
	struct es_trace_entry move = v4;

	(void)state;
	assert_true(admits("node=n2", &v4));
	assert_true(admits("node=n1,n2", &v4));
	assert_false(admits("node=n1", &v4));
	assert_true(admits("service=api,web", &v4));
	assert_false(admits("service=api", &v4));
	assert_true(admits("client=198.51.100.7", &v4));
	assert_false(admits("client=198.51.100.6", &v4));
	assert_true(admits("client=198.51.100.6/31", &v4));
	assert_false(admits("client=198.51.100.8/29", &v4));
	assert_true(admits("client=0.0.0.0/0", &v4));
	assert_false(admits("client=0.0.0.0/0", &v6));
	assert_true(admits("client=2001:db8::/32", &v6));
	assert_false(admits("client=2001:db8::/48", &v6));
	assert_true(admits("client=::/0", &v4));
	assert_true(admits("path=/a/", &v4));
	assert_true(admits("path=/a/b", &v6));
	assert_false(admits("path=/a/bc", &v4));
	assert_false(admits("path=/b", &v6));
	assert_true(admits("decision=first", &v4));
	assert_true(admits("why=policy,dear", &v4));
	move.decision = ES_TALLY_move;
	strcpy(move.why, "locality");
	assert_false(admits("decision=first,stay", &move));
	assert_true(admits("decision=move", &move));
	assert_false(admits("why=load", &move));
	assert_false(admits("why=unfinished", &move));
	strcpy(move.why, "unfinished");
	assert_true(admits("why=unfinished", &move));
}

static void test_all_must_admit(void **state)
{
	struct es_trace_entry entry = entry_of("GET /a HTTP/1.1\r\n", "198.51.100.7");
	struct es_conf *c = parse_ok(CLUSTER WEB);
	struct es_trace_filter filter = {};

	(void)state;
	assert_true(es_trace_admits(&filter, &entry));
	assert_int_equal(es_trace_filter_add(&filter, c, "node=n2", NULL), 0);
	assert_true(es_trace_admits(&filter, &entry));
	assert_int_equal(es_trace_filter_add(&filter, c, "path=/b", NULL), 0);
	assert_false(es_trace_admits(&filter, &entry));
	es_conf_free(&c);
}

static void test_bad_filters(void **state)
{
	static const struct {
		const char *text, *expected;
	} bad[] = {
		{"node=n3", "filter node=n3: expected one or several, with commas between them, of: n1, n2"},
		{"node=n1,", "filter node=: expected one or several, with commas between them, of: n1, n2"},
		{"service=",
		 "filter service=: expected one or several, with commas between them, of: web, api"},
		{"decision=moved", "filter decision=moved: expected one or several, with commas between "
				   "them, of: first, stay, move, "
				   "again, reject"},
		{"why=x",
		 "filter why=x: expected one or several, with commas between them, of: policy, locality, "
		 "load, "
		 "drain, home, rule, retry, plugin, admit_low, admit_normal, location, all_down, "
		 "unfinished, dear"},
		{"client=198.51.100.0/33",
		 "filter client=198.51.100.0/33: expected an address, or a network as "
		 "198.51.100.0/24 or 2001:db8::/32"},
		{"client=here", "filter client=here: expected an address, or a network as 198.51.100.0/24 or "
				"2001:db8::/32"},
		{"client=::1/", "filter client=::1/: expected an address, or a network as 198.51.100.0/24 or "
				"2001:db8::/32"},
		{"path=a",
		 "filter path=a: expected what the path begins with, from its / on, at most 255 bytes"},
		{"uri=/a",
		 "filter uri=/a: expected node=NAME, service=NAME, client=ADDRESS[/BITS], path=/PREFIX, "
		 "why=REASON or decision=KIND"},
	};
	struct es_conf *c = parse_ok(CLUSTER WEB API DEAR);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct es_trace_filter filter = {};
		struct es_conf_error err = {};

		assert_int_equal(es_trace_filter_add(&filter, c, bad[i].text, &err), -EINVAL);
		assert_string_equal(err.text, bad[i].expected);
	}
	es_conf_free(&c);
}

static void test_requests(void **state)
{
	char text[ES_TRACE_TEXT + 100] = "GET /";
	struct es_trace_entry entry = entry_of("\r\nPOST /x?y HTTP/1.1\r\n", "::1");

	(void)state;
	assert_int_equal(entry.text_len, strlen("POST /x?y"));
	assert_memory_equal(entry.text, "POST /x?y", entry.text_len);
	assert_false(entry.is_cut);
	entry = entry_of("\x16\x03\x01", "::1");
	assert_int_equal(entry.text_len, 0);
	entry = entry_of("GET /un", "::1");
	assert_int_equal(entry.text_len, 7);
	assert_true(entry.is_cut);
	memset(text + 5, 'a', ES_TRACE_TEXT);
	entry = entry_of(text, "::1");
	assert_int_equal(entry.text_len, ES_TRACE_TEXT);
	assert_true(entry.is_cut);
}

static void test_full_ring_counts(void **state)
{
	struct es_trace_ring *ring = calloc(1, sizeof(*ring));
	struct es_trace_entry entry = entry_of("GET /a HTTP/1.1\r\n", "::1");

	(void)state;
	assert_non_null(ring);
	assert_false(es_trace_take(ring, &entry));
	for (unsigned int i = 0; i < ES_TRACE_ENTRIES + 3; i++) {
		entry.at_ns = i;
		assert_int_equal(es_trace_put(ring, &entry), i < ES_TRACE_ENTRIES ? 1 : -ENOBUFS);
	}
	assert_int_equal(ring->left_out, 3);
	for (unsigned int i = 0; i < 2; i++) {
		assert_true(es_trace_take(ring, &entry));
		assert_int_equal(entry.at_ns, i);
	}
	assert_int_equal(es_trace_put(ring, &entry), 1);
	/* An entry that the filter does not admit does not count as left out: nobody wanted it. */
	strcpy(ring->filter.node, "n1");
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(es_trace_put(ring, &entry), 0);
	assert_int_equal(ring->left_out, 3);
	free(ring);
}

static void test_worker_shows_its_decisions(void **state)
{
	struct es_trace_ring *ring = calloc(1, sizeof(*ring));
	unsigned int number = flow_find(1, 1);
	struct es_flow flow;
	struct es_trace_entry entry;
	int node;

	(void)state;
	assert_non_null(ring);
	for (unsigned int i = 0; i < NODES; i++)
		snprintf(conf->nodes[i].name, sizeof(conf->nodes[i].name), "n%u", i);
	strcpy(conf->services[0].name, "web");
	assert_true(request(number) >= 0);
	assert_int_equal(COUNT(traced), 0);
	in.traces = ring;
	number = flow_find(number + 1, 1);
	flow = flow_of(number);
	node = request(number);
	assert_true(node >= 0);
	assert_int_equal(COUNT(traced), 1);
	in.traces = NULL;
	assert_true(request(flow_find(number + 1, 1)) >= 0);
	assert_int_equal(COUNT(traced), 1);
	assert_true(es_trace_take(ring, &entry));
	assert_memory_equal(&entry.client, &flow.client, sizeof(entry.client));
	assert_int_equal(entry.client_port, 40000);
	assert_string_equal(entry.node, conf->nodes[node].name);
	assert_string_equal(entry.service, "web");
	assert_string_equal(entry.why, "policy");
	assert_int_equal(entry.decision, ES_TALLY_first);
	assert_int_equal(entry.text_len, 5);
	assert_memory_equal(entry.text, "GET /", 5);
	assert_false(es_trace_take(ring, &entry));
	free(ring);
}

static void test_gathered_request(void **state)
{
	struct es_trace_ring *ring = calloc(1, sizeof(*ring));
	unsigned int number = flow_find(1, 1);
	struct es_trace_entry entry;

	(void)state;
	assert_non_null(ring);
	in.traces = ring;
	inspect(number, ES_FLOW_NEW, 0, "GET /in");
	assert_false(es_trace_take(ring, &entry));
	inspect(number, ES_FLOW_NEW, 7, "/two HTTP/1.1\r\nHost: x\r\n\r\n");
	in.traces = NULL;
	assert_true(es_trace_take(ring, &entry));
	assert_int_equal(entry.text_len, 11);
	assert_memory_equal(entry.text, "GET /in/two", 11);
	assert_false(entry.is_cut);
	free(ring);
}

static void test_whys(void **state)
{
	struct es_conf *c = parse_ok(CLUSTER WEB DEAR);
	struct es_handover_order order = {.why = ES_MOVE_HOME};

	(void)state;
	assert_string_equal(es_trace_why(c, &order, ES_TALLY_move), "home");
	assert_string_equal(es_trace_why(c, &order, ES_TALLY_stay), "policy");
	assert_string_equal(es_trace_why(c, &order, ES_TALLY_again), "retry");
	order.why = ES_MOVE_RULE;
	assert_string_equal(es_trace_why(c, &order, ES_TALLY_first), "rule");
	order.rejection.by = ES_RULES_BY_RULE;
	assert_string_equal(es_trace_why(c, &order, ES_TRACE_REJECT), "dear");
	order.rejection.by = ES_RULES_BY_PLUGIN;
	assert_string_equal(es_trace_why(c, &order, ES_TRACE_REJECT), "plugin");
	es_conf_free(&c);
}

static void test_escape(void **state)
{
	static const char text[] = "/\x1b[2J\\\x7f\xff\xc3\xa4\xc2\x9b";
	char escaped[4 * sizeof(text)];

	(void)state;
	es_escape(text, sizeof(text) - 1, escaped);
	assert_string_equal(escaped, "/\\x1b[2J\\x5c\\x7f\\xff\xc3\xa4\\xc2\\x9b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter_admits),
		cmocka_unit_test(test_all_must_admit),
		cmocka_unit_test(test_bad_filters),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_full_ring_counts),
		TEST(test_worker_shows_its_decisions),
		TEST(test_gathered_request),
		cmocka_unit_test(test_whys),
		cmocka_unit_test(test_escape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
