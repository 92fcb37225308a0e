/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_PACKET_MAX_H
#define ES_DAEMON_PACKET_MAX_H

/*
 * How long a client's packet in a handover message may be: as this node's interfaces let it send, and as each
 * other node says that it can receive. An MTU may change while all run, here or there; then MSS, workers and
 * programs go by the new one, and nothing else changes.
 */
#include "kmod/core/types.h"

struct es_daemon;

/**
 * struct es_daemon_packet_max
 * @in_force: bytes; workers and programs read it at any time
 * @before: what nodes of a version that does not listen may send here: as it was at the start or the last
 * reload
 * @told: what each node takes, 0: it has not said; @told_ns: when it said so
 */
struct es_daemon_packet_max {
	_Atomic unsigned int in_force;
	unsigned int before;
	unsigned int told[ES_NODES_MAX];
	unsigned long long told_ns[ES_NODES_MAX];
};

/* es_daemon_packet_max_begin() - this node's network was read for a start or a reload; es_daemon_configure()
 * is due. Where nodes have other numbers now, what they have said is wrong for some seconds at most. */
void es_daemon_packet_max_begin(struct es_daemon *daemon);

/* es_daemon_packet_max_look() - once a second, and when the MTU has changed: put in force what holds now */
void es_daemon_packet_max_look(struct es_daemon *daemon);

/* es_daemon_packet_max_heard() - @node has said what it takes */
void es_daemon_packet_max_heard(struct es_daemon *daemon, unsigned int node, unsigned int packet_max);

/* es_daemon_packet_max_expected() - the longest that any node may send here */
unsigned int es_daemon_packet_max_expected(const struct es_daemon *daemon);

#endif
