/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DECISION_TABLE_H
#define ES_DECISION_TABLE_H

/*
 * The daemon's side of the decision table (kmod/core/decisions.h): a worker writes the sets that belong to
 * it.
 */
#include "kmod/core/decisions.h"

struct es_decision_table {
	struct es_decision_set *sets;
	__u32 count; /* a power of two */
};

/**
 * es_decision_table_get() - where a repeated first request went
 * @cookie: its ack - 1; @client_isn: its seq - 1
 * Returns the node id, or -1 if this incarnation of the flow was not decided (or is forgotten).
 */
int es_decision_table_get(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			  __u32 client_isn);

/* The same for a later segment, whose client ISN is not known. */
int es_decision_table_get_any(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie);

/* es_decision_table_put() - remember @node; replaces the flow's entry, else an empty one, else the set's
 * oldest */
void es_decision_table_put(struct es_decision_table *table, __u64 flow_hash, __u32 cookie, __u32 client_isn,
			   __u8 node, __u32 now_ms);

#endif
