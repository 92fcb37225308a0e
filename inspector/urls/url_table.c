// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Puts the three sources of the URL table together and keeps them safe for the threads that use them. The
 * observed sizes are here: hash tables with a list in the order of use. The trees are url_tree.c's.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "inspector/urls/url_table.h"
#include "kmod/core/siphash.h"

#define ES_READERS     16u
#define ES_SHARDS      16u
#define ES_TRIM_AT_ONE 64u /* entries, while a shard's lock is held */
#define ES_NO_ENTRY    0xffffffffu

struct es_reader {
	pthread_mutex_t lock;
	const struct es_url_tree *scan;
} __attribute__((aligned(64)));

struct es_observed {
	__u64 key; /* of the path; two paths with the same are one */
	__u64 size_bytes;
	__u32 next;
	__u32 newer;
	__u32 older;
};

struct es_shard {
	pthread_mutex_t lock;
	struct es_observed *entry;
	__u32 *bucket;
	__u32 buckets;
	__u32 high;
	__u32 free;
	__u32 count;
	__u32 max;    /* now */
	__u32 newest; /* the list's ends */
	__u32 oldest;
	unsigned long long evicted;
} __attribute__((aligned(64)));

struct es_url_table {
	size_t max_entries;
	struct es_sipkey key;
	struct es_url_tree *scan; /* the writer's; readers have their own pointers to it */
	_Atomic size_t scanned;
	_Atomic int has_scan;
	struct es_reader reader[ES_READERS];
	struct es_shard shard[ES_SHARDS];
};

static struct es_reader *es_reader_of(struct es_url_table *table)
{
	static _Atomic unsigned int threads;
	static _Thread_local unsigned int number; /* from 1 */

	if (!number)
		number = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
	return &table->reader[number % ES_READERS];
}

/* Request paths are anybody's: who could predict the hash could fill one chain with them. */
__u64 es_url_key(const struct es_url_table *table, const struct es_url_path *path)
{
	struct es_sipstate state;
	__u64 word = 0, key;
	size_t at = 0;

	es_siphash_init(&state, &table->key);
	for (; at + sizeof(word) <= path->len; at += sizeof(word)) {
		memcpy(&word, path->text + at, sizeof(word));
		es_siphash_word(&state, le64toh(word));
	}
	word = 0;
	memcpy(&word, path->text + at, path->len - at);
	key = es_siphash_final(&state, le64toh(word), (__u32)path->len);
	return key ? key : 1;
}

static int es_shard_init(struct es_shard *shard, size_t max)
{
	pthread_mutex_init(&shard->lock, NULL);
	shard->max = (__u32)max;
	shard->buckets = 64;
	while (shard->buckets < max)
		shard->buckets *= 2;
	shard->free = shard->newest = shard->oldest = ES_NO_ENTRY;
	/* All of it at once, so that nobody allocates under a lock; pages come as they are used. */
	shard->entry = calloc(max, sizeof(*shard->entry));
	shard->bucket = calloc(shard->buckets, sizeof(*shard->bucket)); /* index + 1, so 0 is none */
	return shard->entry && shard->bucket ? 0 : -ENOMEM;
}

int es_url_table_new(size_t max_entries, struct es_url_table **ret_table)
{
	struct es_url_table *table;
	int rc = 0;

	if (max_entries < ES_SHARDS)
		max_entries = ES_SHARDS;
	if (max_entries > ES_URL_ENTRIES_MAX)
		max_entries = ES_URL_ENTRIES_MAX;
	table = aligned_alloc(64, sizeof(*table));
	if (!table)
		return -ENOMEM;
	memset(table, 0, sizeof(*table));
	table->max_entries = max_entries;
	for (unsigned int i = 0; i < ES_READERS; i++)
		pthread_mutex_init(&table->reader[i].lock, NULL);
	for (unsigned int i = 0; i < ES_SHARDS; i++)
		if (es_shard_init(&table->shard[i], max_entries / ES_SHARDS))
			rc = -ENOMEM;
	if (!rc && getrandom(&table->key, sizeof(table->key), 0) != (ssize_t)sizeof(table->key))
		rc = -errno;
	if (rc) {
		es_url_table_free(&table);
		return rc;
	}
	*ret_table = table;
	return 0;
}

void es_url_table_set_key(struct es_url_table *table, const struct es_sipkey *key)
{
	table->key = *key;
}

