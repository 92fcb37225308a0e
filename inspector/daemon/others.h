/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_OTHERS_H
#define ES_DAEMON_OTHERS_H

/*
 * Which other nodes serve a service, as far as they have told. Nothing that clients or the network can bring
 * about takes the last ones out: who wants to go counts them first.
 */
#include "inspector/health/place.h"

struct es_daemon;

/*
 * es_daemon_another_serves() - is there a node that is not known to fail for @service, and that may be given
 * its requests?
 */
int es_daemon_another_serves(const struct es_daemon *daemon, unsigned int service);

/* es_daemon_others() - the others of @service, for a place among those that are out */
struct es_place_others es_daemon_others(const struct es_daemon *daemon, unsigned int service);

#endif
