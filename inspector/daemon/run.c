// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs a program and reads what it writes, on the control thread's loop. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inspector/daemon/run.h"

/* Reads all that is there. Text beyond the bound is read all the same, or the program would wait for room. */
static void stream_read(struct es_run *run, struct es_run_stream *stream)
{
	char beyond[4096];

	while (ev_is_active(&stream->io)) {
		size_t room = stream->max - stream->len;
		ssize_t n = read(stream->io.fd, room ? stream->text + stream->len : beyond,
				 room ? room : sizeof(beyond));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			ev_io_stop(run->loop, &stream->io);
		else if (room)
			stream->len += (size_t)n;
		else
			stream->is_cut = 1;
		if (stream->is_cut)
			return; /* one that writes for ever does not keep us here */
	}
}

static void on_stream(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_run *run = io->data;

	(void)loop;
	(void)events;
	stream_read(run, io == &run->out.io ? &run->out : &run->err);
}

static void stream_close(struct es_run *run, struct es_run_stream *stream)
{
	if (!stream->text)
		return;
	ev_io_stop(run->loop, &stream->io);
	close(stream->io.fd);
	free(stream->text);
	stream->text = NULL;
}

static void end(struct es_run *run)
{
	ev_child_stop(run->loop, &run->child);
	ev_timer_stop(run->loop, &run->limit);
	stream_close(run, &run->out);
	stream_close(run, &run->err);
	run->pid = 0;
}

/* Processes that the program has started are in its group, and may outlive it. */
static void kill_group(const struct es_run *run)
{
	kill(-run->pid, SIGKILL);
}

static void on_child(struct ev_loop *loop, struct ev_child *child, int events)
{
	struct es_run *run = child->data;

	(void)loop;
	(void)events;
	stream_read(run, &run->out);
	stream_read(run, &run->err);
	run->out.text[run->out.len] = 0;
	run->err.text[run->err.len] = 0;
	run->done(run, child->rstatus);
	end(run);
}

static void on_limit(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_run *run = timer->data;

	(void)loop;
	(void)events;
	run->is_late = 1;
	kill_group(run);
}

/* Returns its writing end, or -errno. */
static int stream_open(struct es_run *run, struct es_run_stream *stream, size_t max)
{
	int fds[2], rc;

	memset(stream, 0, sizeof(*stream));
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	stream->text = malloc(max + 1);
	if (!stream->text || fcntl(fds[0], F_SETFL, O_NONBLOCK)) {
		rc = stream->text ? -errno : -ENOMEM;
		free(stream->text);
		stream->text = NULL;
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	stream->max = max;
	ev_io_init(&stream->io, on_stream, fds[0], EV_READ);
	stream->io.data = run;
	return fds[1];
}

/* In a group of its own, without the signals that the daemon blocks or ignores. Returns 0 or -errno. */
static int spawn(struct es_run *run, char *const *argv, int out, int err)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, pipes;
	int rc;

	sigemptyset(&none);
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	if (posix_spawn_file_actions_init(&files))
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&files);
		return -ENOMEM;
	}
	rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
	posix_spawnattr_setflags(&attributes,
				 POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &pipes);
	if (!rc)
		rc = posix_spawn(&run->pid, argv[0], &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	if (rc)
		run->pid = 0;
	return -rc;
}

int es_run_start(struct es_run *run, struct ev_loop *loop, char *const *argv, double limit_s,
		 void (*done)(struct es_run *run, int status), void *ctx)
{
	int out, err, rc;

	if (run->pid)
		return -EBUSY;
	run->loop = loop;
	run->done = done;
	run->ctx = ctx;
	run->is_late = 0;
	ev_init(&run->child, on_child);
	ev_timer_init(&run->limit, on_limit, limit_s, 0);
	out = stream_open(run, &run->out, ES_RUN_OUT_MAX);
	if (out < 0)
		return out;
	err = stream_open(run, &run->err, ES_RUN_ERR_MAX);
	rc = err < 0 ? err : spawn(run, argv, out, err);
	close(out);
	if (err >= 0)
		close(err);
	if (rc) {
		end(run);
		return rc;
	}
	ev_child_set(&run->child, run->pid, 0);
	run->child.data = run->limit.data = run;
	ev_child_start(loop, &run->child);
	ev_io_start(loop, &run->out.io);
	ev_io_start(loop, &run->err.io);
	ev_now_update(loop);
	ev_timer_start(loop, &run->limit);
	return 0;
}

void es_run_stop(struct es_run *run)
{
	if (!run->pid)
		return;
	kill_group(run);
	end(run);
}
