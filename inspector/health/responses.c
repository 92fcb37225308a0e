// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts responses by class, and the time that requests spend here. */
#include "inspector/health/responses.h"

const char *const es_response_class_name[ES_RESPONSE_CLASSES] = {"2xx", "3xx", "4xx", "5xx"};

void es_responses_add(struct es_responses *r, unsigned int status, unsigned int bytes,
		      unsigned long long took_ns)
{
	if (status < 200 || status >= 600)
		return;
	r->count[status / 100 - 2]++;
	r->bytes += bytes;
	if (took_ns)
		es_durations_add(&r->durations, took_ns);
}

void es_responses_busy(struct es_responses *r, unsigned int active, unsigned long long now_ns)
{
	if (r->at_ns && now_ns > r->at_ns)
		r->busy_s += (double)(now_ns - r->at_ns) / 1e9 * ((double)r->active + active) / 2;
	r->active = active;
	r->at_ns = now_ns;
}

unsigned long long es_responses_total(const struct es_responses *r)
{
	unsigned long long sum = 0;

	for (int i = 0; i < ES_RESPONSE_CLASSES; i++)
		sum += r->count[i];
	return sum;
}
