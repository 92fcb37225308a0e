/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_OUTLIERS_H
#define ES_DAEMON_OUTLIERS_H

/*
 * Judges this node's servers by what they answer (health/outlier.h), each second: with what the datapath has
 * counted, and with what the other nodes say of theirs. A claim, and that a node is out, travel as a service
 * that fails (struct es_wire_load), so that a version that does not know outliers counts such a node as one
 * whose check fails.
 */
#include "inspector/health/outlier.h"
#include "inspector/self/serving.h"

struct es_daemon;

/* struct es_daemon_outlier - of the service of that name; @conf: by which it was judged; @timed, @slow: as
 * struct es_outlier_counts */
struct es_daemon_outlier {
	char name[ES_CONF_NAME_SIZE];
	struct es_conf_outlier conf;
	struct es_outlier state;
	unsigned long long timed;
	unsigned long long slow;
	char text[256]; /* while it is out */
};

struct es_daemon_outliers {
	struct es_daemon_outlier of[ES_CONF_SERVICES_MAX];
};

/*
 * es_daemon_outliers_rebind() - at the start and after a reload; a service with the same limits stays as it
 * is
 */
void es_daemon_outliers_rebind(struct es_daemon *daemon);

/* es_daemon_outliers_took() - a response of @service took so long, by this node's server; 0: not known */
void es_daemon_outliers_took(struct es_daemon_outliers *outliers, unsigned int service,
			     unsigned long long took_ns);

/* es_daemon_outliers_add() - look, and add to what was found what follows */
void es_daemon_outliers_add(struct es_daemon *daemon, struct es_serving *found);

/* es_daemon_outlier_is_out() - is nothing given to this node's server of @service for that? */
int es_daemon_outlier_is_out(const struct es_daemon_outliers *outliers, unsigned int service);

#endif
