// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading access logs: lines and records made by hand, what is wrong with bad ones, pieces of any size,
 * holes, sizes, and the grouping into connections.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/trace.h"

#define WHEN "[10/Oct/2000:13:55:36 -0700]"
#define OK   WHEN " \"GET /a HTTP/1.0\" 200 5\n"

static enum es_trace_skip parse(const char *line, struct es_trace_record *record)
{
	return es_trace_log_line(line, strlen(line), record);
}

/* The line must be good, and ask for @uri, of @size bytes. */
static void expect_uri(const char *line, const char *uri, __u64 size)
{
	struct es_trace_record r;

	assert_int_equal(parse(line, &r), ES_TRACE_USED);
	assert_int_equal(r.uri_len, strlen(uri));
	assert_memory_equal(r.uri, uri, r.uri_len);
	assert_int_equal(r.size, size);
}

static void test_common(void **state)
{
	struct es_trace_record r;

	(void)state;
	/* Apache's own example */
	assert_int_equal(parse("127.0.0.1 - frank " WHEN " \"GET /apache_pb.gif HTTP/1.0\" 200 2326", &r),
			 ES_TRACE_USED);
	assert_int_equal(r.time_s, 971211336);
	assert_int_equal(r.size, 2326);
	assert_int_equal(r.status, 200);
	assert_true(r.has_size && r.is_get && !r.is_dynamic);
	assert_int_equal(r.uri_len, 14);
	assert_memory_equal(r.uri, "/apache_pb.gif", 14);
	assert_int_equal(parse("c - - [29/Feb/2024:23:59:60 +0000] \"GET / HTTP/1.1\" 304 -", &r),
			 ES_TRACE_USED);
	assert_int_equal(r.time_s, 1709251200);
	assert_true(!r.has_size);
}

static void test_odd_but_good(void **state)
{
	struct es_trace_record r, s;

	(void)state;
	expect_uri("h - - " WHEN " \"GET http://w.example:80/x/y?z=1 HTTP/1.1\" 200 7", "/x/y?z=1", 7);
	expect_uri("h - - " WHEN " \"GET http://w.example HTTP/1.1\" 200 7", "/", 7);
	expect_uri("h - - " WHEN " \"GET http://w.example?a=/b HTTP/1.1\" 200 7", "/", 7);
	expect_uri("h - - " WHEN " \"GET /x#part HTTP/1.1\" 200 7", "/x", 7);
	expect_uri("h - - " WHEN " \"GET /go?to=http://a/ HTTP/1.1\" 200 7", "/go?to=http://a/", 7);
	expect_uri("h - - " WHEN " \"GET /q\\\"uote\\\" HTTP/1.1\" 200 7", "/q\\\"uote\\\"", 7);
	expect_uri("h - - " WHEN " \"GET /with space HTTP/1.1\" 200 7", "/with space", 7);
	expect_uri("h - - " WHEN " \"GET /old\" 200 7", "/old", 7);
	expect_uri("h - John Doe " WHEN " \"GET /a HTTP/1.1\" 200 7", "/a", 7);
	expect_uri("h - - " WHEN " \"GET /a HTTP/1.1\" 200 7 \"http://ref/\" \"Mozilla/4.0 (\\\"x\\\")\"\r",
		   "/a", 7);
	/* A virtual host in front is not the client. */
	assert_int_equal(parse("v:80 10.0.0.1 - - " WHEN " \"GET / HTTP/1.1\" 200 7", &r), ES_TRACE_USED);
	assert_int_equal(parse("10.0.0.1 - - " WHEN " \"GET / HTTP/1.1\" 200 7", &s), ES_TRACE_USED);
	assert_true(r.client == s.client);
	assert_int_equal(parse("::1 - a b " WHEN " \"GET / HTTP/1.1\" 200 7", &r), ES_TRACE_USED);
	assert_true(r.client != s.client);
}

