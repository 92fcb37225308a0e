// SPDX-License-Identifier: GPL-2.0-or-later
/* Listening sockets that the first process closes, and a worker still has: nobody is lost in their queues. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tls/serve/listen.h"

static struct sockaddr_in at(unsigned int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = htons((uint16_t)port)};
}

static int listening(unsigned int *ret_port)
{
	struct sockaddr_in address = at(0);
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

/* Returns the client's socket or -errno. */
static int come(unsigned int port)
{
	const struct sockaddr_in address = at(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), rc;

	if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static void test_over(void **state)
{
	struct es_listener *listener = calloc(2, sizeof(*listener)), kept_one;
	struct es_listeners listeners = {.count = 2, .listener = listener};
	struct es_listeners kept = {.count = 1, .listener = &kept_one};
	unsigned int port[2];
	int own[2], client, served;
	char byte;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		listener[i] = (struct es_listener){.worker = i, .fd = listening(&port[i])};
		listener[i].port = port[i];
		own[i] = dup(listener[i].fd); /* the worker's */
	}
	kept_one = listener[0];
	client = come(port[1]);
	assert_true(client >= 0);
	es_listeners_fini(&listeners, &kept);
	assert_false(es_listener_is_over(own[0]));
	assert_true(es_listener_is_over(own[1]));
	/* Nobody comes any more, and who has come before is served. */
	assert_int_equal(come(port[1]), -ECONNREFUSED);
	served = accept(own[1], NULL, NULL);
	assert_true(served >= 0);
	assert_int_equal(write(served, "x", 1), 1);
	close(own[1]);
	assert_int_equal(read(client, &byte, 1), 1);
	close(client);
	close(served);
	client = come(port[0]);
	assert_true(client >= 0);
	close(client);
	close(own[0]);
	close(kept_one.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
