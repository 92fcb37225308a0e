// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Without a bus, nodes tell each other where content has its home: the newest word counts, and ties go by
 * node.
 */
#include "inspector/policy/contents_table.h"

#define ES_TELL_AGAIN_NS 1000000000ULL

int es_contents_stamp(struct es_contents *contents, __u64 content, unsigned int by, __u64 wall_ns,
		      struct es_content_word *ret_word)
{
	struct es_shard *shard = es_shard_lock(contents, content);
	struct es_entry *e = *es_entry_slot(contents, shard, content);
	int found = e && e->order;

	if (found) {
		e->stamp = wall_ns > e->stamp ? wall_ns : e->stamp + 1;
		e->by = (unsigned char)by;
		*ret_word = (struct es_content_word){
			.content = content, .stamp = e->stamp, .nodes = e->agreed, .by = by};
	}
	es_shard_unlock(shard);
	return found;
}

int es_contents_word(struct es_contents *contents, __u64 content, struct es_content_word *ret_word)
{
	struct es_shard *shard = es_shard_lock(contents, content);
	const struct es_entry *e = *es_entry_slot(contents, shard, content);
	int found = e && e->order && e->stamp;

	if (found)
		*ret_word = (struct es_content_word){
			.content = content, .stamp = e->stamp, .nodes = e->agreed, .by = e->by};
	es_shard_unlock(shard);
	return found;
}

int es_contents_hear(struct es_contents *contents, const struct es_content_word *word,
		     unsigned long long now_ns)
{
	struct es_shard *shard;
	struct es_entry *e;
	int counts = 0;

	if (!word->content || es_node_set_is_empty(word->nodes))
		return 0;
	shard = es_shard_lock(contents, word->content);
	e = es_entry_get(contents, shard, word->content);
	counts = e && (word->stamp > e->stamp || (word->stamp == e->stamp && word->by > e->by));
	if (counts) {
		e->stamp = word->stamp;
		e->by = (unsigned char)word->by;
		es_digest_add(contents, e, -1);
		if (!es_node_set_equal(e->agreed, word->nodes)) {
			e->agreed = word->nodes;
			e->changed_ns = now_ns;
			contents->count.told++;
		}
		if (!e->pending)
			es_entry_view(e, e->agreed, now_ns);
		if (!e->order)
			es_entry_enter(contents, e);
		es_digest_add(contents, e, 1);
	}
	if (e)
		es_entry_settle(contents, shard, e);
	es_shard_unlock(shard);
	while (contents->entries > contents->max_entries)
		es_evict(contents);
	return counts;
}

void es_contents_tell(struct es_contents *contents, __u64 content, unsigned long long now_ns)
{
	const struct es_content_change tell = {.content = content, .op = ES_CONTENT_TELL};
	struct es_shard *shard = es_shard_lock(contents, content);
	struct es_entry *e = *es_entry_slot(contents, shard, content);
	enum es_queued queued = ES_QUEUED;

	if (e && e->order && e->stamp && (!e->told_ns || now_ns - e->told_ns >= ES_TELL_AGAIN_NS)) {
		e->told_ns = now_ns;
		queued = es_queue_put(contents, &tell);
	}
	es_shard_unlock(shard);
	es_queue_notify(contents, queued);
}
