// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When servers are checked, and what stays known of them over a reload: against a listening socket of this
 * process.
 */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/sockaddr.h"
#include "inspector/daemon/checks.h"

#define PATIENCE_S 30.0

static struct ev_loop *loop;
static struct es_conf *conf;
static struct es_daemon_checks checks;
static __u64 listens[ES_CONF_FAMILIES];
static unsigned int changes;
static int listener;
static struct ev_io server;

static void on_connection(struct ev_loop *of, struct ev_io *io, int events)
{
	int fd = accept(io->fd, NULL, NULL);

	(void)of;
	(void)events;
	if (fd >= 0)
		close(fd);
}

static void on_changed(void *ctx)
{
	++*(unsigned int *)ctx;
	ev_break(loop, EVBREAK_ALL);
}

static void on_patience(struct ev_loop *of, struct ev_timer *timer, int events)
{
	(void)timer;
	(void)events;
	ev_break(of, EVBREAK_ALL);
}

/* Until the verdicts have changed so many times. */
static void wait_for(unsigned int wanted)
{
	struct ev_timer patience;

	ev_timer_init(&patience, on_patience, PATIENCE_S, 0);
	ev_timer_start(loop, &patience);
	while (changes < wanted && ev_is_active(&patience))
		ev_run(loop, EVRUN_ONCE);
	ev_timer_stop(loop, &patience);
	assert_int_equal(changes, wanted);
}

/* Until the server of the first service fails no more. */
static void wait_forgotten(void)
{
	struct ev_timer patience;
	const char *why;

	ev_timer_init(&patience, on_patience, PATIENCE_S, 0);
	ev_timer_start(loop, &patience);
	while (es_daemon_checks_fails(&checks, 0, &why) && ev_is_active(&patience))
		ev_run(loop, EVRUN_ONCE);
	ev_timer_stop(loop, &patience);
	assert_false(es_daemon_checks_fails(&checks, 0, &why));
}

static void service_set(unsigned int i, const char *name, unsigned int port)
{
	struct es_conf_service *service = &conf->services[i];

	memset(service, 0, sizeof(*service));
	snprintf(service->name, sizeof(service->name), "%s", name);
	service->address = es_addr_from_v4(htonl(INADDR_LOOPBACK));
	service->port = (__u16)port;
	service->check = (struct es_conf_check){
		.type = ES_CONF_CHECK_TCP, .interval_ms = 10, .timeout_ms = 5000, .rise = 1, .fall = 1};
}

static int set_up(void **state)
{
	union es_sockaddr own =
		es_sockaddr_of(&(struct es_addr){.b = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}, 0);
	socklen_t len = sizeof(own);

	(void)state;
	loop = ev_default_loop(EVFLAG_AUTO);
	conf = calloc(1, sizeof(*conf));
	assert_non_null(conf);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_return_code(bind(listener, &own.sa, es_sockaddr_len(&own)), errno);
	assert_return_code(listen(listener, 8), errno);
	getsockname(listener, &own.sa, &len);
	ev_io_init(&server, on_connection, listener, EV_READ);
	ev_io_start(loop, &server);
	conf->service_count = 1;
	service_set(0, "web", es_sockaddr_port(&own));
	changes = 0;
	listens[0] = 1;
	es_daemon_checks_init(&checks, loop, listens, on_changed, &changes);
	assert_int_equal(es_daemon_checks_start(&checks, conf, 0), 0);
	return 0;
}

static void server_end(void)
{
	ev_io_stop(loop, &server);
	if (listener >= 0)
		close(listener);
	listener = -1;
}

static int tear_down(void **state)
{
	(void)state;
	es_daemon_checks_stop(&checks);
	server_end();
	free(conf);
	return 0;
}

static void test_passes(void **state)
{
	const char *why;

	(void)state;
	assert_true(es_daemon_checks_is_unknown(&checks, 0));
	assert_true(isnan(es_daemon_checks_duration_s(&checks, 0)));
	wait_for(1);
	assert_false(es_daemon_checks_is_unknown(&checks, 0));
	assert_false(es_daemon_checks_fails(&checks, 0, &why));
	assert_false(isnan(es_daemon_checks_duration_s(&checks, 0)));
}

static void test_refused(void **state)
{
	const char *why;

	(void)state;
	wait_for(1);
	server_end();
	wait_for(2);
	assert_true(es_daemon_checks_fails(&checks, 0, &why));
	assert_string_not_equal(why, "");
	assert_true(es_daemon_checks_refuse(&checks, 0));
	assert_false(es_daemon_checks_is_told(&checks, 0)); /* the others need a moment to say the same */
	checks.of[0].fell_ns -= ES_CHECKS_TOLD_NS;
	assert_true(es_daemon_checks_is_told(&checks, 0));
}

/* The server is known to be down, and what listens next is another server. */
static void test_nobody_listens(void **state)
{
	(void)state;
	wait_for(1);
	server_end();
	wait_for(2);
	listens[0] = 0;
	wait_forgotten();
	assert_int_equal(changes, 2);
	assert_false(es_daemon_checks_is_unknown(&checks, 0));
}

/* Knowledge about a service stays known under its name; about another service, nothing is known. */
static void test_reload(void **state)
{
	unsigned int port = conf->services[0].port;
	const char *why;

	(void)state;
	wait_for(1);
	server_end();
	wait_for(2);
	checks.service[0].place.state = ES_PLACE_OUT;
	conf->service_count = 2;
	listens[0] = 3;
	service_set(0, "app", port);
	service_set(1, "web", port);
	es_daemon_checks_rebind(&checks, conf, 0);
	assert_true(es_daemon_checks_is_unknown(&checks, 0));
	assert_false(es_daemon_checks_is_unknown(&checks, 1));
	assert_true(es_daemon_checks_fails(&checks, 1, &why));
	assert_true(es_daemon_checks_refuse(&checks, 1));
	assert_int_equal(checks.service[0].place.state, ES_PLACE_IN);
	assert_int_equal(checks.service[1].place.state, ES_PLACE_OUT);
	wait_for(3); /* only that of "app" is new */
	assert_true(es_daemon_checks_fails(&checks, 0, &why));
}

/* Something else is asked: what was known is presumed until the first check, which decides alone. */
static void test_other_check(void **state)
{
	const char *why;

	(void)state;
	wait_for(1);
	conf->services[0].check.type = ES_CONF_CHECK_HTTP;
	snprintf(conf->services[0].check.path, sizeof(conf->services[0].check.path), "/");
	conf->services[0].check.fall = 100;
	es_daemon_checks_rebind(&checks, conf, 0);
	assert_false(es_daemon_checks_is_unknown(&checks, 0));
	assert_false(es_daemon_checks_fails(&checks, 0, &why));
	wait_for(2); /* the server closes without an answer */
	assert_true(es_daemon_checks_fails(&checks, 0, &why));
	assert_false(es_daemon_checks_refuse(&checks, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_passes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nobody_listens, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reload, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_check, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