static void test_dynamic(void **state)
{
	static const char *const uris[] = {"/a.php",	      "/A.PHP",	      "/x?y",	      "/cgi-bin/x",
					   "/a/b.jsp",	      "/a.php?ver=1", "/a.php/b.css", "/?a.css",
					   "/search?q=a.css", "/a.json?x"};
	static const char *const files[] = {
		"/php", "/a.css?ver=6.1", "/A.JS?6", "/x/y.woff2?a#b", "/a.html?utm_source=b", "/a.json",
		"/do"};
	struct es_trace_record r;
	char line[200];

	(void)state;
	for (size_t i = 0; i < sizeof(uris) / sizeof(uris[0]); i++) {
		snprintf(line, sizeof(line), "h - - %s \"GET %s HTTP/1.1\" 200 7", WHEN, uris[i]);
		assert_int_equal(parse(line, &r), ES_TRACE_USED);
		assert_true(r.is_dynamic);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(line, sizeof(line), "h - - %s \"GET %s HTTP/1.1\" 200 7", WHEN, files[i]);
		assert_int_equal(parse(line, &r), ES_TRACE_USED);
		assert_false(r.is_dynamic);
	}
}

static void test_malformed(void **state)
{
	static const struct {
		const char *line;
		enum es_trace_skip skip;
	} cases[] = {
		{"", ES_SKIP_EMPTY},
		{"  \t\r", ES_SKIP_EMPTY},
		{WHEN " \"GET / HTTP/1.0\" 200 5", ES_SKIP_NO_CLIENT},
		{"\"GET / HTTP/1.0\" 200 5", ES_SKIP_NO_CLIENT},
		{"host", ES_SKIP_NO_TIME},
		{"h - - \"GET / HTTP/1.0\" 200 5", ES_SKIP_NO_TIME},
		{"h - - [10/Oct/2000:13:55:36 -0700 \"GET / HTTP/1.0\" 200 5", ES_SKIP_NO_TIME},
		{"h - - [10/Okt/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5", ES_SKIP_NO_TIME},
		{"h - - [32/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5", ES_SKIP_NO_TIME},
		{"h - - [10/Oct/2000:24:55:36 -0700] \"GET / HTTP/1.0\" 200 5", ES_SKIP_NO_TIME},
		{"h - - [] \"GET / HTTP/1.0\" 200 5", ES_SKIP_NO_TIME},
		{"h - - " WHEN " GET / 200 5", ES_SKIP_NO_REQUEST},
		{"h - - " WHEN " \"GET / HTTP/1.0 200 5", ES_SKIP_NO_REQUEST},
		{"h - - " WHEN " \"GET /\\\" 200 5", ES_SKIP_NO_REQUEST},
		{"h - - " WHEN, ES_SKIP_NO_REQUEST},
		{"h - - " WHEN " \"\" 400 5", ES_SKIP_BAD_REQUEST},
		{"h - - " WHEN " \"-\" 408 -", ES_SKIP_BAD_REQUEST},
		{"h - - " WHEN " \"GET\" 400 5", ES_SKIP_BAD_REQUEST},
		{"h - - " WHEN " \"GET x HTTP/1.0\" 400 5", ES_SKIP_BAD_REQUEST},
		{"h - - " WHEN " \"OPTIONS * HTTP/1.0\" 200 5", ES_SKIP_BAD_REQUEST},
		{"h - - " WHEN " \"\\x16\\x03\\x01\" 400 5", ES_SKIP_BAD_REQUEST},
		{"h - - " WHEN " \"GET / HTTP/1.0\"", ES_SKIP_BAD_STATUS},
		{"h - - " WHEN " \"GET / HTTP/1.0\" - 5", ES_SKIP_BAD_STATUS},
		{"h - - " WHEN " \"GET / HTTP/1.0\" 2000 5", ES_SKIP_BAD_STATUS},
		{"h - - " WHEN " \"GET / HTTP/1.0\" 20x 5", ES_SKIP_BAD_STATUS},
		{"h - - " WHEN " \"GET / HTTP/1.0\" 200", ES_SKIP_BAD_SIZE},
		{"h - - " WHEN " \"GET / HTTP/1.0\" 200 five", ES_SKIP_BAD_SIZE},
		{"h - - " WHEN " \"GET / HTTP/1.0\" 200 5x", ES_SKIP_BAD_SIZE},
		{"h - - " WHEN " \"GET / HTTP/1.0\" 200 -5", ES_SKIP_BAD_SIZE},
		{"h - - " WHEN " \"GET / HTTP/1.0\" 200 99999999999999999999", ES_SKIP_BAD_SIZE},
		{"h - - " WHEN " \"GET / HTTP/1.0\" 200 18446744073709551615", ES_SKIP_BAD_SIZE},
		{"h - - " WHEN " \"GET / HTTP/1.0\" 200 68719476737", ES_SKIP_BAD_SIZE}, /* 64 GiB and 1 */
	};
	struct es_trace_record r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum es_trace_skip skip = parse(cases[i].line, &r);

		if (skip != cases[i].skip)
			fail_msg("%s: %s", cases[i].line, es_trace_skip_name(skip));
	}
}

