// SPDX-License-Identifier: GPL-2.0-or-later
/* The table as a whole: listed, cleared, restored from another node's list, and counted. */
#include <errno.h>
#include <stdlib.h>
#include "inspector/policy/targets_table.h"

int es_targets_list(struct es_targets *targets, struct es_target_entry **ret_entries, size_t *ret_count,
		    __u64 *ret_clock)
{
	struct es_target_entry *entries = calloc(targets->entries + 1, sizeof(*entries));
	size_t count = 0;

	if (!entries)
		return -ENOMEM;
	for (struct es_entry *e = targets->oldest; e; e = e->newer) {
		struct es_shard *shard = es_shard_lock(targets, e->target);

		entries[count++] = (struct es_target_entry){
			.target = e->target,
			.nodes = e->agreed,
			.hits = e->hits,
			.order = e->order,
			.changed_ns = e->changed_ns,
		};
		es_shard_unlock(shard);
	}
	*ret_entries = entries;
	*ret_count = count;
	*ret_clock = targets->clock;
	return 0;
}

__u64 es_targets_digest(const struct es_targets *targets)
{
	return targets->digest;
}

void es_targets_clear(struct es_targets *targets)
{
	for (unsigned int i = 0; i < ES_SHARDS; i++) {
		struct es_shard *shard = &targets->shard[i];

		pthread_mutex_lock(&shard->lock);
		for (size_t b = 0; shard->bucket && b <= targets->bucket_mask; b++) {
			while (shard->bucket[b]) {
				struct es_entry *e = shard->bucket[b];

				shard->bucket[b] = e->next;
				free(e);
			}
		}
		pthread_mutex_unlock(&shard->lock);
	}
	targets->oldest = targets->newest = NULL;
	targets->entries = 0;
	targets->digest = 0;
	pthread_mutex_lock(&targets->queue_lock);
	targets->head = targets->tail;
	pthread_mutex_unlock(&targets->queue_lock);
}

void es_targets_restore(struct es_targets *targets, const struct es_target_entry *entries, size_t count,
			__u64 clock, unsigned long long now_ns)
{
	for (size_t i = 0; i < count; i++) {
		struct es_shard *shard = es_shard_lock(targets, entries[i].target);
		struct es_entry *e = es_entry_get(targets, shard, entries[i].target);

		if (e && !es_node_set_is_empty(entries[i].nodes)) {
			es_digest_add(targets, e, -1);
			e->agreed = entries[i].nodes;
			if (!e->pending)
				e->view = e->agreed;
			e->changed_ns = now_ns;
			es_entry_enter(targets, e);
			e->order = entries[i].order;
			es_digest_add(targets, e, 1);
		}
		if (e)
			es_entry_settle(targets, shard, e);
		es_shard_unlock(shard);
		while (targets->entries > targets->max_entries)
			es_evict(targets);
	}
	__atomic_store_n(&targets->clock, clock, __ATOMIC_RELAXED);
}

void es_targets_count(struct es_targets *targets, struct es_targets_counts *ret_counts)
{
	pthread_mutex_lock(&targets->queue_lock);
	*ret_counts = targets->count;
	pthread_mutex_unlock(&targets->queue_lock);
	ret_counts->entries = targets->entries;
	ret_counts->max_entries = targets->max_entries;
}
