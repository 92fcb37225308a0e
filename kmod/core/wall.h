/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_WALL_H
#define ES_CORE_WALL_H

/*
 * The wall clock by which cookies and handover messages are judged, as the daemon has told: a distance to
 * CLOCK_MONOTONIC. When somebody sets the machine's clock, what was made before that is good for as long as
 * it would have been: it is judged by the clock before, too.
 */
#include "abi.h"

/* The clock before the last step; the present one if that is long ago. */
static __always_inline __u64 es_wall_before(const struct es_state *state, __u64 now_ns)
{
	return es_ns_to_s(now_ns) < state->wall_before_until_s ? state->wall_before_ns
							       : state->wall_offset_ns;
}

#endif