/* All of @data at once, or in pieces of @piece bytes. */
static void feed(struct es_trace *trace, enum es_trace_format format, const void *data, size_t len,
		 size_t piece)
{
	const char *at = data;

	assert_int_equal(es_trace_init(trace, format, 0), 0);
	for (; len; len -= piece, at += piece) {
		if (piece > len)
			piece = len;
		assert_int_equal(es_trace_feed(trace, at, piece), 0);
	}
	assert_int_equal(es_trace_finish(trace), 0);
}

static void test_pieces(void **state)
{
	static const char log[] = "a - - " OK "\nnonsense\nb - - " WHEN " \"HEAD /b HTTP/1.0\" 200 9\n"
				  "b - - " WHEN " \"GET /b HTTP/1.0\" 404 9\r\n"
				  "a - - " WHEN " \"GET /b HTTP/1.0\" 200 77"; /* no newline at the end */
	struct es_trace t;

	(void)state;
	for (size_t piece = 1; piece <= sizeof(log); piece++) {
		feed(&t, ES_TRACE_AUTO, log, sizeof(log) - 1, piece);
		assert_int_equal(t.format, ES_TRACE_LOG);
		assert_int_equal(t.request_count, 2);
		assert_int_equal(t.files.count, 2);
		assert_int_equal(t.clients.count, 1);
		assert_string_equal(t.file[1].uri, "/b");
		assert_int_equal(t.size[1], 77);
		assert_int_equal(t.skipped[ES_TRACE_USED], 2);
		assert_int_equal(t.skipped[ES_SKIP_EMPTY], 1);
		assert_int_equal(t.skipped[ES_SKIP_NO_TIME], 1);
		assert_int_equal(t.skipped[ES_SKIP_METHOD], 1);
		assert_int_equal(t.skipped[ES_SKIP_STATUS], 1);
		es_trace_fini(&t);
	}
}

static void test_long_line(void **state)
{
	size_t len = ES_TRACE_LINE_MAX * 3;
	char *log = malloc(len + 200);
	struct es_trace t;

	(void)state;
	assert_non_null(log);
	memset(log, 'x', len);
	memcpy(log + len, "\na - - " OK, sizeof("\na - - " OK));
	for (size_t piece = 1000; piece < len * 2; piece *= 3) {
		feed(&t, ES_TRACE_AUTO, log, strlen(log), piece);
		assert_int_equal(t.skipped[ES_SKIP_TOO_LONG], 1);
		assert_int_equal(t.request_count, 1);
		es_trace_fini(&t);
	}
	free(log);
}

static void wc98(__u8 *bytes, unsigned int time, unsigned int client, unsigned int object, unsigned int size,
		 unsigned int status)
{
	const unsigned int words[] = {time, client, object, size};

	for (int i = 0; i < 16; i++)
		bytes[i] = (__u8)(words[i / 4] >> (24 - i % 4 * 8));
	bytes[16] = 0;			   /* GET */
	bytes[17] = (__u8)(0x80 | status); /* HTTP/1.1 or so */
	bytes[18] = 1;			   /* an image */
	bytes[19] = 7;
}

