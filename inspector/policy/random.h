/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RANDOM_H
#define ES_RANDOM_H

/*
 * Randomness that can be repeated: SplitMix64 (Steele, Lea, Flood 2014). Not for secrets.
 */
#include <linux/types.h>

struct es_random {
	__u64 state;
};

static inline __u64 es_random_next(struct es_random *random)
{
	__u64 z = random->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* In [0, 1). */
static inline double es_random_double(struct es_random *random)
{
	return (double)(es_random_next(random) >> 11) * 0x1p-53;
}

/* In [0, @below); 0 for 0. */
static inline __u64 es_random_below(struct es_random *random, __u64 below)
{
	return (__u64)((unsigned __int128)es_random_next(random) * below >> 64);
}

#endif
