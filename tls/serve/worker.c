// SPDX-License-Identifier: GPL-2.0-or-later
/* A worker's loop: accepts, hears orders, ends when nobody is left. The connections are exchange.c's. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/log.h"
#include "tls/serve/ask.h"
#include "tls/serve/exchange.h"
#include "tls/serve/loop.h"
#include "tls/serve/upstream.h"
#include "tls/serve/worker.h"

#define ACCEPTS_MAX 64	 /* before those that are there have their turn */
#define PAUSE_S	    0.1	 /* while there are no descriptors */
#define FULL_S	    0.02 /* while there are no places */
#define END_S	    10.0
#define LOOK_S	    0.1

struct worker;

struct gate {
	struct worker *worker;
	struct es_serve_service *service;
	unsigned int family;
	ev_io io;
};

struct worker {
	const struct es_worker_params *params;
	struct es_serve serve;
	struct es_exchanges exchanges;
	struct es_ledger_block *counters;
	unsigned int gate_count;
	struct gate *gate;
	ev_io orders;
	ev_timer pause;
	ev_prepare settle;
	ev_timer look; /* while it ends */
	ev_tstamp left_s;
	int is_draining;
};

static void set_gates(struct worker *w, int are_open)
{
	for (unsigned int i = 0; i < w->gate_count; i++)
		if (are_open)
			ev_io_start(w->serve.loop, &w->gate[i].io);
		else
			ev_io_stop(w->serve.loop, &w->gate[i].io);
}

static void pause_for(struct worker *w, double seconds)
{
	ev_timer_set(&w->pause, seconds, 0.0);
	ev_timer_start(w->serve.loop, &w->pause);
}

/* Streams have taken places since. */
static void on_settle(struct ev_loop *loop, ev_prepare *prepare, int events)
{
	struct worker *w = prepare->data;

	(void)loop;
	(void)events;
	for (unsigned int i = 0; i < w->params->settings->count; i++)
		es_places_settle(&w->params->settings->service[i].places, es_clock_now_ns());
}

/* Nobody else of the service is accepted for a moment. */
static void fill(struct worker *w, const struct es_serve_service *service)
{
	es_serve_count(service->counters, ES_SERVE_full);
	for (unsigned int i = 0; i < w->gate_count; i++)
		if (w->gate[i].service == service)
			ev_io_stop(w->serve.loop, &w->gate[i].io);
	pause_for(w, FULL_S);
}

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	set_gates(timer->data, 1);
}

/* Returns 0 when nobody waits there. */
static int accept_one(struct gate *gate)
{
	struct worker *w = gate->worker;
	union es_sockaddr from = {};
	socklen_t len = sizeof(from);
	struct es_flow flow = {.service = gate->service->address[gate->family],
			       .service_port = es_htons(gate->service->port)};
	int fd;

	/* Those that are in the queue when it ends have nowhere else to go. */
	if (!w->serve.is_ending && !w->is_draining &&
	    !es_places_may_come(&gate->service->places, es_clock_now_ns())) {
		fill(w, gate->service);
		return 0;
	}
	fd = accept4(gate->io.fd, &from.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			set_gates(w, 0);
			pause_for(w, PAUSE_S);
			return 0;
		}
		return errno != EAGAIN;
	}
	if (es_sockaddr_addr(&from.sa, len, &flow.client)) {
		close(fd);
		return 1;
	}
	flow.client_port = es_htons(es_sockaddr_port(&from));
	es_exchange_new(&w->exchanges, &w->serve, gate->service, fd, &flow);
	es_places_settle(&gate->service->places, es_clock_now_ns());
	return 1;
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events)
{
	(void)loop;
	(void)events;
	for (int i = 0; i < ACCEPTS_MAX && ev_is_active(io) && accept_one(io->data); i++)
		;
}

/* Its gates are others' from now on. */
static void drain(struct worker *w)
{
	if (w->is_draining)
		return;
	w->is_draining = 1;
	ev_timer_stop(w->serve.loop, &w->pause);
	set_gates(w, 0);
	ev_timer_again(w->serve.loop, &w->look);
}

static void end_it(struct worker *w)
{
	/* Its gates close a moment later: who is on the way to them would be refused. */
	ev_timer_again(w->serve.loop, &w->look);
	w->serve.is_ending = 1;
	w->left_s = END_S;
	for (unsigned int i = 0; i < w->params->settings->count; i++)
		es_upstream_free_idle(&w->params->settings->service[i]);
	es_exchanges_end_idle(&w->exchanges);
}

/* Nobody who has arrived is left behind, but where others have the same socket and accept them. */
static void close_gates(struct worker *w)
{
	ev_timer_stop(w->serve.loop, &w->pause);
	set_gates(w, 0);
	for (; w->gate_count; w->gate_count--) {
		struct gate *gate = &w->gate[w->gate_count - 1];

		if (!w->is_draining || es_listener_is_over(gate->io.fd))
			while (accept_one(gate))
				;
		close(gate->io.fd);
	}
}

