// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ring buffers that the daemon maps. The protocol of a record's header (busy, discarded) is that of the
 * kernel's BPF ring buffer, see kernel/bpf/ringbuf.c.
 */
#include <linux/bpf.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "node.h"
#include "queue.h"

#define ES_RINGBUF_HEAD_PAGES 2 /* consumer, producer */

int es_ringbuf_new(unsigned int bytes, struct es_ringbuf **ret_ring)
{
	struct es_ringbuf *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);
	int rc;

	if (!ring)
		return -ENOMEM;
	/* The data twice, one after the other: no record is ever cut. */
	rc = es_memory_new(ES_RINGBUF_HEAD_PAGES, bytes >> PAGE_SHIFT, &ring->memory);
	if (rc) {
		kfree(ring);
		return rc;
	}
	kref_init(&ring->ref);
	spin_lock_init(&ring->lock);
	init_waitqueue_head(&ring->wait);
	ring->mask = bytes - 1;
	ring->consumer = ring->memory.at;
	ring->producer = ring->memory.at + PAGE_SIZE;
	ring->data = ring->memory.at + ES_RINGBUF_HEAD_PAGES * PAGE_SIZE;
	*ret_ring = ring;
	return 0;
}

static void es_ringbuf_free(struct kref *ref)
{
	struct es_ringbuf *ring = container_of(ref, struct es_ringbuf, ref);

	es_memory_free(&ring->memory);
	kfree(ring);
}

void es_ringbuf_get(struct es_ringbuf *ring)
{
	kref_get(&ring->ref);
}

void es_ringbuf_put(struct es_ringbuf *ring)
{
	if (ring)
		kref_put(&ring->ref, es_ringbuf_free);
}

void *es_ringbuf_reserve(struct es_ringbuf *ring, u32 len)
{
	unsigned long size = round_up(len + BPF_RINGBUF_HDR_SZ, 8);
	unsigned long consumed = smp_load_acquire(ring->consumer);
	u32 *head;

	spin_lock_bh(&ring->lock);
	if (size > ring->mask || ring->produced + size - consumed > ring->mask) {
		spin_unlock_bh(&ring->lock);
		return NULL;
	}
	head = (u32 *)(ring->data + (ring->produced & ring->mask));
	head[0] = len | BPF_RINGBUF_BUSY_BIT;
	head[1] = 0;
	ring->produced += size;
	/* The header first, then the position that makes the consumer look at it. */
	smp_store_release(ring->producer, ring->produced);
	spin_unlock_bh(&ring->lock);
	return head + BPF_RINGBUF_HDR_SZ / sizeof(*head);
}

void es_ringbuf_commit(void *record, int discard)
{
	u32 *head = (u32 *)record - BPF_RINGBUF_HDR_SZ / sizeof(*head);
	u32 len = *head & ~BPF_RINGBUF_BUSY_BIT;

	/* A full barrier, because the next step checks whether the consumer sleeps. */
	xchg(head, discard ? len | BPF_RINGBUF_DISCARD_BIT : len);
}

int es_ringbuf_mmap(struct es_ringbuf *ring, struct vm_area_struct *vma)
{
	/* The first page is the consumer's; it must not write to the others. */
	if (vma->vm_flags & VM_WRITE) {
		if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE)
			return -EPERM;
	} else {
		es_vma_forbid_write(vma);
	}
	return remap_vmalloc_range(vma, ring->memory.at, vma->vm_pgoff);
}

__poll_t es_ringbuf_poll(struct es_ringbuf *ring, struct file *file, struct poll_table_struct *poll)
{
	poll_wait(file, &ring->wait, poll);
	return smp_load_acquire(ring->consumer) != smp_load_acquire(ring->producer) ? EPOLLIN | EPOLLRDNORM
										    : 0;
}

int es_queue_push(const struct es_node *node, u32 workers, struct sk_buff *skb, struct es_record *record)
{
	u32 worker = es_worker_of(record->flow_hash, workers) & (ES_WORKERS_MAX - 1);
	struct es_ringbuf *ring = rcu_dereference(node->queue[worker]);
	u32 *awake = &node->state->worker[worker].awake;
	struct es_record *room;

	if (!ring || record->len > ES_RECORD_MAX)
		return -ENOSPC;
	record->csum_partial = skb->ip_summed == CHECKSUM_PARTIAL;
	record->gso_size = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : 0;
	room = es_ringbuf_reserve(ring, sizeof(*record) + record->len);
	if (!room)
		return -ENOSPC;
	*room = *record;
	if (skb_copy_bits(skb, skb_network_offset(skb), room + 1, record->len)) {
		es_ringbuf_commit(room, 1);
		return -ENOSPC;
	}
	es_ringbuf_commit(room, 0);
	/* A worker that is awake looks once more after it has cleared this flag. The producer that wakes it
	 * sets the flag, so that a burst wakes it once. */
	if (!READ_ONCE(*awake)) {
		WRITE_ONCE(*awake, 1);
		wake_up_interruptible_poll(&ring->wait, EPOLLIN | EPOLLRDNORM);
	}
	return 0;
}
