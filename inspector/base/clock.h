/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CLOCK_H
#define ES_CLOCK_H

#include <time.h>

/* es_clock_ns() - a clock now, in nanoseconds: CLOCK_MONOTONIC, or what a thread has used of a CPU */
static inline unsigned long long es_clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000ULL + (unsigned long long)ts.tv_nsec;
}

static inline unsigned long long es_clock_now_ns(void)
{
	return es_clock_ns(CLOCK_MONOTONIC);
}

#endif
