// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control socket's listening end: makes the socket file, tells a live daemon's from a dead one's, accepts
 * clients up to the bound. client.c reads what a client sends, answer.c knows what it means.
 */
#include "inspector/control/control.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "inspector/control/internal.h"

#define SOCKET_MODE    0660
#define ACCEPT_PAUSE_S 1.0
#define LISTEN_BACKLOG 16

int es_control_path(const char *node, char *path, size_t size)
{
	int len = snprintf(path, size, "%s/%s.sock", ES_CONTROL_DIRECTORY, node);

	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

/* Removes a socket file that a dead daemon left. Return: 0 when @address is free now. */
static int clear_stale(const struct sockaddr_un *address, struct es_conf_error *err)
{
	const char *path = address->sun_path;
	struct stat st;
	int fd, r;

	if (lstat(path, &st)) {
		r = errno == ENOENT ? 0 : -errno;
		if (r)
			es_conf_error_set(err, "control socket %s: %s", path, strerror(-r));
		return r;
	}
	if (!S_ISSOCK(st.st_mode)) {
		es_conf_error_set(
			err, "control socket %s: there is a file that is not a socket: expected none", path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* EAGAIN: somebody listens there and has much to do */
	r = connect(fd, (const void *)address, sizeof(*address)) ? -errno : 0;
	close(fd);
	if (!r || r == -EAGAIN) {
		es_conf_error_set(err, "control socket %s: another earshotd answers there: stop it first",
				  path);
		return -EADDRINUSE;
	}
	if (r == -ECONNREFUSED && !unlink(path))
		return 0;
	if (r == -ECONNREFUSED)
		r = -errno;
	es_conf_error_set(err, "control socket %s: a stale socket cannot be removed: %s", path, strerror(-r));
	return r;
}

static void make_directory(const char *path)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	mkdir(dirname(copy), 0755); /* if that fails, so does bind(), with a better error */
}

static int listen_on(struct es_control *control, const struct sockaddr_un *address)
{
	struct stat st;

	control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (control->fd < 0)
		return -errno;
	/* bind() gives the file this mode less the umask, so it is never open to others, not even for a
	 * moment */
	if (fchmod(control->fd, SOCKET_MODE))
		return -errno;
	if (bind(control->fd, (const void *)address, sizeof(*address)))
		return -errno;
	if (lstat(address->sun_path, &st))
		return -errno;
	control->dev = st.st_dev;
	control->ino = st.st_ino;
	if (chmod(address->sun_path, SOCKET_MODE))
		return -errno;
	return listen(control->fd, LISTEN_BACKLOG) ? -errno : 0;
}

/* One client too many is told so, if its socket takes the line at once. */
static void refuse(int fd)
{
	size_t len = 0;
	char *line = es_control_error_line("too many clients, try again later", &len);

	if (line)
		(void)!send(fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	free(line);
	close(fd);
}

static void on_acceptable(struct ev_loop *loop, ev_io *watcher, int events)
{
	struct es_control *control = watcher->data;
	int fd;

	(void)events;
	for (;;) {
		fd = accept4(control->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0 && errno != EAGAIN) {
			/* out of descriptors or memory: the listener stays readable, so wait instead of
			 * spinning */
			ev_io_stop(loop, &control->acceptable);
			ev_timer_again(loop, &control->pause);
		}
		if (fd < 0)
			return;
		if (control->client_count == ES_CONTROL_CLIENTS_MAX)
			refuse(fd);
		else
			es_control_client_new(control, fd);
	}
}

static void on_pause_over(struct ev_loop *loop, ev_timer *watcher, int events)
{
	struct es_control *control = watcher->data;

	(void)events;
	ev_timer_stop(loop, &control->pause);
	ev_io_start(loop, &control->acceptable);
}

int es_control_new(struct ev_loop *loop, const char *path, struct es_control **ret_control,
		   struct es_conf_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct es_control *control;
	int r;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
	    sizeof(address.sun_path)) {
		es_conf_error_set(err, "control socket %s: path too long: expected at most %zu characters",
				  path, sizeof(address.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	make_directory(path);
	r = clear_stale(&address, err);
	if (r)
		return r;
	control = calloc(1, sizeof(*control));
	if (!control)
		return -ENOMEM;
	control->loop = loop;
	control->fd = -1;
	control->idle_timeout_s = ES_CONTROL_IDLE_TIMEOUT_S;
	ev_io_init(&control->acceptable, on_acceptable, -1, EV_READ);
	control->acceptable.data = control;
	ev_init(&control->pause, on_pause_over);
	control->pause.repeat = ACCEPT_PAUSE_S;
	control->pause.data = control;
	control->path = strdup(path);
	r = control->path ? listen_on(control, &address) : -ENOMEM;
	if (r) {
		es_conf_error_set(err, "control socket %s: cannot be made: %s", path, strerror(-r));
		es_control_free(&control);
		return r;
	}
	ev_io_set(&control->acceptable, control->fd, EV_READ);
	ev_io_start(loop, &control->acceptable);
	*ret_control = control;
	return 0;
}

void es_control_free(struct es_control **ret_control)
{
	struct es_control *control = ret_control ? *ret_control : NULL;
	struct stat st;

	if (!control)
		return;
	while (control->clients) {
		es_control_client_flush(control->clients);
		es_control_client_free(control->clients);
	}
	ev_io_stop(control->loop, &control->acceptable);
	ev_timer_stop(control->loop, &control->pause);
	if (control->ino && !lstat(control->path, &st) && st.st_dev == control->dev &&
	    st.st_ino == control->ino)
		unlink(control->path);
	if (control->fd >= 0)
		close(control->fd);
	free(control->path);
	free(control);
	*ret_control = NULL;
}

int es_control_register(struct es_control *control, const char *name, es_control_fn fn, void *ctx)
{
	unsigned int i;

	for (i = 0; i < control->command_count; i++)
		if (!strcmp(control->commands[i].name, name))
			return -EEXIST;
	if (i == ES_CONTROL_COMMANDS_MAX)
		return -ENOSPC;
	control->commands[i] = (struct es_control_command){.name = name, .fn = fn, .ctx = ctx};
	control->command_count++;
	return 0;
}

void es_control_set_idle_timeout(struct es_control *control, double seconds)
{
	control->idle_timeout_s = seconds;
}
