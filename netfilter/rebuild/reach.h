/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_REACH_H
#define ES_NETFILTER_REBUILD_REACH_H

/*
 * Will a packet leave at once that the stack sends to a client? If the kernel does not know the MAC of the
 * client, or of the router to it, it keeps the packet while it asks, three seconds by default. That happens
 * after all rules, and so after the look at the lease.
 */
#include "kmod/core/flow.h"
#include "netfilter/kernel/netlink.h"

#define ES_NF_REACHED 256 /* a power of two */

/**
 * struct es_nf_reach - for one thread
 * @reached: clients that were reachable a moment ago, one for each slot
 */
struct es_nf_reach {
	struct es_nf_netlink nl;
	struct {
		struct es_addr client;
		__u32 mark;
		__u64 until_ns;
	} reached[ES_NF_REACHED];
};

/* es_nf_reach_open() - Returns 0 or -errno. */
int es_nf_reach_open(struct es_nf_reach *reach);
void es_nf_reach_close(struct es_nf_reach *reach);

/**
 * es_nf_reach_is() - will it? @mark: the packet's, which may select its route; @now_ns: CLOCK_MONOTONIC Makes
 * the kernel ask for the MAC, if it has not or has given up. If the kernel does not tell (before 5.0): yes.
 */
int es_nf_reach_is(struct es_nf_reach *reach, const struct es_flow *flow, __u32 mark, __u64 now_ns);

#endif
