// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The producer's side of a ring buffer. Record headers (busy, discarded) are those of the kernel's BPF ring
 * buffer (kernel/bpf/ringbuf.c). The kernel maps the data twice in a row, so that no record is ever cut. Here
 * the file has room for the data twice: a record that begins near the end simply continues, and the reader,
 * which maps both, finds it there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/bpf.h>
#include "netfilter/node/queue.h"

#define ES_NF_RING_HEAD_PAGES 2 /* consumer, producer */

struct es_nf_ring {
	int fd;
	int wake_fd;
	size_t mapped;
	unsigned long mask;
	unsigned long produced;
	unsigned long *consumer;
	unsigned long *producer;
	unsigned char *data;
};

int es_nf_ring_new(size_t bytes, struct es_nf_ring **ret_ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct es_nf_ring *ring = calloc(1, sizeof(*ring));
	void *at;
	int rc;

	if (!ring)
		return -ENOMEM;
	ring->mapped = ES_NF_RING_HEAD_PAGES * page + 2 * bytes;
	ring->wake_fd = -1;
	ring->fd = memfd_create("earshot-queue", MFD_CLOEXEC);
	if (ring->fd < 0 || ftruncate(ring->fd, (off_t)ring->mapped))
		goto err_free;
	ring->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ring->wake_fd < 0)
		goto err_free;
	at = mmap(NULL, ring->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (at == MAP_FAILED)
		goto err_free;
	ring->mask = bytes - 1;
	ring->consumer = at;
	ring->producer = (unsigned long *)((unsigned char *)at + page);
	ring->data = (unsigned char *)at + ES_NF_RING_HEAD_PAGES * page;
	*ret_ring = ring;
	return 0;

err_free:
	rc = -errno;
	es_nf_ring_free(&ring);
	return rc;
}

void es_nf_ring_free(struct es_nf_ring **ring)
{
	struct es_nf_ring *r = *ring;

	if (!r)
		return;
	if (r->consumer)
		munmap(r->consumer, r->mapped);
	if (r->fd >= 0)
		close(r->fd);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	free(r);
	*ring = NULL;
}

int es_nf_ring_fd(const struct es_nf_ring *ring)
{
	return ring->fd;
}

int es_nf_ring_wake_fd(const struct es_nf_ring *ring)
{
	return ring->wake_fd;
}

void *es_nf_ring_reserve(struct es_nf_ring *ring, uint32_t len)
{
	unsigned long size = (len + BPF_RINGBUF_HDR_SZ + 7UL) & ~7UL;
	unsigned long consumed = __atomic_load_n(ring->consumer, __ATOMIC_ACQUIRE);
	uint32_t *head;

	if (size > ring->mask || ring->produced + size - consumed > ring->mask)
		return NULL;
	head = (uint32_t *)(ring->data + (ring->produced & ring->mask));
	head[0] = len | BPF_RINGBUF_BUSY_BIT;
	head[1] = 0;
	ring->produced += size;
	/* The header first, then the position that makes the consumer look at it. */
	__atomic_store_n(ring->producer, ring->produced, __ATOMIC_RELEASE);
	return head + BPF_RINGBUF_HDR_SZ / sizeof(*head);
}

void es_nf_ring_commit(void *record)
{
	uint32_t *head = (uint32_t *)record - BPF_RINGBUF_HDR_SZ / sizeof(*head);

	/* A full barrier, because the next step checks whether the consumer sleeps. */
	__atomic_exchange_n(head, *head & ~BPF_RINGBUF_BUSY_BIT, __ATOMIC_SEQ_CST);
}

int es_nf_queue_push(struct es_nf_ring *ring, __u32 *awake, const struct es_record *record,
		     const void *packet)
{
	static const uint64_t one = 1;
	struct es_record *room = es_nf_ring_reserve(ring, (uint32_t)sizeof(*record) + record->len);

	if (!room)
		return -ENOSPC;
	*room = *record;
	memcpy(room + 1, packet, record->len);
	es_nf_ring_commit(room);
	/*
	 * A worker that is awake looks once more after clearing this flag. Whoever wakes it sets the flag, so
	 * a burst wakes it once. If the write fails, the eventfd is already readable.
	 */
	if (!__atomic_load_n(awake, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(awake, 1, __ATOMIC_RELAXED);
		if (write(ring->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
			return 0;
	}
	return 0;
}
