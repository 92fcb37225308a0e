/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RING_READER_H
#define ES_RING_READER_H

/*
 * Reads a ring buffer of either datapath: one of BPF_MAP_TYPE_RINGBUF, or one of earshot.ko, which has the
 * same layout (kmod/core/control.h). One reader a ring. Its descriptor is readable while there is something
 * to take.
 */
#include <stddef.h>

struct es_ring_reader;

/* Called for each record; @data is valid until it returns. */
typedef void (*es_ring_reader_fn)(void *ctx, const void *data, size_t size);

/**
 * es_ring_reader_new() - map the ring behind @fd, which stays the caller's
 * @bytes: of data, a power of two of pages. Returns 0 or -errno.
 */
int es_ring_reader_new(int fd, size_t bytes, es_ring_reader_fn fn, void *ctx,
		       struct es_ring_reader **ret_reader);
void es_ring_reader_free(struct es_ring_reader **reader);

/* es_ring_reader_consume() - take what is there. Returns how many records were given to the function. */
int es_ring_reader_consume(struct es_ring_reader *reader);

#endif
