// SPDX-License-Identifier: GPL-2.0-or-later
/* Ten minutes of requests, in a ring of samples. */
#include <limits.h>
#include <string.h>
#include "inspector/status/history.h"

static unsigned int grown(unsigned long long now, unsigned long long before)
{
	unsigned long long by = now > before ? now - before : 0;

	return by > UINT_MAX ? UINT_MAX : (unsigned int)by;
}

void es_history_add(struct es_history *h, const struct es_history_totals *totals, unsigned long long now_ns)
{
	if (h->identity != totals->identity)
		memset(h, 0, sizeof(*h));
	if (h->has_total) {
		memset(h->requests[h->next], 0, sizeof(h->requests[h->next]));
		for (unsigned int i = 0; i < totals->node_count; i++)
			h->requests[h->next][i] = grown(totals->requests[i], h->total[i]);
		h->errors[h->next] = grown(totals->errors, h->errors_total);
		h->next = (h->next + 1) % ES_HISTORY_SAMPLES;
		h->count += h->count < ES_HISTORY_SAMPLES;
	}
	h->identity = totals->identity;
	h->has_total = 1;
	h->at_ns = now_ns;
	memcpy(h->total, totals->requests, sizeof(h->total));
	h->errors_total = totals->errors;
}

unsigned int es_history_get(const struct es_history *h, unsigned int node, unsigned int i)
{
	return h->requests[(h->next + ES_HISTORY_SAMPLES - h->count + i) % ES_HISTORY_SAMPLES][node];
}

double es_history_rate(const struct es_history *h, const struct es_history_totals *now,
		       unsigned long long now_ns, double *ret_errors)
{
	double seconds = (double)(now_ns - h->at_ns) / 1e9, requests = 0, errors;

	*ret_errors = 0;
	if (!h->has_total || h->identity != now->identity || now_ns <= h->at_ns)
		return 0;
	for (unsigned int i = 0; i < now->node_count; i++)
		requests += grown(now->requests[i], h->total[i]);
	errors = grown(now->errors, h->errors_total);
	if (h->count) {
		unsigned int last = (h->next + ES_HISTORY_SAMPLES - 1) % ES_HISTORY_SAMPLES;

		for (unsigned int i = 0; i < now->node_count; i++)
			requests += h->requests[last][i];
		errors += h->errors[last];
		seconds += ES_HISTORY_STEP_S;
	}
	*ret_errors = errors / seconds;
	return requests / seconds;
}
