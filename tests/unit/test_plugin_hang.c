// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls into plugins that nobody watches but the host itself: each ends, and says which it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmocka_all.h"
#include "inspector/http/head.h"
#include "inspector/plugin/guard.h"
#include "inspector/plugin/host.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

/* See test_guard.c. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "use_sigaltstack=0";
}
#endif

static struct es_conf *conf;
static struct es_plugins *plugins;
static struct es_plugins_thread *thread;

/* A chain of one plugin with @config; what es_plugins_new() says. */
static int plugin_new(const char *config, struct es_conf_error *err)
{
	char text[1024];

	es_guard_install(); /* cmocka has handlers of its own */
	snprintf(text, sizeof(text),
		 "datapath { interface = eth0 cluster_interface = eth1 }\nnode n0 { address = 10.78.0.1 }\n"
		 "service web { address = 10.77.0.100 port = 80\n"
		 "plugin d { file = \"debug.so\" budget_us = 0 config = \"%s\" }\n}\n",
		 config);
	if (es_conf_parse(text, strlen(text), "t.conf", &conf, err))
		fail_msg("%s", err->text);
	return es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, err);
}

static void begin(const char *config)
{
	struct es_conf_error err = {};

	if (plugin_new(config, &err))
		fail_msg("%s", err.text);
	assert_int_equal(es_plugins_thread_new(plugins, &thread), 0);
}

static void end(void)
{
	es_plugins_thread_free(&thread);
	es_plugins_free(&plugins);
	es_conf_free(&conf);
}

static const struct es_plugin_report *report(void)
{
	static struct es_plugin_report r;

	es_plugins_describe(plugins, 0, &r);
	return &r;
}

/* Asks the plugin about a request; returns what becomes of the request. */
static enum es_plugins_verdict ask(struct es_explain *explain)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
	static struct es_http_head head;
	struct es_node_view nodes[1] = {{.weight = 100, .is_target = 1}};
	struct es_cluster_view view = {.count = 1, .node = nodes, .now_ns = 1, .explain = explain};
	struct es_flow flow = {};
	struct es_request_view request = {
		.current = -1, .head = &head, .text = text, .len = sizeof(text) - 1, .client = &flow.client};
	struct es_plugins_answer answer;

	es_http_head_init(&head);
	es_http_head_scan(&head, text, sizeof(text) - 1);
	return es_plugins_route(thread, 0, &request, &view, &answer);
}

static void test_configure(void **state)
{
	static const struct {
		const char *config, *error;
	} rows[] = {
		{"harm configure hang",
		 "t.conf:4: service web: plugin d: configure() did not return within "},
		{"harm configure crash", "t.conf:4: service web: plugin d: configure() crashed: SIGSEGV"},
		{"harm configure abort", "t.conf:4: service web: plugin d: configure() crashed: SIGABRT"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct es_conf_error err = {};

		assert_true(plugin_new(rows[i].config, &err) < 0);
		if (strncmp(err.text, rows[i].error, strlen(rows[i].error)) != 0)
			fail_msg("expected %s\n     got %s", rows[i].error, err.text);
		es_conf_free(&conf);
	}
	/* And one that is in order. */
	begin("answer pass");
	assert_int_equal(ask(NULL), ES_PLUGINS_PASS);
	assert_int_equal(report()->crashes, 0);
	end();
}

static void test_thread(void **state)
{
	(void)state;
	begin("harm thread hang");
	assert_int_equal(report()->crashes, 1);
	assert_int_equal(ask(NULL), ES_PLUGINS_PASS);
	assert_int_equal(report()->failures[ES_PLUGIN_FAILURE_no_thread], 1);
	end();
}

static void test_timer(void **state)
{
	struct es_cluster_view view = {.now_ns = 1000000000};

	(void)state;
	begin("harm timer hang");
	es_plugins_tick(plugins, &view);
	assert_int_equal(report()->crashes, 1);
	assert_string_equal(report()->last_error, "it did not return, and was left");
	end();
}

/* As `earshot-plugin-test` asks; the daemon's workers are watched by the keeper. */
static void test_route(void **state)
{
	static struct es_explain explain;

	(void)state;
	begin("answer hang");
	assert_int_equal(ask(NULL), ES_PLUGINS_PASS);
	assert_int_equal(report()->failures[ES_PLUGIN_FAILURE_hung], 1);
	assert_int_equal(ask(&explain), ES_PLUGINS_PASS);
	assert_string_equal(explain.hung, "d");
	assert_string_equal(explain.step[0], "plugin d: wrong answer, hung: it is passed over");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_configure),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_timer),
		cmocka_unit_test(test_route),
	};

#ifdef __SANITIZE_ADDRESS__
	__lsan_disable(); /* what a call that was left held is lost */
#endif
	setenv(ES_PLUGIN_DIR_ENV, EARSHOT_PLUGINS, 1);
	es_guard_thread();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
