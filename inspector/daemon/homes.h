/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_HOMES_H
#define ES_DAEMON_HOMES_H

/*
 * Which nodes serve which content, told from node to node where there is no bus (policy/contents.h). Control
 * thread.
 */
#include "inspector/cluster/content_sync.h"
#include "inspector/peers/exchange.h"

/*
 * Loads come through the same socket, and a node takes so many datagrams a second at most: all others' words
 * together are half of that.
 */
#define ES_HOMES_PER_S (ES_LOADS_AT_A_TIME / ES_LOADS_PAUSE_S / 2)

/* struct es_homes - @spare: words that may be told now, as of @as_of_ns; @untold: words that found no room */
struct es_homes {
	double spare;
	unsigned long long as_of_ns;
	unsigned long long untold;
};

/* es_homes_may_tell() - may one more word be told @now_ns, in a cluster of @node_count nodes? */
int es_homes_may_tell(struct es_homes *homes, unsigned int node_count, unsigned long long now_ns);

/* The way on which the content tables tell the other nodes; its context is the daemon. */
extern const struct es_content_sync_ops es_daemon_content_ops;

/* es_daemon_home_heard() - struct es_load_exchange's */
void es_daemon_home_heard(void *daemon, unsigned int node, const struct es_home_wire *wire);

#endif
