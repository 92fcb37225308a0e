/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_BUFFER_H
#define ES_SERVE_BUFFER_H

/*
 * Bytes in a row: added at the end, taken from the front. An empty one has no memory, since most connections
 * are idle: it comes from a few pieces that go from one to the next. Zero it before use.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct es_buffer {
	uint8_t *bytes;
	size_t at; /* the first byte that is there */
	size_t end;
	size_t size;
};

/* es_buffer_piece_new() - memory of at least *@size bytes, which becomes what it has; NULL: no memory */
uint8_t *es_buffer_piece_new(size_t *size);
void es_buffer_piece_free(uint8_t *piece, size_t size);

static inline size_t es_buffer_len(const struct es_buffer *b)
{
	return b->end - b->at;
}

static inline uint8_t *es_buffer_front(const struct es_buffer *b)
{
	return b->bytes + b->at;
}

/* es_buffer_room() - make room for @len more bytes behind the last. Returns where, or NULL: no memory. */
static inline uint8_t *es_buffer_room(struct es_buffer *b, size_t len)
{
	size_t there = es_buffer_len(b), size = there + len;
	uint8_t *bytes = b->bytes;

	if (b->size - b->end >= len)
		return b->bytes + b->end;
	if (b->size < size) {
		bytes = es_buffer_piece_new(&size);
		if (!bytes)
			return NULL;
	}
	if (bytes && there) /* none is there without memory */
		memmove(bytes, b->bytes + b->at, there);
	if (bytes != b->bytes) {
		es_buffer_piece_free(b->bytes, b->size);
		b->bytes = bytes;
		b->size = size;
	}
	b->at = 0;
	b->end = there;
	return b->bytes + b->end;
}

static inline void es_buffer_added(struct es_buffer *b, size_t len)
{
	b->end += len;
}

static inline int es_buffer_add(struct es_buffer *b, const void *bytes, size_t len)
{
	uint8_t *room = len ? es_buffer_room(b, len) : NULL;

	if (!len)
		return 0;
	if (!room)
		return -ENOMEM;
	memcpy(room, bytes, len);
	b->end += len;
	return 0;
}

static inline void es_buffer_fini(struct es_buffer *b)
{
	es_buffer_piece_free(b->bytes, b->size);
	*b = (struct es_buffer){};
}

static inline void es_buffer_take(struct es_buffer *b, size_t len)
{
	b->at += len;
	if (b->at == b->end)
		b->at = b->end = 0;
}

/* es_buffer_rest() - give its memory back if nothing is in it */
static inline void es_buffer_rest(struct es_buffer *b)
{
	if (b->at == b->end)
		es_buffer_fini(b);
}

#endif
