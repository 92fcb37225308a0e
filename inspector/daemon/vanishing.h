/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_VANISHING_H
#define ES_DAEMON_VANISHING_H

/*
 * Tells other nodes what this node's workers know of requests that were given to them and not heard of
 * (inspect/unheard.h), hears the same of this node, and judges it (health/vanishing.h).
 */
#include "inspector/health/vanishing.h"
#include "inspector/peers/exchange.h"
#include "inspector/self/serving.h"

struct es_daemon;

/* struct es_daemon_vanishing - of each service; @text: while the node is out for it */
struct es_daemon_vanishing {
	struct {
		char name[ES_CONF_NAME_SIZE];
		struct es_vanishing state;
		char text[256];
	} of[ES_CONF_SERVICES_MAX];
};

/*
 * es_daemon_vanishing_rebind() - at the start and after a reload; a service of the same name stays as it is
 */
void es_daemon_vanishing_rebind(struct es_daemon *daemon);

/* es_daemon_vanishing_add() - pass on what the workers know, look, and add to what was found what follows */
void es_daemon_vanishing_add(struct es_daemon *daemon, struct es_serving *found);

/* es_daemon_vanishing_heard() - another node tells something of this one; of struct es_load_exchange */
void es_daemon_vanishing_heard(void *daemon, unsigned int node, const struct es_evidence_wire *wire);

#endif