static void test_wc98(void **state)
{
	__u8 data[5 * ES_WC98_RECORD_BYTES + 3] = {};
	struct es_trace t;

	(void)state;
	wc98(data, 900000000, 17, 42, 5000, 2);			    /* 200 */
	wc98(data + 20, 900000001, 17, 42, 0xffffffff, 13);	    /* 304 */
	wc98(data + 40, 900000002, 18, 43, 100, 19);		    /* 404 */
	wc98(data + 60, 900000003, 18, 4294967295u, 0xffffffff, 2); /* 200 without a size */
	wc98(data + 80, 900000003, 18, 43, 100, 60);		    /* no such status */
	for (size_t piece = 1; piece <= sizeof(data); piece++) {
		feed(&t, ES_TRACE_AUTO, data, sizeof(data), piece);
		assert_int_equal(t.format, ES_TRACE_WC98);
		assert_int_equal(t.request_count, 3);
		assert_int_equal(t.request[0].time_s, 900000000);
		assert_int_equal(t.clients.count, 2);
		assert_string_equal(t.file[0].uri, "/42");
		assert_string_equal(t.file[1].uri, "/4294967295");
		assert_int_equal(t.size[0], 5000);
		assert_int_equal(t.sized[1], ES_SIZE_UNKNOWN);
		assert_int_equal(t.skipped[ES_SKIP_STATUS], 1);
		assert_int_equal(t.skipped[ES_SKIP_BAD_CODE], 1);
		assert_int_equal(t.skipped[ES_SKIP_CUT_OFF], 1);
		es_trace_fini(&t);
	}
}

static void test_wc98_type(void **state)
{
	struct es_trace_record r;
	__u8 data[20];
	char uri[16];

	(void)state;
	wc98(data, 1, 2, 3, 4, 2);
	data[18] = 6;
	assert_int_equal(es_trace_wc98_record(data, uri, &r), ES_TRACE_USED);
	assert_true(r.is_dynamic);
	data[16] = 2;
	assert_int_equal(es_trace_wc98_record(data, uri, &r), ES_TRACE_USED);
	assert_false(r.is_get);
	data[18] = 13;
	assert_int_equal(es_trace_wc98_record(data, uri, &r), ES_SKIP_BAD_CODE);
}

static void test_connections(void **state)
{
#define AT(second, client, path)                                                                             \
	client " - - [10/Oct/2000:13:55:" second " +0000] \"GET " path " HTTP/1.0\" 200 5\n"
	static const char log[] = AT("00", "a", "/1") AT("01", "b", "/2") AT("02", "a", "/3")
		AT("03", "a", "/4") AT("04", "b", "/5") AT("30", "b", "/6");
	/* a: 1 3 | 4; b: 2 5 | 6, as it was silent for 26 s */
	static const char *const expected[] = {"/1", "/3", "/2", "/5", "/4", "/6"};
	struct es_workload w = {};
	struct es_trace t;

	(void)state;
	feed(&t, ES_TRACE_AUTO, log, sizeof(log) - 1, sizeof(log));
	assert_int_equal(es_trace_workload(&t, 2, 15, &w), 0);
	es_trace_fini(&t);
	assert_int_equal(w.connection_count, 4);
	assert_int_equal(w.request_count, 6);
	assert_int_equal(w.first[1], 2);
	assert_int_equal(w.first[2], 4);
	assert_int_equal(w.first[3], 5);
	assert_int_equal(w.first[4], 6);
	for (int i = 0; i < 6; i++)
		assert_string_equal(w.file[w.request[i]].uri, expected[i]);
	es_workload_fini(&w);
	feed(&t, ES_TRACE_AUTO, "nothing\n", 8, 8);
	assert_int_equal(es_trace_workload(&t, 2, 15, &w), -ENODATA);
	es_trace_fini(&t);
}

