// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The socket of a connection that leaves, at its end: what it receives after the last look at it. With a real
 * connection, in a network namespace of its own; skipped where nobody may make one.
 */
#include "tests/unit/cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "inspector/datapath/internal.h"
#include "inspector/program/socket.h"

#define ESTABLISHED 1

static const struct es_datapath_ops ops;
static struct es_datapath datapath = {.ops = &ops};
static int is_apart, client;

static int group_setup(void **state)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	(void)state;
	is_apart = !unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNET : CLONE_NEWNET);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (is_apart)
		assert_return_code(ioctl(fd, SIOCSIFFLAGS, &lo), errno);
	return close(fd);
}

static struct tcp_info info_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	assert_return_code(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), errno);
	return info;
}

/* The number that the server's socket, which is in repair, expects next. */
static uint32_t expects(int fd)
{
	const int queue = TCP_RECV_QUEUE;
	uint32_t nxt;
	socklen_t len = sizeof(nxt);

	assert_return_code(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)), errno);
	assert_return_code(getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &nxt, &len), errno);
	return nxt;
}

/* A connection whose server's side is frozen, after @before bytes, and was read. */
static struct es_program_socket frozen(size_t before)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct es_program_socket c = {.bytes = malloc(1)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(to);

	assert_return_code(bind(listener, (struct sockaddr *)&to, sizeof(to)), errno);
	assert_return_code(listen(listener, 1), errno);
	assert_return_code(getsockname(listener, (struct sockaddr *)&to, &len), errno);
	client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(connect(client, (struct sockaddr *)&to, sizeof(to)), errno);
	c.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(c.fd >= 0);
	close(listener);
	assert_int_equal(send(client, "before", before, 0), before);
	while (info_of(c.fd).tcpi_bytes_received < before)
		usleep(1000);
	assert_int_equal(es_program_socket_freeze(&c), 0);
	c.received = c.len = before;
	c.state.rcv_nxt = expects(c.fd);
	return c;
}

/* It receives that, as what some CPU had taken up before: the filter, which drops all, is away. */
static void receives(struct es_program_socket *c, const char *text)
{
	uint64_t before = info_of(c->fd).tcpi_bytes_received;
	int none = 0;

	assert_return_code(setsockopt(c->fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), errno);
	assert_int_equal(send(client, text, strlen(text), 0), strlen(text));
	while (info_of(c->fd).tcpi_bytes_received == before)
		usleep(1000);
}

static void over(struct es_program_socket *c)
{
	es_program_socket_fini(c);
	close(c->fd);
	close(client);
}

static void nothing_was_missed(void **state)
{
	struct es_program_socket c;

	(void)state;
	if (!is_apart)
		skip();
	c = frozen(6);
	assert_int_equal(es_program_socket_late(&c), 0);
	assert_int_equal(es_program_socket_vanish(&c, &datapath), 0);
	assert_false(es_program_socket_missed(&c));
	over(&c);
}

static void what_came_before_the_look_was_not(void **state)
{
	struct es_program_socket c;

	(void)state;
	if (!is_apart)
		skip();
	c = frozen(3);
	receives(&c, "late");
	assert_int_equal(es_program_socket_late(&c), 0);
	assert_int_equal(c.len, 3 + 4);
	assert_int_equal(es_program_socket_vanish(&c, &datapath), 0);
	assert_false(es_program_socket_missed(&c));
	over(&c);
}

static void what_came_after_it_was(void **state)
{
	struct es_program_socket c;

	(void)state;
	if (!is_apart)
		skip();
	c = frozen(6);
	assert_int_equal(es_program_socket_late(&c), 0);
	receives(&c, "x");
	assert_int_equal(es_program_socket_vanish(&c, &datapath), 0);
	assert_true(es_program_socket_missed(&c));
	over(&c);
}

/* Its client has reset it, and misses nothing. */
static void of_what_is_over_nothing_was(void **state)
{
	static const struct linger at_once = {.l_onoff = 1};
	struct es_program_socket c;
	int none = 0;

	(void)state;
	if (!is_apart)
		skip();
	c = frozen(6);
	assert_return_code(setsockopt(c.fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), errno);
	assert_return_code(setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), errno);
	close(client);
	client = -1;
	while (info_of(c.fd).tcpi_state == ESTABLISHED)
		usleep(1000);
	assert_int_equal(es_program_socket_late(&c), 0);
	es_program_socket_vanish(&c, &datapath);
	assert_false(es_program_socket_missed(&c));
	over(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_was_missed),
		cmocka_unit_test(what_came_before_the_look_was_not),
		cmocka_unit_test(what_came_after_it_was),
		cmocka_unit_test(of_what_is_over_nothing_was),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
