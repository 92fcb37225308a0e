// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes and reads the decision table that the datapath shares. One writer per set; the datapath may read at
 * any time, so an entry is cleared, filled and then named, in this order.
 */
#include "inspector/decision_table.h"

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

int es_decision_table_get_any(const struct es_decision_table *table, __u64 flow_hash, __u32 cookie)
{
	__u64 value = es_decision_lookup(es_set_of(table, flow_hash), es_decision_key(flow_hash, cookie));

	return value ? es_decision_node(value) : -1;
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

void es_decision_table_put(struct es_decision_table *table, __u64 flow_hash, __u32 cookie, __u32 client_isn,
			   __u8 node, const struct es_handover_order *moved, __u32 now_ms)
{
	struct es_decision_set *set = es_set_of(table, flow_hash);
	__u64 key = es_decision_key(flow_hash, cookie);
	struct es_decision *victim = &set->way[0];

	for (int i = 0; i < ES_DECISION_WAYS; i++) {
		struct es_decision *d = &set->way[i];

		if (d->key == key) {
			victim = d;
			break;
		}
		if (!victim->key)
			continue;
		if (!d->key ||
		    es_decision_age_ms(d->value, now_ms) > es_decision_age_ms(victim->value, now_ms))
			victim = d;
	}
	__atomic_store_n(&victim->key, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&victim->value,
			 es_decision_value(client_isn, node, now_ms) | (moved ? ES_DECISION_MOVED : 0),
			 __ATOMIC_RELAXED);
	if (moved)
		table->orders[(set - table->sets) * ES_DECISION_WAYS + (victim - set->way)] = *moved;
	__atomic_store_n(&victim->key, key, __ATOMIC_RELEASE);
}