static void test_stat(void **state)
{
	static const char log[] = "a - - " OK "a - - " OK "b - - " WHEN " \"GET /b HTTP/1.0\" 200 3000000\n"
				  "b - - " OK "b - - " WHEN " \"GET /c.php HTTP/1.0\" 200 7\n";
	struct es_trace_stat stat;
	struct es_trace t;

	(void)state;
	feed(&t, ES_TRACE_AUTO, log, sizeof(log) - 1, sizeof(log));
	assert_int_equal(es_trace_measure(&t, &stat), 0);
	assert_int_equal(stat.requests, 5);
	assert_int_equal(stat.files, 3);
	assert_int_equal(stat.clients, 2);
	assert_int_equal(stat.dynamic_requests, 1);
	assert_int_equal(stat.bytes, 3 * 5 + 3000000 + 7);
	assert_int_equal(stat.working_set_bytes, 3000005);
	assert_int_equal(stat.curve_count, 3); /* 1, 2 and 4 MiB */
	assert_true(stat.curve[2].hit_rate > 0.499 && stat.curve[2].hit_rate < 0.501);
	es_trace_fini(&t);
}

static void test_sizes(void **state)
{
	static const char log[] = "a - - " WHEN " \"GET /pieces HTTP/1.0\" 206 100\n"
				  "a - - " WHEN " \"GET /pieces HTTP/1.0\" 206 300\n"
				  "a - - " WHEN " \"GET /both HTTP/1.0\" 206 700\n"
				  "a - - " WHEN " \"GET /both HTTP/1.0\" 200 500\n"
				  "a - - " WHEN " \"GET /unknown HTTP/1.0\" 304 9\n"
				  "a - - " WHEN " \"GET /unknown HTTP/1.0\" 200 -\n"
				  "a - - " WHEN " \"GET /empty HTTP/1.0\" 200 0\n";
	static const __u8 sized[] = {ES_SIZE_OF_PIECES, ES_SIZE_WHOLE, ES_SIZE_UNKNOWN, ES_SIZE_WHOLE};
	static const __u64 size[] = {300, 700, 0, 0};
	struct es_trace_loss loss;
	struct es_trace_stat stat;
	struct es_trace t;

	(void)state;
	feed(&t, ES_TRACE_AUTO, log, sizeof(log) - 1, sizeof(log));
	assert_int_equal(t.files.count, 4);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(t.sized[i], sized[i]);
		assert_int_equal(t.size[i], size[i]);
	}
	assert_int_equal(es_trace_measure(&t, &stat), 0);
	assert_int_equal(stat.files_sized, 3);
	assert_int_equal(stat.files_of_pieces, 1);
	assert_int_equal(stat.unsized_requests, 2);
	es_trace_loss(&t, &loss);
	assert_int_equal(loss.files, 4);
	assert_int_equal(loss.unsized_files, 1);
	assert_int_equal(loss.unsized_requests, 2);
	assert_int_equal(loss.line_count, 7);
	assert_int_equal(es_trace_unusable(loss.skipped), 0);
	assert_int_equal(loss.bad.line, 0);
	es_trace_fini(&t);
}

