/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_LRU_H
#define ES_SIM_LRU_H

/*
 * A page cache: whole files, bounded by their bytes; the one that was used longest ago goes first. A file
 * that is larger than the cache is never in it.
 */
#include <linux/types.h>

struct es_lru_file {
	__u32 newer;
	__u32 older;
	__u8 is_in;
};

/* struct es_lru - @file: by number; the last one is the list's end on both sides */
struct es_lru {
	struct es_lru_file *file;
	__u32 file_count;
	__u32 entries;
	__u64 bytes;
	__u64 max_bytes;
	__u64 evicted;
};

/* es_lru_init() - for files 0..@file_count - 1; returns 0 or -ENOMEM */
int es_lru_init(struct es_lru *lru, __u32 file_count, __u64 max_bytes);
void es_lru_fini(struct es_lru *lru);

/* es_lru_use() - is it there? Then it is the newest now. */
int es_lru_use(struct es_lru *lru, __u32 file);

/* es_lru_put() - it was read; @size is that of each file. Does nothing if it is there or too large. */
void es_lru_put(struct es_lru *lru, __u32 file, const __u64 *size);

#endif
