/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOAD_H
#define ES_LOAD_H

/*
 * How busy each node is at this moment, as one worker estimates it. Every node publishes what it has in hand
 * some times a second; in between, a worker knows only what it sent itself. It must not simply add that: at
 * 10,000 requests a second a node of 1 ms each has ten in hand, not the thousand that were sent since it last
 * spoke. So each worker keeps its own part of a node's load as a sum that decays with the node's mean time
 * for a request (Little's law: what is in hand / what comes in), and the estimate is
 *
 *     published - own part when that was published + own part now
 *
 * that is, the others are taken to go on as they did.
 */
#include <stdatomic.h>
#include "inspector/policy/policy.h"

/**
 * struct es_load_published - what a node said of itself last; written by the control thread, read by all
 * @sequence: odd while it is written, 0 if nothing was said yet
 * @mean_us: time that a request takes there; 0: not known
 * @at_ns: when that was heard, by the clock of those who ask; 0: just now
 */
struct es_load_published {
	_Atomic unsigned int sequence;
	_Atomic unsigned int active;
	_Atomic unsigned int load;
	_Atomic unsigned int mean_us;
	_Atomic unsigned short cpu; /* 1/1000 */
	_Atomic unsigned short disk;
	_Atomic unsigned long long at_ns;
};

struct es_load_report {
	unsigned int active;
	unsigned int load;
	unsigned int mean_us;
	unsigned short cpu;
	unsigned short disk;
	unsigned long long at_ns;
};

/* es_load_publish() - one writer */
void es_load_publish(struct es_load_published *published, const struct es_load_report *report);

/* struct es_load_own - one worker's part of one node's load */
struct es_load_own {
	unsigned int sequence; /* of the report that @at_report belongs to */
	double active;	       /* as of @as_of_ns */
	double load;
	double active_at_report;
	double load_at_report;
	unsigned long long as_of_ns;
	double mean_ns;
	struct es_load_report report;
};

/* es_load_estimate() - fills active, load, cpu, disk of @ret_node */
void es_load_estimate(struct es_load_own *own, struct es_load_published *published, unsigned long long now_ns,
		      struct es_node_view *ret_node);

/* es_load_sent() - this worker gave the node a request; @node is brought up to date with it */
void es_load_sent(struct es_load_own *own, unsigned int cost, unsigned long long now_ns,
		  struct es_node_view *node);

#endif
