// SPDX-License-Identifier: GPL-2.0-or-later
/* The table as a whole: listed, cleared, restored from another node's list, and counted. */
#include <errno.h>
#include <stdlib.h>
#include "inspector/policy/contents_table.h"

int es_contents_list(struct es_contents *contents, struct es_content_entry **ret_entries, size_t *ret_count,
		     __u64 *ret_clock)
{
	struct es_content_entry *entries = calloc(contents->entries + 1, sizeof(*entries));
	size_t count = 0;

	if (!entries)
		return -ENOMEM;
	for (struct es_entry *e = contents->oldest; e; e = e->newer) {
		struct es_shard *shard = es_shard_lock(contents, e->content);

		entries[count++] = (struct es_content_entry){
			.content = e->content,
			.nodes = e->agreed,
			.hits = e->hits,
			.order = e->order,
			.changed_ns = e->changed_ns,
		};
		es_shard_unlock(shard);
	}
	*ret_entries = entries;
	*ret_count = count;
	*ret_clock = contents->clock;
	return 0;
}

__u64 es_contents_digest(const struct es_contents *contents)
{
	return contents->digest;
}

void es_contents_clear(struct es_contents *contents)
{
	for (unsigned int i = 0; i < ES_SHARDS; i++) {
		struct es_shard *shard = &contents->shard[i];

		pthread_mutex_lock(&shard->lock);
		for (size_t b = 0; shard->bucket && b <= contents->bucket_mask; b++) {
			while (shard->bucket[b]) {
				struct es_entry *e = shard->bucket[b];

				shard->bucket[b] = e->next;
				free(e);
			}
		}
		pthread_mutex_unlock(&shard->lock);
	}
	contents->oldest = contents->newest = NULL;
	contents->entries = 0;
	contents->digest = 0;
	pthread_mutex_lock(&contents->queue_lock);
	contents->head = contents->tail;
	pthread_mutex_unlock(&contents->queue_lock);
}

void es_contents_restore(struct es_contents *contents, const struct es_content_entry *entries, size_t count,
			 __u64 clock, unsigned long long now_ns)
{
	for (size_t i = 0; i < count; i++) {
		struct es_shard *shard = es_shard_lock(contents, entries[i].content);
		struct es_entry *e = es_entry_get(contents, shard, entries[i].content);

		if (e && !es_node_set_is_empty(entries[i].nodes)) {
			es_digest_add(contents, e, -1);
			e->agreed = entries[i].nodes;
			if (!e->pending)
				e->view = e->agreed;
			e->changed_ns = now_ns;
			es_entry_enter(contents, e);
			e->order = entries[i].order;
			es_digest_add(contents, e, 1);
		}
		if (e)
			es_entry_settle(contents, shard, e);
		es_shard_unlock(shard);
		while (contents->entries > contents->max_entries)
			es_evict(contents);
	}
	__atomic_store_n(&contents->clock, clock, __ATOMIC_RELAXED);
}

void es_contents_count(struct es_contents *contents, struct es_contents_counts *ret_counts)
{
	pthread_mutex_lock(&contents->queue_lock);
	*ret_counts = contents->count;
	pthread_mutex_unlock(&contents->queue_lock);
	ret_counts->entries = contents->entries;
	ret_counts->max_entries = contents->max_entries;
}
