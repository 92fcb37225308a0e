// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which nodes serve which content: what policies see and propose, and what the bus makes of it.
 * contents_table.h says what belongs to whom.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/policy/contents_table.h"

int es_contents_new(size_t max_entries, struct es_contents **ret_contents)
{
	struct es_contents *t = calloc(1, sizeof(*t));
	size_t buckets = 16;

	if (!t)
		return -ENOMEM;
	t->max_entries = max_entries < ES_ENTRIES_MIN ? ES_ENTRIES_MIN : max_entries;
	while (buckets * ES_SHARDS < t->max_entries)
		buckets *= 2;
	t->bucket_mask = buckets - 1;
	pthread_mutex_init(&t->queue_lock, NULL);
	for (unsigned int i = 0; i < ES_SHARDS; i++)
		pthread_mutex_init(&t->shard[i].lock, NULL);
	t->queue = calloc(ES_QUEUE_SIZE, sizeof(*t->queue));
	if (!t->queue)
		goto err_free;
	for (unsigned int i = 0; i < ES_SHARDS; i++) {
		t->shard[i].bucket = calloc(buckets, sizeof(struct es_entry *));
		if (!t->shard[i].bucket)
			goto err_free;
	}
	*ret_contents = t;
	return 0;

err_free:
	es_contents_free(&t);
	return -ENOMEM;
}

void es_contents_free(struct es_contents **contents)
{
	struct es_contents *t = *contents;

	if (!t)
		return;
	es_contents_clear(t);
	for (unsigned int i = 0; i < ES_SHARDS; i++) {
		free(t->shard[i].bucket);
		pthread_mutex_destroy(&t->shard[i].lock);
	}
	pthread_mutex_destroy(&t->queue_lock);
	free(t->queue);
	free(t);
	*contents = NULL;
}

/* Is it old enough to be put in again? Read by workers too: a little wrong does not matter to them. */
static int es_is_old(const struct es_contents *t, const struct es_entry *e)
{
	return __atomic_load_n(&t->clock, __ATOMIC_RELAXED) - e->order > t->max_entries / 2;
}

static int es_set_apply(struct es_node_set *set, enum es_content_op op, unsigned int node, unsigned int from)
{
	switch (op) {
	case ES_CONTENT_ASSIGN:
		if (!es_node_set_is_empty(*set))
			return 0;
		es_node_set_add(set, node);
		return 1;
	case ES_CONTENT_ADD:
		if (es_node_set_is_empty(*set) || es_node_set_has(*set, node))
			return 0;
		es_node_set_add(set, node);
		return 1;
	case ES_CONTENT_REMOVE:
		if (!es_node_set_has(*set, node) || es_node_set_count(*set) < 2)
			return 0;
		es_node_set_remove(set, node);
		return 1;
	case ES_CONTENT_MOVE:
		if (!es_node_set_has(*set, from) || from == node)
			return 0;
		es_node_set_remove(set, from);
		es_node_set_add(set, node);
		return 1;
	default:
		return 0;
	}
}

/* --- policies */

void es_contents_on_proposal(struct es_contents *contents, void (*notify)(void *ctx), void *ctx)
{
	contents->notify = notify;
	contents->notify_ctx = ctx;
}

static int es_entry_read(const struct es_entry *e, struct es_content_set *ret_set)
{
	if (!e || es_node_set_is_empty(e->view))
		return 0;
	*ret_set = (struct es_content_set){
		.nodes = e->view,
		.former = e->former,
		.former_ns = e->former_ns,
		.changed_ns = e->changed_ns,
		.hits = e->hits,
	};
	return 1;
}

int es_contents_get(struct es_contents *contents, __u64 content, struct es_content_set *ret_set)
{
	struct es_content_change keep = {.content = content, .op = ES_CONTENT_KEEP};
	struct es_shard *shard = es_shard_lock(contents, content);
	struct es_entry *e = *es_entry_slot(contents, shard, content);
	enum es_queued queued = ES_QUEUED;
	int found;

	if (e) {
		e->hits++;
		if (e->order && !e->keep_sent && es_is_old(contents, e)) {
			queued = es_queue_put(contents, &keep);
			e->keep_sent = queued != ES_QUEUE_FULL; /* else the next look-up tries again */
		}
	}
	found = es_entry_read(e, ret_set);
	es_shard_unlock(shard);
	es_queue_notify(contents, queued);
	return found;
}

int es_contents_peek(struct es_contents *contents, __u64 content, struct es_content_set *ret_set)
{
	struct es_shard *shard = es_shard_lock(contents, content);
	int found = es_entry_read(*es_entry_slot(contents, shard, content), ret_set);

	es_shard_unlock(shard);
	return found;
}

