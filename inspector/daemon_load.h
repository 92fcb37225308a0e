/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_LOAD_H
#define ES_DAEMON_LOAD_H

/*
 * How busy this node is: counts what its connections have in hand, some times a second but for no more than a
 * fiftieth of a CPU, and how long requests take; takes what the datapath has measured. With membership that
 * is said on the bus (daemon_membership.c), else it is for this node alone.
 */
#include <ev.h>
#include "inspector/node_load.h"
#include "inspector/policy/load.h"
#include "inspector/policy/load_meter.h"
#include "kmod/core/load.h"
#include "membership/wire.h"

struct es_daemon;

/**
 * struct es_daemon_load
 * @sums: by service; @connections: of all services, those that are closing included
 * @walk_ns: CPU time that the last count took; @next_ns: when the next one is due
 */
struct es_daemon_load {
	struct es_load_sums sums;
	struct es_load_report report;
	unsigned int connections;
	struct es_load_meter meter;
	struct es_node_load node;
	unsigned long long walk_ns;
	unsigned long long next_ns;
	struct ev_timer timer;
};

/* How often it is counted when that is cheap. */
#define ES_LOAD_INTERVAL_MS 200

/**
 * es_daemon_load_update() - count again, if it is time
 * Returns 1 if report, sums and connections are new.
 */
int es_daemon_load_update(struct es_daemon *daemon);

/* es_daemon_load_word() - what this node says of itself; sent_ns, queue and state are left to the caller */
void es_daemon_load_word(const struct es_daemon *daemon, struct es_wire_load *ret_load);

/* es_daemon_load_alone() - without membership: update by itself from now on */
void es_daemon_load_alone(struct es_daemon *daemon);

/* es_daemon_load_stop() - may be called without start */
void es_daemon_load_stop(struct es_daemon *daemon);

#endif
