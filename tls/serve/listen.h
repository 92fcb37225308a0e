/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_LISTEN_H
#define ES_SERVE_LISTEN_H

/*
 * The sockets on which clients arrive. The parent has them for as long as it lives: a connection that waits
 * in their queues outlives workers that die or are replaced.
 */
#include "inspector/base/error.h"
#include "tls/serve/settings.h"

/* struct es_listener - of one worker, by its number */
struct es_listener {
	struct es_addr address;
	unsigned int port;
	unsigned int worker;
	int fd;
};

struct es_listeners {
	unsigned int count;
	struct es_listener *listener;
};

/**
 * es_listeners_new() - all that @settings ask for
 * @have: their sockets are taken over where they are wanted again; they stay in @have, too. May be NULL.
 * Returns 0 or -errno, and @err.
 */
int es_listeners_new(const struct es_settings *settings, const struct es_listeners *have,
		     struct es_listeners *ret_listeners, struct es_conf_error *err);

/**
 * es_listeners_fini() - close those that are not in @kept, which may be NULL
 * Workers have them, too: nobody finds those any more, and a worker can accept whoever has come before.
 */
void es_listeners_fini(struct es_listeners *listeners, const struct es_listeners *kept);

/* es_listener_is_over() - was @fd closed in that way, so that nobody else accepts who is in its queue? */
int es_listener_is_over(int fd);

#endif
