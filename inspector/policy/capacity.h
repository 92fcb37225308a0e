/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_POLICY_CAPACITY_H
#define ES_POLICY_CAPACITY_H

/*
 * How many requests a node must have in hand to be busy, from what it says of itself: the knee of operational
 * analysis (Denning and Buzen, "The Operational Analysis of Queueing Network Models", 1978). With N requests
 * in hand and its busiest resource, CPU or disk, busy for the share U, a node that does not queue yet has
 * N* = N / U at full use; beyond that each further request only waits. N and U are means over the moments in
 * which U was between ES_CAPACITY_FROM and ES_CAPACITY_TO: below, what else runs on the machine says as much
 * as the requests; above, requests wait for each other, and N says how many clients there are.
 */
#include "kmod/core/types.h"

#define ES_CAPACITY_FROM   0.2
#define ES_CAPACITY_TO	   0.85
#define ES_CAPACITY_OVER_S 600.0 /* of such moments, the last of them; others do not age it */
#define ES_CAPACITY_MIN_S  10.0	 /* of such moments, before it is known */

/* struct es_capacity - @hand, @busy: request-seconds, and busy seconds, in @seconds of such moments */
struct es_capacity {
	double hand;
	double busy;
	double seconds;
};

/* es_capacity_add() - for @seconds, @active requests were in hand, and CPU and disk that busy (0..1) */
void es_capacity_add(struct es_capacity *capacity, double seconds, double active, double cpu, double disk);

/* es_capacity_get() - requests in hand; 0: not known */
double es_capacity_get(const struct es_capacity *capacity);

#endif
