// SPDX-License-Identifier: GPL-2.0-or-later
/* Descriptors whose close() blocks: nobody waits for them, and they are closed all the same. */
#include "cmocka_all.h"
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "inspector/machine/close_apart.h"

#define LINGER_S 20
#define MANY	 (ES_CLOSE_APART_MAX + 3)

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A TCP connection whose other end reads nothing; returns the end that has much to send. */
static int full_socket(int listener, int *ret_peer)
{
	static const char bytes[65536];
	struct sockaddr_in address;
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, len), 0);
	*ret_peer = accept(listener, NULL, NULL);
	assert_true(*ret_peer >= 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	return fd;
}

static int listen_here(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

/* All are closed as soon as nobody waits for their bytes any more. */
static void wait_closed(void)
{
	double begun = now_s();

	while (es_close_apart_is_full())
		assert_true(now_s() - begun < LINGER_S + 20);
}

static void test_lingering(void **state)
{
	const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
	int listener = listen_here(), peer[MANY];
	double begun = now_s();

	(void)state;
	for (int i = 0; i < MANY; i++) {
		int fd = full_socket(listener, &peer[i]);

		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		assert_int_equal(es_close_apart_is_full(), i >= ES_CLOSE_APART_MAX);
		es_close_apart(fd);
	}
	/* One close() alone would last that long. */
	assert_true(now_s() - begun < LINGER_S);
	for (int i = 0; i < MANY; i++)
		close(peer[i]); /* with data unread: a RST, and the other end lingers no more */
	wait_closed();
	close(listener);
}

static void test_quick(void **state)
{
	int listener = listen_here(), peer, fd = full_socket(listener, &peer), pair[2];
	char byte;

	(void)state;
	es_close_apart(fd);
	assert_int_equal(write(fd, "x", 1), -1); /* closed at once */
	close(peer);
	assert_int_equal(pipe(pair), 0);
	es_close_apart(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 0); /* until it is closed */
	close(pair[0]);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lingering),
		cmocka_unit_test(test_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
