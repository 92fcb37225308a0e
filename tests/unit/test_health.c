// SPDX-License-Identifier: GPL-2.0-or-later
/* The checks of servers: against a listening socket of this process, and what a row of them says. */
#include "cmocka_all.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/sockaddr.h"
#include "inspector/health/server_check.h"
#include "inspector/health/streak.h"

static void test_rise_and_fall(void **state)
{
	struct es_streak v = {};

	(void)state;
	assert_true(es_streak_add(&v, 1, 2, 3) && !v.is_down);
	for (int i = 0; i < 10; i++) { /* never three in a row */
		assert_false(es_streak_add(&v, 0, 2, 3));
		assert_false(es_streak_add(&v, 0, 2, 3));
		assert_false(es_streak_add(&v, 1, 2, 3));
		assert_false(v.is_down);
	}
	assert_false(es_streak_add(&v, 0, 2, 3));
	assert_false(es_streak_add(&v, 0, 2, 3));
	assert_true(es_streak_add(&v, 0, 2, 3) && v.is_down);
	for (int i = 0; i < 10; i++) {
		assert_false(es_streak_add(&v, 1, 2, 3));
		assert_false(es_streak_add(&v, 0, 2, 3));
		assert_true(v.is_down);
	}
	assert_false(es_streak_add(&v, 1, 2, 3));
	assert_true(es_streak_add(&v, 1, 2, 3) && !v.is_down);
}

/* Before anything is known, one check decides; and so it does where something is only presumed. */
static void test_first_decides(void **state)
{
	(void)state;
	for (int passed = 0; passed < 2; passed++) {
		struct es_streak v = {};

		assert_false(v.is_known);
		assert_true(es_streak_add(&v, passed, 2, 3));
		assert_true(v.is_known && v.is_down == !passed);
		for (int is_down = 0; is_down < 2; is_down++) {
			es_streak_presume(&v, is_down);
			assert_true(v.is_known && v.is_down == is_down);
			assert_int_equal(es_streak_add(&v, passed, 2, 3), passed == is_down);
			assert_int_equal(v.is_down, !passed);
			assert_false(es_streak_add(&v, !passed, 2, 3)); /* no second one does */
			assert_int_equal(v.is_down, !passed);
		}
	}
}

/* struct family - of the service's address; @host: which the check's requests name */
struct family {
	struct es_addr address;
	const char *host;
};

static struct family v4 = {{.b = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}, "127.0.0.1"};
static struct family v6 = {{.b = {[15] = 1}}, "[::1]"};

struct world {
	const struct family *family;
	int listener;
	struct es_server_check check;
	unsigned long long now_ns;
};

static int set_up(void **state)
{
	static struct world w;
	const struct family *family = *state;
	union es_sockaddr own = es_sockaddr_of(&family->address, 0);
	struct es_conf_service service = {.check = {.type = ES_CONF_CHECK_TCP,
						    .path = "/alive",
						    .interval_ms = 1000,
						    .timeout_ms = 1000}};
	socklen_t len = sizeof(own);

	w = (struct world){.family = family, .now_ns = 1000000000, .listener = -1, .check.fd = -1};
	*state = &w;
	if (family == &v6 && access("/proc/sys/net/ipv6", F_OK))
		return 0;
	w.listener = socket(own.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(w.listener, &own.sa, es_sockaddr_len(&own))) { /* its lo is without */
		assert_int_equal(errno, EADDRNOTAVAIL);
		close(w.listener);
		w.listener = -1;
		return 0;
	}
	assert_return_code(listen(w.listener, 8), 0);
	getsockname(w.listener, &own.sa, &len);
	service.port = es_sockaddr_port(&own);
	es_server_check_init(&w.check, &service, &family->address);
	return 0;
}

/* Each test begins with this. */
static struct world *begin(void **state)
{
	struct world *w = *state;

	if (w->listener < 0)
		skip();
	return w;
}

static int tear_down(void **state)
{
	struct world *w = *state;

	es_server_check_end(&w->check);
	if (w->listener >= 0)
		close(w->listener);
	return 0;
}

/* The clock goes on in steps, while real time is left for the kernel. */
static enum es_server_check_result run(struct world *w)
{
	enum es_server_check_result result = ES_SERVER_CHECK_PENDING;

