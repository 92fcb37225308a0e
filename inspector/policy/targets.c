// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sets of targets: what policies see and propose, and what the bus makes of it. targets_table.h says what
 * belongs to whom.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/policy/targets_table.h"

int es_targets_new(size_t max_entries, struct es_targets **ret_targets)
{
	struct es_targets *t = calloc(1, sizeof(*t));
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
	*ret_targets = t;
	return 0;

err_free:
	es_targets_free(&t);
	return -ENOMEM;
}

void es_targets_free(struct es_targets **targets)
{
	struct es_targets *t = *targets;

	if (!t)
		return;
	es_targets_clear(t);
	for (unsigned int i = 0; i < ES_SHARDS; i++) {
		free(t->shard[i].bucket);
		pthread_mutex_destroy(&t->shard[i].lock);
	}
	pthread_mutex_destroy(&t->queue_lock);
	free(t->queue);
	free(t);
	*targets = NULL;
}

/* --- entries */

struct es_shard *es_shard_lock(struct es_targets *t, __u64 target)
{
	struct es_shard *shard = &t->shard[target % ES_SHARDS];

	pthread_mutex_lock(&shard->lock);
	return shard;
}

void es_shard_unlock(struct es_shard *shard)
{
	pthread_mutex_unlock(&shard->lock);
}

struct es_entry **es_entry_slot(const struct es_targets *t, const struct es_shard *shard, __u64 target)
{
	struct es_entry **slot = &shard->bucket[target / ES_SHARDS & t->bucket_mask];

	while (*slot && (*slot)->target != target)
		slot = &(*slot)->next;
	return slot;
}

/* The entry of @target, made if there is none; NULL without memory. */
struct es_entry *es_entry_get(const struct es_targets *t, const struct es_shard *shard, __u64 target)
{
	struct es_entry **slot = es_entry_slot(t, shard, target);

	if (!*slot) {
		*slot = calloc(1, sizeof(**slot));
		if (*slot)
			(*slot)->target = target;
	}
	return *slot;
}

/* Frees an entry that is neither agreed nor proposed. */
void es_entry_settle(const struct es_targets *t, const struct es_shard *shard, struct es_entry *e)
{
	struct es_entry **slot;

	if (e->order || e->pending)
		return;
	slot = es_entry_slot(t, shard, e->target);
	*slot = e->next;
	free(e);
}

static void es_order_remove(struct es_targets *t, struct es_entry *e)
{
	*(e->older ? &e->older->newer : &t->oldest) = e->newer;
	*(e->newer ? &e->newer->older : &t->newest) = e->older;
	e->older = e->newer = NULL;
}

static void es_order_append(struct es_targets *t, struct es_entry *e)
{
	e->older = t->newest;
	*(t->newest ? &t->newest->newer : &t->oldest) = e;
	t->newest = e;
}

/* Is it old enough to be put in again? Read by workers too: a little wrong does not matter to them. */
static int es_is_old(const struct es_targets *t, const struct es_entry *e)
{
	return __atomic_load_n(&t->clock, __ATOMIC_RELAXED) - e->order > t->max_entries / 2;
}

static int es_set_apply(struct es_node_set *set, enum es_target_op op, unsigned int node, unsigned int from)
{
	switch (op) {
	case ES_TARGET_ASSIGN:
		if (!es_node_set_is_empty(*set))
			return 0;
		es_node_set_add(set, node);
		return 1;
	case ES_TARGET_ADD:
		if (es_node_set_is_empty(*set) || es_node_set_has(*set, node))
			return 0;
		es_node_set_add(set, node);
		return 1;
	case ES_TARGET_REMOVE:
		if (!es_node_set_has(*set, node) || es_node_set_count(*set) < 2)
			return 0;
		es_node_set_remove(set, node);
		return 1;
	case ES_TARGET_MOVE:
		if (!es_node_set_has(*set, from) || from == node)
			return 0;
		es_node_set_remove(set, from);
		es_node_set_add(set, node);
		return 1;
	default:
		return 0;
	}
}

