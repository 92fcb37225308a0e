/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_WALL_H
#define ES_WALL_H

/*
 * The wall clock of this process, and the clock from which messages are numbered. Deadlines have nothing to
 * do with either: they are CLOCK_MONOTONIC's (clock.h). Both are distances to that, which the control thread
 * sets (daemon/clock.c) and any thread reads.
 */

/**
 * es_wall_set() - from now on
 * @offset_ns: the wall clock's distance to CLOCK_MONOTONIC; @number_ns: the number clock's. That one never
 * goes back, in this life of the node nor from one to the next (peers/own_clock.h).
 */
void es_wall_set(unsigned long long offset_ns, unsigned long long number_ns);

/* es_wall_ns() - the wall clock, in nanoseconds; the machine's own until es_wall_set() */
unsigned long long es_wall_ns(void);

/* es_number_ns() - the number clock, likewise */
unsigned long long es_number_ns(void);

/* es_number_offset_ns() - its distance to CLOCK_MONOTONIC: another value says that it went on by a leap */
unsigned long long es_number_offset_ns(void);

#endif
