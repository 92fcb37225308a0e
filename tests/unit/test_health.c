// SPDX-License-Identifier: GPL-2.0-or-later
/* The checks of servers: against a listening socket of this process, and what a row of them says. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/health/check.h"
#include "inspector/health/verdict.h"

static void test_rise_and_fall(void **state)
{
	struct es_verdict v = {};

	(void)state;
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

struct world {
	int listener;
	struct es_check check;
	unsigned long long now_ns;
};

static int set_up(void **state)
{
	static struct world w;
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct es_conf_service service = {.check = {.type = ES_CONF_CHECK_TCP,
						    .path = "/alive",
						    .interval_ms = 1000,
						    .timeout_ms = 1000}};
	socklen_t len = sizeof(own);

	w = (struct world){.now_ns = 1000000000};
	w.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(w.listener, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_return_code(listen(w.listener, 8), 0);
	getsockname(w.listener, (struct sockaddr *)&own, &len);
	service.address = es_addr_from_v4(own.sin_addr.s_addr);
	service.port = ntohs(own.sin_port);
	es_check_init(&w.check, &service);
	*state = &w;
	return 0;
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
	struct world *w = *state;
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
	struct world *w = *state;
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
	struct world *w = *state;
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
	struct world *w = *state;

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
	char request[512] = "";
	int fd;

	w->check.conf.type = ES_CONF_CHECK_HTTP;
	w->check.conf.expect = expect;
	es_check_begin(&w->check, w->now_ns);
	fd = take(w);
	assert_int_equal(es_check_step(&w->check, w->now_ns), ES_CHECK_PENDING);
	assert_true(recv(fd, request, sizeof(request) - 1, 0) > 0);
	assert_int_equal(strncmp(request, "GET /alive HTTP/1.1\r\nHost: 127.0.0.1\r\n", 38), 0);
	if (answer)
		assert_true(send(fd, answer, strlen(answer), 0) > 0);
	result = run(w);
	close(fd);
	return result;
}

static void test_http(void **state)
{
	struct world *w = *state;

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rise_and_fall),
		cmocka_unit_test_setup_teardown(test_accepted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hangs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sleeps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_http, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
