/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HISTORY_H
#define ES_HISTORY_H

/*
 * The last ten minutes of a node's requests, by the node that serves them: how many came in each five seconds. Made of
 * counters that only grow; the control thread's.
 */
#include "kmod/core/ring.h"

#define ES_HISTORY_STEP_S  5
#define ES_HISTORY_SAMPLES 120

/**
 * struct es_history - all 0 at first
 * @identity: of the list of nodes; @count: samples that are there; @next: the place of the next one
 * @total, @errors_total: the counters at the last sample
 */
struct es_history {
	unsigned long long identity;
	unsigned int count;
	unsigned int next;
	int has_total;
	unsigned long long at_ns;
	unsigned long long total[ES_NODES_MAX];
	unsigned long long errors_total;
	unsigned int requests[ES_HISTORY_SAMPLES][ES_NODES_MAX];
	unsigned int errors[ES_HISTORY_SAMPLES];
};

/* struct es_history_totals - the counters now; @identity: another one begins anew, as nodes have other numbers */
struct es_history_totals {
	unsigned long long identity;
	unsigned int node_count;
	unsigned long long requests[ES_NODES_MAX];
	unsigned long long errors;
};

/* es_history_add() - take a sample; each ES_HISTORY_STEP_S */
void es_history_add(struct es_history *history, const struct es_history_totals *totals,
		    unsigned long long now_ns);

/* es_history_get() - requests for @node in sample @i of history->count, the oldest first */
unsigned int es_history_get(const struct es_history *history, unsigned int node, unsigned int i);

/* es_history_rate() - requests a second for all nodes, and errors, over the last sample and what came since; 0 while
 * nothing is known */
double es_history_rate(const struct es_history *history, const struct es_history_totals *now,
		       unsigned long long now_ns, double *ret_errors);

#endif
