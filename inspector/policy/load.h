/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOAD_H
#define ES_LOAD_H

/*
 * How busy a node is at this moment, as another one estimates it. Every node says some times a second what it
 * has in hand; in between, the others know only what they sent themselves. They must not simply add that: at
 * 10,000 requests a second a node of 1 ms each has ten in hand, not the hundreds that were sent since it last
 * spoke. So what was sent from here is kept as a sum that decays with the node's mean time for a request
 * (Little's law: what is in hand / what comes in), and the estimate is
 *
 *     what the node said - what of that was sent from here + what was sent from here and is in hand now
 *
 * that is, the other inspectors are taken to go on as they did. But they do not when they all find the same
 * node idle: a change of a server set that arrives from another inspector (policy/targets.h) tells of a
 * request that it has just sent there, and counts as one of ours.
 */
#include <pthread.h>
#include "inspector/policy/policy.h"

/**
 * struct es_load_report - what a node said of itself
 * @mean_us: time that a request takes there; 0: not known
 * @cpu, @disk: 1/1000
 * @at_ns: when that was heard, by the clock of those who ask
 */
struct es_load_report {
	unsigned int active;
	unsigned int load;
	unsigned int mean_us;
	unsigned short cpu;
	unsigned short disk;
	unsigned long long at_ns;
};

/**
 * struct es_load - one node's load; shared by all threads of an inspector
 * @active, @load: sent from here and in hand, as of @as_of_ns
 * @active_reported, @load_reported: what of @report that was
 */
struct es_load {
	pthread_mutex_t lock; /* held for some ns */
	struct es_load_report report;
	double active;
	double load;
	double active_reported;
	double load_reported;
	unsigned long long as_of_ns;
};

/* es_load_init() - nothing is known. Returns 0 or -errno. */
int es_load_init(struct es_load *load);
void es_load_fini(struct es_load *load);

/* es_load_report() - the node has said how busy it is */
void es_load_report(struct es_load *load, const struct es_load_report *report);

/* es_load_estimate() - fills active, load, cpu, disk of @ret_node */
void es_load_estimate(struct es_load *load, unsigned long long now_ns, struct es_node_view *ret_node);

/* es_load_sent() - a request was given to the node from here; @node is brought up to date with it */
void es_load_sent(struct es_load *load, unsigned int cost, unsigned long long now_ns,
		  struct es_node_view *node);

/* es_load_heard() - another inspector has given it one; of what cost is not known: of that of others there */
void es_load_heard(struct es_load *load, unsigned long long now_ns);

#endif
