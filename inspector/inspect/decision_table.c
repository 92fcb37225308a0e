// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes and reads the decision table that the datapath shares. One writer per set; the datapath may read at
 * any time, so an entry is cleared, filled and then named, in this order.
 */
#include <errno.h>
#include "inspector/inspect/decision_table.h"

static struct es_decision_set *es_set_of(const struct es_decision_table *table, __u64 flow_hash)
{
	return &table->sets[es_decision_index(flow_hash, table->count)];
}

int es_decision_table_get(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			  __u32 client_isn)
{
	__u64 value = es_decision_lookup(es_set_of(table, flow_hash), es_decision_key(flow_hash, cookie));

	return value && es_decision_isn(value) == client_isn ? es_decision_node(value) : -1;
}

__u32 es_decision_table_age_ms(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			       __u32 now_ms)
{
	__u64 value = es_decision_lookup(es_set_of(table, flow_hash), es_decision_key(flow_hash, cookie));

	return value ? es_decision_age_ms(value, now_ms) : 0;
}

/* The order that belongs to this very request's entry, NULL if there is none. */
static struct es_handover_order *es_order_of(const struct es_decision_table *table, __u64 flow_hash,
					     __u32 cookie, __u32 client_isn, __u64 *ret_value)
{
	const struct es_decision_set *set = es_set_of(table, flow_hash);
	__u64 key = es_decision_key(flow_hash, cookie);

	for (int i = 0; i < ES_DECISION_WAYS; i++) {
		if (set->way[i].key != key || es_decision_isn(set->way[i].value) != client_isn)
			continue;
		*ret_value = set->way[i].value;
		return &table->orders[(set - table->sets) * ES_DECISION_WAYS + i];
	}
	return NULL;
}

int es_decision_table_find(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			   __u32 client_isn, __u32 now_ms, struct es_decided *ret)
{
	__u64 value;
	const struct es_handover_order *order = es_order_of(table, flow_hash, cookie, client_isn, &value);

	if (!order)
		return -ENOENT;
	*ret = (struct es_decided){
		.node = es_decision_node(value),
		.attempt = order->attempt,
		.is_repeated = order->repeat,
		.is_inherited = es_decision_age_ms(value, now_ms) > now_ms - table->since_ms,
	};
	return 0;
}

void es_decision_table_repeat(struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			      __u32 client_isn)
{
	__u64 value;
	struct es_handover_order *order = es_order_of(table, flow_hash, cookie, client_isn, &value);

	if (order)
		order->repeat = 1;
}

int es_decision_table_get_any(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie)
{
	__u64 value = es_decision_lookup(es_set_of(table, flow_hash), es_decision_key(flow_hash, cookie));

	return value ? es_decision_node(value) : -1;
}

int es_decision_table_is_numbered(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie)
{
	const struct es_decision_set *set = es_set_of(table, flow_hash);
	__u64 key = es_decision_key(flow_hash, cookie);

	for (int i = 0; i < ES_DECISION_WAYS; i++)
		if (set->way[i].key == key)
			return table->orders[(set - table->sets) * ES_DECISION_WAYS + i].attempt > 0;
	return 0;
}

const struct es_handover_order *es_decision_table_order(const struct es_decision_table *table,
							__u64 flow_hash, __u32 cookie)
{
	const struct es_decision_set *set = es_set_of(table, flow_hash);
	__u64 key = es_decision_key(flow_hash, cookie);

	for (int i = 0; i < ES_DECISION_WAYS; i++) {
		const struct es_handover_order *order =
			&table->orders[(set - table->sets) * ES_DECISION_WAYS + i];

		if (set->way[i].key == key)
			return es_decision_is_moved(set->way[i].value) && order->moved ? order : NULL;
	}
	return NULL;
}

const struct es_handover_order *es_decision_table_stayed(const struct es_decision_table *table,
							 __u64 flow_hash, __u32 cookie, __u32 client_isn,
							 unsigned int self)
{
	__u64 value;
	const struct es_handover_order *order = es_order_of(table, flow_hash, cookie, client_isn, &value);

	return order && order->kind == ES_HANDOVER_STAY && order->requests && es_decision_node(value) == self
		       ? order
		       : NULL;
}

/* Was this entry's decision about a later request of its connection? */
static int es_decision_is_later(const struct es_decision_table *table, const struct es_decision *d)
{
	return table->orders[d - table->sets[0].way].requests > 0;
}

/*
 * Which entry of the set makes room. A connection has at most one later request under way: the client sends
 * the next one when it has the whole answer. So the flow's own last one goes first. Otherwise a busy
 * connection fills its set within milliseconds, and another one's request whose message was lost is
 * forgotten before its client sends it again; nobody would answer it then. The first request's decision
 * stays: as long as its cookie is valid, a late copy of it would be taken for a new connection's.
 */
static struct es_decision *es_decision_victim(const struct es_decision_table *table,
					      struct es_decision_set *set, __u64 key,
					      const struct es_handover_order *order, __u32 now_ms)
{
	struct es_decision *own = NULL, *empty = NULL, *oldest = &set->way[0];

	for (int i = 0; i < ES_DECISION_WAYS; i++) {
		struct es_decision *d = &set->way[i];

		if (d->key == key)
			return d;
		if (!d->key) {
			empty = d;
			continue;
		}
		if (order->requests && (__u32)d->key == (__u32)key && es_decision_is_later(table, d))
			own = d;
		if (es_decision_age_ms(d->value, now_ms) > es_decision_age_ms(oldest->value, now_ms))
			oldest = d;
	}
	return own ? own : empty ? empty : oldest;
}

__u32 es_decision_table_put(struct es_decision_table *table, __u64 flow_hash, __u32 cookie, __u32 client_isn,
			    __u8 node, const struct es_handover_order *order, __u32 now_ms)
{
	static const struct es_handover_order unknown;
	__u64 key = es_decision_key(flow_hash, cookie);
	struct es_handover_order *place;
	__u32 forgotten_ms = ES_DECISION_NONE_MS;
	struct es_decision *d;

	if (!order)
		order = &unknown;
	d = es_decision_victim(table, es_set_of(table, flow_hash), key, order, now_ms);
	if (d->key && d->key != key && !es_decision_is_later(table, d))
		forgotten_ms = es_decision_age_ms(d->value, now_ms);
	place = &table->orders[d - table->sets[0].way];
	/* A connection that is just leaving has its entry throughout: both values say so. */
	if (d->key != key) {
		__atomic_store_n(&d->key, 0, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	__atomic_store_n(&d->value,
			 es_decision_value(client_isn, node, now_ms) | (order->moved ? ES_DECISION_MOVED : 0),
			 __ATOMIC_RELAXED);
	/* Of a first request nothing is asked later but the attempt;
	 * mostly its place's page stays untouched. */
	if (order->moved || order->requests || order->attempt)
		*place = *order;
	else if (place->requests || place->attempt || place->repeat)
		*place = unknown;
	__atomic_store_n(&d->key, key, __ATOMIC_RELEASE);
	return forgotten_ms;
}

void es_decision_table_forget(struct es_decision_table *table, __u32 index, __u32 now_ms)
{
	struct es_decision_set *set = &table->sets[index];

	for (int i = 0; i < ES_DECISION_WAYS; i++)
		if (set->way[i].key && es_decision_age_ms(set->way[i].value, now_ms) > ES_DECISION_OLD_MS)
			__atomic_store_n(&set->way[i].key, 0, __ATOMIC_RELAXED);
}
