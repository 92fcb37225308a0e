// SPDX-License-Identifier: GPL-2.0-or-later
/* libearshot against a daemon of the test's own: what it sends, and what it makes of answers and of none. */
#include "cmocka_all.h"
#include <earshot/handover.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "libearshot/wire.h"

static char directory[64], path[108];

/* The daemon: what it does with one client, and what it got from the client. */
struct daemon {
	pthread_t thread;
	int listener;
	enum { ANSWER, ANSWER_WRONG, DIE_AFTER } way;
	int result;
	struct es_program_request request;
	unsigned char bytes[ES_HANDOVER_BYTES_MAX + 1];
	ssize_t got, sent;
	int fd;
};

static void receive(struct daemon *d, int client)
{
	struct iovec iov[2] = {{&d->request, sizeof(d->request)}, {d->bytes, sizeof(d->bytes)}};
	char control[256];
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg;

	d->got = recvmsg(client, &msg, 0);
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&d->fd, CMSG_DATA(cmsg), sizeof(d->fd));
}

static void *serve(void *arg)
{
	struct daemon *d = arg;
	struct es_program_reply reply = {.magic = ES_PROGRAM_MAGIC, .result = d->result};
	int client = accept(d->listener, NULL, NULL);

	receive(d, client);
	if (d->way == ANSWER_WRONG)
		reply.magic++;
	/* A client that sent nothing does not listen any more. */
	if (d->way <= ANSWER_WRONG)
		d->sent = send(client, &reply, sizeof(reply), MSG_NOSIGNAL);
	close(client);
	return NULL;
}

static struct daemon *daemon_start(int way, int result)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct daemon *d = calloc(1, sizeof(*d));

	d->way = way;
	d->result = result;
	d->fd = -1;
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	memcpy(address.sun_path, path, strlen(path) + 1);
	unlink(path);
	assert_int_equal(bind(d->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(d->listener, 1), 0);
	assert_int_equal(pthread_create(&d->thread, NULL, serve, d), 0);
	return d;
}

static void daemon_end(struct daemon *d)
{
	pthread_join(d->thread, NULL);
	close(d->listener);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
	unlink(path);
}

static void test_request(void **state)
{
	static unsigned char bytes[ES_HANDOVER_BYTES_MAX];
	const size_t sizes[] = {0, 1, 5000, sizeof(bytes)};
	struct stat sent, got;
	int pair[2];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 7);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct daemon *d = daemon_start(ANSWER, i % 2 ? -EBUSY : 0);

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		assert_int_equal(
			request_handover(pair[0], i ? "n2" : NULL, sizes[i] ? bytes : NULL, sizes[i]),
			i % 2 ? -EBUSY : 0);
		pthread_join(d->thread, NULL);
		assert_int_equal(d->request.magic, ES_PROGRAM_MAGIC);
		assert_int_equal(d->request.version, ES_PROGRAM_VERSION);
		assert_string_equal(d->request.node, i ? "n2" : "");
		assert_int_equal(d->got, sizeof(d->request) + sizes[i]);
		assert_memory_equal(d->bytes, bytes, sizes[i]);
		/* The daemon has the very socket, and the caller keeps it. */
		assert_int_equal(fstat(pair[0], &sent), 0);
		assert_int_equal(fstat(d->fd, &got), 0);
		assert_int_equal(sent.st_ino, got.st_ino);
		close(pair[0]);
		close(pair[1]);
		close(d->listener);
		close(d->fd);
		free(d);
		unlink(path);
	}
}

static void test_bad_arguments(void **state)
{
	char name[ES_PROGRAM_NODE_SIZE + 1];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_int_equal(request_handover(0, NULL, "", ES_HANDOVER_BYTES_MAX + 1), -EMSGSIZE);
	assert_int_equal(request_handover(0, NULL, NULL, 1), -EINVAL);
	assert_int_equal(request_handover(0, name, NULL, 0), -ENOENT);
}

/* Nothing was done as long as nobody had taken the request. */
static void test_no_daemon(void **state)
{
	struct daemon *d;

	(void)state;
	assert_int_equal(request_handover(0, NULL, NULL, 0), -ENOLINK);
	d = daemon_start(ANSWER, 0);
	assert_int_equal(request_handover(9999, NULL, NULL, 0), -ENOTCONN); /* no descriptor */
	daemon_end(d);
}

static void test_daemon_dies(void **state)
{
	struct daemon *d = daemon_start(DIE_AFTER, 0);

	(void)state;
	assert_int_equal(request_handover(0, NULL, "GET", 3), -ECONNRESET);
	daemon_end(d);
	d = daemon_start(ANSWER_WRONG, 0);
	assert_int_equal(request_handover(0, NULL, "GET", 3), -ECONNRESET);
	daemon_end(d);
}

static int make_directory(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/earshot-test-program-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/n1.handover", directory);
	return setenv("EARSHOT_HANDOVER_SOCKET", path, 1);
}

static int remove_directory(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_no_daemon),
		cmocka_unit_test(test_daemon_dies),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
