/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_LOAD_H
#define ES_DAEMON_LOAD_H

/*
 * How busy this node is, and the others. Counts what its connections have in hand, and how long requests
 * take: many times a second but for no more than a fiftieth of a CPU where something is decided by it, and
 * else only so often that it can be shown. Takes what the datapath has measured; and tells all that the other
 * nodes (exchange.h). With membership, it is said on the bus, too, some times a second (sign_of_life.c): that
 * makes up for datagrams that a firewall eats.
 */
#include <ev.h>
#include "inspector/peers/node_load.h"
#include "inspector/policy/load.h"
#include "inspector/policy/load_meter.h"
#include "kmod/core/load.h"
#include "membership/wire.h"

struct es_daemon;

/**
 * struct es_daemon_load
 * @sums: by service; @connections: of all services, those that are closing included
 * @walk_ns: CPU time that the last count took; @counted_ns: when that was, 0 if another one is due;
 * @counted: how many there were; @asked_ns: when somebody last looked
 * @told_ns: when this node last said how busy it is
 * @idle: what each node said last of connections on which nothing goes on, at @idle_ns; @idle_told,
 * @idle_told_ns: what this one did
 */
struct es_daemon_load {
	struct es_load_sums sums;
	struct es_load_report report;
	unsigned int connections;
	struct es_load_meter meter;
	struct es_load_recent recent;
	struct es_node_load node;
	unsigned long long walk_ns;
	unsigned long long counted_ns;
	unsigned long long asked_ns;
	unsigned long long slow_ns;
	unsigned int counted;
	unsigned long long told_ns;
	unsigned int idle[ES_NODES_MAX];
	unsigned long long idle_ns[ES_NODES_MAX];
	unsigned int idle_told;
	unsigned long long idle_told_ns;
	struct ev_timer timer;
};

/* How often it is counted when that is cheap. */
#define ES_LOAD_INTERVAL_MS 25

/* How often if no policy, plugin or rule asks for it, nor a person for so long. */
#define ES_LOAD_UNUSED_INTERVAL_MS 1000
#define ES_LOAD_ASKED_MS	   2000

/**
 * es_daemon_load_update() - count again, if it is time, and tell the others
 * Returns 1 if report, sums and connections are new. A timer does it, too; this is for who cannot wait.
 */
int es_daemon_load_update(struct es_daemon *daemon);

/* es_daemon_load_tell() - tell the others at once, even if there is nothing but the time to tell */
void es_daemon_load_tell(struct es_daemon *daemon);

/* es_daemon_load_ask() - somebody looks at the figures: count if they are old, and often for a while */
void es_daemon_load_ask(struct es_daemon *daemon);

/* es_daemon_load_word() - what this node says of itself; sent_ns, queue and state are left to the caller */
void es_daemon_load_word(const struct es_daemon *daemon, struct es_wire_load *ret_load);

/* es_daemon_load_start() - count and tell from now on */
void es_daemon_load_start(struct es_daemon *daemon);

/* es_daemon_load_stop() - may be called without start */
void es_daemon_load_stop(struct es_daemon *daemon);

/*
 * es_daemon_load_take() - what @node said of itself, if it is new, and if all have said so that it can be
 * compared
 */
void es_daemon_load_take(struct es_daemon *daemon, unsigned int node, const struct es_wire_load *load);

/* es_daemon_load_bus() - what @node said of itself on the bus; used while its datagrams are not heard */
void es_daemon_load_bus(struct es_daemon *daemon, unsigned int node, const struct es_wire_load *load);

#endif
