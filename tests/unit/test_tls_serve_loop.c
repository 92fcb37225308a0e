// SPDX-License-Identifier: GPL-2.0-or-later
/* A worker's loop when the kernel has no files left. epoll_create1() is this test's own. */
#include "cmocka_all.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tls/serve/loop.h"

static unsigned int failures, failed;

/* libev's calls come here, too. */
__attribute__((visibility("default"))) int epoll_create1(int flags)
{
	if (failed < failures) {
		failed++;
		errno = ENFILE;
		return -1;
	}
	return (int)syscall(SYS_epoll_create1, flags);
}

static unsigned int heard;

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
	char byte;

	(void)loop;
	(void)events;
	heard += recv(io->fd, &byte, 1, 0) == 1;
}

/*
 * A reload closes the listening socket here, and another process has it, too, with somebody at its door.
 * libev hears of that, cannot name it any more, and makes another epoll.
 */
static int goes_on(void)
{
	struct ev_loop *loop = es_loop_new();
	int shared[2], own[2], kept;
	ev_io listens, serves;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, shared) || socketpair(AF_UNIX, SOCK_STREAM, 0, own))
		return 1;
	kept = dup(shared[0]); /* the other process's */
	ev_io_init(&listens, on_io, shared[0], EV_READ);
	ev_io_init(&serves, on_io, own[0], EV_READ);
	ev_io_start(loop, &listens);
	ev_io_start(loop, &serves);
	ev_run(loop, EVRUN_NOWAIT);
	ev_io_stop(loop, &listens);
	close(shared[0]);
	if (write(shared[1], "x", 1) != 1 || write(own[1], "x", 1) != 1)
		return 2;
	failures = 3;
	for (int i = 0; i < 10; i++)
		ev_run(loop, EVRUN_NOWAIT);
	if (write(own[1], "x", 1) != 1)
		return 3;
	ev_run(loop, EVRUN_NOWAIT);
	close(kept);
	ev_loop_destroy(loop);
	return failed == 3 && heard == 2 ? 0 : 4;
}

static void test_shortage(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid)
		_exit(goes_on());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shortage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