/* What policies see becomes @next. A node that leaves does not forget the content at once. */
void es_entry_view(struct es_entry *e, struct es_node_set next, unsigned long long now_ns)
{
	if (es_node_set_equal(e->view, next))
		return;
	if (now_ns > e->former_ns && now_ns - e->former_ns > ES_TARGET_FORMER_NS)
		e->former = (struct es_node_set){};
	for (unsigned int i = 0; i < ES_NODES_MAX / 64; i++) {
		__u64 left = e->view.bits[i] & ~next.bits[i];

		if (left)
			e->former_ns = now_ns;
		e->former.bits[i] = (e->former.bits[i] | left) & ~next.bits[i];
	}
	e->view = next;
}

/* --- policies */

enum es_queued es_queue_put(struct es_targets *t, const struct es_target_change *change)
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

/* Without a lock: it may be a system call. */
void es_queue_notify(const struct es_targets *t, enum es_queued queued)
{
	if (queued == ES_QUEUED_FIRST && t->notify)
		t->notify(t->notify_ctx);
}

void es_targets_on_proposal(struct es_targets *targets, void (*notify)(void *ctx), void *ctx)
{
	targets->notify = notify;
	targets->notify_ctx = ctx;
}

static int es_entry_read(const struct es_entry *e, struct es_target_set *ret_set)
{
	if (!e || es_node_set_is_empty(e->view))
		return 0;
	*ret_set = (struct es_target_set){
		.nodes = e->view,
		.former = e->former,
		.former_ns = e->former_ns,
		.changed_ns = e->changed_ns,
		.hits = e->hits,
	};
	return 1;
}

int es_targets_get(struct es_targets *targets, __u64 target, struct es_target_set *ret_set)
{
	struct es_target_change keep = {.target = target, .op = ES_TARGET_KEEP};
	struct es_shard *shard = es_shard_lock(targets, target);
	struct es_entry *e = *es_entry_slot(targets, shard, target);
	enum es_queued queued = ES_QUEUED;
	int found;

	if (e) {
		e->hits++;
		if (e->order && !e->keep_sent && es_is_old(targets, e)) {
			queued = es_queue_put(targets, &keep);
			e->keep_sent = queued != ES_QUEUE_FULL; /* else the next look-up tries again */
		}
	}
	found = es_entry_read(e, ret_set);
	es_shard_unlock(shard);
	es_queue_notify(targets, queued);
	return found;
}

int es_targets_peek(struct es_targets *targets, __u64 target, struct es_target_set *ret_set)
{
	struct es_shard *shard = es_shard_lock(targets, target);
	int found = es_entry_read(*es_entry_slot(targets, shard, target), ret_set);

	es_shard_unlock(shard);
	return found;
}

void es_targets_propose(struct es_targets *targets, __u64 target, enum es_target_op op, unsigned int node,
			unsigned int from, unsigned long long now_ns)
{
	struct es_target_change change = {
		.target = target, .op = (__u8)op, .node = (__u8)node, .from = (__u8)from};
	struct es_shard *shard = es_shard_lock(targets, target);
	struct es_entry *e = es_entry_get(targets, shard, target);
	enum es_queued queued = ES_QUEUED;

	if (e) {
		struct es_node_set next = e->view;

		/* Under the lock, so that the bus has the proposals for a target in the order of their
		 * effects. */
		if (es_set_apply(&next, op, node, from)) {
			queued = es_queue_put(targets, &change);
			if (queued != ES_QUEUE_FULL) {
				es_entry_view(e, next, now_ns);
				e->changed_ns = now_ns;
				e->pending++;
			}
		}
		es_entry_settle(targets, shard, e);
	}
	es_shard_unlock(shard);
	es_queue_notify(targets, queued);
}

/* --- the bus */

size_t es_targets_take(struct es_targets *targets, struct es_target_change *ret_changes, size_t max)
{
	size_t count = 0;

	pthread_mutex_lock(&targets->queue_lock);
	while (count < max && targets->head < targets->tail)
		ret_changes[count++] = targets->queue[targets->head++ % ES_QUEUE_SIZE];
	pthread_mutex_unlock(&targets->queue_lock);
	return count;
}

