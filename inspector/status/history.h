/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HISTORY_H
#define ES_HISTORY_H

/*
 * The last ten minutes of a node's figures, a sample each five seconds: how much counters that only grow have
 * grown, and what gauges showed. Their owner (daemon/history.c) knows what the figures are; the control
 * thread's.
 */
#define ES_HISTORY_STEP_S  5
#define ES_HISTORY_SAMPLES 120

/**
 * struct es_history - all 0 at first
 * @identity: of the list of figures, of which there are @series; @count: samples that are there; @next: the
 * place of the next one
 * @total: the figures at the last sample; @value: of each sample, @series
 */
struct es_history {
	unsigned long long identity;
	unsigned int series;
	unsigned int count;
	unsigned int next;
	int has_total;
	unsigned long long at_ns;
	unsigned long long *total;
	unsigned int *value;
};

/**
 * struct es_history_figures - the figures now
 * @identity: another one begins anew; @value: counters up to @counters, then gauges, @series in all
 */
struct es_history_figures {
	unsigned long long identity;
	unsigned int series;
	unsigned int counters;
	const unsigned long long *value;
};

/* es_history_add() - take a sample; each ES_HISTORY_STEP_S. Without memory there is none. */
void es_history_add(struct es_history *history, const struct es_history_figures *figures,
		    unsigned long long now_ns);

/* es_history_get() - of sample @i of history->count, the oldest first */
unsigned int es_history_get(const struct es_history *history, unsigned int series, unsigned int i);

/*
 * es_history_rate() - how much the counter grows in a second, over the last sample and what came since; 0
 * while nothing is known
 */
double es_history_rate(const struct es_history *history, const struct es_history_figures *now,
		       unsigned long long now_ns, unsigned int series);

void es_history_fini(struct es_history *history);

#endif
