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
 * node idle: a change of a server set that arrives from another inspector (policy/contents.h) tells of a
 * request that it has just sent there, and counts as one of ours.
 *
 * A node that has nothing in hand has nothing of what was sent, and for nothing sent since does it need
 * longer than has passed, whatever its mean time. One long answer or websocket makes that time long; if short
 * requests seemed to last as long, the node would be given none from which anybody could learn better.
 *
 * A connection that moves takes its requests along. It counts where it is, once, from the moment it was sent:
 * not at the node it has left, and at the other one, until both have spoken again.
 *
 * A node's words also go into means: over settle_ms, and over ES_LOAD_SETTLED times that. A mean is of
 * what it said at different moments, so the nodes' means can be compared where single words cannot: at any
 * moment some node has just taken all that its connections had for it.
 */
#include <pthread.h>
#include "inspector/policy/capacity.h"
#include "inspector/policy/policy.h"

/*
 * A set may change ten times as soon as a connection moves: its changes are rare, and wrong ones cost more.
 */
#define ES_LOAD_SETTLED 10

/**
 * struct es_load_report - what a node said of itself
 * @idle: of the active ones, connections on which nothing goes on
 * @mean_us: time that a request takes there; 0: not known
 * @is_mean_only: nothing else is known of it
 * @cpu, @disk: 1/1000
 * @at_ns: when that was heard, by the clock of those who ask
 */
struct es_load_report {
	unsigned int active;
	unsigned int idle;
	unsigned int load;
	unsigned int mean_us;
	int is_mean_only;
	unsigned short cpu;
	unsigned short disk;
	unsigned long long at_ns;
};

/**
 * struct es_load - one node's load; shared by all threads of an inspector
 * @settle_ms: what the means are over
 * @empty_ns: when it last had nothing in hand, 0 if that is not known
 * @active, @load: sent from here and in hand, as of @as_of_ns
 * @active_reported, @load_reported: what of @report that was
 * @active_moved, @load_moved: of connections that came (or left: less than 0) since
 * @active_lasting, @load_lasting, @active_settled, @load_settled: the means
 * @capacity: as far as the reports tell it
 */
struct es_load {
	pthread_mutex_t lock; /* held for some ns */
	struct es_load_report report;
	struct es_capacity capacity;
	double active;
	double load;
	double active_reported;
	double load_reported;
	double active_moved;
	double load_moved;
	double active_lasting;
	double load_lasting;
	double active_settled;
	double load_settled;
	unsigned int settle_ms;
	unsigned long long as_of_ns;
	unsigned long long empty_ns;
};

/* es_load_init() - nothing is known. Returns 0 or -errno. */
int es_load_init(struct es_load *load);
void es_load_fini(struct es_load *load);

/* es_load_settle() - the means are over @settle_ms from now on */
void es_load_settle(struct es_load *load, unsigned int settle_ms);

/* es_load_report() - the node has said how busy it is */
void es_load_report(struct es_load *load, const struct es_load_report *report);

/* es_load_estimate() - fills active, idle, load, their means, capacity, cpu, disk of @ret_node */
void es_load_estimate(struct es_load *load, unsigned long long now_ns, struct es_node_view *ret_node);

/* es_load_sent() - a request was given to the node from here; @node is brought up to date with it */
void es_load_sent(struct es_load *load, unsigned int cost, unsigned long long now_ns,
		  struct es_node_view *node);

/* es_load_moved() - a connection has come (@count 1) or left (-1) with a request of @cost; @node as above */
void es_load_moved(struct es_load *load, int count, unsigned int cost, struct es_node_view *node);

/* es_load_heard() - another inspector has given it one; of what cost is not known: of that of others there */
void es_load_heard(struct es_load *load, unsigned long long now_ns);

#endif
