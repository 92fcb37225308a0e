/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_POISON_H
#define ES_DAEMON_POISON_H

/*
 * Requests that end daemons, in the daemon: what the one before this left behind, what other nodes tell, and
 * the keeper.
 */
#include <ev.h>
#include <json-c/json.h>
#include "inspector/daemon/keeper.h"

struct es_daemon;

/**
 * struct es_daemon_poison
 * @told_ns: when this node's own were last told; @crashes: of plugins, as logged, all added up
 */
struct es_daemon_poison {
	struct es_keeper *keeper;
	struct ev_timer timer;
	struct ev_child child;
	unsigned long long told_ns;
	unsigned int crashes;
};

/**
 * es_daemon_poison_start() - before there are workers: takes what the last daemon was busy with, starts the
 * keeper
 * Returns 0 or -errno.
 */
int es_daemon_poison_start(struct es_daemon *daemon);
void es_daemon_poison_stop(struct es_daemon *daemon);

/* es_daemon_poison_message() - a datagram that may be a struct es_poison_message; 0 if it was */
int es_daemon_poison_message(void *daemon, const void *data, size_t len);

/* es_daemon_poison_report() - for `status`: an array */
struct json_object *es_daemon_poison_report(const struct es_daemon *daemon);

#endif
