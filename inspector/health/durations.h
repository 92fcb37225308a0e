/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEALTH_DURATIONS_H
#define ES_HEALTH_DURATIONS_H

/*
 * How long responses took: since the start, by the bounds that the metrics have; and lately, finely enough
 * that a quantile of it is right to about 6%.
 */

#define ES_DURATION_BOUNDS 16

/* Upper bounds of the buckets in nanoseconds; behind the last one is another bucket without a bound. */
extern const unsigned long long es_duration_bound_ns[ES_DURATION_BOUNDS];

/* struct es_durations - since the start; @count: in each bucket, not added up */
struct es_durations {
	unsigned long long count[ES_DURATION_BOUNDS + 1];
	double sum_s;
};

void es_durations_add(struct es_durations *durations, unsigned long long took_ns);

/*
 * Buckets of microseconds: one for each below 16, then eight for each power of two, up to 2^36 us, 19 hours.
 */
#define ES_DURATION_FINE (16 + 8 * 32)

/**
 * struct es_durations_lately - over the last five to ten seconds
 * @count: since @begun_ns, and in the five seconds before
 */
struct es_durations_lately {
	unsigned int count[2][ES_DURATION_FINE];
	unsigned long long begun_ns;
};

void es_durations_lately_add(struct es_durations_lately *lately, unsigned long long took_ns,
			     unsigned long long now_ns);

/**
 * es_durations_lately_us() - what the share @quantile of them stayed below, in microseconds
 * @quantile: above 0, up to 1. If there were few, it is the longest. 0: there were none.
 */
unsigned long long es_durations_lately_us(const struct es_durations_lately *lately, double quantile,
					  unsigned long long now_ns);

#endif
