// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared memory of a fixed size.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "table.h"

int es_table_new(size_t bytes, struct es_table **ret_table)
{
	struct es_table *table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);
	int rc;

	if (!table)
		return -ENOMEM;
	table->bytes = PAGE_ALIGN(bytes);
	rc = es_memory_new((unsigned int)(table->bytes >> PAGE_SHIFT), 0, &table->memory);
	if (rc) {
		kfree(table);
		return rc;
	}
	kref_init(&table->ref);
	*ret_table = table;
	return 0;
}

static void es_table_free(struct kref *ref)
{
	struct es_table *table = container_of(ref, struct es_table, ref);

	es_memory_free(&table->memory);
	kfree(table);
}

void es_table_get(struct es_table *table)
{
	kref_get(&table->ref);
}

void es_table_put(struct es_table *table)
{
	if (table)
		kref_put(&table->ref, es_table_free);
}

int es_table_mmap(struct es_table *table, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start > table->bytes)
		return -EINVAL;
	return remap_vmalloc_range(vma, table->memory.at, 0);
}
