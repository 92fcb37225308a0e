// SPDX-License-Identifier: GPL-2.0-or-later
/* Without a bus, nodes tell each other the homes of contents: the newest word counts, and ties go by node. */
#include "inspector/policy/targets_table.h"

#define ES_TELL_AGAIN_NS 1000000000ULL

int es_targets_stamp(struct es_targets *targets, __u64 target, unsigned int by, __u64 wall_ns,
		     struct es_target_word *ret_word)
{
	struct es_shard *shard = es_shard_lock(targets, target);
	struct es_entry *e = *es_entry_slot(targets, shard, target);
	int found = e && e->order;

	if (found) {
		e->stamp = wall_ns > e->stamp ? wall_ns : e->stamp + 1;
		e->by = (unsigned char)by;
		*ret_word = (struct es_target_word){
			.target = target, .stamp = e->stamp, .nodes = e->agreed, .by = by};
	}
	es_shard_unlock(shard);
	return found;
}

int es_targets_word(struct es_targets *targets, __u64 target, struct es_target_word *ret_word)
{
	struct es_shard *shard = es_shard_lock(targets, target);
	const struct es_entry *e = *es_entry_slot(targets, shard, target);
	int found = e && e->order && e->stamp;

	if (found)
		*ret_word = (struct es_target_word){
			.target = target, .stamp = e->stamp, .nodes = e->agreed, .by = e->by};
	es_shard_unlock(shard);
	return found;
}

int es_targets_hear(struct es_targets *targets, const struct es_target_word *word, unsigned long long now_ns)
{
	struct es_shard *shard;
	struct es_entry *e;
	int counts = 0;

	if (!word->target || es_node_set_is_empty(word->nodes))
		return 0;
	shard = es_shard_lock(targets, word->target);
	e = es_entry_get(targets, shard, word->target);
	counts = e && (word->stamp > e->stamp || (word->stamp == e->stamp && word->by > e->by));
	if (counts) {
		e->stamp = word->stamp;
		e->by = (unsigned char)word->by;
		es_digest_add(targets, e, -1);
		if (!es_node_set_equal(e->agreed, word->nodes)) {
			e->agreed = word->nodes;
			e->changed_ns = now_ns;
			targets->count.told++;
		}
		if (!e->pending)
			es_entry_view(e, e->agreed, now_ns);
		if (!e->order)
			es_entry_enter(targets, e);
		es_digest_add(targets, e, 1);
	}
	if (e)
		es_entry_settle(targets, shard, e);
	es_shard_unlock(shard);
	while (targets->entries > targets->max_entries)
		es_evict(targets);
	return counts;
}

void es_targets_tell(struct es_targets *targets, __u64 target, unsigned long long now_ns)
{
	const struct es_target_change tell = {.target = target, .op = ES_TARGET_TELL};
	struct es_shard *shard = es_shard_lock(targets, target);
	struct es_entry *e = *es_entry_slot(targets, shard, target);
	enum es_queued queued = ES_QUEUED;

	if (e && e->order && e->stamp && (!e->told_ns || now_ns - e->told_ns >= ES_TELL_AGAIN_NS)) {
		e->told_ns = now_ns;
		queued = es_queue_put(targets, &tell);
	}
	es_shard_unlock(shard);
	es_queue_notify(targets, queued);
}
