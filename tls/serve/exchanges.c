// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All exchanges of a worker: how one comes, and those that have to go, since another one comes, the service
 * is drained here, or the worker ends. The way of each is exchange.c's.
 */
#include <errno.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "tls/serve/exchange_internal.h"

static void oust(struct es_place *place)
{
	struct es_exchange *x = (struct es_exchange *)place;
	int is_new = place->kind == ES_PLACE_NEW;

	es_exchange_count(x, is_new ? ES_SERVE_ousted_new : ES_SERVE_ousted_idle);
	if (is_new)
		es_exchange_end(x, 1);
	else
		es_exchange_leave(x);
}

static void changed(void *ctx)
{
	es_exchange_run(ctx);
}

static void expired(void *ctx)
{
	es_exchange_expired(ctx);
}

int es_exchange_new(struct es_exchanges *all, struct es_serve *serve_of, struct es_serve_service *service,
		    int fd, const struct es_flow *flow)
{
	struct es_exchange *x = calloc(1, sizeof(*x));

	if (!x) {
		close(fd);
		return -ENOMEM;
	}
	x->all = all;
	x->serve = serve_of;
	x->place.since_ns = es_clock_now_ns();
	x->place.oust = oust;
	x->next = all->first;
	if (x->next)
		x->next->previous = x;
	all->first = x;
	serve_of->clients++;
	es_client_init(&x->client, serve_of, service, fd, flow);
	x->client.changed = changed;
	x->client.expired = expired;
	x->client.ctx = x;
	x->forward.client = &x->client;
	x->forward.changed = changed;
	x->forward.ctx = x;
	es_client_within(&x->client, ES_SERVE_HANDSHAKE_S);
	es_exchange_run(x);
	return 0;
}

void es_exchanges_end_idle(struct es_exchanges *all)
{
	struct es_exchange *next;

	for (struct es_exchange *x = all->first; x; x = next) {
		next = x->next;
		if (x->phase == ES_EXCHANGE_READS || x->phase == ES_EXCHANGE_STREAMS)
			es_exchange_run(x);
	}
}

void es_exchanges_drain(struct es_exchanges *all, const struct es_serve_service *service)
{
	struct es_exchange *next;

	for (struct es_exchange *x = all->first; x; x = next) {
		next = x->next;
		if ((x->phase == ES_EXCHANGE_STREAMS || x->phase == ES_EXCHANGE_READS) &&
		    x->client.service == service)
			es_exchange_run(x);
	}
}

void es_exchanges_end(struct es_exchanges *all)
{
	struct es_exchange *next;

	for (struct es_exchange *x = all->first; x; x = next) {
		next = x->next;
		es_exchange_end(x, 1);
	}
}
