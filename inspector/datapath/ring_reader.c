// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The consumer's side of a ring buffer: its own position is in the first page, which it writes; the
 * producer's in the second, with the data behind it, mapped twice so that no record is ever cut
 * (kernel/bpf/ringbuf.c).
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/bpf.h>
#include "inspector/datapath/ring_reader.h"

struct es_ring_reader {
	es_ring_reader_fn fn;
	void *ctx;
	size_t page;
	size_t bytes;
	unsigned long *consumed;
	unsigned long *produced;
	unsigned char *data;
};

int es_ring_reader_new(int fd, size_t bytes, es_ring_reader_fn fn, void *ctx,
		       struct es_ring_reader **ret_reader)
{
	struct es_ring_reader *r = calloc(1, sizeof(*r));
	void *p;
	int rc;

	if (!r)
		return -ENOMEM;
	r->fn = fn;
	r->ctx = ctx;
	r->page = (size_t)sysconf(_SC_PAGESIZE);
	r->bytes = bytes;
	p = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		goto err_free;
	r->consumed = p;
	p = mmap(NULL, r->page + 2 * bytes, PROT_READ, MAP_SHARED, fd, (off_t)r->page);
	if (p == MAP_FAILED)
		goto err_free;
	r->produced = p;
	r->data = (unsigned char *)p + r->page;
	*ret_reader = r;
	return 0;

err_free:
	rc = -errno;
	es_ring_reader_free(&r);
	return rc;
}

void es_ring_reader_free(struct es_ring_reader **reader)
{
	struct es_ring_reader *r = *reader;

	if (!r)
		return;
	if (r->consumed)
		munmap(r->consumed, r->page);
	if (r->produced)
		munmap(r->produced, r->page + 2 * r->bytes);
	free(r);
	*reader = NULL;
}

int es_ring_reader_consume(struct es_ring_reader *r)
{
	/* Nobody else writes it, so it is read once. */
	unsigned long consumed = *r->consumed;
	int count = 0;

	while (consumed != __atomic_load_n(r->produced, __ATOMIC_ACQUIRE)) {
		const unsigned char *head = r->data + (consumed & (r->bytes - 1));
		uint32_t word = __atomic_load_n((const uint32_t *)head, __ATOMIC_ACQUIRE);
		uint32_t len = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (word & BPF_RINGBUF_BUSY_BIT)
			break; /* its producer is still writing; those behind it wait for it */
		if (!(word & BPF_RINGBUF_DISCARD_BIT)) {
			r->fn(r->ctx, head + BPF_RINGBUF_HDR_SZ, len);
			count++;
		}
		consumed += (len + BPF_RINGBUF_HDR_SZ + 7UL) & ~7UL;
		__atomic_store_n(r->consumed, consumed, __ATOMIC_RELEASE);
	}
	return count;
}
