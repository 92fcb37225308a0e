// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * HTTP/2 in earshot-tls: which requests the server behind gets, what the client gets of its responses, and
 * how much is in memory meanwhile.
 */
#include "tests/unit/streams_user.h"

static void test_request(void **state)
{
	int32_t id, second;
	int fd;

	(void)state;
	begin(ES_INSPECT_NEVER);
	id = ask_with("GET", "/a?b", "cookie: x=1|x-forwarded-for: 6.6.6.6|cookie: y=2|accept: */*", NULL);
	fd = server();
	assert_string_equal(heard(fd), "GET /a?b HTTP/1.1\r\nHost: a.example\r\naccept: */*\r\n"
				       "Cookie: x=1; y=2\r\nX-Forwarded-For: ::\r\n"
				       "X-Forwarded-Proto: https\r\nX-Forwarded-Port: 512\r\n\r\n");
	say(fd, "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
		"Connection: x-own\r\nX-Own: 1\r\nX-Other: 2\r\n\r\n3\r\nabc\r\n");
	assert_string_equal(got_of(id)->fields, ":status=103|link=x|:status=200|x-other=2|");
	expect_body(got_of(id), "abc");
	assert_false(got_of(id)->is_closed);
	say(fd, "2\r\nde\r\n0\r\nX-Trailer: yes\r\nContent-Length: 9\r\n\r\n");
	expect_body(got_of(id), "abcde");
	assert_true(got_of(id)->is_closed && !got_of(id)->error);
	assert_non_null(strstr(got_of(id)->fields, "x-trailer=yes|"));
	assert_null(strstr(got_of(id)->fields, "content-length"));
	/* The connection to the server is used again. */
	second = ask_with("HEAD", "/", "", NULL);
	assert_non_null(strstr(heard(fd), "HEAD / HTTP/1.1\r\n"));
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
	assert_true(got_of(second)->is_closed && !got_of(second)->error);
	assert_string_equal(got_of(second)->fields, ":status=200|content-length=5|");
	expect_body(got_of(second), "");
	assert_string_equal(heard(fd), ""); /* and then it is closed */
	close(fd);
	finish();
}

/* Whatever ends at the close of the server's connection, too early or not, and what is no response. */
static void test_ends(void **state)
{
	static const struct {
		const char *said;
		unsigned int status;
		uint32_t error;
		const char *body;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\n\r\nto the end", 200, 0, "to the end"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nto", 200, NGHTTP2_INTERNAL_ERROR, "to"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nto\r\n", 200,
		 NGHTTP2_INTERNAL_ERROR, "to"},
		{"HTTP/1.1 200 OK\r\nX: ", 502, 0, "Bad Gateway\n"},
		{"hello\n", 502, 0, "Bad Gateway\n"},
		{"HTTP/1.1 200 OK\r\na b: c\r\nContent-Length: 0\r\n\r\n", 502, 0, "Bad Gateway\n"},
		{"HTTP/1.1 101 Switching\r\n\r\n", 502, 0, "Bad Gateway\n"},
		{"", 502, 0, "Bad Gateway\n"},
	};

	(void)state;
	begin(ES_INSPECT_NEVER);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t id = ask("/");
		int fd = server();

		heard(fd);
		say(fd, cases[i].said);
		shutdown(fd, SHUT_WR);
		turn();
		assert_int_equal(got_of(id)->status, cases[i].status);
		assert_true(got_of(id)->is_closed);
		assert_int_equal(got_of(id)->error, cases[i].error);
		expect_body(got_of(id), cases[i].body);
		close(fd);
	}
	finish();
}

