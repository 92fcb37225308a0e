/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_SERVICE_DRAINS_H
#define ES_DAEMON_SERVICE_DRAINS_H

/*
 * The services that each node is drained of. Such a node is given nothing new of them, and is asked only when
 * no other node serves; its connections move away with their next request. It inspects as before. A node of
 * the version before knows nothing of such drains, and gives it requests as ever.
 */
#include "inspector/self/service_drains.h"

struct es_daemon;

/**
 * struct es_daemon_service_drains
 * @of: the drains of each node; NULL: it has said nothing; @text: the same for people; @told: this node's
 * own, as last told
 * @end_ms: of each of this node's drains, by CLOCK_MONOTONIC: when it ends by itself; 0: never
 */
struct es_daemon_service_drains {
	struct es_service_drains *of[ES_NODES_MAX];
	struct es_service_drains told;
	char text[ES_NODES_MAX][192];
	char path[256];
	uint8_t was_member[ES_NODES_MAX];
	unsigned long long end_ms[ES_CONF_SERVICES_MAX];
};

/* es_service_drains_begin() - what the file has is this node's, before it joins */
void es_daemon_service_drains_begin(struct es_daemon *daemon);
void es_daemon_service_drains_free(struct es_daemon *daemon);

/* es_daemon_service_drains_rebind() - services may have other numbers */
void es_daemon_service_drains_rebind(struct es_daemon *daemon);

/* es_daemon_service_drains_view() - others may have come: tell them of this node */
void es_daemon_service_drains_view(struct es_daemon *daemon);

/*
 * es_daemon_service_drains_wish(), _said() - messages from the bus: a wish, what this node shall do; and what
 * holds on any node
 */
void es_daemon_service_drains_wish(struct es_daemon *daemon, const void *payload, size_t len);
void es_daemon_service_drains_said(struct es_daemon *daemon, const void *payload, size_t len);

/* es_daemon_service_drains_tick() - ends those whose time is over */
void es_daemon_service_drains_tick(struct es_daemon *daemon);

/*
 * es_daemon_service_drains_ask() - wish @drain of any node. Returns 0; -ENOTCONN: it, or this node, is no
 * member.
 */
int es_daemon_service_drains_ask(struct es_daemon *daemon, const struct es_service_drain *drain);

#endif
