/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DECISION_TABLE_H
#define ES_DECISION_TABLE_H

/*
 * The daemon's side of the decision table (kmod/core/decisions.h): a worker writes the sets that belong to
 * it.
 */
#include "inspector/handover.h"
#include "kmod/core/decisions.h"

/**
 * struct es_decision_table - a window on the table
 * @count: sets, a power of two
 * @orders: one for each entry: with what a later request was handed over. Of this daemon only: another one
 * cannot repeat requests that moved a connection, and takes those of an earlier one for first requests.
 */
struct es_decision_table {
	struct es_decision_set *sets;
	__u32 count;
	struct es_handover_order *orders;
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

/**
 * es_decision_table_order() - how a connection was moved by the request that these segments belong to
 * Returns NULL if this is not known (any more).
 */
const struct es_handover_order *es_decision_table_order(const struct es_decision_table *table,
							__u64 flow_hash, __u32 cookie);

/**
 * es_decision_table_put() - remember @node; replaces this request's entry, else (for a later request) that of
 * the flow's later request before it, else an empty one, else the set's oldest
 * @order: copied; NULL for a first request of which no more is known
 */
void es_decision_table_put(struct es_decision_table *table, __u64 flow_hash, __u32 cookie, __u32 client_isn,
			   __u8 node, const struct es_handover_order *order, __u32 now_ms);

#endif
