// SPDX-License-Identifier: GPL-2.0-or-later
/* Averages for Little's law. */
#include <limits.h>
#include <math.h>
#include "inspector/policy/load_meter.h"

#define ES_METER_S	  1.0
#define ES_METER_MAX_S	  60.0
#define ES_METER_REQUESTS 20.0

/* The remainder of a request that came a while ago, below which a mean of it says nothing. */
#define ES_METER_REQUESTS_MIN 0.1

#define ES_RECENT_NS 5000000000ULL

void es_load_meter_add(struct es_load_meter *m, unsigned int active, unsigned long long accepted,
		       unsigned long long now_ns)
{
	if (m->at_ns && now_ns > m->at_ns) {
		double elapsed_s = (double)(now_ns - m->at_ns) / 1e9;
		double came = accepted > m->accepted ? (double)(accepted - m->accepted) : 0;
		/* Forget the past by the slower of the two clocks. */
		double age = fmin(elapsed_s / ES_METER_S,
				  fmax(came / ES_METER_REQUESTS, elapsed_s / ES_METER_MAX_S));
		double keep = exp(-age);

		m->busy_s = m->busy_s * keep + elapsed_s * ((double)m->active + active) / 2;
		m->requests = m->requests * keep + came;
	}
	m->at_ns = now_ns;
	m->active = active;
	m->accepted = accepted;
}

static unsigned int mean_of(double busy_s, double requests)
{
	double mean_us = busy_s / requests * 1e6;

	/* In hand for less than a walk can see is still not unknown. */
	return mean_us < 1 ? 1 : mean_us > UINT_MAX ? UINT_MAX : (unsigned int)mean_us;
}

unsigned int es_load_meter_mean_us(const struct es_load_meter *m)
{
	return m->requests < ES_METER_REQUESTS_MIN ? 0 : mean_of(m->busy_s, m->requests);
}

void es_load_recent_add(struct es_load_recent *r, unsigned int active, unsigned long long accepted,
			unsigned long long now_ns)
{
	unsigned long long age_ns = now_ns - r->begun_ns;

	if (age_ns >= ES_RECENT_NS) {
		r->busy_s[1] = age_ns < 2 * ES_RECENT_NS ? r->busy_s[0] : 0;
		r->requests[1] = age_ns < 2 * ES_RECENT_NS ? r->requests[0] : 0;
		r->busy_s[0] = r->requests[0] = 0;
		r->begun_ns = now_ns;
	}
	if (r->at_ns && now_ns > r->at_ns) {
		r->busy_s[0] += (double)(now_ns - r->at_ns) / 1e9 * ((double)r->active + active) / 2;
		r->requests[0] += accepted > r->accepted ? (double)(accepted - r->accepted) : 0;
	}
	r->at_ns = now_ns;
	r->active = active;
	r->accepted = accepted;
}

unsigned int es_load_recent_mean_us(const struct es_load_recent *r)
{
	double requests = r->requests[0] + r->requests[1];

	return requests < 1 ? 0 : mean_of(r->busy_s[0] + r->busy_s[1], requests);
}
