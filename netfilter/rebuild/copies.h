/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_COPIES_H
#define ES_NETFILTER_REBUILD_COPIES_H

/*
 * Requests from which connections were made within the last second. If a client repeats its request, its
 * connection must not be made again: offset and clock would change under it.
 */
#include <stddef.h>
#include "kmod/core/flow.h"

#define ES_NF_COPIES_NS 1000000000ULL

struct es_nf_copies;

/*
 * es_nf_copies_new() - @room: how many are remembered; beyond that, the oldest are forgotten. Returns 0 or
 * -ENOMEM.
 */
int es_nf_copies_new(size_t room, struct es_nf_copies **ret_copies);
void es_nf_copies_free(struct es_nf_copies **copies);

/* es_nf_copies_has() - was @flow's connection made from this very request, less than a second ago? */
int es_nf_copies_has(struct es_nf_copies *copies, const struct es_flow *flow, __u32 seq, __u32 ack,
		     __u64 now_ns);
void es_nf_copies_add(struct es_nf_copies *copies, const struct es_flow *flow, __u32 seq, __u32 ack,
		      __u64 now_ns);

/* es_nf_copies_forget() - the same request may make the connection again */
void es_nf_copies_forget(struct es_nf_copies *copies, const struct es_flow *flow);

#endif
