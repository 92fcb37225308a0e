/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_REACH_H
#define ES_NETFILTER_REBUILD_REACH_H

/*
 * Does a packet leave at once that the stack sends to a client? Where the kernel does not know the MAC of the client, or of
 * the router on the way to it, it keeps packets for as long as it asks for that, three seconds by default: behind all
 * rules, and so behind the lease by which they were let pass.
 */
#include "kmod/core/flow.h"
#include "netfilter/kernel/netlink.h"

#define ES_NF_REACHED 256 /* a power of two */

/**
 * struct es_nf_reach - for one thread
 * @reached: clients of which it was found a moment ago that packets leave at once, one a slot
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
 * es_nf_reach_is() - does it? @mark: the packet's, by which its route may be another; @now_ns: CLOCK_MONOTONIC
 * Has the kernel ask where it has not, or has given up. Where it does not tell (before 5.0), the answer is yes.
 */
int es_nf_reach_is(struct es_nf_reach *reach, const struct es_flow *flow, __u32 mark, __u64 now_ns);

#endif
