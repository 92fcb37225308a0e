// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that the daemon maps.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "memory.h"

/*
 * Ordinary allocations of single pages never fail: the kernel kills processes until it has one. With the
 * second flag the kernel gives up instead, but only after it has handed out all memory there was, and then
 * the next allocation of anybody else would kill. So first check whether there is enough at all.
 */
#define ES_MEMORY_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN | __GFP_ZERO)

void *es_memory_zalloc(size_t bytes)
{
	return kvzalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);
}

int es_memory_is_there(size_t bytes)
{
	return si_mem_available() > (long)(bytes >> PAGE_SHIFT);
}

int es_memory_new(unsigned int once, unsigned int twice, struct es_memory *ret_memory)
{
	unsigned int listed = once + 2 * twice;
	struct es_memory m = {};

	if (!es_memory_is_there((size_t)(once + twice) << PAGE_SHIFT))
		return -ENOMEM;
	m.pages = kvcalloc(listed, sizeof(*m.pages), GFP_KERNEL_ACCOUNT);
	if (!m.pages)
		return -ENOMEM;
	for (; m.count < once + twice; m.count++) {
		m.pages[m.count] = alloc_page(ES_MEMORY_GFP);
		if (!m.pages[m.count])
			goto err_pages;
		if (m.count >= once)
			m.pages[m.count + twice] = m.pages[m.count];
		cond_resched();
	}
	m.at = vmap(m.pages, listed, VM_MAP | VM_USERMAP, PAGE_KERNEL);
	if (!m.at)
		goto err_pages;
	*ret_memory = m;
	return 0;

err_pages:
	es_memory_free(&m);
	return -ENOMEM;
}

void es_memory_free(struct es_memory *memory)
{
	vunmap(memory->at);
	while (memory->count)
		__free_page(memory->pages[--memory->count]);
	kvfree(memory->pages);
}