void es_url_table_free(struct es_url_table **table)
{
	if (!*table)
		return;
	es_url_tree_free(&(*table)->scan);
	for (unsigned int i = 0; i < ES_READERS; i++)
		pthread_mutex_destroy(&(*table)->reader[i].lock);
	for (unsigned int i = 0; i < ES_SHARDS; i++) {
		pthread_mutex_destroy(&(*table)->shard[i].lock);
		free((*table)->shard[i].entry);
		free((*table)->shard[i].bucket);
	}
	free(*table);
	*table = NULL;
}

static void es_list_remove(struct es_shard *shard, __u32 i)
{
	struct es_observed *entry = &shard->entry[i];

	if (entry->newer == ES_NO_ENTRY)
		shard->newest = entry->older;
	else
		shard->entry[entry->newer].older = entry->older;
	if (entry->older == ES_NO_ENTRY)
		shard->oldest = entry->newer;
	else
		shard->entry[entry->older].newer = entry->newer;
}

static void es_list_add(struct es_shard *shard, __u32 i)
{
	struct es_observed *entry = &shard->entry[i];

	entry->newer = ES_NO_ENTRY;
	entry->older = shard->newest;
	if (shard->newest == ES_NO_ENTRY)
		shard->oldest = i;
	else
		shard->entry[shard->newest].newer = i;
	shard->newest = i;
}

static __u32 *es_shard_bucket(struct es_shard *shard, __u64 key)
{
	return &shard->bucket[(key >> 8) & (shard->buckets - 1)];
}

/* The entry of @key, or NULL; with @touch it is used just now. */
static struct es_observed *es_shard_find(struct es_shard *shard, __u64 key, int touch)
{
	for (__u32 i = *es_shard_bucket(shard, key); i; i = shard->entry[i - 1].next) {
		if (shard->entry[i - 1].key != key)
			continue;
		if (touch) {
			es_list_remove(shard, i - 1);
			es_list_add(shard, i - 1);
		}
		return &shard->entry[i - 1];
	}
	return NULL;
}

static void es_shard_evict(struct es_shard *shard)
{
	__u32 i = shard->oldest;
	__u32 *link = es_shard_bucket(shard, shard->entry[i].key);

	while (*link != i + 1)
		link = &shard->entry[*link - 1].next;
	*link = shard->entry[i].next;
	es_list_remove(shard, i);
	shard->entry[i].next = shard->free;
	shard->free = i;
	shard->count--;
	shard->evicted++;
}

static int es_shard_put(struct es_shard *shard, __u64 key, __u64 bytes)
{
	struct es_observed *entry = es_shard_find(shard, key, 1);
	__u32 *bucket = es_shard_bucket(shard, key);
	__u32 i;

	if (entry) {
		entry->size_bytes = entry->size_bytes - entry->size_bytes / 8 + bytes / 8;
		return 0;
	}
	if (!shard->max)
		return -ENOSPC;
	while (shard->count >= shard->max)
		es_shard_evict(shard);
	i = shard->free;
	if (i == ES_NO_ENTRY)
		i = shard->high++;
	else
		shard->free = shard->entry[i].next;
	shard->entry[i] = (struct es_observed){.key = key, .size_bytes = bytes, .next = *bucket};
	*bucket = i + 1;
	es_list_add(shard, i);
	shard->count++;
	return 0;
}

/* The room that the scan leaves, with pauses for those who wait for the lock. */
static void es_shard_bound(struct es_shard *shard, __u32 max)
{
	int is_done = 0;

	while (!is_done) {
		pthread_mutex_lock(&shard->lock);
		shard->max = max;
		for (unsigned int i = 0; i < ES_TRIM_AT_ONE && shard->count > max; i++)
			es_shard_evict(shard);
		is_done = shard->count <= max;
		pthread_mutex_unlock(&shard->lock);
	}
}

void es_url_table_set_scan(struct es_url_table *table, struct es_url_tree *scan)
{
	struct es_url_tree *old = table->scan;
	size_t count = scan ? es_url_tree_count(scan) : 0;
	size_t room = count < table->max_entries ? table->max_entries - count : 0;

	for (unsigned int i = 0; i < ES_SHARDS; i++)
		es_shard_bound(&table->shard[i], (__u32)(room / ES_SHARDS));
	for (unsigned int i = 0; i < ES_READERS; i++) {
		pthread_mutex_lock(&table->reader[i].lock);
		table->reader[i].scan = scan;
		pthread_mutex_unlock(&table->reader[i].lock);
	}
	table->scan = scan;
	atomic_store_explicit(&table->scanned, count, memory_order_relaxed);
	atomic_store_explicit(&table->has_scan, !!scan, memory_order_relaxed);
	es_url_tree_free(&old);
}

