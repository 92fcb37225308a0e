// SPDX-License-Identifier: GPL-2.0-or-later
/* The two distances, for all threads. Their values are not decided here. */
#include <stdatomic.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"

static _Atomic unsigned long long wall_offset_ns, number_offset_ns;

void es_wall_set(unsigned long long offset_ns, unsigned long long number_ns)
{
	atomic_store_explicit(&wall_offset_ns, offset_ns, memory_order_relaxed);
	atomic_store_explicit(&number_offset_ns, number_ns, memory_order_relaxed);
}

static unsigned long long clock_at(unsigned long long offset_ns)
{
	return offset_ns ? es_clock_now_ns() + offset_ns : es_clock_ns(CLOCK_REALTIME);
}

unsigned long long es_wall_ns(void)
{
	return clock_at(atomic_load_explicit(&wall_offset_ns, memory_order_relaxed));
}

unsigned long long es_number_ns(void)
{
	return clock_at(es_number_offset_ns());
}

unsigned long long es_number_offset_ns(void)
{
	return atomic_load_explicit(&number_offset_ns, memory_order_relaxed);
}
