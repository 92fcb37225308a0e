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
 * @orders: one for each entry: with what a later request was handed over, and of any request the attempt. Of
 * this daemon only: another one cannot repeat requests that moved a connection, and takes those of an earlier
 * one for first requests.
 * @since_ms: when this daemon began
 */
struct es_decision_table {
	struct es_decision_set *sets;
	__u32 count;
	struct es_handover_order *orders;
	__u32 since_ms;
};

/**
 * es_decision_table_get() - where a repeated first request went
 * @cookie: its ack - 1; @client_isn: its seq - 1
 * Returns the node id, or -1 if this incarnation of the flow was not decided (or is forgotten).
 */
int es_decision_table_get(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			  __u32 client_isn);

/* es_decision_table_age_ms() - how long ago that was decided; 0 if it is not known */
__u32 es_decision_table_age_ms(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			       __u32 now_ms);

/**
 * struct es_decided - a request that was given to a node
 * @attempt: its number, see kmod/core/settled.h; @is_repeated: it was sent there again
 * @is_inherited: an earlier daemon has given it; the attempt is not known
 */
struct es_decided {
	unsigned int node;
	unsigned int attempt;
	int is_repeated;
	int is_inherited;
};

/* es_decision_table_find() - where a repeated request went, and more of it. Returns 0 or -ENOENT. */
int es_decision_table_find(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			   __u32 client_isn, __u32 now_ms, struct es_decided *ret);

/* es_decision_table_repeat() - it is sent there again */
void es_decision_table_repeat(struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			      __u32 client_isn);

/* es_decision_table_get_any() - where a request went, for a later segment, whose client ISN is not known */
int es_decision_table_get_any(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie);

/* es_decision_table_is_numbered() - was that one numbered when it was given away, as connections at layer 4 are? */
int es_decision_table_is_numbered(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie);

/**
 * es_decision_table_order() - how a connection was moved by the request that these segments belong to
 * Returns NULL if this is not known (any more).
 */
const struct es_handover_order *es_decision_table_order(const struct es_decision_table *table,
							__u64 flow_hash, __u32 cookie);

/**
 * es_decision_table_stayed() - how a later request, whose first byte is behind @client_isn, was left on @self
 * Returns NULL if it was not, or if this is not known (any more).
 */
const struct es_handover_order *es_decision_table_stayed(const struct es_decision_table *table,
							 __u64 flow_hash, __u32 cookie, __u32 client_isn,
							 unsigned int self);

#define ES_DECISION_NONE_MS 0xffffffffu

/**
 * es_decision_table_put() - remember @node; replaces this request's entry, else (for a later request) that of
 * the flow's later request before it, else an empty one, else the set's oldest
 * @order: copied; NULL for a first request of which no more is known
 * Returns how old the first request's decision was that is forgotten for it, in milliseconds, or
 * ES_DECISION_NONE_MS.
 */
__u32 es_decision_table_put(struct es_decision_table *table, __u64 flow_hash, __u32 cookie, __u32 client_isn,
			    __u8 node, const struct es_handover_order *order, __u32 now_ms);

/**
 * es_decision_table_forget() - empty what is old in the set at @index
 * Called for each set in turn, and for all of them within an hour: an age that has wrapped would look fresh,
 * and the freshest entry of the set would make room for the next one in its place.
 */
void es_decision_table_forget(struct es_decision_table *table, __u32 index, __u32 now_ms);

#endif