void es_contents_propose(struct es_contents *contents, __u64 content, enum es_content_op op,
			 unsigned int node, unsigned int from, unsigned long long now_ns)
{
	struct es_content_change change = {
		.content = content, .op = (__u8)op, .node = (__u8)node, .from = (__u8)from};
	struct es_shard *shard = es_shard_lock(contents, content);
	struct es_entry *e = es_entry_get(contents, shard, content);
	enum es_queued queued = ES_QUEUED;

	if (e) {
		struct es_node_set next = e->view;

		/* Under the lock, so that the bus has the proposals for one content in the order of their
		 * effects. */
		if (es_set_apply(&next, op, node, from)) {
			queued = es_queue_put(contents, &change);
			if (queued != ES_QUEUE_FULL) {
				es_entry_view(e, next, now_ns);
				e->changed_ns = now_ns;
				e->pending++;
			}
		}
		es_entry_settle(contents, shard, e);
	}
	es_shard_unlock(shard);
	es_queue_notify(contents, queued);
}

/* --- the bus */

size_t es_contents_take(struct es_contents *contents, struct es_content_change *ret_changes, size_t max)
{
	size_t count = 0;

	pthread_mutex_lock(&contents->queue_lock);
	while (count < max && contents->head < contents->tail)
		ret_changes[count++] = contents->queue[contents->head++ % ES_QUEUE_SIZE];
	pthread_mutex_unlock(&contents->queue_lock);
	return count;
}

static void es_count_change(struct es_contents *t, enum es_content_op op)
{
	__u64 *const counts[ES_CONTENT_OP_COUNT] = {
		[ES_CONTENT_ASSIGN] = &t->count.assigned, [ES_CONTENT_ADD] = &t->count.added,
		[ES_CONTENT_REMOVE] = &t->count.removed,  [ES_CONTENT_MOVE] = &t->count.moved,
		[ES_CONTENT_KEEP] = &t->count.kept,	  [ES_CONTENT_DROP] = &t->count.removed,
	};

	if (counts[op])
		++*counts[op];
}

static void es_deliver(struct es_contents *t, const struct es_content_change *c, int is_own,
		       unsigned long long now_ns)
{
	struct es_shard *shard = es_shard_lock(t, c->content);
	struct es_entry *e = c->op == ES_CONTENT_ASSIGN ? es_entry_get(t, shard, c->content)
							: *es_entry_slot(t, shard, c->content);
	int changed = 0;

	if (!e)
		goto out;
	es_digest_add(t, e, -1);
	if (c->op == ES_CONTENT_TELL) {
		changed = 0;
	} else if (c->op == ES_CONTENT_KEEP) {
		e->keep_sent = 0;
		changed = e->order && es_is_old(t, e);
	} else {
		changed = es_set_apply(&e->agreed, (enum es_content_op)c->op, c->node, c->from);
		if (is_own && e->pending)
			e->pending--;
		if (changed && !is_own)
			e->changed_ns = now_ns;
		if (!e->pending)
			es_entry_view(e, e->agreed, now_ns);
		if (is_own && !changed)
			t->count.overtaken++;
	}
	if (changed) {
		es_count_change(t, (enum es_content_op)c->op);
		if (c->op == ES_CONTENT_ASSIGN || c->op == ES_CONTENT_KEEP)
			es_entry_enter(t, e);
	}
	es_digest_add(t, e, 1);
	es_entry_settle(t, shard, e);
out:
	es_shard_unlock(shard);
}

void es_contents_deliver(struct es_contents *contents, const struct es_content_change *changes, size_t count,
			 int is_own, unsigned long long now_ns)
{
	for (size_t i = 0; i < count; i++) {
		const struct es_content_change *c = &changes[i];

		/* From the network: what another version may say. */
		if (!c->op || c->op >= ES_CONTENT_OP_COUNT || c->node >= ES_NODES_MAX)
			continue;
		if (c->op == ES_CONTENT_DROP)
			es_contents_drop_node(contents, c->node, now_ns);
		else
			es_deliver(contents, c, is_own, now_ns);
		while (contents->entries > contents->max_entries)
			es_evict(contents);
	}
}

void es_contents_drop_node(struct es_contents *contents, unsigned int node, unsigned long long now_ns)
{
	struct es_entry *e, *newer;

	for (e = contents->oldest; e; e = newer) {
		struct es_shard *shard = es_shard_lock(contents, e->content);

		newer = e->newer;
		if (es_node_set_has(e->agreed, node)) {
			es_digest_add(contents, e, -1);
			es_node_set_remove(&e->agreed, node);
			es_node_set_remove(&e->view, node);
			es_node_set_remove(&e->former, node);
			e->changed_ns = now_ns;
			es_digest_add(contents, e, 1);
			if (es_node_set_is_empty(e->agreed))
				es_entry_drop(contents, shard, e);
		}
		es_shard_unlock(shard);
	}
}
