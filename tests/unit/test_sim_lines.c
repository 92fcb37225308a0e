// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A line of an access log as people's servers and collectors write it: every spelling of a time, who the
 * client is and which site was asked, HAProxy's order.
 */
#include "cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/trace.h"

#define WHEN "[10/Oct/2000:13:55:36 -0700]"
#define THEN 971211336
#define REST " \"GET /a HTTP/1.0\" 200 5 \"-\" \"curl/7\""

static struct es_trace_record record_of(const char *line)
{
	struct es_trace_record r = {};
	enum es_trace_skip skip = es_trace_log_line(line, strlen(line), &r);

	if (skip != ES_TRACE_USED)
		fail_msg("%s: %s", line, es_trace_skip_name(skip));
	assert_int_equal(r.uri_len, 2);
	assert_memory_equal(r.uri, "/a", 2);
	assert_int_equal(r.status, 200);
	assert_int_equal(r.size, 5);
	return r;
}

static void test_times(void **state)
{
	static const char *const times[] = {
		WHEN,
		"[10/Oct/2000:13:55:36.123 -0700]",
		"[10/Oct/2000:20:55:36.123]",
		"[10/Oct/2000:20:55:36]",
		"[10/Oct/2000:22:55:36 +02:00]",
		"[2000-10-10T13:55:36-07:00]",
		"[2000-10-10T13:55:36.5-07:00]",
		"[2000-10-10T13:55:36,999999999 -0700]",
		"[2000-10-10 20:55:36]",
		"[2000-10-10T20:55:36Z]",
		"[2000-10-11T02:25:36+05:30]",
		"[2000-10-10T22:55:36+02]",
		"[971211336]",
		"[971211336.123]",
		"2000-10-10T13:55:36-07:00",
		"2000-10-10T20:55:36.25Z",
		"2000-10-10 20:55:36",
		"2000-10-10 20:55:36,250",
		"2000-10-10 13:55:36 -0700",
	};
	char line[200];

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct es_trace_record r;

		snprintf(line, sizeof(line), "192.0.2.1 - - %s%s", times[i], REST);
		r = record_of(line);
		if (r.time_s != THEN)
			fail_msg("%s: %lld", times[i], r.time_s);
	}
}

static void test_no_times(void **state)
{
	static const char *const times[] = {
		"[2000-13-10T13:55:36Z]",
		"[2000-10-10]",
		"[2000-10-10T13:55]",
		"[2000-10-10T13:55:36+99:00]",
		"[10/Oct/2000 13:55:36]",
		"[2000-10-10T13:55:36 x]",
		"[12345678]",
		"[123456789012]",
		"2000-10-10",
		"13:55:36",
		"[10/Oct/2000:13:55:36.]",
		"10/10/2000 13:55:36",
	};
	struct es_trace_record r;
	char line[200];

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		snprintf(line, sizeof(line), "192.0.2.1 - - %s%s", times[i], REST);
		if (es_trace_log_line(line, strlen(line), &r) != ES_SKIP_NO_TIME)
			fail_msg("%s is taken for a time", times[i]);
	}
}

/* The text before the time, and the client and the site in it. */
static const struct {
	const char *before;
	const char *client;
	const char *host;
} g_fronts[] = {
	{"192.0.2.1 - - ", "192.0.2.1", ""},
	{"192.0.2.1 - John Smith ", "192.0.2.1", ""},
	{"192.0.2.1 - [admin] ", "192.0.2.1", ""},
	{"192.0.2.1 - \"\" ", "192.0.2.1", ""},
	{"2001:db8::1 - - ", "2001:db8::1", ""},
	{"[2001:db8::1] - - ", "2001:db8::1", ""},
	{"[2001:db8::1]:5000 - - ", "2001:db8::1", ""},
	{"192.0.2.1:5000 - - ", "192.0.2.1", ""},
	{"192.0.2.1, 10.0.0.1 - - ", "192.0.2.1", ""},
	{"192.0.2.1, 10.0.0.1, 10.0.0.2 - - ", "192.0.2.1", ""},
	{"www.example.org 192.0.2.1 - - ", "192.0.2.1", "www.example.org"},
	{"www.example.org:80 192.0.2.1 - - ", "192.0.2.1", "www.example.org"},
	{"www.example.org:443 192.0.2.1 - John Smith ", "192.0.2.1", "www.example.org"},
	{"www.example.org [2001:db8::1] - - ", "2001:db8::1", "www.example.org"},
	{"www.example.org:80 [2001:db8::1] - - ", "2001:db8::1", "www.example.org"},
	{"203.0.113.1:80 192.0.2.1 - - ", "192.0.2.1", "203.0.113.1"},
	{"- 192.0.2.1 - - ", "192.0.2.1", ""},
	{"client.example.net - - ", "client.example.net", ""},
	{"client.example.net - John Smith ", "client.example.net", ""},
	{"client.example.net identity user ", "client.example.net", ""},
	{"www.example.org client.example.net - - ", "client.example.net", "www.example.org"},
	{"www.example.org:80 client.example.net - - ", "client.example.net", "www.example.org"},
	{"unix: - - ", "unix:", ""},
	/* collectors */
	{"Nov 24 23:00:00 web1 nginx: 192.0.2.1 - - ", "192.0.2.1", ""},
	{"<190>Nov  4 23:00:00 10.0.0.9 nginx[12]: 192.0.2.1 - - ", "192.0.2.1", ""},
	{"Feb  6 12:14:14 lb haproxy[14389]: www.example.org 192.0.2.1 - - ", "192.0.2.1", "www.example.org"},
	{"<190>1 2024-10-10T13:55:36.123Z 10.0.0.9 nginx 123 - - 192.0.2.1 - - ", "192.0.2.1", ""},
	{"<190>1 2024-10-10T13:55:36Z web1 nginx - - [a@1 b=\"c\"] client.example.net - - ",
	 "client.example.net", ""},
	{"2024-10-10T13:55:36.123456+02:00 10.0.0.9 nginx: 192.0.2.1 - - ", "192.0.2.1", ""},
	{"2024-10-10T13:55:36.123456789Z 192.0.2.1 - - ", "192.0.2.1", ""},
	{"2024-10-10T13:55:36.123456789Z stdout F client.example.net - - ", "client.example.net", ""},
	{"web_1  | 192.0.2.1 - - ", "192.0.2.1", ""},
	{"web_1  | 2024-10-10T13:55:36Z client.example.net - - ", "client.example.net", ""},
	{"\xef\xbb\xbf"
	 "192.0.2.1 - - ",
	 "192.0.2.1", ""},
};

