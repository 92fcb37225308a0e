/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_RATES_H
#define ES_DAEMON_RATES_H

/*
 * Tells the other nodes, fifty times a second, of which clients this one has admitted requests that a rule
 * counts, and hears them.
 */
#include <ev.h>
#include "inspector/peers/rate_words.h"

struct es_daemon;

#define ES_RATES_INTERVAL_MS 20

/*
 * struct es_daemon_rates - @table: the workers', as long as they live; @heard: the last sequence of each node
 */
struct es_daemon_rates {
	struct es_rates *table;
	struct ev_timer timer;
	__u64 sequence;
	__u64 heard[ES_NODES_MAX];
};

/* es_daemon_rates_prepare() - before the workers. Returns 0 or -errno. */
int es_daemon_rates_prepare(struct es_daemon *daemon);

/* es_daemon_rates_rebind() - at the start, and after a reload: is there a rule that counts? */
void es_daemon_rates_rebind(struct es_daemon *daemon);

/* es_daemon_rates_message() - what another node says. Returns 0 if it is such a message. */
int es_daemon_rates_message(struct es_daemon *daemon, const void *data, size_t len);

void es_daemon_rates_stop(struct es_daemon *daemon);

#endif
