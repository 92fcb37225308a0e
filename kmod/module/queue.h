/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_QUEUE_H
#define ES_MODULE_QUEUE_H

/*
 * Ring buffers into the daemon's memory: the way of packets to the inspector, and of measured responses. The
 * layout is that of BPF_MAP_TYPE_RINGBUF, so that the daemon reads either datapath's with the same code
 * (inspector/datapath/ring_reader.c). Any number of producers, one consumer; a full one drops.
 */
#include <linux/kref.h>
#include <linux/poll.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "kmod/core/abi.h"
#include "memory.h"

struct es_node;

/**
 * struct es_ringbuf
 * @produced: written under @lock only; *@producer shows it to the consumer, who cannot write there
 * @consumer: the consumer may write anything to it; it decides only whether there is room
 */
struct es_ringbuf {
	struct kref ref;
	spinlock_t lock;
	unsigned long mask;
	unsigned long produced;
	unsigned long *consumer;
	unsigned long *producer;
	u8 *data;
	struct es_memory memory;
	wait_queue_head_t wait;
};

/* es_ringbuf_new() - @bytes of data: a power of two of pages. Returns 0 or -ENOMEM. */
int es_ringbuf_new(unsigned int bytes, struct es_ringbuf **ret_ring);
void es_ringbuf_get(struct es_ringbuf *ring);
void es_ringbuf_put(struct es_ringbuf *ring);

/**
 * es_ringbuf_reserve() - room for a record of @len bytes; NULL if there is none
 * The consumer waits for it until es_ringbuf_commit(), which must follow soon.
 */
void *es_ringbuf_reserve(struct es_ringbuf *ring, u32 len);

/* es_ringbuf_commit() - give the record to the consumer; with @discard, it passes it over. Wakes nobody. */
void es_ringbuf_commit(void *record, int discard);

int es_ringbuf_mmap(struct es_ringbuf *ring, struct vm_area_struct *vma);
__poll_t es_ringbuf_poll(struct es_ringbuf *ring, struct file *file, struct poll_table_struct *poll);

/**
 * es_queue_push() - copy the packet, from its IP header on, to the worker that @record's flow belongs to
 * Sets @record's csum_partial and gso_size. Wakes the worker if it sleeps.
 * Returns 0, or -ENOSPC.
 */
int es_queue_push(const struct es_node *node, u32 workers, struct sk_buff *skb, struct es_record *record);

#endif
