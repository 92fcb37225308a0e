/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_ROUTE_H
#define ES_DAEMON_ROUTE_H

/*
 * The knowledge for routing that all workers share (inspector/inspect/route.h); owned, and written, by the
 * control thread.
 */
#include "inspector/cluster/cluster.h"
#include "inspector/inspect/route.h"

struct es_daemon_route {
	struct es_route_shared shared;
	struct es_load load[ES_NODES_MAX];
};

/* es_daemon_route_init() - nothing is known yet; before the first worker. Returns 0 or -errno. */
int es_daemon_route_init(struct es_daemon_route *route);
void es_daemon_route_fini(struct es_daemon_route *route);

/* es_daemon_route_settle() - loads that last are means over so long */
void es_daemon_route_settle(struct es_daemon_route *route, unsigned int settle_ms);

/* es_daemon_route_heard() - another inspector has given a request to @node */
void es_daemon_route_heard(struct es_daemon_route *route, unsigned int node);

/* es_daemon_route_load() - @node has said how busy it is */
void es_daemon_route_load(struct es_daemon_route *route, unsigned int node,
			  const struct es_load_report *report);

/**
 * es_daemon_route_alone() - not all nodes are heard: only this node's own @report is known
 * Its load is not compared with nothing: all nodes are judged by what was sent to them from here, as if
 * requests took as long there as here.
 */
void es_daemon_route_alone(struct es_daemon_route *route, unsigned int node_count,
			   const struct es_load_report *report);

#endif