/* Each agreed set is in the digest: add it, or take it out (@sign -1) before it changes. */
void es_digest_add(struct es_targets *t, const struct es_entry *e, int sign)
{
	__u64 z = e->target;

	if (!e->order)
		return;
	for (unsigned int i = 0; i < ES_NODES_MAX / 64; i++) {
		z = (z ^ e->agreed.bits[i]) * 0x9e3779b97f4a7c15ULL;
		z ^= z >> 29;
	}
	t->digest += sign > 0 ? z : -z;
}

/* It is no agreed target any more. Its shard is locked. */
static void es_entry_drop(struct es_targets *t, const struct es_shard *shard, struct es_entry *e)
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

void es_evict(struct es_targets *t)
{
	struct es_shard *shard = es_shard_lock(t, t->oldest->target);

	es_entry_drop(t, shard, t->oldest);
	es_shard_unlock(shard);
	t->count.evicted++;
}

/* Put it behind all others. */
void es_entry_enter(struct es_targets *t, struct es_entry *e)
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

static void es_count_change(struct es_targets *t, enum es_target_op op)
{
	__u64 *const counts[ES_TARGET_OP_COUNT] = {
		[ES_TARGET_ASSIGN] = &t->count.assigned, [ES_TARGET_ADD] = &t->count.added,
		[ES_TARGET_REMOVE] = &t->count.removed,	 [ES_TARGET_MOVE] = &t->count.moved,
		[ES_TARGET_KEEP] = &t->count.kept,	 [ES_TARGET_DROP] = &t->count.removed,
	};

	if (counts[op])
		++*counts[op];
}

static void es_deliver(struct es_targets *t, const struct es_target_change *c, int is_own,
		       unsigned long long now_ns)
{
	struct es_shard *shard = es_shard_lock(t, c->target);
	struct es_entry *e = c->op == ES_TARGET_ASSIGN ? es_entry_get(t, shard, c->target)
						       : *es_entry_slot(t, shard, c->target);
	int changed = 0;

	if (!e)
		goto out;
	es_digest_add(t, e, -1);
	if (c->op == ES_TARGET_TELL) {
		changed = 0;
	} else if (c->op == ES_TARGET_KEEP) {
		e->keep_sent = 0;
		changed = e->order && es_is_old(t, e);
	} else {
		changed = es_set_apply(&e->agreed, (enum es_target_op)c->op, c->node, c->from);
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
		es_count_change(t, (enum es_target_op)c->op);
		if (c->op == ES_TARGET_ASSIGN || c->op == ES_TARGET_KEEP)
			es_entry_enter(t, e);
	}
	es_digest_add(t, e, 1);
	es_entry_settle(t, shard, e);
out:
	es_shard_unlock(shard);
}

void es_targets_deliver(struct es_targets *targets, const struct es_target_change *changes, size_t count,
			int is_own, unsigned long long now_ns)
{
	for (size_t i = 0; i < count; i++) {
		const struct es_target_change *c = &changes[i];

		/* From the network: what another version may say. */
		if (!c->op || c->op >= ES_TARGET_OP_COUNT || c->node >= ES_NODES_MAX)
			continue;
		if (c->op == ES_TARGET_DROP)
			es_targets_drop_node(targets, c->node, now_ns);
		else
			es_deliver(targets, c, is_own, now_ns);
		while (targets->entries > targets->max_entries)
			es_evict(targets);
	}
}

void es_targets_drop_node(struct es_targets *targets, unsigned int node, unsigned long long now_ns)
{
	struct es_entry *e, *newer;

	for (e = targets->oldest; e; e = newer) {
		struct es_shard *shard = es_shard_lock(targets, e->target);

		newer = e->newer;
		if (es_node_set_has(e->agreed, node)) {
			es_digest_add(targets, e, -1);
			es_node_set_remove(&e->agreed, node);
			es_node_set_remove(&e->view, node);
			es_node_set_remove(&e->former, node);
			e->changed_ns = now_ns;
			es_digest_add(targets, e, 1);
			if (es_node_set_is_empty(e->agreed))
				es_entry_drop(targets, shard, e);
		}
		es_shard_unlock(shard);
	}
}