static void test_clients(void **state)
{
	char line[400];

	(void)state;
	for (size_t i = 0; i < sizeof(g_fronts) / sizeof(g_fronts[0]); i++) {
		struct es_trace_record r;

		snprintf(line, sizeof(line), "%s%s%s", g_fronts[i].before, WHEN, REST);
		r = record_of(line);
		if (r.time_s != THEN)
			fail_msg("%s: another time", g_fronts[i].before);
		if (r.client != es_content_hash(g_fronts[i].client, strlen(g_fronts[i].client)))
			fail_msg("%s: another client", g_fronts[i].before);
		if (r.host_len != strlen(g_fronts[i].host) ||
		    (r.host_len && memcmp(r.host, g_fronts[i].host, r.host_len) != 0))
			fail_msg("%s: the site is \"%.*s\"", g_fronts[i].before, (int)r.host_len, r.host);
	}
}

static void test_time_first(void **state)
{
	__u64 client = es_content_hash("192.0.2.1", 9);

	(void)state;
	assert_true(record_of("[2000-10-10T13:55:36-07:00] 192.0.2.1" REST).client == client);
	assert_true(record_of("2000-10-10T13:55:36-07:00 192.0.2.1" REST).client == client);
	assert_true(record_of("2000-10-10T13:55:36-07:00 www.example.org 192.0.2.1 - -" REST).client ==
		    client);
}

static void test_site_in_request(void **state)
{
	struct es_trace_record r;

	(void)state;
	r = record_of("www.example.org 192.0.2.1 - - " WHEN " \"GET http://other.example/a HTTP/1.1\" 200 5");
	assert_int_equal(r.host_len, 13);
	assert_memory_equal(r.host, "other.example", 13);
}

/* LiteSpeed's whole line is in quotes. */
static void test_litespeed(void **state)
{
	(void)state;
	assert_true(record_of("\"192.0.2.1 - - " WHEN REST "\"").client == es_content_hash("192.0.2.1", 9));
}

static void test_haproxy(void **state)
{
	static const char prefix[] = "Feb  6 12:14:14 lb haproxy[14389]: ";
	static const char line[] =
		"10.0.1.2:33317 [10/Oct/2000:20:55:36.655] http-in static/srv1 10/0/30/69/109 200 5 - - "
		"---- 1/1/1/1/0 0/0 {1wt.eu|a b} {} \"GET /a HTTP/1.1\"";
	char text[400];
	struct es_trace_record r = record_of(line);

	(void)state;
	assert_true(r.client == es_content_hash("10.0.1.2", 8));
	assert_int_equal(r.time_s, THEN);
	snprintf(text, sizeof(text), "%s%s", prefix, line);
	assert_true(record_of(text).client == r.client);
	/* A connection that brought no request. */
	snprintf(text, sizeof(text), "%s",
		 "10.0.1.2:33317 [10/Oct/2000:20:55:36.655] http-in http-in/<NOSRV> -1/-1/-1/-1/1 400 0 - - "
		 "CR-- "
		 "1/1/0/0/0 0/0 \"<BADREQ>\"");
	assert_int_equal(es_trace_log_line(text, strlen(text), &r), ES_SKIP_BAD_REQUEST);
	/* A line of mode tcp has no request at all. */
	snprintf(text, sizeof(text), "%s",
		 "10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0");
	assert_int_equal(es_trace_log_line(text, strlen(text), &r), ES_SKIP_NO_REQUEST);
}

/* The end of the line, anywhere. */
static void test_cut_lines(void **state)
{
	static const char line[] =
		"<190>1 2024-10-10T13:55:36Z web1 nginx - - [a@1 b=\"c\"] www.example.org:80 "
		"[2001:db8::1]:5000 - John Smith " WHEN REST;
	struct es_trace_record r;

	(void)state;
	for (size_t from = 0; from < sizeof(line); from++)
		for (size_t to = from; to < sizeof(line); to++) {
			/* of its own, so that a sanitizer sees whoever reads on */
			char *text = malloc(to - from + !(to - from));

			assert_non_null(text);
			memcpy(text, line + from, to - from);
			(void)es_trace_log_line(text, to - from, &r);
			free(text);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),		cmocka_unit_test(test_no_times),
		cmocka_unit_test(test_clients),		cmocka_unit_test(test_time_first),
		cmocka_unit_test(test_site_in_request), cmocka_unit_test(test_litespeed),
		cmocka_unit_test(test_haproxy),		cmocka_unit_test(test_cut_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
