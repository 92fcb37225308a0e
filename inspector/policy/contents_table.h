/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONTENTS_TABLE_H
#define ES_CONTENTS_TABLE_H

/*
 * The table behind contents.h (contents_table.c), for the files that stand on it: contents.c (sets, proposals
 * and what the bus delivers), contents_words.c (homes that nodes tell each other without a bus) and
 * contents_snapshot.c (the table as a whole). Each entry has two sets: the agreed one, which only changes as
 * the bus says, and the one that policies see, which is ahead of it by this node's own proposals under way.
 * When the last of those has come back, both are the same again, whatever others did in between.
 *
 * Look-ups and proposals lock one of the shards for some tens of instructions. The order of the entries
 * belongs to the thread that delivers.
 */
#include <pthread.h>
#include "inspector/policy/contents.h"

#define ES_SHARDS      64
#define ES_ENTRIES_MIN 16
#define ES_QUEUE_SIZE  16384

/**
 * struct es_entry
 * @view: what policies see; @former: those that have left it, since @former_ns at the latest
 * @pending: own proposals under way
 * @order: position in the table's clock when it was put in; 0: not agreed (any more), and not in the list
 * @keep_sent: it was proposed to be put in again
 * @stamp, @by: of the last word, struct es_content_word; @told_ns: when others were to be told last
 */
struct es_entry {
	struct es_entry *next;
	struct es_entry *older, *newer;
	__u64 content;
	struct es_node_set agreed;
	struct es_node_set view;
	struct es_node_set former;
	unsigned long long former_ns;
	unsigned long long changed_ns;
	__u64 hits;
	__u64 order;
	unsigned int pending;
	unsigned char keep_sent;
	unsigned char by;
	__u64 stamp;
	unsigned long long told_ns;
};

struct es_shard {
	pthread_mutex_t lock;
	struct es_entry **bucket;
};

/**
 * struct es_contents
 * @clock: entries put in so far, over time; @digest: of the agreed sets, each mixed and all added up
 * @queue: ring of proposals; @head counts those taken, @tail those put in
 */
struct es_contents {
	size_t max_entries;
	size_t bucket_mask;
	struct es_shard shard[ES_SHARDS];
	struct es_entry *oldest, *newest;
	__u64 entries;
	__u64 clock;
	__u64 digest;
	struct es_contents_counts count;
	pthread_mutex_t queue_lock;
	struct es_content_change *queue;
	__u64 head, tail;
	void (*notify)(void *ctx);
	void *notify_ctx;
};

/* The result of es_queue_put() for a proposal. */
enum es_queued { ES_QUEUED, ES_QUEUED_FIRST, ES_QUEUE_FULL };

/* es_shard_lock() - the shard of @content; to be unlocked */
struct es_shard *es_shard_lock(struct es_contents *t, __u64 content);
void es_shard_unlock(struct es_shard *shard);

/*
 * The functions below take a shard that is locked.
 * es_entry_slot() - where the entry of @content is, or would be
 */
struct es_entry **es_entry_slot(const struct es_contents *t, const struct es_shard *shard, __u64 content);
/* es_entry_get() - the entry of @content, made if there is none; NULL without memory */
struct es_entry *es_entry_get(const struct es_contents *t, const struct es_shard *shard, __u64 content);
/* es_entry_settle() - frees an entry that is neither agreed nor proposed */
void es_entry_settle(const struct es_contents *t, const struct es_shard *shard, struct es_entry *e);
/*
 * es_entry_view() - what policies see becomes @next; a node that leaves does not forget the content at once
 */
void es_entry_view(struct es_entry *e, struct es_node_set next, unsigned long long now_ns);
/* es_entry_enter() - puts it behind all others */
void es_entry_enter(struct es_contents *t, struct es_entry *e);
/* es_entry_drop() - it is no agreed content any more */
void es_entry_drop(struct es_contents *t, const struct es_shard *shard, struct es_entry *e);
/*
 * es_digest_add() - each agreed set is in the digest: adds it, or takes it out (@sign -1) before it changes
 */
void es_digest_add(struct es_contents *t, const struct es_entry *e, int sign);

/* es_queue_put() - no lock but the queue's own is needed */
enum es_queued es_queue_put(struct es_contents *t, const struct es_content_change *change);

/* Without any lock, since it may be a system call; es_evict() may lock any shard. */
void es_queue_notify(const struct es_contents *t, enum es_queued queued);
void es_evict(struct es_contents *t);

#endif
