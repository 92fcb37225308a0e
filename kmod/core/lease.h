/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_LEASE_H
#define ES_CORE_LEASE_H

/*
 * A node's lease: struct es_state's lease_ns says how long it lasts, and when it is over the node is silent.
 */
#include "types.h"

/* A lease without end: of a node that has left in order, so that all others know what it has. */
#define ES_LEASE_NEVER (1ULL << 62)

/* es_lease_is_over() - @lease_ns: struct es_state's, 0 without membership: there is no lease to be over */
static __always_inline int es_lease_is_over(__u64 lease_ns, __u64 now_ns)
{
	return lease_ns && (__s64)(now_ns - lease_ns) >= 0;
}

/* Does a node take no flow from others, as it takes no new one itself? @attached: struct es_state's */
static __always_inline int es_lease_refuses(__u64 lease_ns, __u32 attached, __u64 now_ns)
{
	return lease_ns && (!attached || es_lease_is_over(lease_ns, now_ns));
}

#endif
