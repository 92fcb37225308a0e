// SPDX-License-Identifier: GPL-2.0-or-later
/* A worker's rights: calls that serving does not need fail, and those of an intruder end the process. */
#include "cmocka_all.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tls/serve/confine.h"

#ifndef __SANITIZE_ADDRESS__

/* Runs @what in a confined process. Returns how that ended. */
static int confined(int (*what)(void))
{
	const struct es_identity nobody_else = {.group = (gid_t)-1};
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(es_confine(&nobody_else) ? 99 : what());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int open_a_file(void)
{
	return open("/etc/passwd", O_RDONLY) < 0 && errno == EPERM;
}

static int raw_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EPERM && socket(AF_NETLINK, SOCK_RAW, 0) < 0 &&
	       errno == EPERM;
}

static int executable_memory(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page != MAP_FAILED && mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0 && errno == EPERM &&
	       mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int listen_there(void)
{
	return bind(0, NULL, 0) < 0 && errno == EPERM && listen(0, 1) < 0 && errno == EPERM;
}

static int serve(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	void *memory = malloc(1 << 20);
	struct rlimit core;

	free(memory);
	return fd >= 0 && !close(fd) && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) < 0 && errno == EPERM &&
	       getrlimit(RLIMIT_CORE, &core) < 0;
}

/* Not as libc does it: where it need not, it calls nobody. */
static int ask_the_time(void)
{
	struct timeval now = {};
	struct timespec too;

	return !syscall(SYS_gettimeofday, &now, NULL) && now.tv_sec &&
	       !syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &too) &&
#ifdef SYS_time
	       syscall(SYS_time, NULL) > 0;
#else
	       1;
#endif
}

static int run_a_program(void)
{
	execl("/bin/true", "true", NULL);
	return 1;
}

static int have_a_child(void)
{
	return fork() >= 0;
}

static void test_fails(void **state)
{
	int (*const calls[])(void) = {open_a_file,  raw_socket, executable_memory,
				      listen_there, serve,	ask_the_time};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int status = confined(calls[i]);

		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 1);
	}
}

static void test_ends(void **state)
{
	int (*const calls[])(void) = {run_a_program, have_a_child};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int status = confined(calls[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}

#endif

static void test_identity(void **state)
{
	struct es_conf_error err = {};
	struct es_identity identity;

	(void)state;
	assert_int_equal(es_identity_find("no-such-user", "", &identity, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no-such-user"));
	assert_int_equal(es_identity_find("root", "no-such-group", &identity, &err), -ENOENT);
	assert_non_null(strstr(err.text, "program_group"));
	assert_int_equal(es_identity_find("root", "root", &identity, &err), 0);
	assert_int_equal(identity.group, 0);
	assert_int_equal(es_identity_find(NULL, "", &identity, &err), 0);
	assert_int_equal(identity.group, (gid_t)-1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_fails),
		cmocka_unit_test(test_ends),
#endif
		cmocka_unit_test(test_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
