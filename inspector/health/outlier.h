/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_OUTLIER_H
#define ES_HEALTH_OUTLIER_H

/*
 * Whether what a server answers puts its node out: a node judges its own server by the responses of an
 * interval, and goes if it gets a place (place.h). A node that is out gets no requests, so nothing says
 * whether its server is well again: it returns on probation, and goes again as soon as enough responses say
 * that nothing has changed.
 */
#include "inspector/config/config.h"
#include "inspector/health/place.h"

/*
 * struct es_outlier_counts - since the daemon's start; @timed: responses whose time is known, @slow: those
 * beyond slow_ms
 */
struct es_outlier_counts {
	unsigned long long responses;
	unsigned long long errors;
	unsigned long long timed;
	unsigned long long slow;
};

/**
 * struct es_outlier - of one service on this node; all zeros at first
 * @began: the counts at @began_ms, when the interval began; 0: none has
 * @why: what was wrong when it was judged last
 */
struct es_outlier {
	struct es_place place;
	struct es_outlier_counts began;
	unsigned long long began_ms;
	int is_on_probation;
	char why[128];
};

/**
 * es_outlier_look() - what follows at @now_ms, by a monotonic clock; about once a second
 * @counts: by now; @others: as they say
 */
enum es_place_news es_outlier_look(struct es_outlier *outlier, const struct es_conf_outlier *conf,
				   const struct es_outlier_counts *counts,
				   const struct es_place_others *others, unsigned long long now_ms);

#endif
