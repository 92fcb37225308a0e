/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_TABLE_H
#define ES_MODULE_TABLE_H

/*
 * Memory that kernel and daemon share (es_state, the decision table). Counted: the node holds it, and each
 * open file that maps it. Mappings hold its pages themselves, so they may outlive both.
 */
#include <linux/kref.h>

#include "memory.h"

struct es_table {
	struct kref ref;
	size_t bytes;
	struct es_memory memory;
};

/* es_table_new() - Returns 0 or -ENOMEM. The caller holds one reference. */
int es_table_new(size_t bytes, struct es_table **ret_table);

void es_table_get(struct es_table *table);

/* es_table_put() - takes NULL */
void es_table_put(struct es_table *table);

/* es_table_mmap() - into @vma, from offset 0. Returns 0, -EINVAL. */
int es_table_mmap(struct es_table *table, struct vm_area_struct *vma);

#endif
