// SPDX-License-Identifier: GPL-2.0-or-later
/* Judges a server by its responses. It knows neither clock nor cluster. */
#include <stdio.h>
#include "inspector/health/outlier.h"

static void begin(struct es_outlier *o, const struct es_outlier_counts *counts, unsigned long long now_ms)
{
	o->began = *counts;
	o->began_ms = now_ms;
}

static int is_beyond(unsigned long long part, unsigned long long of, unsigned int percent)
{
	return percent && part * 100 > of * percent;
}

/* Are the @n responses since the interval began worse than they may be? Then @o->why says how. */
static int is_bad(struct es_outlier *o, const struct es_conf_outlier *conf,
		  const struct es_outlier_counts *counts, unsigned long long n)
{
	unsigned long long errors = counts->errors - o->began.errors;
	unsigned long long timed = counts->timed - o->began.timed, slow = counts->slow - o->began.slow;

	if (is_beyond(errors, n, conf->max_errors)) {
		snprintf(o->why, sizeof(o->why), "%llu of %llu responses were 5xx (max_errors = %u)", errors,
			 n, conf->max_errors);
		return 1;
	}
	if (timed >= conf->min_responses && is_beyond(slow, timed, conf->max_slow)) {
		snprintf(o->why, sizeof(o->why),
			 "%llu of %llu responses took longer than %u ms (max_slow = %u)", slow, timed,
			 conf->slow_ms, conf->max_slow);
		return 1;
	}
	return 0;
}

static enum es_place_news judge(struct es_outlier *o, const struct es_conf_outlier *conf,
				const struct es_place_limits *limits, const struct es_outlier_counts *counts,
				const struct es_place_others *others, unsigned long long now_ms)
{
	unsigned long long n = counts->responses - o->began.responses;
	int is_enough = n >= conf->min_responses, is_over = now_ms - o->began_ms >= conf->interval_ms, bad;

	if (!is_over && !(o->is_on_probation && is_enough))
		return ES_PLACE_NO_NEWS;
	bad = is_enough && is_bad(o, conf, counts, n);
	begin(o, counts, now_ms);
	if (!is_enough)
		return ES_PLACE_NO_NEWS;
	if (bad)
		return es_place_claim(&o->place, limits, others, now_ms);
	o->is_on_probation = 0;
	es_place_is_well(&o->place, now_ms);
	return ES_PLACE_NO_NEWS;
}

enum es_place_news es_outlier_look(struct es_outlier *o, const struct es_conf_outlier *conf,
				   const struct es_outlier_counts *counts,
				   const struct es_place_others *others, unsigned long long now_ms)
{
	const struct es_place_limits limits = {conf->max_out, conf->out_s, conf->out_max_s};
	enum es_place_state before = o->place.state;
	enum es_place_news news;

	if (before == ES_PLACE_IN && o->began_ms)
		return judge(o, conf, &limits, counts, others, now_ms);
	news = es_place_look(&o->place, &limits, others, now_ms);
	if (before != o->place.state || before == ES_PLACE_IN)
		begin(o, counts, now_ms);
	if (before == ES_PLACE_OUT && o->place.state == ES_PLACE_IN)
		o->is_on_probation = 1;
	return news;
}
