/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LARD_H
#define ES_LARD_H

/*
 * Shared by LARD and LARD/R.
 */
#include "inspector/policy/sets.h"

/* struct es_lard - the parameters; @keep_s is LARD/R's K */
struct es_lard {
	double low;
	double high;
	double keep_s;
};

/* Their place in the lists of parameters. */
enum { ES_LARD_T_LOW, ES_LARD_T_HIGH, ES_LARD_K };

int es_lard_new(const struct es_policy_settings *settings, void **ret_state);

/* es_lard_is_imbalance() - is @node that busy, and @least that idle, that a cache miss is the lesser evil? */
int es_lard_is_imbalance(const struct es_lard *lard, const struct es_cluster_view *view, unsigned int node,
			 unsigned int least);

#endif
