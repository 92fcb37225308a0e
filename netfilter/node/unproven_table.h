/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_UNPROVEN_TABLE_H
#define ES_NETFILTER_NODE_UNPROVEN_TABLE_H

/* Notes of unproven connections (unproven.h), as they lie in the memory's file. */
#include "kmod/core/flow.h"

#define ES_NF_UNPROVEN_SETS 8192 /* a power of two; 4 MB in all */
#define ES_NF_UNPROVEN_WAYS 8

/**
 * struct es_nf_unproven
 * @made_ns: CLOCK_MONOTONIC, when it was made; 0: empty
 * @cookie, @first_seq, @source, @is_moved: as in struct es_connection_entry
 * @acknowledged: its client got an acknowledgement of the request, and will not repeat it
 */
struct es_nf_unproven {
	__u64 flow_hash;
	__u64 made_ns;
	struct es_flow flow;
	__u32 cookie;
	__u32 first_seq;
	__u16 source;
	__u8 is_moved;
	__u8 acknowledged;
};
_Static_assert(sizeof(struct es_nf_unproven) == 64, "no padding: it lies in a file");

struct es_nf_unproven_set {
	struct es_nf_unproven way[ES_NF_UNPROVEN_WAYS];
};

#endif