	for (int i = 0; i < 100 && result == ES_SERVER_CHECK_PENDING; i++) {
		poll(NULL, 0, 1);
		w->now_ns += 100000000;
		result = es_server_check_step(&w->check, w->now_ns);
	}
	return result;
}

static int take(const struct world *w)
{
	int fd = accept(w->listener, NULL, NULL);

	assert_return_code(fd, 0);
	return fd;
}

static void test_accepted(void **state)
{
	struct world *w = begin(state);
	int fd;

	es_server_check_begin(&w->check, w->now_ns);
	fd = take(w);
	assert_int_equal(run(w), ES_SERVER_CHECK_PASSED);
	assert_true(w->check.fd < 0 && !w->check.why[0]);
	close(fd);
}

/* A server that hangs finds one connection, and passes only when it has taken that. */
static void test_hangs(void **state)
{
	struct world *w = begin(state);
	struct pollfd more = {.fd = w->listener, .events = POLLIN};
	int fd;

	for (int i = 0; i < 5; i++) {
		es_server_check_begin(&w->check, w->now_ns);
		assert_int_equal(run(w), ES_SERVER_CHECK_FAILED);
		assert_non_null(strstr(w->check.why, "accepts no connection"));
		assert_false(w->check.is_refused);
		w->now_ns += 1000000000;
	}
	fd = take(w);
	assert_int_equal(poll(&more, 1, 20), 0);
	es_server_check_begin(&w->check, w->now_ns);
	assert_int_equal(run(w), ES_SERVER_CHECK_PASSED);
	close(fd);
	/* One that takes it and ends it at once has taken it. */
	es_server_check_begin(&w->check, w->now_ns);
	assert_int_equal(es_server_check_step(&w->check, w->now_ns), ES_SERVER_CHECK_PENDING);
	close(take(w));
	assert_int_equal(run(w), ES_SERVER_CHECK_PASSED);
	/* From then on, as at first. */
	es_server_check_begin(&w->check, w->now_ns);
	fd = take(w);
	assert_int_equal(run(w), ES_SERVER_CHECK_PASSED);
	close(fd);
}

/* A daemon that slept knows nothing of what happened meanwhile. */
static void test_sleeps(void **state)
{
	struct world *w = begin(state);
	int fd;

	es_server_check_begin(&w->check, w->now_ns);
	w->now_ns += 100000000000ULL;
	assert_int_equal(es_server_check_step(&w->check, w->now_ns), ES_SERVER_CHECK_PENDING);
	fd = take(w);
	assert_int_equal(run(w), ES_SERVER_CHECK_PASSED);
	close(fd);
}

static void test_refused(void **state)
{
	struct world *w = begin(state);

	close(w->listener);
	w->listener = -1;
	es_server_check_begin(&w->check, w->now_ns);
	assert_int_equal(run(w), ES_SERVER_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "refused"));
	assert_true(w->check.is_refused);
}

static void *accept_at_once(void *listener)
{
	char bytes[64];
	int fd;

	while ((fd = accept(*(int *)listener, NULL, NULL)) >= 0) {
		while (recv(fd, bytes, sizeof(bytes), 0) > 0)
			;
		close(fd);
	}
	return NULL;
}

/*
 * However its steps and ours fall together: a server that accepts, reads to the end and closes passes each
 * time.
 */
static void test_accepted_at_once(void **state)
{
	struct world *w = begin(state);
	pthread_t server;

	assert_int_equal(pthread_create(&server, NULL, accept_at_once, &w->listener), 0);
	for (int i = 0; i < 2000; i++) {
		enum es_server_check_result result = ES_SERVER_CHECK_PENDING;

		es_server_check_begin(&w->check, w->now_ns);
		for (int k = 0; k < 100000 && result == ES_SERVER_CHECK_PENDING; k++)
			result = es_server_check_step(&w->check, w->now_ns);
		if (result != ES_SERVER_CHECK_PASSED)
			fail_msg("check %d: %d, %s", i, result, w->check.why);
	}
	shutdown(w->listener, SHUT_RDWR);
	pthread_join(server, NULL);
}

/* Returns the check's result; @answer: NULL: none. */
static enum es_server_check_result ask(struct world *w, unsigned int expect, const char *answer)
{
	enum es_server_check_result result;
	char request[512] = "", expected[64];
	int fd;

