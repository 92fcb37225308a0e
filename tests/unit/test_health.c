// SPDX-License-Identifier: GPL-2.0-or-later
/* The checks of servers: against a listening socket of this process, and what a row of them says. */
#include "cmocka_all.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/sockaddr.h"
#include "inspector/health/check.h"
#include "inspector/health/verdict.h"

static void test_rise_and_fall(void **state)
{
	struct es_verdict v = {};

	(void)state;
	assert_true(es_verdict_add(&v, 1, 2, 3) && !v.is_down);
	for (int i = 0; i < 10; i++) { /* never three in a row */
		assert_false(es_verdict_add(&v, 0, 2, 3));
		assert_false(es_verdict_add(&v, 0, 2, 3));
		assert_false(es_verdict_add(&v, 1, 2, 3));
		assert_false(v.is_down);
	}
	assert_false(es_verdict_add(&v, 0, 2, 3));
	assert_false(es_verdict_add(&v, 0, 2, 3));
	assert_true(es_verdict_add(&v, 0, 2, 3) && v.is_down);
	for (int i = 0; i < 10; i++) {
		assert_false(es_verdict_add(&v, 1, 2, 3));
		assert_false(es_verdict_add(&v, 0, 2, 3));
		assert_true(v.is_down);
	}
	assert_false(es_verdict_add(&v, 1, 2, 3));
	assert_true(es_verdict_add(&v, 1, 2, 3) && !v.is_down);
}

/* Before anything is known, one check decides; and so it does where something is only presumed. */
static void test_first_decides(void **state)
{
	(void)state;
	for (int passed = 0; passed < 2; passed++) {
		struct es_verdict v = {};

		assert_false(v.is_known);
		assert_true(es_verdict_add(&v, passed, 2, 3));
		assert_true(v.is_known && v.is_down == !passed);
		for (int is_down = 0; is_down < 2; is_down++) {
			es_verdict_presume(&v, is_down);
			assert_true(v.is_known && v.is_down == is_down);
			assert_int_equal(es_verdict_add(&v, passed, 2, 3), passed == is_down);
			assert_int_equal(v.is_down, !passed);
			assert_false(es_verdict_add(&v, !passed, 2, 3)); /* no second one does */
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
	struct es_check check;
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
	es_check_init(&w.check, &service, &family->address);
	return 0;
}

/* What each test begins with. */
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

	es_check_end(&w->check);
	if (w->listener >= 0)
		close(w->listener);
	return 0;
}

/* The clock goes on in steps, while real time is left for the kernel. */
static enum es_check_result run(struct world *w)
{
	enum es_check_result result = ES_CHECK_PENDING;

	for (int i = 0; i < 100 && result == ES_CHECK_PENDING; i++) {
		poll(NULL, 0, 1);
		w->now_ns += 100000000;
		result = es_check_step(&w->check, w->now_ns);
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

	es_check_begin(&w->check, w->now_ns);
	fd = take(w);
	assert_int_equal(run(w), ES_CHECK_PASSED);
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
		es_check_begin(&w->check, w->now_ns);
		assert_int_equal(run(w), ES_CHECK_FAILED);
		assert_non_null(strstr(w->check.why, "accepts no connection"));
		w->now_ns += 1000000000;
	}
	fd = take(w);
	assert_int_equal(poll(&more, 1, 20), 0);
	es_check_begin(&w->check, w->now_ns);
	assert_int_equal(run(w), ES_CHECK_PASSED);
	close(fd);
	/* From then on, as at first. */
	es_check_begin(&w->check, w->now_ns);
	fd = take(w);
	assert_int_equal(run(w), ES_CHECK_PASSED);
	close(fd);
}

/* A daemon that slept knows nothing of what happened meanwhile. */
static void test_sleeps(void **state)
{
	struct world *w = begin(state);
	int fd;

	es_check_begin(&w->check, w->now_ns);
	w->now_ns += 100000000000ULL;
	assert_int_equal(es_check_step(&w->check, w->now_ns), ES_CHECK_PENDING);
	fd = take(w);
	assert_int_equal(run(w), ES_CHECK_PASSED);
	close(fd);
}

static void test_refused(void **state)
{
	struct world *w = begin(state);

	close(w->listener);
	w->listener = -1;
	es_check_begin(&w->check, w->now_ns);
	assert_int_equal(run(w), ES_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "refused"));
}

/* Returns the check's result; @answer: NULL: none. */
static enum es_check_result ask(struct world *w, unsigned int expect, const char *answer)
{
	enum es_check_result result;
	char request[512] = "", expected[64];
	int fd;

	w->check.conf.type = ES_CONF_CHECK_HTTP;
	w->check.conf.expect = expect;
	es_check_begin(&w->check, w->now_ns);
	fd = take(w);
	assert_int_equal(es_check_step(&w->check, w->now_ns), ES_CHECK_PENDING);
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

	assert_int_equal(ask(w, 0, "HTTP/1.1 200 OK\r\n\r\n"), ES_CHECK_PASSED);
	assert_int_equal(ask(w, 0, "HTTP/1.1 304 Not Modified\r\n\r\n"), ES_CHECK_PASSED);
	assert_int_equal(ask(w, 404, "HTTP/1.1 404 Not Found\r\n\r\n"), ES_CHECK_PASSED);
	assert_int_equal(ask(w, 0, "HTTP/1.1 500 Oops\r\n\r\n"), ES_CHECK_FAILED);
	assert_string_equal(w->check.why, "the answer to GET /alive is 500");
	assert_int_equal(ask(w, 204, "HTTP/1.0 200 OK\r\n\r\n"), ES_CHECK_FAILED);
	assert_int_equal(ask(w, 0, "220 mail.example ESMTP\r\n"), ES_CHECK_FAILED);
	assert_int_equal(ask(w, 0, NULL), ES_CHECK_FAILED);
	assert_non_null(strstr(w->check.why, "no answer within 1000 ms"));
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
		TEST(test_hangs),
		TEST(test_sleeps),
		TEST(test_refused),
		TEST(test_http),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
