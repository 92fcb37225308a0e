// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Plugins in es_route(): what they answer, one after the other, for other protocols, over a reload; and
 * faults in their configuration. test_plugin_wrong.c has faults in an answer.
 */
#include "tests/unit/cmocka_all.h"

#include <earshot/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin_world.h"
#include "tests/hello.h"

static void test_answers(void **state)
{
	int policy;

	(void)state;
	begin(DEBUG("d", ""));
	policy = ask("pass");
	assert_in_range(policy, 0, 2);
	for (int node = 0; node < DOWN; node++) {
		char wish[32];

		snprintf(wish, sizeof(wish), "node %d", node);
		assert_int_equal(ask(wish), node);
	}
	/* The policy chooses within the set. */
	assert_int_equal(ask("nodes 4"), 2);
	for (int i = 0; i < 40; i++) {
		char uri[16];

		snprintf(uri, sizeof(uri), "/%d", i);
		assert_in_range(ask_uri(uri, "nodes 3"), 0, 1);
		assert_in_range(ask_uri(uri, "nodes 9"), 0, 0); /* n3 is down */
	}
	assert_int_equal(ask("reject 403 7"), ES_ROUTE_REJECT);
	assert_int_equal(rejection.status, 403);
	assert_int_equal(rejection.retry_after_s, 7);
	assert_int_equal(ask("more 5000"), ES_ROUTE_MORE);
	assert_int_equal(rejection.more_bytes, 5000);
	assert_int_equal(failures(0), 0);
	assert_int_equal(report_of(0)->calls, 87);
	assert_int_equal(report_of(0)->answers[ES_PLUGIN_PASS], 1);
	assert_int_equal(report_of(0)->answers[ES_PLUGIN_NODE], 3);
	assert_int_equal(report_of(0)->answers[ES_PLUGIN_NODES], 81);
	assert_int_equal(report_of(0)->answers[ES_PLUGIN_MORE], 1);
	assert_int_equal(report_of(0)->answers[ES_PLUGIN_REJECT], 1);
	assert_int_equal(report_of(0)->metric[0].value, 87);
	end();
}

/* A plugin that wants more for ever gets what there is, and no more. */
static void test_more(void **state)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

	(void)state;
	begin(DEBUG("d", "config = \"answer more 100\""));
	assert_int_equal(ask_bytes(text, sizeof(text) - 1, 0), ES_ROUTE_MORE);
	assert_in_range(ask_bytes(text, sizeof(text) - 1, 1), 0, 2);
	assert_int_equal(failures(0), 0);
	end();
	begin(DEBUG("d", "config = \"answer once-more 5000\" fail = closed"));
	assert_int_equal(ask_bytes(text, sizeof(text) - 1, 0), ES_ROUTE_MORE);
	assert_int_equal(ask_bytes(text, sizeof(text) - 1, 1), ES_ROUTE_REJECT);
	assert_int_equal(report_of(0)->failures[ES_PLUGIN_FAILURE_bad_more], 1);
	end();
}

static void test_chain(void **state)
{
	(void)state;
	/* In order: the first that names a node ends it. */
	begin(DEBUG("a", "config = \"answer node 1\"") DEBUG("b", "config = \"answer node 2\""));
	assert_int_equal(ask_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0), 1);
	assert_int_equal(report_of(1)->calls, 0);
	end();
	begin(DEBUG("b", "config = \"answer node 2\"") DEBUG("a", "config = \"answer node 1\""));
	assert_int_equal(ask_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0), 2);
	end();
	/* Sets are cut with each other; who leaves the set, or leaves nothing of it, is wrong. */
	begin(DEBUG("a", "config = \"answer nodes 6\"") DEBUG("b", "config = \"answer nodes 5\""));
	assert_int_equal(ask_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0), 2);
	end();
	begin(DEBUG("a", "config = \"answer nodes 6\"") DEBUG("b", "config = \"answer nodes 1\""));
	assert_in_range(ask_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0), 1, 2);
	assert_int_equal(failures(0), 0);
	assert_int_equal(report_of(1)->failures[ES_PLUGIN_FAILURE_not_allowed], 1);
	end();
	begin(DEBUG("a", "config = \"answer nodes 6\"") DEBUG("b", "config = \"answer node 0\""));
	assert_in_range(ask_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0), 1, 2);
	assert_int_equal(report_of(1)->failures[ES_PLUGIN_FAILURE_not_allowed], 1);
	end();
	/* A rule of the configuration comes first. */
	begin("}\nrule r { path = / nodes = { n0 } }\nservice x { address = 10.77.0.101 port = 80 " DEBUG(
		"a", "config = \"answer node 1\""));
	assert_int_equal(ask_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0), 0);
	assert_int_equal(es_plugins_has(plugins, 0), 0);
	assert_int_equal(es_plugins_has(plugins, 1), 1);
	end();
}

