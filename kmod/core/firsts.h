/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_FIRSTS_H
#define ES_CORE_FIRSTS_H

/*
 * First requests that this node has heard when they were another node's, or has executed itself. A node that
 * takes over a lost node's share of the ring gets their repetitions; nobody knows whether they were executed,
 * but that they may have been is known here. A first request is known by its first byte: the one behind a SYN
 * that was heard (syns.h).
 *
 * For a while after a node was lost (struct es_state's doubt_ns), a request is doubtful if it was heard
 * before, or if its connection is so old that this node would not have heard it.
 */
#include "overheard.h"

#define ES_FIRSTS 262144 /* a power of two; 4 MB */

/*
 * How long a request is doubtful after its node was lost. A client that has waited for some time repeats its
 * request after as long again, so this is longer than clients wait.
 */
#define ES_DOUBT_S 120

/* The request may have been heard long before its node was lost. */
#define ES_FIRST_LIFE_S (2 * ES_DOUBT_S)

static __always_inline __u32 es_first_generation(__u32 now_s)
{
	return es_overheard_generation(now_s, ES_FIRST_LIFE_S);
}

/* Are there doubts at @now_ns? @doubt_ns: struct es_state's */
static __always_inline int es_first_has_doubts(__u64 doubt_ns, __u64 now_ns)
{
	return (__s64)(doubt_ns - now_ns) > 0;
}

#endif
