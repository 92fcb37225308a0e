// SPDX-License-Identifier: GPL-2.0-or-later
/* Follows the machine's clock; reads none, sets none. */
#include "inspector/peers/own_clock.h"

/* Room for numbers of the same moment that the node which told us has not heard. */
#define OUTRUN_MARGIN_NS 1000000000ULL

void es_own_clock_begin(struct es_own_clock *clock, __u64 kept_wall_ns, __u64 kept_number_ns,
			__u64 measured_ns)
{
	*clock = (struct es_own_clock){
		.wall_ns = kept_wall_ns ? kept_wall_ns : measured_ns,
		.number_ns = kept_number_ns ? kept_number_ns : measured_ns,
	};
	clock->told_ns = clock->wall_ns;
}

static void go(struct es_own_clock *clock, __u64 now_ns, __u64 hold_ns)
{
	clock->before_ns = clock->wall_ns;
	clock->before_until_ns = now_ns + hold_ns;
	clock->wall_ns = clock->told_ns;
}

int es_own_clock_look(struct es_own_clock *clock, __u64 measured_ns, __u64 now_ns, __u64 hold_ns)
{
	__s64 step = (__s64)(measured_ns - clock->told_ns);
	int is_step = step >= (__s64)ES_OWN_CLOCK_STEP_NS || step <= -(__s64)ES_OWN_CLOCK_STEP_NS;

	/* It was told at the last look. */
	if (clock->wall_ns != clock->told_ns)
		go(clock, now_ns, hold_ns);
	clock->step_ns = is_step ? step : 0;
	clock->told_ns = measured_ns;
	if (is_step && step > 0)
		go(clock, now_ns, hold_ns);
	else if (!is_step)
		clock->wall_ns = measured_ns;
	/* By leaps: what is numbered one by one need not follow each correction. */
	if ((__s64)(measured_ns - clock->number_ns) >= (__s64)ES_OWN_CLOCK_STEP_NS)
		clock->number_ns = measured_ns;
	return is_step;
}

int es_own_clock_outrun(struct es_own_clock *clock, __u64 number_ns, __u64 now_ns)
{
	__u64 offset_ns = number_ns - now_ns + OUTRUN_MARGIN_NS;

	if ((__s64)(number_ns - (clock->number_ns + now_ns)) < 0)
		return 0;
	clock->number_ns = offset_ns;
	return 1;
}