/* Refused without a word to the server, and the connection goes on. */
static void test_refused(void **state)
{
	static const struct {
		const char *method, *path, *fields;
		unsigned int status; /* 0: reset */
	} cases[] = {
		{"CONNECT", "", "", 405},
		{"GET", "/ HTTP/1.1\r\nX: y", "", 0},
		{"GET", "http://b.example/", "", 0},
		{"GET", "/", "x: 1\r\nTransfer-Encoding: chunked", 400},
		{"GET", "/", "x: 1\ny: 2", 400},
		{"GET", "/", "transfer-encoding: chunked", 0},
		{"GET", "/", "connection: close", 0},
		{"GET", "/", "host: b.example", 400},
		{"GET", "/", "content-length: 5", 0}, /* and no body */
		{"GET", "/", "content-length: 5|content-length: 5", 0},
	};

	(void)state;
	begin(ES_INSPECT_NEVER);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t id = ask_with(cases[i].method, cases[i].path, cases[i].fields, NULL);

		turn();
		if (!got_of(id)->is_closed)
			fail_msg("case %zu: open", i);
		if (got_of(id)->status != cases[i].status && !(got_of(id)->status == 400 && !cases[i].status))
			fail_msg("case %zu: %u", i, got_of(id)->status);
		assert_int_equal(accept_one(), -1);
	}
	assert_int_equal(u.last, -1);
	finish();
}

static void test_long_head(void **state)
{
	char *fields = malloc(80000);
	int32_t id;

	(void)state;
	begin(ES_INSPECT_NEVER);
	snprintf(fields, 80000, "x: %040000d|y: %030000d", 1, 1);
	id = ask_with("GET", "/", fields, NULL);
	turn();
	assert_int_equal(got_of(id)->status, 431);
	assert_int_equal(accept_one(), -1);
	free(fields);
	finish();
}

#define UPLOAD	 1000000
#define DOWNLOAD 5000000

/* All that the server is sent, until nothing more comes. */
static size_t hear_all(int fd, char *text, size_t size)
{
	size_t had = 0;

	for (int quiet = 0; quiet < 3; quiet++) {
		ssize_t len;

		turn();
		while ((len = recv(fd, text + had, size - had - 1, 0)) > 0) {
			had += (size_t)len;
			quiet = 0;
		}
	}
	text[had] = '\0';
	return had;
}

/* The server reads of an upload just that which the client has sent, with a length and without. */
static void upload(size_t total, int is_counted)
{
	static char text[2 * UPLOAD];
	size_t left = total, at = 0;
	char *body, *end, length[40];
	int32_t id;
	int fd;

	begin(ES_INSPECT_NEVER);
	snprintf(length, sizeof(length), "content-length: %zu", total);
	id = ask_with("POST", "/", is_counted ? length : "", &left);
	fd = server();
	end = text + hear_all(fd, text, sizeof(text));
	body = strstr(text, "\r\n\r\n");
	assert_non_null(body);
	assert_int_equal(!strstr(text, "Transfer-Encoding: chunked\r\n"), is_counted);
	body += 4;
	for (;;) {
		size_t len = is_counted ? total - at : strtoul(body, &body, 16);

		body += is_counted ? 0 : 2;
		if (!len)
			break;
		for (size_t i = 0; i < len; i++, at++)
			assert_int_equal((uint8_t)body[i], (uint8_t)((total - at) * 7));
		body += len + (is_counted ? 0 : 2);
	}
	assert_int_equal(at, total);
	assert_int_equal(end - body, is_counted ? 0 : 2);
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_body(got_of(id), "ok");
	assert_true(got_of(id)->is_closed && !got_of(id)->error);
	close(fd);
	finish();
}

static void test_upload(void **state)
{
	static const size_t totals[] = {0, 1, 16384, 16385, UPLOAD};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(totals) / sizeof(totals[0]); i++)
		upload(totals[i / 2], i & 1);
}

/* A server that does not read stops the client, and little is in memory. */
static void test_upload_stops(void **state)
{
	size_t left = 100 << 20;
	int32_t id;
	int fd;

	(void)state;
	begin(ES_INSPECT_NEVER);
	id = ask_with("POST", "/", "content-length: 104857600", &left);
	fd = server();
	for (int i = 0; i < 50; i++)
		turn();
	assert_true((100 << 20) - left < (2 << 20));
	/* Too much of it, or too little, never arrives as if it was right. */
	nghttp2_submit_rst_stream(u.session, 0, id, NGHTTP2_CANCEL);
	turn();
	assert_int_equal(u.last, -1);
	while (recv(fd, u.w.serve.scratch, 1000, 0) > 0)
		;
	assert_int_equal(recv(fd, u.w.serve.scratch, 1, 0), 0);
	close(fd);
	finish();
}

