// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes and reads the decision table that the datapath shares. One writer per set; the datapath may read at
 * any time, so an entry is cleared, filled and then named, in this order.
 */
#include "inspector/inspect/decision_table.h"

static struct es_decision_set *es_set_of(const struct es_decision_table *table, __u64 flow_hash)
{
	return &table->sets[es_decision_index(flow_hash, table->count)];
}

void es_decision_table_look(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie,
			    __u32 client_isn, __u32 now_ms, struct es_decided *ret)
{
	const struct es_decision_set *set = es_set_of(table, flow_hash);
	__u64 key = es_decision_key(flow_hash, cookie);

	*ret = (struct es_decided){};
	for (int i = 0; i < ES_DECISION_WAYS; i++) {
		__u64 value = set->way[i].value;

		if (set->way[i].key != key)
			continue;
		ret->order = &table->orders[(set - table->sets) * ES_DECISION_WAYS + i];
		ret->node = es_decision_node(value);
		ret->age_ms = es_decision_age_ms(value, now_ms);
		ret->is_first = es_decision_isn(value) == client_isn;
		ret->is_moved = es_decision_is_moved(value);
		ret->is_inherited = ret->age_ms > now_ms - table->since_ms;
		return;
	}
}

/* Is this entry's decision about a later request of its connection? */
static int es_decision_is_later(const struct es_decision_table *table, const struct es_decision *d)
{
	return table->orders[d - table->sets[0].way].requests > 0;
}

/*
 * The entry of the set that makes room. A connection has at most one later request under way: its client
 * sends the next one when it has the whole answer. So the flow's own last one goes first. Otherwise a busy
 * connection would fill its set within milliseconds, and another connection's request, whose message was
 * lost, would be forgotten before its client repeats it; then nobody would answer that. The decision about
 * the first request stays: as long as its cookie is valid, a late copy would be taken for a new connection's.
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
	/*
	 * A connection that is just leaving has its entry throughout: the old value says so, and so does the
	 * new one.
	 */
	if (d->key != key) {
		__atomic_store_n(&d->key, 0, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	__atomic_store_n(&d->value,
			 es_decision_value(client_isn, node, now_ms) | (order->moved ? ES_DECISION_MOVED : 0),
			 __ATOMIC_RELAXED);
	/*
	 * Only its attempt is read of a first request's order later, so mostly the order's page stays
	 * untouched.
	 */
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
