/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_HEARD_H
#define ES_DAEMON_HEARD_H

/* When each of the other nodes was last heard on the cluster network, by a datagram with how busy it is. */
#include "inspector/base/clock.h"
#include "kmod/core/abi.h"

/*
 * A node says something many times in this time. If it does not, nothing is known of it; after twice that, it
 * may be dead.
 */
#define ES_SILENCE_NS 1000000000ULL

/* struct es_heard - @at_ns: CLOCK_MONOTONIC; 0: never */
struct es_heard {
	unsigned long long at_ns[ES_NODES_MAX];
};

static inline int es_heard_within(const struct es_heard *heard, unsigned int node, unsigned long long ns)
{
	unsigned long long at_ns = heard->at_ns[node];

	return at_ns && es_clock_now_ns() - at_ns < ns;
}

#endif
