/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_QUEUE_H
#define ES_NETFILTER_NODE_QUEUE_H

/*
 * Ring buffers from the engine to the workers, which are in this process: they carry packets to the
 * inspector. The layout is that of BPF_MAP_TYPE_RINGBUF, so workers read all datapaths' rings with the same
 * code. One producer, one consumer; records that do not fit are dropped.
 */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/abi.h"

struct es_nf_ring;

/**
 * es_nf_ring_new() - @bytes of data: a power of two of pages
 * Returns 0 or -errno.
 */
int es_nf_ring_new(size_t bytes, struct es_nf_ring **ret_ring);

/* es_nf_ring_free() - takes NULL. Whoever has mapped the ring's file keeps it. */
void es_nf_ring_free(struct es_nf_ring **ring);

/* es_nf_ring_fd() - the file that a reader maps, owned by the ring. It cannot be polled. */
int es_nf_ring_fd(const struct es_nf_ring *ring);

/* es_nf_ring_wake_fd() - an eventfd, owned by the ring; readable after a sleeping worker was woken */
int es_nf_ring_wake_fd(const struct es_nf_ring *ring);

/**
 * es_nf_ring_reserve() - room for a record of @len bytes; NULL if there is none
 * The consumer does not pass it before es_nf_ring_commit().
 */
void *es_nf_ring_reserve(struct es_nf_ring *ring, uint32_t len);

/* es_nf_ring_commit() - give the record to the consumer. Wakes nobody. */
void es_nf_ring_commit(void *record);

/**
 * es_nf_queue_push() - give a packet, from its IP header on, to a worker
 * @record: its len is the packet's; @awake: the worker's in struct es_state: a sleeping worker is woken
 * Returns 0, or -ENOSPC if the ring is full.
 */
int es_nf_queue_push(struct es_nf_ring *ring, __u32 *awake, const struct es_record *record,
		     const void *packet);

#endif
