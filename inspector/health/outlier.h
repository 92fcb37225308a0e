/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_OUTLIER_H
#define ES_HEALTH_OUTLIER_H

/*
 * Whether what a server answers puts its node out: a node judges its own server by the responses of an interval. What is
 * bad on all nodes at once must not put all of them out, so a node first claims a place among the max_out that may be
 * out, and all see that before it goes: while it claims, it serves. Of two that claim at the same moment, the one with
 * the lower number has the place, by the same rule on both. A node that is out gets no requests, so nothing says whether
 * its server is well again: it returns by time, on probation, and goes again, for twice as long, as soon as enough
 * responses say that nothing has changed.
 */
#include "inspector/config/config.h"

/* How long a claim is seen before it holds: some messages of each node to each other, of which one or two may be lost. */
#define ES_OUTLIER_CLAIM_MS 2000

/* struct es_outlier_counts - since the daemon's start; @timed: responses whose time is known, @slow: those beyond slow_ms
 */
struct es_outlier_counts {
	unsigned long long responses;
	unsigned long long errors;
	unsigned long long timed;
	unsigned long long slow;
};

/**
 * struct es_outlier_others - the other nodes that serve nothing of the service
 * @away: for a reason that is no matter of choice; @before, @after: that are outliers, or claim to be, with lower and
 * higher numbers than this node's
 */
struct es_outlier_others {
	unsigned int away;
	unsigned int before;
	unsigned int after;
};

enum es_outlier_state {
	ES_OUTLIER_IN,
	ES_OUTLIER_CLAIMS, /* it still serves */
	ES_OUTLIER_OUT,
};

enum es_outlier_news {
	ES_OUTLIER_NO_NEWS,
	ES_OUTLIER_WANTS, /* it claims a place */
	ES_OUTLIER_KEPT,  /* it should go, but as many as may be out are; told once until it is judged well */
	ES_OUTLIER_GOES,  /* it is out now */
	ES_OUTLIER_RECALLED, /* it was out, and more than may be are */
	ES_OUTLIER_RETURNS,  /* its time is over */
};

/**
 * struct es_outlier - of one service on this node; all zeros at first
 * @began: the counts at @began_ms, when the interval began; 0: none has
 * @until_ms: the end of a claim, or of being out; @calm_ms: when it is forgotten that it was out, if it is well then
 * @hold_s: for how long it was put out last; 0: that is forgotten, or it never was
 * @ejections, @kept: how often it went out, and how often it stayed because of max_out
 * @why: what was wrong when it was judged last
 */
struct es_outlier {
	enum es_outlier_state state;
	struct es_outlier_counts began;
	unsigned long long began_ms;
	unsigned long long until_ms;
	unsigned long long calm_ms;
	unsigned int hold_s;
	int is_on_probation;
	int is_kept;
	unsigned long long ejections;
	unsigned long long kept;
	char why[128];
};

/**
 * es_outlier_look() - what follows at @now_ms, by a monotonic clock; about once a second
 * @counts: by now; @others: as they say
 */
enum es_outlier_news es_outlier_look(struct es_outlier *outlier, const struct es_conf_outlier *conf,
				     const struct es_outlier_counts *counts,
				     const struct es_outlier_others *others, unsigned long long now_ms);

#endif
