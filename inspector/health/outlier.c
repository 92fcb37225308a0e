// SPDX-License-Identifier: GPL-2.0-or-later
/* Judges a server by its responses, and says when its node goes out and returns. It knows neither clock nor cluster. */
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

static enum es_outlier_news stay(struct es_outlier *o)
{
	int is_known = o->is_kept;

	o->state = ES_OUTLIER_IN;
	o->kept++;
	o->is_kept = 1;
	return is_known ? ES_OUTLIER_NO_NEWS : ES_OUTLIER_KEPT;
}

static enum es_outlier_news judge(struct es_outlier *o, const struct es_conf_outlier *conf,
				  const struct es_outlier_counts *counts,
				  const struct es_outlier_others *others, unsigned long long now_ms)
{
	unsigned long long n = counts->responses - o->began.responses;
	int is_enough = n >= conf->min_responses, is_over = now_ms - o->began_ms >= conf->interval_ms, bad;

	if (!is_over && !(o->is_on_probation && is_enough))
		return ES_OUTLIER_NO_NEWS;
	bad = is_enough && is_bad(o, conf, counts, n);
	begin(o, counts, now_ms);
	if (!is_enough)
		return ES_OUTLIER_NO_NEWS;
	if (!bad) {
		o->is_on_probation = o->is_kept = 0;
		if (now_ms >= o->calm_ms)
			o->hold_s = 0;
		return ES_OUTLIER_NO_NEWS;
	}
	if (others->away + others->before + others->after >= conf->max_out)
		return stay(o);
	o->state = ES_OUTLIER_CLAIMS;
	o->until_ms = now_ms + ES_OUTLIER_CLAIM_MS;
	return ES_OUTLIER_WANTS;
}

static enum es_outlier_news go(struct es_outlier *o, const struct es_conf_outlier *conf,
			       unsigned long long now_ms)
{
	o->hold_s = !o->hold_s ? conf->out_s : 2 * o->hold_s;
	if (o->hold_s > conf->out_max_s)
		o->hold_s = conf->out_max_s;
	o->state = ES_OUTLIER_OUT;
	o->until_ms = now_ms + o->hold_s * 1000ULL;
	o->ejections++;
	o->is_kept = 0;
	return ES_OUTLIER_GOES;
}

static void come_back(struct es_outlier *o, const struct es_outlier_counts *counts, unsigned long long now_ms)
{
	begin(o, counts, now_ms);
	o->state = ES_OUTLIER_IN;
	o->is_on_probation = 1;
	o->calm_ms = now_ms + o->hold_s * 1000ULL;
}

enum es_outlier_news es_outlier_look(struct es_outlier *o, const struct es_conf_outlier *conf,
				     const struct es_outlier_counts *counts,
				     const struct es_outlier_others *others, unsigned long long now_ms)
{
	int has_place = others->away + others->before < conf->max_out;

	if (o->state == ES_OUTLIER_OUT) {
		if (has_place && now_ms < o->until_ms)
			return ES_OUTLIER_NO_NEWS;
		come_back(o, counts, now_ms);
		return has_place ? ES_OUTLIER_RETURNS : ES_OUTLIER_RECALLED;
	}
	if (o->state == ES_OUTLIER_CLAIMS) {
		if (now_ms < o->until_ms)
			return ES_OUTLIER_NO_NEWS;
		begin(o, counts, now_ms);
		return has_place ? go(o, conf, now_ms) : stay(o);
	}
	if (!o->began_ms) {
		begin(o, counts, now_ms);
		return ES_OUTLIER_NO_NEWS;
	}
	return judge(o, conf, counts, others, now_ms);
}
