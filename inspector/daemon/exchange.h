/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_EXCHANGE_H
#define ES_DAEMON_EXCHANGE_H

/*
 * The socket by which the nodes tell each other all that needs no bus (peers/exchange.h), and what follows
 * from a word of another node: about its load, its clock, its servers.
 */
#include <ev.h>
#include "inspector/base/error.h"
#include "inspector/peers/exchange.h"
#include "inspector/peers/node_clocks.h"

struct es_daemon;

/**
 * struct es_daemon_exchange
 * @other: set before the start: gets what is not about loads, with the daemon (struct es_load_exchange)
 * @pause: of reading, after a flood
 * @clocks: what time each node has; @requires_time: all of them tell it (struct es_config)
 * @said_behind_ns: when the log last said that a node's numbers are behind
 */
struct es_daemon_exchange {
	struct es_load_exchange way;
	int (*other)(void *daemon, const void *data, size_t len);
	struct ev_io io;
	struct ev_timer pause;
	struct es_node_clocks clocks;
	int requires_time;
	unsigned long long said_behind_ns[ES_NODES_MAX];
};

/*
 * es_daemon_exchange_start() - listen, and tell this node's load, from now on. Returns 0, or -errno and @err.
 */
int es_daemon_exchange_start(struct es_daemon *daemon, struct es_conf_error *err);

/* es_daemon_exchange_rebind() - after a reload: the port may be another one */
void es_daemon_exchange_rebind(struct es_daemon *daemon);

/* es_daemon_exchange_stop() - may be called without start */
void es_daemon_exchange_stop(struct es_daemon *daemon);

/*
 * es_daemon_send() (send.c) - to one other node; what is lost is said again, or asked for again, by whoever
 * sends it
 */
void es_daemon_send(const struct es_daemon *daemon, unsigned int node, const void *data, size_t len);

#endif
