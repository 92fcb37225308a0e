// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a program in a group of its own and reads what it prints until it has ended, or its time is over.
 * Output beyond the bound is read all the same, or the program would wait for room.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inspector/cli/capture.h"

#define POLL_MS	 20
#define GRACE_S	 1.0 /* for one that was killed; one that the kernel holds is left behind */
#define TEXT_MIN 128

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int es_capture_find_all(void)
{
	const char *path = getenv("PATH");
	char *more = NULL;
	int rc;

	if (asprintf(&more, "%s:/usr/sbin:/sbin", path && *path ? path : "/usr/bin:/bin") < 0)
		return -ENOMEM;
	rc = setenv("PATH", more, 1) ? -errno : 0;
	free(more);
	return rc;
}

static int spawn(char *const *argv, int out, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int rc;

	if (posix_spawn_file_actions_init(&files))
		return ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&files);
		return ENOMEM;
	}
	rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&files, out, STDERR_FILENO);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	if (!rc)
		rc = posix_spawnp(ret_pid, argv[0], &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

/* All that is there now. Returns 0 at the end of it. */
static int read_some(int fd, size_t max, struct es_capture *c)
{
	char beyond[4096];
	ssize_t n;

	do {
		n = c->len < max ? read(fd, c->text + c->len, max - c->len)
				 : read(fd, beyond, sizeof(beyond));
		if (n > 0 && c->len < max)
			c->len += (size_t)n;
		else if (n > 0)
			c->is_cut = 1;
	} while (n > 0 && !c->is_cut);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/*
 * Reads until nobody writes any more and the program has ended, or until @end_s. Returns whether it has
 * ended.
 */
static int follow(int fd, pid_t pid, size_t max, double end_s, struct es_capture *c)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	int is_open = 1, has_ended = 0, status = 0;

	while ((is_open || !has_ended) && now_s() < end_s) {
		poll(&readable, is_open ? 1 : 0, POLL_MS);
		if (is_open)
			is_open = read_some(fd, max, c);
		if (!has_ended && waitpid(pid, &status, WNOHANG) == pid) {
			has_ended = 1;
			c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		}
	}
	c->is_late |= is_open;
	return has_ended;
}

void es_capture_run(char *const *argv, double limit_s, size_t max, struct es_capture *ret)
{
	double begin_s = now_s();
	int fds[2] = {-1, -1}, rc;
	pid_t pid;

	memset(ret, 0, sizeof(*ret));
	ret->status = -1;
	ret->text = malloc(max < TEXT_MIN ? TEXT_MIN : max);
	if (!ret->text)
		return;
	rc = pipe2(fds, O_CLOEXEC) ? errno : 0;
	if (!rc && fcntl(fds[0], F_SETFL, O_NONBLOCK))
		rc = errno;
	if (!rc)
		rc = spawn(argv, fds[1], &pid);
	if (fds[1] >= 0)
		close(fds[1]);
	if (rc) {
		ret->len = (size_t)snprintf(ret->text, TEXT_MIN, "%.60s: %.60s\n", argv[0], strerror(rc));
	} else if (!follow(fds[0], pid, max, begin_s + limit_s, ret) || ret->is_late) {
		ret->is_late = 1;
		kill(-pid, SIGKILL);
		if (ret->status < 0)
			follow(fds[0], pid, max, now_s() + GRACE_S, ret);
	}
	if (fds[0] >= 0)
		close(fds[0]);
	ret->took_s = now_s() - begin_s;
}