	w->check.conf.type = ES_CONF_CHECK_HTTP;
	memset(w->check.conf.right, 0, sizeof(w->check.conf.right));
	es_conf_status_add(&w->check.conf, expect ? expect : 200, expect ? expect : 399);
	es_server_check_begin(&w->check, w->now_ns);
	fd = take(w);
	assert_int_equal(es_server_check_step(&w->check, w->now_ns), ES_SERVER_CHECK_PENDING);
	assert_true(recv(fd, request, sizeof(request) - 1, 0) > 0);
	snprintf(expected, sizeof(expected), "GET /alive HTTP/1.1\r\nHost: %s\r\n", w->family->host);
	assert_int_equal(strncmp(request, expected, strlen(expected)), 0);
	if (answer)
		assert_true(send(fd, answer, strlen(answer), 0) > 0);
	result = run(w);
	close(fd);
	return result;
}

static void test_http(void **state)
{
	struct world *w = begin(state);

	assert_int_equal(ask(w, 0, "HTTP/1.1 200 OK\r\n\r\n"), ES_SERVER_CHECK_PASSED);
	assert_int_equal(ask(w, 0, "HTTP/1.1 304 Not Modified\r\n\r\n"), ES_SERVER_CHECK_PASSED);
	assert_int_equal(ask(w, 404, "HTTP/1.1 404 Not Found\r\n\r\n"), ES_SERVER_CHECK_PASSED);
	assert_int_equal(ask(w, 0, "HTTP/1.1 500 Oops\r\n\r\n"), ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the answer to GET /alive is 500");
	assert_int_equal(ask(w, 204, "HTTP/1.0 200 OK\r\n\r\n"), ES_SERVER_CHECK_FAILED);
	assert_int_equal(ask(w, 0, "220 mail.example ESMTP\r\n"), ES_SERVER_CHECK_FAILED);
	assert_int_equal(ask(w, 0, NULL), ES_SERVER_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "no answer within 1000 ms"));
}

