/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_MEMORY_H
#define ES_MODULE_MEMORY_H

/*
 * Pages that kernel and daemon share. The daemon says how many, so a number that cannot be had is the
 * daemon's error and must cost nobody else anything: no process is killed to make room.
 */
#include <linux/mm_types.h>

/* es_memory_is_there() - is there enough memory? Ask before making several tables, so that none is made in
 * vain. */
int es_memory_is_there(size_t bytes);

/* es_memory_zalloc() - @bytes of the kernel's own, zeroed. Charged as those; sleeps. NULL; or kvfree() frees
 * it. */
void *es_memory_zalloc(size_t bytes);

/**
 * struct es_memory
 * @at: zeroed, page aligned; may be mapped with remap_vmalloc_range()
 */
struct es_memory {
	void *at;
	struct page **pages;
	unsigned int count;
};

/**
 * es_memory_new() - @once pages, and behind them @twice others, mapped twice in a row
 * Charged to the caller's memory cgroup. Sleeps. Returns 0, or -ENOMEM: @ret_memory is untouched.
 */
int es_memory_new(unsigned int once, unsigned int twice, struct es_memory *ret_memory);

/* es_memory_free() - mappings hold the pages themselves, and stay valid. */
void es_memory_free(struct es_memory *memory);

#endif
