// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connections to the server behind: made, kept while nobody needs them, and ended. Its responses are read in
 * forward.c.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include "tls/serve/upstream.h"

#define IDLE_MAX 64   /* of a service, in one worker */
#define IDLE_S	 30.0 /* servers end them by their own time, nginx after 75 seconds */

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
	struct es_upstream *up = io->data;

	(void)loop;
	if (events & EV_READ)
		up->is_drained = 0;
	up->changed(up->ctx);
}

int es_upstream_new(struct es_serve *serve, struct es_serve_service *service, void (*changed)(void *ctx),
		    void *ctx, struct es_upstream **ret_upstream)
{
	struct es_upstream *up = calloc(1, sizeof(*up));
	int one = 1, rc;

	if (!up)
		return -ENOMEM;
	up->serve = serve;
	up->service = service;
	up->changed = changed;
	up->ctx = ctx;
	up->fd = socket(service->server.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (up->fd < 0) {
		rc = -errno;
		free(up);
		return rc;
	}
	if (service->server.sa.sa_family != AF_UNIX)
		setsockopt(up->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	ev_io_init(&up->io, on_io, up->fd, 0);
	up->io.data = up;
	if (connect(up->fd, &service->server.sa, service->server_len)) {
		rc = -errno;
		if (rc != -EINPROGRESS) {
			es_upstream_free(&up);
			return rc;
		}
		up->is_connecting = 1;
	}
	es_serve_count(service->counters, ES_SERVE_upstream_connected);
	*ret_upstream = up;
	return 0;
}

static void unlink_it(struct es_upstream *up)
{
	if (up->previous)
		up->previous->next = up->next;
	else
		up->service->idle = up->next;
	if (up->next)
		up->next->previous = up->previous;
	up->next = up->previous = NULL;
	up->service->idle_count--;
	ev_timer_stop(up->serve->loop, &up->timer);
}

void es_upstream_free(struct es_upstream **upstream)
{
	struct es_upstream *up = *upstream;

	if (!up)
		return;
	ev_io_stop(up->serve->loop, &up->io);
	close(up->fd);
	es_buffer_fini(&up->out);
	free(up);
	*upstream = NULL;
}

static void end_idle(struct es_upstream *up)
{
	unlink_it(up);
	es_upstream_free(&up);
}

/* It says something while it is asked nothing: mostly that it ends. */
static void on_idle_io(void *ctx)
{
	end_idle(ctx);
}

static void on_idle_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	end_idle(timer->data);
}

void es_upstream_keep(struct es_upstream **upstream)
{
	struct es_upstream *up = *upstream;
	struct es_serve_service *service = up->service;

	*upstream = NULL;
	if (service->idle_count >= IDLE_MAX || up->serve->is_ending) {
		es_upstream_free(&up);
		return;
	}
	es_buffer_rest(&up->out);
	up->is_reused = 1;
	up->changed = on_idle_io;
	up->ctx = up;
	up->next = service->idle;
	if (up->next)
		up->next->previous = up;
	service->idle = up;
	service->idle_count++;
	es_upstream_watch(up, 1);
	ev_timer_init(&up->timer, on_idle_timer, IDLE_S, 0.0);
	up->timer.data = up;
	ev_timer_start(up->serve->loop, &up->timer);
}

struct es_upstream *es_upstream_take(struct es_serve_service *service, void (*changed)(void *ctx), void *ctx)
{
	struct es_upstream *next;

	for (struct es_upstream *up = service->idle; up; up = next) {
		next = up->next;
		if (!es_upstream_is_alive(up)) {
			end_idle(up);
			continue;
		}
		unlink_it(up);
		up->changed = changed;
		up->ctx = ctx;
		return up;
	}
	return NULL;
}

void es_upstream_hold(struct es_upstream *up)
{
	es_buffer_rest(&up->out);
	up->is_reused = 1;
	ev_io_stop(up->serve->loop, &up->io);
}

int es_upstream_is_alive(const struct es_upstream *up)
{
	uint8_t byte;

	return recv(up->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

void es_upstream_free_idle(struct es_serve_service *service)
{
	struct es_upstream *next;

	for (struct es_upstream *up = service->idle; up; up = next) {
		next = up->next;
		end_idle(up);
	}
}

int es_upstream_flush(struct es_upstream *up)
{
	while (es_buffer_len(&up->out)) {
		ssize_t sent = send(up->fd, es_buffer_front(&up->out), es_buffer_len(&up->out), MSG_NOSIGNAL);

		if (sent >= 0) {
			up->is_connecting = 0;
			up->is_drained = 0; /* its answer may be there at once */
			es_buffer_take(&up->out, (size_t)sent);
		} else if (errno == EAGAIN || (errno == ENOTCONN && up->is_connecting)) {
			return 0;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

ssize_t es_upstream_receive(struct es_upstream *up, uint8_t *bytes, size_t len)
{
	ssize_t got;

	if (up->is_connecting || up->is_drained)
		return -EAGAIN;
	do
		got = recv(up->fd, bytes, len, 0);
	while (got < 0 && errno == EINTR);
	up->is_drained = got < 0 || (got && (size_t)got < len);
	return got < 0 ? -errno : got;
}

void es_upstream_watch(struct es_upstream *up, int wants_more)
{
	int events = es_buffer_len(&up->out) ? EV_WRITE : 0;

	if (wants_more && !up->is_connecting)
		events |= EV_READ;
	if ((up->io.events & (EV_READ | EV_WRITE)) == events && ev_is_active(&up->io) == !!events)
		return;
	ev_io_stop(up->serve->loop, &up->io);
	ev_io_modify(&up->io, events);
	if (events)
		ev_io_start(up->serve->loop, &up->io);
}