static void test_tls(void **state)
{
	struct hello e = {.len = 0}, whole;

	(void)state;
	hello_sni(&e, "a.example.org");
	hello_finish(&e, 16384, &whole);
	begin(DEBUG("d", "config = \"answer node 1\""));
	assert_int_equal(ask_bytes(whole.bytes, whole.len, 0), 1);
	end();
	begin(DEBUG("d", "config = \"answer reject 403\""));
	assert_int_equal(ask_bytes(whole.bytes, whole.len, 0), ES_ROUTE_REJECT);
	assert_int_equal(rejection.protocol, ES_HTTP_TLS);
	end();
	begin(DEBUG("d", "config = \"answer view\""));
	assert_in_range(ask_bytes(whole.bytes, whole.len, 0), 0, 2);
	assert_in_range(ask_bytes(whole.bytes, 60, 0), 0, 2);
	assert_in_range(ask_bytes("\x16\x03\x01\x00", 4, 0), 0, 2);
	assert_in_range(ask_bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24, 0), 0, 2);
	assert_in_range(ask_bytes("EHLO example.org\r\n", 18, 0), 0, 2);
	assert_in_range(ask("view"), 0, 2);
	assert_int_equal(report_of(0)->calls, 6);
	assert_int_equal(report_of(0)->metric[3].value, 0);
	assert_int_equal(failures(0), 0);
	end();
}

/* The policy places the content that a plugin says a request is for, whatever the URI is, and without any. */
static void test_content(void **state)
{
	struct hello e = {.len = 0}, whole;
	unsigned int nodes = 0;
	int first, of_uri;
	__u64 content;

	(void)state;
	hello_sni(&e, "a.example.org");
	hello_finish(&e, 16384, &whole);
	for (int number = 1; number <= 40; number++) {
		char chain[128], hex[32];

		snprintf(chain, sizeof(chain),
			 "policy = uri-hash\n" DEBUG("d", "config = \"answer content %d 7\""), number);
		snprintf(hex, sizeof(hex), "%016x", number);
		begin(chain);
		first = ask_bytes("POST /a HTTP/1.1\r\nHost: a\r\n\r\n", 29, 0);
		assert_in_range(first, 0, 2);
		nodes |= 1U << first;
		content = request.content;
		assert_true(request.is_named && content);
		assert_int_equal(request.cost, 7);
		assert_int_equal(request.name_len, 16);
		assert_memory_equal(request.name, hex, 16);
		assert_int_equal(ask_bytes("GET /b?c HTTP/1.1\r\nHost: b\r\n\r\n", 30, 0), first);
		assert_true(request.content == content);
		assert_int_equal(ask_bytes(whole.bytes, whole.len, 0), first);
		assert_true(request.content == content && !request.uri);
		assert_int_equal(failures(0), 0);
		end();
	}
	assert_int_equal(nodes, 7);
	/* By its name alone; and no name is anything but printable. */
	begin("policy = uri-hash\n" DEBUG("d", ""));
	of_uri = ask("pass");
	assert_false(request.is_named);
	first = ask("name //a/a?b");
	assert_memory_equal(request.name, "//a/a?b", request.name_len);
	assert_true(request.content == es_content_hash("//a/a?b", 7));
	assert_in_range(first, 0, 2);
	ask("name a\x1b[2J\xff");
	assert_memory_equal(request.name, "a?[2J?", request.name_len);
	/* No name, no number: as it is. */
	assert_int_equal(ask("name "), of_uri);
	assert_false(request.is_named);
	assert_int_equal(ask("content 0 9999999"), of_uri);
	assert_false(request.is_named);
	assert_int_equal(request.cost, ES_REQUEST_COST_MAX);
	end();
	/* It is what the rules that follow see, of whom the last one that names something counts. */
	begin("policy = uri-hash\n" DEBUG("a", "config = \"answer content 1\"")
		      DEBUG("b", "config = \"answer pass\"") DEBUG("c", "config = \"answer content 2\""));
	ask_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0);
	assert_memory_equal(request.name, "0000000000000002", 16);
	end();
	/* An answer that is not used names nothing. */
	begin(DEBUG_BUDGET("d", "1000", ""));
	ask("spin 2000");
	assert_false(request.is_named);
	end();
}

