/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_CLOCK_H
#define ES_DAEMON_CLOCK_H

/*
 * The daemon's handling of the machine's wall clock (peers/own_clock.h): the datapath, which must know the
 * time without a daemon, and all threads get the time from here, and the other nodes are told when the clock
 * was set.
 */
#include <ev.h>
#include "inspector/peers/own_clock.h"

struct es_daemon;

/* struct es_daemon_clock - @timer: each second; @was_set: the others have to be told the time */
struct es_daemon_clock {
	struct es_own_clock own;
	struct ev_timer timer;
	void (*was_set)(struct es_daemon *daemon);
};

/*
 * es_daemon_clock_start() - go on from what the datapath's memory has; es_daemon_clock_watch(): from then on
 */
void es_daemon_clock_start(struct es_daemon *daemon);
void es_daemon_clock_watch(struct es_daemon *daemon, void (*was_set)(struct es_daemon *daemon));

/* es_daemon_clock_told_ns() - the time that the other nodes are told */
unsigned long long es_daemon_clock_told_ns(const struct es_daemon *daemon);

/* es_daemon_clock_outrun() - @node has heard this number from an earlier life of this node */
void es_daemon_clock_outrun(struct es_daemon *daemon, unsigned int node, unsigned long long number_ns);

#endif
