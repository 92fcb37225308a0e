// SPDX-License-Identifier: GPL-2.0-or-later
/* Ten minutes of figures, in a ring of samples. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/status/history.h"

static unsigned int saturated(unsigned long long value)
{
	return value > UINT_MAX ? UINT_MAX : (unsigned int)value;
}

static unsigned int grown(unsigned long long now, unsigned long long before)
{
	return saturated(now > before ? now - before : 0);
}

void es_history_fini(struct es_history *h)
{
	free(h->total);
	free(h->value);
	*h = (struct es_history){};
}

static int begin(struct es_history *h, const struct es_history_figures *now)
{
	es_history_fini(h);
	h->total = calloc(now->series, sizeof(*h->total));
	h->value = calloc((size_t)now->series * ES_HISTORY_SAMPLES, sizeof(*h->value));
	if (!h->total || !h->value) {
		es_history_fini(h);
		return 0;
	}
	h->identity = now->identity;
	h->series = now->series;
	return 1;
}

static int is_of(const struct es_history *h, const struct es_history_figures *figures)
{
	return h->value && h->identity == figures->identity && h->series == figures->series;
}

void es_history_add(struct es_history *h, const struct es_history_figures *now, unsigned long long now_ns)
{
	unsigned int *sample;

	if (!now->series || (!is_of(h, now) && !begin(h, now)))
		return;
	if (h->has_total) {
		sample = &h->value[(size_t)h->next * h->series];
		for (unsigned int i = 0; i < h->series; i++)
			sample[i] = i < now->counters ? grown(now->value[i], h->total[i])
						      : saturated(now->value[i]);
		h->next = (h->next + 1) % ES_HISTORY_SAMPLES;
		h->count += h->count < ES_HISTORY_SAMPLES;
	}
	h->has_total = 1;
	h->at_ns = now_ns;
	memcpy(h->total, now->value, h->series * sizeof(*h->total));
}

unsigned int es_history_get(const struct es_history *h, unsigned int series, unsigned int i)
{
	size_t at = (h->next + ES_HISTORY_SAMPLES - h->count + i) % ES_HISTORY_SAMPLES;

	return h->value[at * h->series + series];
}

double es_history_rate(const struct es_history *h, const struct es_history_figures *now,
		       unsigned long long now_ns, unsigned int series)
{
	double seconds = (double)(now_ns - h->at_ns) / 1e9, grew;

	if (!h->has_total || !is_of(h, now) || now_ns <= h->at_ns)
		return 0;
	grew = grown(now->value[series], h->total[series]);
	if (h->count) {
		grew += es_history_get(h, series, h->count - 1);
		seconds += ES_HISTORY_STEP_S;
	}
	return grew / seconds;
}
