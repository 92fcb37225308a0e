/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_GUESSES_H
#define ES_CORE_GUESSES_H

/*
 * How many segments came lately that would be first requests, had they a cookie of ours. Without timestamps,
 * one in 2^22 of them has one by chance (cookie.h), whether somebody guesses cookies, or clients without
 * timestamps go on with what other nodes have. A node that has heard all SYNs is not deceived (syns.h). One
 * that has not listened for that long believes a cookie alone while such segments are few; while they are
 * many, it demands timestamps, or a SYN that it has heard.
 *
 * Two seconds are counted, this one and the one before. Any CPU writes, none locks; beyond the limit nobody
 * does, so a flood costs no more.
 */
#include "types.h"

/*
 * In a second. At this rate one is taken for a first request in 70 minutes, and a node believes a cookie
 * alone for 8.5, by default.
 */
#define ES_GUESSES_MAX 1000

/* struct es_guesses - a word for each of two seconds: above the second's number, below how many */
struct es_guesses {
	__u64 second[2];
};

static __always_inline __u64 es_guesses_in(const struct es_guesses *guesses, __u32 now_s)
{
	__u64 word = *(const volatile __u64 *)&guesses->second[now_s & 1];

	return word >> 32 == now_s ? word & 0xffffffff : 0;
}

/* es_guesses_are_many() - in this second or the one before */
static __always_inline int es_guesses_are_many(const struct es_guesses *guesses, __u32 now_s)
{
	return es_guesses_in(guesses, now_s) > ES_GUESSES_MAX ||
	       es_guesses_in(guesses, now_s - 1) > ES_GUESSES_MAX;
}

/* es_guess_note() - one more. Two CPUs that begin a second at the same moment may lose one. */
static __always_inline void es_guess_note(struct es_guesses *guesses, __u32 now_s)
{
	__u64 *second = &guesses->second[now_s & 1];
	__u64 old = *(volatile __u64 *)second;

	if (old >> 32 != now_s)
		__sync_val_compare_and_swap(second, old, (__u64)now_s << 32 | 1);
	else if ((old & 0xffffffff) <= ES_GUESSES_MAX)
		__sync_fetch_and_add(second, 1);
}

#endif
