// SPDX-License-Identifier: GPL-2.0-or-later
/* A fault of a plugin or its answer is counted by reason, and harms nobody. */
#include "plugin_world.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
#include "inspector/plugin/guard.h"

static const struct {
	const char *wish;
	enum es_plugin_failure failure;
} wrong[] = {
	{"error", ES_PLUGIN_FAILURE_error},
	{"kind 5", ES_PLUGIN_FAILURE_unknown_answer},
	{"kind 1000", ES_PLUGIN_FAILURE_unknown_answer},
	{"node 4", ES_PLUGIN_FAILURE_no_such_node},
	{"node 127", ES_PLUGIN_FAILURE_no_such_node},
	{"node 4294967295", ES_PLUGIN_FAILURE_no_such_node},
	{"nodes 17", ES_PLUGIN_FAILURE_no_such_node},
	{"node 3", ES_PLUGIN_FAILURE_no_target},
	{"nodes 8", ES_PLUGIN_FAILURE_no_target},
	{"nodes 0", ES_PLUGIN_FAILURE_no_target},
	{"once-more", ES_PLUGIN_FAILURE_bad_more},
	{"reject 200", ES_PLUGIN_FAILURE_bad_status},
	{"reject 600", ES_PLUGIN_FAILURE_bad_status},
	{"reject 0", ES_PLUGIN_FAILURE_bad_status},
};

static void test_wrong_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int policy;

		begin(DEBUG("d", ""));
		policy = ask("pass");
		if (ask(wrong[i].wish) != policy || failures(0) != 1 ||
		    report_of(0)->failures[wrong[i].failure] != 1)
			fail_msg("%s: not passed over, or not counted as %s", wrong[i].wish,
				 es_plugin_failure_name[wrong[i].failure]);
		assert_false(request.has_allowed);
		end();
		begin(DEBUG("d", "fail = closed"));
		if (ask(wrong[i].wish) != ES_ROUTE_REJECT || rejection.status != 503 || failures(0) != 1)
			fail_msg("%s: not refused", wrong[i].wish);
		assert_int_equal(ask("node 1"), 1);
		end();
	}
}

/* An answer that comes too late is not used, whatever it is. The other calls may be late, too: they are not
 * judged. */
static void test_answers_that_come_too_late(void **state)
{
	static const char *const wishes[] = {"spin 2000", "spin 2000 1"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		unsigned long long before;
		int policy;

		begin(DEBUG_BUDGET("d", "1000", ""));
		policy = ask("pass");
		before = report_of(0)->failures[ES_PLUGIN_FAILURE_too_slow];
		assert_int_equal(ask(wishes[i]), policy);
		assert_int_equal(report_of(0)->failures[ES_PLUGIN_FAILURE_too_slow], before + 1);
		assert_int_equal(failures(0), before + 1);
		assert_false(request.has_allowed);
		end();
		begin(DEBUG_BUDGET("d", "1000", "fail = closed"));
		assert_int_equal(ask(wishes[i]), ES_ROUTE_REJECT);
		assert_int_equal(rejection.status, 503);
		end();
	}
}

/* Time in which the thread does not run is not the plugin's. */
static void test_answer_of_a_thread_that_waited(void **state)
{
	(void)state;
	begin(DEBUG_BUDGET("d", "1000", ""));
	ask("wait 5000 2");
	assert_int_equal(report_of(0)->failures[ES_PLUGIN_FAILURE_too_slow], 0);
	assert_int_equal(report_of(0)->answers[ES_PLUGIN_NODES], 1);
	assert_true(report_of(0)->max_us >= 5000);
	end();
}

/* Memory that a plugin has allocated when it crashes is lost: nobody knows in what state it is. */
static void lsan_disable(void)
{
#ifdef __SANITIZE_ADDRESS__
	__lsan_disable();
#endif
}

static void lsan_enable(void)
{
#ifdef __SANITIZE_ADDRESS__
	__lsan_enable();
#endif
}

/* A call that crashes is an answer that is wrong; after some, the plugin is not called any more. */
static void test_crashes(void **state)
{
	static const char *const wishes[] = {"crash", "abort", "overflow"};
	int policy;

	(void)state;
	es_guard_install(); /* cmocka has handlers of its own */
	lsan_disable();
	begin(DEBUG("d", "") DEBUG("next", "config = \"answer pass\""));
	policy = ask("pass");
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(report_of(0)->crashes, i);
		assert_false(report_of(0)->is_off);
		assert_int_equal(ask("node 1"), 1);
		/* The second of the chain crashes too: each has its own count. */
		assert_int_equal(ask(wishes[i]), policy);
		assert_int_equal(report_of(0)->failures[ES_PLUGIN_FAILURE_crashed], i + 1);
		assert_int_equal(failures(0), i + 1);
	}
	assert_string_equal(report_of(0)->last_error, "it crashed: SIGSEGV");
	assert_int_equal(report_of(0)->crashes, 3);
	assert_true(report_of(0)->is_off);
	for (int i = 1; i <= 5; i++) {
		assert_int_equal(ask("node 1"), policy);
		assert_int_equal(report_of(0)->failures[ES_PLUGIN_FAILURE_off], i);
	}
	end();
	begin(DEBUG("d", "fail = closed"));
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(ask("crash"), ES_ROUTE_REJECT);
		assert_int_equal(rejection.status, 503);
	}
	assert_int_equal(report_of(0)->failures[ES_PLUGIN_FAILURE_crashed], 3);
	assert_int_equal(report_of(0)->failures[ES_PLUGIN_FAILURE_off], 2);
	end();
	lsan_enable();
}

/* Why there is no answer is kept, in characters that do a terminal no harm; not of what is only explained. */
static void test_last_error(void **state)
{
	(void)state;
	begin(DEBUG("d", ""));
	assert_string_equal(report_of(0)->last_error, "");
	ask("pass");
	ask("error");
	assert_string_equal(report_of(0)->last_error, "told to fail: ?[2J");
	assert_int_equal(report_of(0)->failures[ES_PLUGIN_FAILURE_error], 1);
	end();
	begin(DEBUG("d", "config = \"answer error\""));
	explain.count = 0;
	es_http_head_init(&head);
	es_http_head_scan(&head, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
	request = (struct es_request_view){.current = -1};
	es_request_describe(&request, &head, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27, 1, &content_name);
	es_route(&router, 0, &request, 1000, &explain, &rejection);
	assert_string_equal(explain.step[0], "plugin d: told to fail: ?[2J");
	assert_string_equal(report_of(0)->last_error, "");
	end();
}

static void test_thread_fails(void **state)
{
	(void)state;
	begin(DEBUG("d", "config = \"thread fail\""));
	assert_in_range(ask("node 1"), 0, 2);
	assert_int_equal(report_of(0)->failures[ES_PLUGIN_FAILURE_no_thread], 1);
	assert_int_equal(report_of(0)->metric[0].value, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wrong_answers),
		cmocka_unit_test(test_answers_that_come_too_late),
		cmocka_unit_test(test_answer_of_a_thread_that_waited),
		cmocka_unit_test(test_crashes),
		cmocka_unit_test(test_last_error),
		cmocka_unit_test(test_thread_fails),
	};

	setenv(ES_PLUGIN_DIR_ENV, EARSHOT_PLUGINS, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
