// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts how long responses took, in buckets. */
#include <math.h>
#include <string.h>
#include "inspector/health/durations.h"

#define GENERATION_NS 5000000000ULL
#define FINE_BITS     3 /* of a bucket's number, below the power of two */
#define FINE_FROM     (2ULL << FINE_BITS)

const unsigned long long es_duration_bound_ns[ES_DURATION_BOUNDS] = {
	100000,	  250000,    500000,	1000000,   2500000,    5000000,	   10000000,	25000000,
	50000000, 100000000, 250000000, 500000000, 1000000000, 2500000000, 10000000000, 60000000000,
};

void es_durations_add(struct es_durations *d, unsigned long long took_ns)
{
	unsigned int i = 0;

	while (i < ES_DURATION_BOUNDS && took_ns > es_duration_bound_ns[i])
		i++;
	d->count[i]++;
	d->sum_s += (double)took_ns / 1e9;
}

static unsigned int bucket_of(unsigned long long us)
{
	unsigned int power, i;

	if (us < FINE_FROM)
		return (unsigned int)us;
	power = 63 - (unsigned int)__builtin_clzll(us);
	i = (unsigned int)FINE_FROM + ((power - FINE_BITS - 1) << FINE_BITS) +
	    (unsigned int)(us >> (power - FINE_BITS) & ((1u << FINE_BITS) - 1));
	return i < ES_DURATION_FINE ? i : ES_DURATION_FINE - 1;
}

/* The middle of a bucket. */
static unsigned long long middle_us(unsigned int bucket)
{
	unsigned int width_bits;

	if (bucket < FINE_FROM)
		return bucket ? bucket : 1;
	bucket -= (unsigned int)FINE_FROM;
	width_bits = (bucket >> FINE_BITS) + 1;
	return (((1ULL << FINE_BITS) + (bucket & ((1u << FINE_BITS) - 1))) << width_bits) +
	       (1ULL << (width_bits - 1));
}

void es_durations_lately_add(struct es_durations_lately *l, unsigned long long took_ns,
			     unsigned long long now_ns)
{
	unsigned long long age_ns = now_ns - l->begun_ns;

	if (age_ns >= GENERATION_NS) {
		if (age_ns < 2 * GENERATION_NS)
			memcpy(l->count[1], l->count[0], sizeof(l->count[1]));
		else
			memset(l->count[1], 0, sizeof(l->count[1]));
		memset(l->count[0], 0, sizeof(l->count[0]));
		l->begun_ns = now_ns;
	}
	l->count[0][bucket_of(took_ns / 1000)]++;
}

unsigned long long es_durations_lately_us(const struct es_durations_lately *l, double quantile,
					  unsigned long long now_ns)
{
	unsigned long long age_ns = now_ns - l->begun_ns, total = 0, rank;
	/* The newer generation may have become the older one by now, and the older one may have expired. */
	int generations = age_ns < GENERATION_NS ? 2 : age_ns < 2 * GENERATION_NS ? 1 : 0;

	for (int g = 0; g < generations; g++)
		for (unsigned int i = 0; i < ES_DURATION_FINE; i++)
			total += l->count[g][i];
	if (!total)
		return 0;
	rank = (unsigned long long)ceil(quantile * (double)total);
	for (unsigned int i = 0; i < ES_DURATION_FINE; i++) {
		unsigned long long count = 0;

		for (int g = 0; g < generations; g++)
			count += l->count[g][i];
		if (count >= rank)
			return middle_us(i);
		rank -= count;
	}
	return middle_us(ES_DURATION_FINE - 1);
}