/* RFC 9110, 15.2: any number of them may precede the answer. */
static void test_interim(void **state)
{
	static char endless[40000];
	struct world *w = begin(state);

	assert_int_equal(ask(w, 0,
			     "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
			     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
			 ES_SERVER_CHECK_PASSED);
	assert_int_equal(ask(w, 0, "HTTP/1.1 100\n\nHTTP/1.1 200 OK\n\n"), ES_SERVER_CHECK_PASSED);
	assert_int_equal(ask(w, 0, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 500 Oops\r\n\r\n"),
			 ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the answer to GET /alive is 500");
	assert_int_equal(ask(w, 0, "HTTP/1.1 103 Early Hints\r\n\r\n220 mail.example\r\n"),
			 ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the answer is not HTTP/1.x");
	assert_int_equal(ask(w, 0, "HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
			 ES_SERVER_CHECK_FAILED);
	assert_string_equal(w->check.why, "the answer to GET /alive is 101");
	assert_int_equal(ask(w, 0, "HTTP/1.1 103 Early Hints\r\n\r\n"), ES_SERVER_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "no answer within 1000 ms"));
	memset(endless, 'x', sizeof(endless) - 1);
	for (size_t i = 0; i < strlen("HTTP/1.1 103 "); i++)
		endless[i] = "HTTP/1.1 103 "[i];
	assert_int_equal(ask(w, 0, endless), ES_SERVER_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "informational"));
}

/* Returns how the connection ends for the server: 0 is the end of the stream, else a negative errno. */
static int end_of(int fd)
{
	char bytes[4096];
	ssize_t got;

	do {
		struct pollfd there = {.fd = fd, .events = POLLIN};

		if (poll(&there, 1, 2000) != 1)
			return -ETIMEDOUT;
		got = recv(fd, bytes, sizeof(bytes), 0);
	} while (got > 0);
	return got ? -errno : 0;
}

/* A server that has accepted finds an end, and no error. */
static void test_tcp_ends(void **state)
{
	struct world *w = begin(state);
	int fd;

	for (int speaks = 0; speaks < 2; speaks++) {
		es_server_check_begin(&w->check, w->now_ns);
		fd = take(w);
		if (speaks)
			assert_int_equal(send(fd, "220 mail.example\r\n", 18, 0), 18);
		assert_int_equal(run(w), ES_SERVER_CHECK_PASSED);
		assert_int_equal(end_of(fd), 0);
		assert_true(es_server_check_rest(&w->check));
		close(fd);
		poll(NULL, 0, 10);
		assert_false(es_server_check_rest(&w->check));
		assert_true(w->check.rest_fd < 0);
	}
	/* One that does not end it is not waited for for ever. */
	es_server_check_begin(&w->check, w->now_ns);
	fd = take(w);
	assert_int_equal(run(w), ES_SERVER_CHECK_PASSED);
	assert_int_equal(end_of(fd), 0);
	assert_true(es_server_check_rest(&w->check));
	es_server_check_begin(&w->check, w->now_ns);
	assert_true(w->check.rest_fd < 0);
	poll(NULL, 0, 10);
	assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), -1);
	close(fd);
}

static void test_http_ends(void **state)
{
	static const struct {
		const char *head;
		size_t body;
		enum es_server_check_result result;
		int end;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\n\r\n", 0, ES_SERVER_CHECK_PASSED, 0},
		{"HTTP/1.1 200 OK\r\n\r\n", 100000, ES_SERVER_CHECK_PASSED, 0},
		{"HTTP/1.1 503 No\r\n\r\n", 100000, ES_SERVER_CHECK_FAILED, 0},
		{"HTTP/1.1 200 OK\r\n\r\n", 2 * ES_SERVER_CHECK_REST_BYTES, ES_SERVER_CHECK_PASSED,
		 -ECONNRESET},
	};
	static char body[2 * ES_SERVER_CHECK_REST_BYTES];
	struct world *w = begin(state);
	char request[512];

	w->check.conf.type = ES_CONF_CHECK_HTTP;
	es_conf_status_add(&w->check.conf, 200, 399);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t sent = 0;
		int fd, rc = 0;

		es_server_check_begin(&w->check, w->now_ns);
		fd = take(w);
		assert_int_equal(es_server_check_step(&w->check, w->now_ns), ES_SERVER_CHECK_PENDING);
		assert_true(recv(fd, request, sizeof(request), 0) > 0);
		assert_true(send(fd, cases[i].head, strlen(cases[i].head), 0) > 0);
		assert_int_equal(run(w), cases[i].result);
		while (sent < cases[i].body && !rc) {
			ssize_t now = send(fd, body, cases[i].body - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

			rc = now < 0 && errno != EAGAIN ? -errno : 0;
			sent += now > 0 ? (size_t)now : 0;
			es_server_check_rest(&w->check);
		}
		shutdown(fd, SHUT_WR);
		for (int k = 0; k < 100 && es_server_check_rest(&w->check); k++)
			poll(NULL, 0, 1);
		assert_true(w->check.rest_fd < 0);
		if (!rc)
			rc = end_of(fd);
		if (cases[i].end ? rc >= 0 : rc != 0)
			fail_msg("case %zu: the server found %d", i, rc);
		close(fd);
	}
}

static int connect_to(int listener)
{
	union es_sockaddr to = {};
	socklen_t len = sizeof(to);
	int fd;

	assert_return_code(getsockname(listener, &to.sa, &len), 0);
	fd = socket(to.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(connect(fd, &to.sa, len), 0);
	return fd;
}

static void reset(int fd)
{
	static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

/*
 * As run(); after each step, a connection that waits at @accepts is accepted, if it is one, and one of
 * @resets ended.
 */
static enum es_server_check_result run_beside(struct world *w, int accepts, int *resets, int count)
{
	enum es_server_check_result result = ES_SERVER_CHECK_PENDING;

	for (int i = 0; i < 100 && result == ES_SERVER_CHECK_PENDING; i++) {
		struct pollfd there = {.fd = accepts, .events = POLLIN};

		poll(NULL, 0, 1);
		w->now_ns += 100000000;
		result = es_server_check_step(&w->check, w->now_ns);
		if (accepts >= 0 && i < 3 && poll(&there, 1, 0) == 1)
			close(accept(accepts, NULL, NULL));
		if (i < count)
			reset(resets[i]);
	}
	return result;
}

/*
 * A connection that waits behind others in the queue is not taken for one that nobody accepts, as long as
 * those are accepted.
 */
static void test_queue_moves(void **state)
{
	struct world *w = begin(state);
	int client[8], fd;

	w->check.conf.type = ES_CONF_CHECK_TCP;
	for (int i = 0; i < 7; i++)
		client[i] = connect_to(w->listener);
	es_server_check_begin(&w->check, w->now_ns);
	assert_int_equal(run_beside(w, w->listener, NULL, 0), ES_SERVER_CHECK_QUEUED);
	es_server_check_begin(&w->check, w->now_ns);
	assert_int_equal(run_beside(w, w->listener, NULL, 0), ES_SERVER_CHECK_QUEUED);
	/*
	 * From here on nobody accepts, whatever clients do: a client that gives up waits all the same, and
	 * others arrive.
	 */
	client[7] = connect_to(w->listener);
	es_server_check_begin(&w->check, w->now_ns);
	assert_int_equal(run_beside(w, -1, client, 8), ES_SERVER_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "accepts no connection"));
	es_server_check_begin(&w->check, w->now_ns);
	assert_int_equal(run(w), ES_SERVER_CHECK_FAILED);
	close(take(w));
	fd = take(w); /* the check's */
	es_server_check_begin(&w->check, w->now_ns);
	assert_int_equal(run(w), ES_SERVER_CHECK_PASSED);
	close(fd);
}

/* If two processes listen, the one that works says nothing about the one that hangs. */
static void test_other_queue_moves(void **state)
{
	struct world *w = begin(state);
	int listener[2], client[24], hangs, yes = 1;
	union es_sockaddr own = es_sockaddr_of(&w->family->address, 0);
	socklen_t len = sizeof(own);
	struct pollfd there;

	for (int i = 0; i < 2; i++) {
		listener[i] = socket(own.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(listener[i], SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
		assert_return_code(bind(listener[i], &own.sa, es_sockaddr_len(&own)), 0);
		assert_return_code(listen(listener[i], 64), 0);
		getsockname(listener[i], &own.sa, &len);
	}
	w->check.port = es_sockaddr_port(&own);
	w->check.conf.type = ES_CONF_CHECK_TCP;
	es_server_check_begin(&w->check, w->now_ns);
	there = (struct pollfd){.fd = listener[0], .events = POLLIN};
	hangs = poll(&there, 1, 20) != 1;
	for (int i = 0; i < 24; i++)
		client[i] = connect_to(listener[0]);
	assert_int_equal(run_beside(w, listener[!hangs], NULL, 0), ES_SERVER_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "accepts no connection"));
	for (int i = 0; i < 24; i++)
		close(client[i]);
	close(listener[0]);
	close(listener[1]);
}

/* By HTTP the time for an answer begins when somebody can give one; and it ends. */
static void test_answers_late(void **state)
{
	struct world *w = begin(state);

	w->check.conf.type = ES_CONF_CHECK_HTTP;
	es_conf_status_add(&w->check.conf, 200, 399);
	for (int answers = 0; answers < 2; answers++) {
		enum es_server_check_result result = ES_SERVER_CHECK_PENDING;
		int fd = -1;

		es_server_check_begin(&w->check, w->now_ns);
		for (int i = 0; i < 30 && result == ES_SERVER_CHECK_PENDING; i++) {
			if (i == 8)
				fd = take(w);
			if (i == 16 && answers)
				assert_true(send(fd, "HTTP/1.1 200 OK\r\n\r\n", 19, 0) > 0);
			poll(NULL, 0, 1);
			w->now_ns += 100000000;
			result = es_server_check_step(&w->check, w->now_ns);
		}
		assert_int_equal(result, answers ? ES_SERVER_CHECK_PASSED : ES_SERVER_CHECK_FAILED);
		if (!answers)
			assert_non_null(strstr(w->check.why, "no answer within 1000 ms"));
		close(fd);
	}
}

#define TEST(test)                                                                                           \
	cmocka_unit_test_prestate_setup_teardown(test, set_up, tear_down, &v4),                              \
		cmocka_unit_test_prestate_setup_teardown(test, set_up, tear_down, &v6)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rise_and_fall),
		cmocka_unit_test(test_first_decides),
		TEST(test_accepted),
		TEST(test_accepted_at_once),
		TEST(test_hangs),
		TEST(test_sleeps),
		TEST(test_refused),
		TEST(test_http),
		TEST(test_interim),
		TEST(test_tcp_ends),
		TEST(test_http_ends),
		TEST(test_queue_moves),
		TEST(test_other_queue_moves),
		TEST(test_answers_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