/* `earshot explain` says why, and leaves no trace. */
static void test_explain(void **state)
{
	(void)state;
	begin(DEBUG("d", "config = \"answer view\"") DEBUG("e", "config = \"answer once-more\""));
	ask_bytes("GET /x HTTP/1.1\r\nHost: a\r\n\r\n", 28, 0);
	assert_int_equal(report_of(0)->calls, 1);
	explain.count = 0;
	request = (struct es_request_view){.current = -1};
	es_request_describe(&request, &head, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", 28, 1, &content_name);
	assert_in_range(es_route(&router, 0, &request, 1000, &explain, &rejection), 0, 2);
	assert_int_equal(report_of(0)->calls, 1);
	assert_int_equal(report_of(0)->metric[0].value, 1);
	assert_non_null(strstr(explain.step[0], "plugin d: 4 on the ring, self #0"));
	assert_non_null(strstr(explain.step[0], "explain 1"));
	assert_non_null(strstr(explain.step[1], "plugin d: passes"));
	assert_non_null(strstr(explain.step[2], "plugin e: wrong answer, bad_more"));
	end();
}

/* Another configuration: the old plugins have no thread any more, and may go. */
static void test_reload(void **state)
{
	struct es_plugins *before;
	struct es_cluster *old;
	struct es_conf *old_conf;
	struct es_router kept;

	(void)state;
	begin(DEBUG("d", "config = \"answer node 1\""));
	before = plugins;
	old = cluster;
	old_conf = conf;
	kept = router;
	begin(DEBUG("d", "config = \"answer node 2\""));
	es_router_fini(&router);
	router = kept;
	assert_int_equal(ask_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0), 1);
	assert_int_equal(es_router_set_cluster(&router, cluster), 0);
	es_plugins_free(&before);
	es_cluster_free(&old);
	es_conf_free(&old_conf);
	assert_int_equal(ask_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 0), 2);
	end();
}

/*
 * The loader knows objects by their paths: another file is another object, even if descriptors' numbers
 * recur.
 */
static void test_reload_other_file(void **state)
{
	struct es_plugins *old;
	struct es_conf *old_conf;

	(void)state;
	begin(DEBUG("d", ""));
	for (int i = 0; i < 8; i++) {
		struct es_cluster *old_cluster = cluster;

		es_router_fini(&router);
		old = plugins;
		old_conf = conf;
		/* Twice the same, so that an object has two paths, of which one is closed. */
		begin(i % 4 < 2 ? DEBUG("d", "")
				: "plugin h { file = \"header-hash.so\" config = \"cookie a\" }\n");
		es_plugins_free(&old);
		es_cluster_free(&old_cluster);
		es_conf_free(&old_conf);
		assert_string_equal(report_of(0)->what, i % 4 < 2 ? "debug" : "header-hash");
	}
	end();
}

static void test_timer(void **state)
{
	struct es_node_view nodes[4] = {};
	struct es_cluster_view view = {.count = 4, .node = nodes, .now_ns = 1000000000};

	(void)state;
	begin(DEBUG("d", ""));
	assert_int_equal(es_plugins_timer_ms(plugins), 20);
	es_plugins_tick(plugins, &view);
	es_plugins_tick(plugins, &view);
	view.now_ns += 20000000;
	es_plugins_tick(plugins, &view);
	assert_int_equal(report_of(0)->metric[2].value, 2);
	end();
	begin("");
	assert_null(plugins);
	assert_int_equal(es_plugins_timer_ms(plugins), 0);
	assert_in_range(ask("node 1"), 0, 2);
	end();
}