static void test_names(void **state)
{
	static const char log[] = "a.example 10.0.0.1 - - " WHEN " \"GET /%7ex?%41 HTTP/1.0\" 200 1\n"
				  "A.EXAMPLE:80 10.0.0.1 - - " WHEN " \"GET /~x?A HTTP/1.0\" 200 1\n"
				  "b.example 10.0.0.1 - - " WHEN " \"GET /~x?A HTTP/1.0\" 200 1\n"
				  "10.0.0.1 - - " WHEN " \"GET //b.example/~x?A HTTP/1.0\" 200 1\n";
	static const char *const uris[] = {"//a.example/~x?A", "//b.example/~x?A"};
	struct es_workload w;
	struct es_trace t;

	(void)state;
	feed(&t, ES_TRACE_AUTO, log, sizeof(log) - 1, sizeof(log));
	assert_int_equal(es_trace_workload(&t, 1, 15, &w), 0);
	es_trace_fini(&t);
	assert_int_equal(w.file_count, 2);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(w.file[i].uri, uris[i]);
		assert_int_equal(w.file[i].host_len, 11);
	}
	es_workload_price(&w, 1, 0);
	assert_string_equal(w.file[0].name, uris[0]);
	assert_true(w.file[0].content == es_content_hash(uris[0], strlen(uris[0])));
	assert_true(w.file[0].content != w.file[1].content);
	es_workload_price(&w, 0, 0);
	assert_string_equal(w.file[0].name, "/~x?A");
	assert_true(w.file[0].content == w.file[1].content);
	es_workload_fini(&w);
}

/* Which lines are lost, and the first of them. */
static void test_loss(void **state)
{
	static const char log[] =
		"a - - " OK "\na - - " WHEN " \"POST / HTTP/1.0\" 200 1\nfirst\t\x01 bad \r\nsecond\n"
		"a - - " WHEN " \"GET / HTTP/1.0\" 200 x\n";
	struct es_trace t;

	(void)state;
	for (size_t piece = 1; piece <= sizeof(log); piece++) {
		feed(&t, ES_TRACE_AUTO, log, sizeof(log) - 1, piece);
		assert_int_equal(t.line_count, 6);
		assert_int_equal(es_trace_unusable(t.skipped), 3);
		assert_int_equal(t.skipped[ES_SKIP_NO_TIME], 2);
		assert_int_equal(t.bad.line, 4);
		assert_int_equal(t.bad.skip, ES_SKIP_NO_TIME);
		assert_string_equal(t.bad.text, "first ? bad");
		es_trace_fini(&t);
	}
}

/* Zeros end a line, wherever they are. */
static void test_holes(void **state)
{
	static const char log[] = "\0\0\0a - - " OK "\0\0b - - " OK "c - - [10/Oct\0\0\0\0d - - " OK "\0\0\0";
	struct es_trace t;

	(void)state;
	for (size_t piece = 1; piece <= sizeof(log); piece++) {
		feed(&t, ES_TRACE_AUTO, log, sizeof(log) - 1, piece);
		assert_int_equal(t.format, ES_TRACE_LOG);
		assert_int_equal(t.request_count, 3);
		assert_int_equal(t.clients.count, 3);
		assert_int_equal(t.skipped[ES_SKIP_HOLE], 4);
		assert_int_equal(t.skipped[ES_SKIP_NO_TIME], 1);
		assert_int_equal(t.skipped[ES_SKIP_EMPTY], 0);
		es_trace_fini(&t);
	}
}

/* A hole is no line that is too long. */
static void test_large_hole(void **state)
{
	size_t hole = ES_TRACE_LINE_MAX * 2;
	char *log = calloc(1, hole + 200);
	struct es_trace t;

	(void)state;
	assert_non_null(log);
	memcpy(log + hole, "a - - " OK, sizeof("a - - " OK) - 1);
	for (size_t piece = 1000; piece < hole * 2; piece *= 3) {
		feed(&t, ES_TRACE_AUTO, log, hole + sizeof("a - - " OK) - 1, piece);
		assert_int_equal(t.request_count, 1);
		assert_int_equal(t.skipped[ES_SKIP_HOLE], 1);
		assert_int_equal(es_trace_unusable(t.skipped), 0);
		es_trace_fini(&t);
	}
	free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_common),	    cmocka_unit_test(test_odd_but_good),
		cmocka_unit_test(test_dynamic),	    cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_pieces),	    cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_wc98),	    cmocka_unit_test(test_wc98_type),
		cmocka_unit_test(test_connections), cmocka_unit_test(test_stat),
		cmocka_unit_test(test_names),	    cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_loss),	    cmocka_unit_test(test_holes),
		cmocka_unit_test(test_large_hole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
