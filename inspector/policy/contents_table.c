// SPDX-License-Identifier: GPL-2.0-or-later
/* The entries of the table, their order and digest, and the queue of proposals. */
#include <stdlib.h>
#include "inspector/policy/contents_table.h"

struct es_shard *es_shard_lock(struct es_contents *t, __u64 content)
{
	struct es_shard *shard = &t->shard[content % ES_SHARDS];

	pthread_mutex_lock(&shard->lock);
	return shard;
}

void es_shard_unlock(struct es_shard *shard)
{
	pthread_mutex_unlock(&shard->lock);
}

struct es_entry **es_entry_slot(const struct es_contents *t, const struct es_shard *shard, __u64 content)
{
	struct es_entry **slot = &shard->bucket[content / ES_SHARDS & t->bucket_mask];

	while (*slot && (*slot)->content != content)
		slot = &(*slot)->next;
	return slot;
}

struct es_entry *es_entry_get(const struct es_contents *t, const struct es_shard *shard, __u64 content)
{
	struct es_entry **slot = es_entry_slot(t, shard, content);

	if (!*slot) {
		*slot = calloc(1, sizeof(**slot));
		if (*slot)
			(*slot)->content = content;
	}
	return *slot;
}

void es_entry_settle(const struct es_contents *t, const struct es_shard *shard, struct es_entry *e)
{
	struct es_entry **slot;

	if (e->order || e->pending)
		return;
	slot = es_entry_slot(t, shard, e->content);
	*slot = e->next;
	free(e);
}

static void es_order_remove(struct es_contents *t, struct es_entry *e)
{
	*(e->older ? &e->older->newer : &t->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &t->newest) = e->older;
	e->older = e->newer = NULL;
}

static void es_order_append(struct es_contents *t, struct es_entry *e)
{
	e->older = t->newest;
	*(t->newest ? &t->newest->newer : &t->oldest) = e;
	t->newest = e;
}

void es_entry_view(struct es_entry *e, struct es_node_set next, unsigned long long now_ns)
{
	if (es_node_set_equal(e->view, next))
		return;
	if (now_ns > e->former_ns && now_ns - e->former_ns > ES_CONTENT_FORMER_NS)
		e->former = (struct es_node_set){};
	for (unsigned int i = 0; i < ES_NODES_MAX / 64; i++) {
		__u64 left = e->view.bits[i] & ~next.bits[i];

		if (left)
			e->former_ns = now_ns;
		e->former.bits[i] = (e->former.bits[i] | left) & ~next.bits[i];
	}
	e->view = next;
}

void es_digest_add(struct es_contents *t, const struct es_entry *e, int sign)
{
	__u64 z = e->content;

	if (!e->order)
		return;
	for (unsigned int i = 0; i < ES_NODES_MAX / 64; i++) {
		z = (z ^ e->agreed.bits[i]) * 0x9e3779b97f4a7c15ULL;
		z ^= z >> 29;
	}
	t->digest += sign > 0 ? z : -z;
}

void es_entry_drop(struct es_contents *t, const struct es_shard *shard, struct es_entry *e)
{
	es_digest_add(t, e, -1);
	es_order_remove(t, e);
	t->entries--;
	e->order = 0;
	e->agreed = (struct es_node_set){};
	if (!e->pending)
		e->view = e->agreed;
	es_entry_settle(t, shard, e);
}

void es_evict(struct es_contents *t)
{
	struct es_shard *shard = es_shard_lock(t, t->oldest->content);

	es_entry_drop(t, shard, t->oldest);
	es_shard_unlock(shard);
	t->count.evicted++;
}

void es_entry_enter(struct es_contents *t, struct es_entry *e)
{
	if (e->order)
		es_order_remove(t, e);
	else
		t->entries++;
	es_order_append(t, e);
	__atomic_store_n(&t->clock, t->clock + 1, __ATOMIC_RELAXED);
	e->order = t->clock;
	e->keep_sent = 0;
}

enum es_queued es_queue_put(struct es_contents *t, const struct es_content_change *change)
{
	enum es_queued result;

	pthread_mutex_lock(&t->queue_lock);
	if (t->tail - t->head == ES_QUEUE_SIZE) {
		t->count.refused++;
		result = ES_QUEUE_FULL;
	} else {
		result = t->tail == t->head ? ES_QUEUED_FIRST : ES_QUEUED;
		t->queue[t->tail++ % ES_QUEUE_SIZE] = *change;
	}
	pthread_mutex_unlock(&t->queue_lock);
	return result;
}

void es_queue_notify(const struct es_contents *t, enum es_queued queued)
{
	if (queued == ES_QUEUED_FIRST && t->notify)
		t->notify(t->notify_ctx);
}
