// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A list through an array, so that nothing is allocated while a simulation runs.
 */
#include <errno.h>
#include <stdlib.h>
#include "sim/lru.h"

int es_lru_init(struct es_lru *lru, __u32 file_count, __u64 max_bytes)
{
	*lru = (struct es_lru){.file_count = file_count, .max_bytes = max_bytes};
	lru->file = calloc((size_t)file_count + 1, sizeof(*lru->file));
	if (!lru->file)
		return -ENOMEM;
	lru->file[file_count].newer = file_count;
	lru->file[file_count].older = file_count;
	return 0;
}

void es_lru_fini(struct es_lru *lru)
{
	free(lru->file);
	*lru = (struct es_lru){};
}

static void es_lru_unlink(struct es_lru *lru, __u32 file)
{
	struct es_lru_file *f = &lru->file[file];

	lru->file[f->newer].older = f->older;
	lru->file[f->older].newer = f->newer;
}

/* The end's older neighbour is the newest file, its newer one the oldest. */
static void es_lru_link(struct es_lru *lru, __u32 file)
{
	__u32 end = lru->file_count;
	__u32 newest = lru->file[end].older;

	lru->file[file].newer = end;
	lru->file[file].older = newest;
	lru->file[newest].newer = file;
	lru->file[end].older = file;
}

int es_lru_use(struct es_lru *lru, __u32 file)
{
	if (!lru->file[file].is_in)
		return 0;
	es_lru_unlink(lru, file);
	es_lru_link(lru, file);
	return 1;
}

void es_lru_put(struct es_lru *lru, __u32 file, const __u64 *size)
{
	if (lru->file[file].is_in || size[file] > lru->max_bytes)
		return;
	while (lru->bytes + size[file] > lru->max_bytes) {
		__u32 oldest = lru->file[lru->file_count].newer;

		es_lru_unlink(lru, oldest);
		lru->file[oldest].is_in = 0;
		lru->bytes -= size[oldest];
		lru->entries--;
		lru->evicted++;
	}
	es_lru_link(lru, file);
	lru->file[file].is_in = 1;
	lru->bytes += size[file];
	lru->entries++;
}