/* An answer that comes before the upload is over does not stop it; one that ends the connection does. */
static void test_early(void **state)
{
	static char text[2 * UPLOAD];

	(void)state;
	for (int is_cut = 0; is_cut < 2; is_cut++) {
		size_t left = UPLOAD;
		int32_t id;
		int fd;

		begin(ES_INSPECT_NEVER);
		id = ask_with("POST", "/", "content-length: 1000000", &left);
		fd = server();
		say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		if (is_cut) {
			close(fd);
			turn();
			turn();
		} else {
			assert_true(hear_all(fd, text, sizeof(text)) > UPLOAD);
			close(fd);
		}
		expect_body(got_of(id), "ok");
		assert_true(got_of(id)->is_closed && !got_of(id)->error);
		finish();
	}
}

/* Bytes that a server may send before it has to wait. */
static size_t fill(int fd)
{
	static char text[16384];
	size_t sent = 0;

	for (int quiet = 0; quiet < 3; quiet++) {
		ssize_t len;

		while ((len = send(fd, text, sizeof(text), MSG_NOSIGNAL)) > 0) {
			sent += (size_t)len;
			quiet = 0;
		}
		turn();
	}
	return sent;
}

/* A client that does not read a stream stops its server; others go on. */
static void test_slow_reader(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n";
	int32_t other;
	int fd, next;

	(void)state;
	begin(ES_INSPECT_NEVER);
	u.lazy = ask("/lazy");
	fd = server();
	say(fd, head);
	assert_true(fill(fd) < 2 << 20);
	assert_int_equal(es_buffer_len(&got_of(u.lazy)->body), 65535);
	for (int i = 0; i < 20; i++) {
		other = ask("/other");
		next = server();
		say(next, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
		expect_body(got_of(other), "hello");
		assert_true(got_of(other)->is_closed);
		close(next);
	}
	assert_true(fill(fd) == 0);
	/* When it reads on, all of it comes. */
	nghttp2_session_consume_stream(u.session, u.lazy, 65535);
	turn();
	assert_true(fill(fd) > 0);
	close(fd);
	finish();
}

/* A long response, to a client that reads now and then. */
static void test_download(void **state)
{
	size_t left = DOWNLOAD, at = 0;
	char text[10000];
	int32_t id;
	int fd;

	(void)state;
	begin(ES_INSPECT_NEVER);
	id = ask("/");
	fd = server();
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n");
	for (int turns = 0; turns < 5000 && !got_of(id)->is_closed; turns++) {
		while (left) {
			ssize_t len = (ssize_t)(left < sizeof(text) ? left : sizeof(text));

			for (ssize_t i = 0; i < len; i++)
				text[i] = (char)((DOWNLOAD - left + (size_t)i) * 11);
			len = send(fd, text, (size_t)len, MSG_NOSIGNAL);
			if (len <= 0)
				break;
			left -= (size_t)len;
		}
		/* The client's socket is full until here, and then empty. */
		for (int i = 0; i < 10; i++)
			ev_run(u.w.serve.loop, EVRUN_NOWAIT);
		turn();
	}
	assert_true(got_of(id)->is_closed && !got_of(id)->error);
	assert_int_equal(es_buffer_len(&got_of(id)->body), DOWNLOAD);
	for (; at < DOWNLOAD; at++)
		assert_int_equal((char)es_buffer_front(&got_of(id)->body)[at], (char)(at * 11));
	close(fd);
	finish();
}

/* No more at a time than is said. */
static void test_many(void **state)
{
	int32_t id[150];
	int fds = 0;

	(void)state;
	begin(ES_INSPECT_NEVER);
	turn();
	for (int i = 0; i < 150; i++)
		id[i] = ask("/");
	turn();
	for (int fd; (fd = accept_one()) >= 0; fds++) {
		say(fd, "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n");
		close(fd);
	}
	assert_true(fds >= ES_STREAMS_MAX);
	for (int i = 0; i < ES_STREAMS_MAX; i++)
		assert_int_equal(got_of(id[i])->status, 204);
	assert_int_equal(u.w.counters.count[ES_SERVE_upstream_connected], fds);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),	 cmocka_unit_test(test_ends),
		cmocka_unit_test(test_refused),	 cmocka_unit_test(test_long_head),
		cmocka_unit_test(test_upload),	 cmocka_unit_test(test_upload_stops),
		cmocka_unit_test(test_early),	 cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_download), cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