/* @chain's error */
static void expect_error(const char *chain, const char *expected)
{
	struct es_conf_error err = {};
	char text[2048];
	int rc;

	snprintf(text, sizeof(text),
		 "datapath { interface = eth0 cluster_interface = eth1 }\nnode n0 { address = 10.78.0.1 }\n"
		 "service web { address = 10.77.0.100 port = 80\n%s\n}\n",
		 chain);
	rc = es_conf_parse(text, strlen(text), "t.conf", &conf, &err);
	if (!rc)
		rc = es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, &err);
	assert_true(rc < 0);
	if (strncmp(err.text, expected, strlen(expected)) != 0)
		fail_msg("expected %s\n     got %s", expected, err.text);
	es_conf_free(&conf);
}

static void test_errors(void **state)
{
	char file[] = "/tmp/test_plugin.XXXXXX", chain[256], expected[256];
	int fd = mkstemp(file);

	(void)state;
	expect_error(DEBUG("d", "\nconfig = \"bogus\""),
		     "t.conf:5: plugin d: unknown \"bogus\": expected answer");
	expect_error(DEBUG("d", "config = \"errno\""),
		     "t.conf:4: service web: plugin d: its configuration failed: ");
	expect_error("plugin d { config = \"'x\" file = \"debug.so\" }",
		     "t.conf:4: plugin d: ' without its end");
	expect_error("plugin none { }", "t.conf:4: service web: plugin none: " EARSHOT_PLUGINS
					"/none.so: cannot be opened: No such file");
	expect_error("plugin none { file = /etc/passwd }",
		     "t.conf:4: service web: plugin none: /etc/passwd: cannot be loaded");
	expect_error(
		"plugin none { file = / }",
		"t.conf:4: service web: plugin none: /: is not a regular file: expected a shared object");
	expect_error("plugin x { file = a/b }",
		     "t.conf:4: plugin x: file = a/b: expected the name of a file");
	expect_error("plugin x { budget_us = 1000001 }",
		     "t.conf:4: plugin x: budget_us = 1000001: expected 0 (");
	expect_error("plugin x { fail = shut }", "t.conf:4: plugin x: fail = shut: expected open | closed");
	expect_error("plugin x { fial = open }",
		     "t.conf:4: plugin x: unknown key \"fial\": expected file | fail");
	expect_error("plugin x { }\nplugin x { }",
		     "t.conf:5: plugin x: first defined on line 4: expected another name");
	expect_error("plugin x { config = a\n config_file = /b }",
		     "t.conf:5: plugin x: config_file: config was set on line 4");
	expect_error("inspect = never\nplugin x { }",
		     "t.conf:5: service web: plugin x: with inspect = never");
	expect_error("plugin x { config_file = /nowhere file = \"debug.so\" }",
		     "t.conf:4: service web: plugin x: config_file = /nowhere: No such");
	/* A file's own lines. */
	assert_true(fd >= 0 && write(fd, "# one\nanswer pass\n\nfail here\n", 29) == 29);
	close(fd);
	snprintf(chain, sizeof(chain), "plugin d { file = \"debug.so\" config_file = %s }", file);
	snprintf(expected, sizeof(expected), "%s:4: plugin d: told to fail: expected something else in %s",
		 file, file);
	expect_error(chain, expected);
	unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_more),
		cmocka_unit_test(test_chain),	cmocka_unit_test(test_tls),
		cmocka_unit_test(test_content), cmocka_unit_test(test_explain),
		cmocka_unit_test(test_reload),	cmocka_unit_test(test_reload_other_file),
		cmocka_unit_test(test_timer),	cmocka_unit_test(test_errors),
	};

	setenv(ES_PLUGIN_DIR_ENV, EARSHOT_PLUGINS, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
