/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_URL_TABLE_H
#define ES_URL_TABLE_H

/*
 * The URL table of a service: what is known of the content that a request asks for. Three sources, and for
 * each field the first of them that says something wins:
 *
 *   1. configuration (`location`): a tree that belongs to the configuration and comes with it;
 *   2. the scan of the document root: sizes of files, which are static;
 *   3. observed responses: a smoothed size, of what the scan does not know.
 *
 * Bounded: scan and observed entries together are at most @max_entries. Observed ones go first, the one that
 * was not used for longest before the others (exact within a shard); a file that the scan finds takes an
 * observed one's place, and when the scan alone has @max_entries, files beyond them are unknown.
 *
 * Threads. Workers look up for each request. The scan is a tree that nobody writes; a new one replaces it as
 * a whole. Each reader thread has a lock of its own, by its number, which is held for one look-up; who
 * replaces the tree takes each of them once, for one assignment, and may free the old tree after that. So a
 * reader waits for nobody but a writer between two instructions, and no reader ever waits for another. (An
 * RCU without registration of threads; reference counts would bounce a line between all workers.) Observed
 * sizes are in shards by path, each with a lock for a few list operations.
 */
#include "inspector/base/url_path.h"
#include "inspector/urls/url_tree.h"
#include "kmod/core/siphash.h"

struct es_url_table;

enum es_url_source {
	ES_URL_FROM_NOWHERE = 0,
	ES_URL_FROM_CONFIG,
	ES_URL_FROM_SCAN,
	ES_URL_FROM_RESPONSES,
};

/* struct es_url_entry - an answer; @size_from: who said the size */
struct es_url_entry {
	struct es_url_info info;
	enum es_url_source size_from;
};

struct es_url_stats {
	size_t max_entries;
	size_t scanned;
	size_t observed;
	unsigned long long evicted; /* observed ones that had to go */
	int has_scan;
};

/* es_url_table_new() - returns 0, -ENOMEM, or the error of getrandom() */
int es_url_table_new(size_t max_entries, struct es_url_table **ret_table);
void es_url_table_free(struct es_url_table **table);

/**
 * es_url_table_set_key() - what es_url_key() hashes with; before anything is observed
 * A secret of the cluster's, so that nodes can tell each other what they have observed. Without, it is
 * random.
 */
void es_url_table_set_key(struct es_url_table *table, const struct es_sipkey *key);

/**
 * es_url_table_set_scan() - @scan is what the document root has from now on; NULL: nothing is known
 * The table owns it, and nobody may write it any more. Any thread; one at a time.
 */
void es_url_table_set_scan(struct es_url_table *table, struct es_url_tree *scan);

/**
 * es_url_lookup() - what is known of a normalised path
 * @table, @config: either may be NULL. Allocates nothing.
 */
void es_url_lookup(struct es_url_table *table, const struct es_url_tree *config,
		   const struct es_url_path *path, struct es_url_entry *ret_entry);

/* es_url_peek() - the same, and leaves no trace: what is looked at is not used */
void es_url_peek(struct es_url_table *table, const struct es_url_tree *config, const struct es_url_path *path,
		 struct es_url_entry *ret_entry);

/* es_url_key() - what the table knows an observed path as; never 0 */
__u64 es_url_key(const struct es_url_table *table, const struct es_url_path *path);

/**
 * es_url_observe_key() - the response for the path that es_url_key() made @key of had so many bytes
 * A size is a moving average, 7/8 old and 1/8 new, as TCP smooths its round-trip time (RFC 6298).
 * Returns 0, or -ENOSPC if the scan needs all the room.
 */
int es_url_observe_key(struct es_url_table *table, __u64 key, __u64 bytes);

void es_url_table_stats(struct es_url_table *table, struct es_url_stats *ret_stats);

#endif
