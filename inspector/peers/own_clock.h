/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_OWN_CLOCK_H
#define ES_OWN_CLOCK_H

/*
 * This node's own wall clock, which somebody may set at any time, and what follows from it: by which time
 * cookies and handover messages are made and judged, which time the other nodes are told, and from which
 * numbers this node's messages go on. All of them are distances to CLOCK_MONOTONIC.
 *
 * A receiver judges what is sent by what the sender told last (es_handover_is_early()). So a clock that was
 * set back is told first, and goes by a moment later; one that was set forward goes first, and is told then.
 */
#include <linux/types.h>

/* From here on a clock was set; less is its being kept right. */
#define ES_OWN_CLOCK_STEP_NS 500000000ULL

/**
 * struct es_own_clock
 * @wall_ns: what this node goes by; @told_ns: what it tells
 * @before_ns: what it went by before the last step, which is good until @before_until_ns, CLOCK_MONOTONIC:
 * who was given a cookie then may come with it
 * @number_ns: of the number clock. It is never behind the wall clock, and never goes back.
 * @step_ns: by how much the clock was set at the last look, 0: it was not
 */
struct es_own_clock {
	__u64 wall_ns;
	__u64 told_ns;
	__u64 before_ns;
	__u64 before_until_ns;
	__u64 number_ns;
	__s64 step_ns;
};

/**
 * es_own_clock_begin() - a life of the daemon begins
 * @kept_wall_ns, @kept_number_ns: what the one before went by, in the datapath's memory; 0: there was none
 * @measured_ns: what the machine's clocks say now
 */
void es_own_clock_begin(struct es_own_clock *clock, __u64 kept_wall_ns, __u64 kept_number_ns,
			__u64 measured_ns);

/**
 * es_own_clock_look() - look at the machine's clock again, each second
 * @now_ns: CLOCK_MONOTONIC; @hold_ns: for so long after a step, what was made before it is good
 * Returns 1 if the clock was set: @step_ns says by how much, and the other nodes are to be told at once.
 */
int es_own_clock_look(struct es_own_clock *clock, __u64 measured_ns, __u64 now_ns, __u64 hold_ns);

/**
 * es_own_clock_outrun() - another node has heard the number @number_ns from an earlier life of this node
 * Returns 1 if that is ahead of this life's numbers; they go on behind it then.
 */
int es_own_clock_outrun(struct es_own_clock *clock, __u64 number_ns, __u64 now_ns);

#endif