/* Returns 1 if the scan has the path; @ret_has_scan: there is one to be asked. */
static int es_scan_lookup(struct es_url_table *table, const struct es_url_path *path,
			  struct es_url_info *ret_info, int *ret_has_scan)
{
	struct es_reader *reader = es_reader_of(table);
	int is_known = 0;

	memset(ret_info, 0, sizeof(*ret_info));
	pthread_mutex_lock(&reader->lock);
	*ret_has_scan = !!reader->scan;
	if (reader->scan)
		is_known = es_url_tree_lookup(reader->scan, path->text, path->len, ret_info);
	pthread_mutex_unlock(&reader->lock);
	return is_known;
}

static struct es_shard *es_shard_of(struct es_url_table *table, __u64 key)
{
	return &table->shard[key % ES_SHARDS];
}

static int es_observed_lookup(struct es_url_table *table, const struct es_url_path *path, int touch,
			      __u64 *ret_bytes)
{
	__u64 key = es_url_key(table, path);
	struct es_shard *shard = es_shard_of(table, key);
	struct es_observed *entry;

	pthread_mutex_lock(&shard->lock);
	entry = es_shard_find(shard, key, touch);
	if (entry)
		*ret_bytes = entry->size_bytes;
	pthread_mutex_unlock(&shard->lock);
	return !!entry;
}

static void es_url_find(struct es_url_table *table, const struct es_url_tree *config,
			const struct es_url_path *path, int touch, struct es_url_entry *ret_entry)
{
	struct es_url_info *info = &ret_entry->info, scan, observed = {.has = ES_URL_SIZE};
	int has_scan;

	memset(ret_entry, 0, sizeof(*ret_entry));
	if (config)
		es_url_tree_lookup(config, path->text, path->len, info);
	if (info->has & ES_URL_SIZE)
		ret_entry->size_from = ES_URL_FROM_CONFIG;
	if (!table)
		return;
	es_scan_lookup(table, path, &scan, &has_scan);
	if (scan.has & ~info->has & ES_URL_SIZE)
		ret_entry->size_from = ES_URL_FROM_SCAN;
	es_url_info_put(info, &scan, ~info->has);
	if (info->has & ES_URL_SIZE || !es_observed_lookup(table, path, touch, &observed.size_bytes))
		return;
	ret_entry->size_from = ES_URL_FROM_RESPONSES;
	/* Content that is answered and is not a file is made by a program. */
	if (has_scan) {
		observed.has |= ES_URL_KIND;
		observed.is_dynamic = 1;
	}
	es_url_info_put(info, &observed, ~info->has);
}

void es_url_lookup(struct es_url_table *table, const struct es_url_tree *config,
		   const struct es_url_path *path, struct es_url_entry *ret_entry)
{
	es_url_find(table, config, path, 1, ret_entry);
}

void es_url_peek(struct es_url_table *table, const struct es_url_tree *config, const struct es_url_path *path,
		 struct es_url_entry *ret_entry)
{
	es_url_find(table, config, path, 0, ret_entry);
}

int es_url_observe_key(struct es_url_table *table, __u64 key, __u64 bytes)
{
	struct es_shard *shard = es_shard_of(table, key);
	int rc;

	pthread_mutex_lock(&shard->lock);
	rc = es_shard_put(shard, key, bytes);
	pthread_mutex_unlock(&shard->lock);
	return rc;
}

void es_url_table_stats(struct es_url_table *table, struct es_url_stats *ret_stats)
{
	*ret_stats = (struct es_url_stats){
		.max_entries = table->max_entries,
		.scanned = atomic_load_explicit(&table->scanned, memory_order_relaxed),
		.has_scan = atomic_load_explicit(&table->has_scan, memory_order_relaxed),
	};
	for (unsigned int i = 0; i < ES_SHARDS; i++) {
		struct es_shard *shard = &table->shard[i];

		pthread_mutex_lock(&shard->lock);
		ret_stats->observed += shard->count;
		ret_stats->evicted += shard->evicted;
		pthread_mutex_unlock(&shard->lock);
	}
}
