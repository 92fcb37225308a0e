/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_EXCHANGE_H
#define ES_SERVE_EXCHANGE_H

/*
 * The way of a client's connection: its handshake, then one request after the other, each of which is served
 * here, refused, or moved to another node with its connection.
 */
#include "kmod/core/flow.h"
#include "tls/serve/serve.h"

struct es_exchange;

/* struct es_exchanges - all of a worker; zero it */
struct es_exchanges {
	struct es_exchange *first;
};

/*
 * es_exchange_new() - of an accepted socket, which it owns from now on, also if it fails. Returns 0 or
 * -ENOMEM.
 */
int es_exchange_new(struct es_exchanges *exchanges, struct es_serve *serve, struct es_serve_service *service,
		    int fd, const struct es_flow *flow);

/*
 * es_exchanges_end_idle() - those that wait for a further request end, and the others after the one that
 * they have
 */
void es_exchanges_end_idle(struct es_exchanges *exchanges);

/*
 * es_exchanges_drain() - the service has been drained on this node: those of its clients that would stay for
 * any number of requests are told to leave
 */
void es_exchanges_drain(struct es_exchanges *exchanges, const struct es_serve_service *service);

/* es_exchanges_end() - all, at once */
void es_exchanges_end(struct es_exchanges *exchanges);

#endif
