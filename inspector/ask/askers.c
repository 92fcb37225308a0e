// SPDX-License-Identifier: GPL-2.0-or-later
/* Accepts processes, for the worker that has the fewest, and adds up what workers know of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/ask/askers.h"
#include "inspector/ask/port.h"
#include "inspector/cluster/content_sync.h"
#include "inspector/inspect/worker.h"
#include "inspector/machine/local_socket.h"

#define BACKLOG 64
#define PAUSE_S 1.0

/* struct es_askers - @pause: without a descriptor for it, who wants to be accepted is let wait */
struct es_askers {
	struct ev_loop *loop;
	struct ev_io io;
	struct ev_timer pause;
	char path[256];
	unsigned int count;
	struct es_ask_port port[];
};

static struct es_ask_port *least(struct es_askers *a)
{
	struct es_ask_port *port = &a->port[0];
	unsigned int fewest = es_ask_port_count(port);

	for (unsigned int i = 1; i < a->count; i++) {
		unsigned int n = es_ask_port_count(&a->port[i]);

		if (n >= fewest)
			continue;
		fewest = n;
		port = &a->port[i];
	}
	return port;
}

static void on_pause(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_askers *a = timer->data;

	(void)events;
	ev_io_start(loop, &a->io);
}

static void on_process(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_askers *a = io->data;
	int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd >= 0) {
		if (es_ask_port_add(least(a), fd))
			close(fd);
		return;
	}
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
		return;
	ev_io_stop(loop, io);
	ev_timer_set(&a->pause, PAUSE_S, 0);
	ev_timer_start(loop, &a->pause);
}

int es_askers_new(struct ev_loop *loop, const char *path, const struct es_conf *conf,
		  struct es_worker *const *workers, unsigned int count, struct es_askers **ret_askers,
		  struct es_conf_error *err)
{
	struct es_askers *a = calloc(1, sizeof(*a) + count * sizeof(a->port[0]));
	int fd, rc = 0;

	if (!a)
		return -ENOMEM;
	for (unsigned int i = 0; i < count && !rc; i++) {
		rc = es_ask_port_init(&a->port[i]);
		a->count += !rc;
	}
	fd = rc ? rc : es_local_socket_open(path, "earshot-tls", BACKLOG, err);
	rc = fd < 0 ? fd : es_local_socket_share(path, conf, err);
	if (rc) {
		if (fd >= 0)
			close(fd);
		for (unsigned int i = 0; i < a->count; i++)
			es_ask_port_fini(&a->port[i]);
		free(a);
		return rc;
	}
	memcpy(a->path, path, strlen(path) + 1); /* a socket's is short */
	a->loop = loop;
	ev_io_init(&a->io, on_process, fd, EV_READ);
	ev_init(&a->pause, on_pause);
	a->io.data = a->pause.data = a;
	ev_io_start(loop, &a->io);
	for (unsigned int i = 0; i < count; i++)
		es_worker_watch(workers[i], a->port[i].epoll_fd, es_ask_port_serve, &a->port[i]);
	*ret_askers = a;
	return 0;
}

void es_askers_free(struct es_askers **askers)
{
	struct es_askers *a = *askers;

	if (!a)
		return;
	ev_io_stop(a->loop, &a->io);
	ev_timer_stop(a->loop, &a->pause);
	unlink(a->path);
	close(a->io.fd);
	for (unsigned int i = 0; i < a->count; i++)
		es_ask_port_fini(&a->port[i]);
	free(a);
	*askers = NULL;
}

void es_askers_loads(const struct es_askers *a, const struct es_conf *conf, struct es_load_sums *sums)
{
	for (unsigned int s = 0; a && s < conf->service_count; s++) {
		const struct es_conf_service *service = &conf->services[s];
		uint32_t tag = es_content_sync_tag(service->name);
		unsigned long long cost = 0;
		unsigned int active = 0;

		if (!service->tls.line || service->tls.inspect != ES_INSPECT_EVERY)
			continue;
		for (unsigned int i = 0; i < a->count; i++)
			es_ask_port_load(&a->port[i], tag, &active, &cost);
		sums->service[s].active = active;
		sums->service[s].load = cost;
		sums->idle[s] = 0;
	}
}

unsigned int es_askers_count(const struct es_askers *a)
{
	unsigned int count = 0;

	for (unsigned int i = 0; a && i < a->count; i++)
		count += es_ask_port_count(&a->port[i]);
	return count;
}

unsigned long long es_askers_begun(const struct es_askers *a)
{
	unsigned long long begun = 0;

	for (unsigned int i = 0; a && i < a->count; i++)
		begun += atomic_load_explicit(&a->port[i].begun, memory_order_relaxed);
	return begun;
}

void es_askers_responses(struct es_askers *a, void (*fn)(void *ctx, const struct es_response_entry *entry),
			 void *ctx)
{
	struct es_response_entry entry;

	for (unsigned int i = 0; a && i < a->count; i++)
		while (es_ask_port_response(&a->port[i], &entry))
			fn(ctx, &entry);
}
