/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DECISION_TABLE_H
#define ES_DECISION_TABLE_H

/*
 * The daemon's side of the decision table (kmod/core/decisions.h): a worker writes the sets that belong to
 * it.
 */
#include "inspector/handover/handover.h"
#include "kmod/core/decisions.h"

/**
 * struct es_decision_table - a window on the table
 * @count: sets, a power of two
 * @orders: one for each entry: of a later request the whole order, of any request the attempt. They are this
 * daemon's own; the next daemon cannot repeat requests that moved a connection, and takes this one's requests
 * for first ones.
 * @since_ms: when this daemon began
 */
struct es_decision_table {
	struct es_decision_set *sets;
	__u32 count;
	struct es_handover_order *orders;
	__u32 since_ms;
};

/**
 * struct es_decided - what the table has of the request that a segment belongs to
 * @order: the entry's; NULL: nothing is known, and all else is 0. It is the same place after
 * es_decision_table_put() for this request; after one for another request it may be that one's.
 * @node: to which it was given; @age_ms: how long ago
 * @is_first: the segment is the one with which that request begins
 * @is_moved: it has moved its connection; es_decided_is_moved()
 * @is_inherited: an earlier daemon has given it, so nothing is known of its order
 */
struct es_decided {
	struct es_handover_order *order;
	unsigned int node;
	__u32 age_ms;
	int is_first;
	int is_moved;
	int is_inherited;
};

/**
 * es_decision_table_look() - the one look at the table for a segment
 * @cookie: its ack - 1; @client_isn: its seq - 1
 */
void es_decision_table_look(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			    __u32 client_isn, __u32 now_ms, struct es_decided *ret);

/* es_decided_is_moved() - has the request moved its connection, as this daemon knows? */
static inline int es_decided_is_moved(const struct es_decided *decided)
{
	return decided->is_moved && decided->order->moved;
}

/* es_decided_has_stayed() - is the segment the first one of a later request that was left on @self? */
static inline int es_decided_has_stayed(const struct es_decided *decided, unsigned int self)
{
	return decided->is_first && decided->order->kind == ES_HANDOVER_STAY && decided->order->requests &&
	       decided->node == self;
}

#define ES_DECISION_NONE_MS 0xffffffffu

/**
 * es_decision_table_put() - remember that a request went to @node
 * Takes this request's entry, else (for a later request) that of the flow's later request before it, else an
 * empty one, else the set's oldest.
 * @order: copied; NULL for a first request of which no more is known
 * Returns the age in milliseconds of a first request's decision that is forgotten for it, else
 * ES_DECISION_NONE_MS.
 */
__u32 es_decision_table_put(struct es_decision_table *table, __u64 flow_hash, __u32 cookie, __u32 client_isn,
			    __u8 node, const struct es_handover_order *order, __u32 now_ms);

/**
 * es_decision_table_forget() - forget the old decisions of the set at @index
 * Called for each set in turn, and for all of them within an hour: otherwise an old decision whose age has
 * wrapped would look fresh, and a fresh one would be forgotten in its place.
 */
void es_decision_table_forget(struct es_decision_table *table, __u32 index, __u32 now_ms);

#endif