/* The daemon says whether this node should lose the clients of a service; NULL: of none of them. */
static void on_news(void *ctx, const char *name, int is_drained)
{
	struct worker *w = ctx;

	for (unsigned int i = 0; i < w->params->settings->count; i++) {
		struct es_serve_service *service = &w->params->settings->service[i];

		if (name && strcmp(service->name, name) != 0)
			continue;
		service->is_drained = is_drained;
		if (is_drained)
			es_exchanges_drain(&w->exchanges, service);
	}
}

static void on_look(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct worker *w = timer->data;

	(void)events;
	close_gates(w);
	if (w->serve.is_ending) {
		w->left_s -= LOOK_S;
		if (w->left_s <= 0)
			es_exchanges_end(&w->exchanges);
	}
	if (!w->serve.clients)
		ev_break(loop, EVBREAK_ALL);
}

static void on_orders(struct ev_loop *loop, ev_io *io, int events)
{
	struct worker *w = io->data;
	struct es_order order;
	ssize_t got = recv(io->fd, &order, sizeof(order), MSG_DONTWAIT);

	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != sizeof(order)) { /* the parent is gone */
		ev_io_stop(loop, io);
		end_it(w);
		return;
	}
	switch (order.kind) {
	case ES_ORDER_KEYS:
		if (es_settings_use_keys(w->params->settings, &order.keys, order.day))
			es_log(ES_LOG_ERR, "worker %u: cannot make the keys of tickets", w->params->number);
		break;
	case ES_ORDER_DRAIN:
		drain(w);
		break;
	case ES_ORDER_END:
		if (!w->serve.is_ending)
			end_it(w);
		break;
	}
	es_tls_keys_wipe(&order.keys);
}

/* Its own listeners, with the services whose they are. */
static int make_gates(struct worker *w)
{
	const struct es_worker_params *params = w->params;

	w->gate = calloc(params->listeners->count + 1, sizeof(*w->gate));
	if (!w->gate)
		return -ENOMEM;
	for (unsigned int i = 0; i < params->listeners->count; i++) {
		const struct es_listener *l = &params->listeners->listener[i];

		if (l->worker != params->number) {
			close(l->fd);
			continue;
		}
		for (unsigned int s = 0; s < params->settings->count; s++)
			for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
				struct es_serve_service *service = &params->settings->service[s];
				struct gate *gate = &w->gate[w->gate_count];

				if (l->port != service->port ||
				    !es_addr_equal(&l->address, &service->address[family]))
					continue;
				gate->worker = w;
				gate->service = service;
				gate->family = family;
				ev_io_init(&gate->io, on_accept, l->fd, EV_READ);
				gate->io.data = gate;
				w->gate_count++;
			}
	}
	return 0;
}

/* Without a place in the ledger it counts for itself. Returns 0 or -ENOMEM. */
static int give_counters(struct worker *w)
{
	const struct es_worker_params *params = w->params;
	struct es_ledger_block *all = params->counters;

	if (!all)
		all = w->counters = calloc(ES_LEDGER_SERVICES, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (unsigned int i = 0; i < params->settings->count; i++)
		params->settings->service[i].counters = &all[params->settings->service[i].number];
	return 0;
}

int es_worker_run(const struct es_worker_params *params)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return EXIT_FAILURE;
	w->params = params;
	w->serve.loop = es_loop_new();
	w->serve.conf = params->settings->conf;
	w->serve.self = es_settings_self(params->settings);
	w->serve.self_number = params->settings->self;
	w->serve.seal = &params->settings->seal;
	w->serve.taken = params->taken;
	w->serve.peers = params->peers;
	w->serve.handover = params->handover;
	w->serve.ktls = params->ktls_has ? &es_ktls_kernel : NULL;
	w->serve.ktls_has = params->ktls_has;
	if (!w->serve.loop || es_asker_new(w->serve.loop, params->ask, on_news, w, &w->serve.asker) ||
	    give_counters(w) || make_gates(w)) {
		es_log(ES_LOG_ERR, "worker %u: cannot start", params->number);
		free(w);
		return EXIT_FAILURE;
	}
	ev_timer_init(&w->pause, on_pause, PAUSE_S, 0.0);
	ev_timer_init(&w->look, on_look, 0.0, LOOK_S);
	ev_prepare_init(&w->settle, on_settle);
	w->pause.data = w->look.data = w->settle.data = w;
	ev_io_init(&w->orders, on_orders, params->orders, EV_READ);
	w->orders.data = w;
	ev_io_start(w->serve.loop, &w->orders);
	ev_prepare_start(w->serve.loop, &w->settle);
	set_gates(w, 1);
	ev_run(w->serve.loop, 0);
	es_exchanges_end(&w->exchanges);
	for (unsigned int i = 0; i < params->settings->count; i++)
		es_upstream_free_idle(&params->settings->service[i]);
	es_asker_free(&w->serve.asker);
	ev_loop_destroy(w->serve.loop);
	free(w->gate);
	free(w->counters);
	free(w);
	return EXIT_SUCCESS;
}
