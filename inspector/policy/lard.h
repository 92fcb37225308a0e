/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LARD_H
#define ES_LARD_H

/*
 * Shared by LARD and LARD/R, and by HyLARD what is an imbalance by measured capacity.
 */
#include "inspector/policy/sets.h"

/* The paper's T_low and T_high. */
#define ES_LARD_LOW  25.0
#define ES_LARD_HIGH 65.0

/*
 * T_high of a T_low that is measured, as the paper's are to each other: there a request takes 2.6 times what
 * it takes at an idle node, since beyond its capacity each further request only waits.
 */
#define ES_LARD_SLOW (ES_LARD_HIGH / ES_LARD_LOW)

/* A measured T_low is no less: with fewer, T_high would be passed by chance. */
#define ES_LARD_LOW_MIN 5.0

/* struct es_lard - the parameters; @keep_s is LARD/R's K */
struct es_lard {
	double low;
	double high;
	double keep_s;
};

/* Their place in the lists of parameters. */
enum { ES_LARD_T_LOW, ES_LARD_T_HIGH, ES_LARD_K };

/**
 * es_lard_measured() - T_low and T_high by the nodes' capacity, for a node of weight 100: by the median of
 * the targets
 * Returns 0, or -1: no node's is known.
 */
int es_lard_measured(const struct es_cluster_view *view, double *ret_low, double *ret_high);

/* es_lard_now() - @lard with both thresholds; the paper's as long as no capacity is known */
struct es_lard es_lard_now(const struct es_lard *lard, const struct es_cluster_view *view);

int es_lard_new(const struct es_policy_settings *settings, void **ret_state);

/* es_lard_is_imbalance() - is @node that busy, and @least that idle, that a cache miss is the lesser evil? */
int es_lard_is_imbalance(const struct es_lard *lard, const struct es_cluster_view *view, unsigned int node,
			 unsigned int least);

#endif
