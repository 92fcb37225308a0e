// SPDX-License-Identifier: GPL-2.0-or-later
/* Says when a node may go out, and when it returns. It knows neither clock nor cluster. */
#include "inspector/health/place.h"

/* May one more node be out, where @taken are? */
static int is_free(const struct es_place_limits *limits, const struct es_place_others *others,
		   unsigned int taken)
{
	return taken < limits->max_out && taken < others->count;
}

static int has_place(const struct es_place_limits *limits, const struct es_place_others *others)
{
	return is_free(limits, others, others->away + others->before);
}

static enum es_place_news stay(struct es_place *p)
{
	int is_known = p->is_kept;

	p->state = ES_PLACE_IN;
	p->kept++;
	p->is_kept = 1;
	return is_known ? ES_PLACE_NO_NEWS : ES_PLACE_KEPT;
}

static enum es_place_news go(struct es_place *p, const struct es_place_limits *limits,
			     unsigned long long now_ms)
{
	p->hold_s = !p->hold_s ? limits->out_s : 2 * p->hold_s;
	if (p->hold_s > limits->out_max_s)
		p->hold_s = limits->out_max_s;
	p->state = ES_PLACE_OUT;
	p->until_ms = now_ms + p->hold_s * 1000ULL;
	p->ejections++;
	p->is_kept = 0;
	return ES_PLACE_GOES;
}

enum es_place_news es_place_claim(struct es_place *p, const struct es_place_limits *limits,
				  const struct es_place_others *others, unsigned long long now_ms)
{
	if (!is_free(limits, others, others->away + others->before + others->after))
		return stay(p);
	p->state = ES_PLACE_CLAIMS;
	p->until_ms = now_ms + ES_PLACE_CLAIM_MS;
	return ES_PLACE_WANTS;
}

enum es_place_news es_place_look(struct es_place *p, const struct es_place_limits *limits,
				 const struct es_place_others *others, unsigned long long now_ms)
{
	int may_be_out = has_place(limits, others), claims = p->state == ES_PLACE_CLAIMS;
	int is_over = now_ms >= p->until_ms && (claims || limits->out_s);

	if (p->state == ES_PLACE_IN || (!is_over && (claims || may_be_out)))
		return ES_PLACE_NO_NEWS;
	if (claims)
		return may_be_out ? go(p, limits, now_ms) : stay(p);
	p->state = ES_PLACE_IN;
	p->calm_ms = now_ms + p->hold_s * 1000ULL;
	return may_be_out ? ES_PLACE_RETURNS : ES_PLACE_RECALLED;
}

void es_place_is_well(struct es_place *p, unsigned long long now_ms)
{
	p->state = ES_PLACE_IN;
	p->is_kept = 0;
	if (now_ms >= p->calm_ms)
		p->hold_s = 0;
}
