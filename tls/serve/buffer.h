/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_BUFFER_H
#define ES_SERVE_BUFFER_H

/*
 * Bytes in a row: added at the end, taken from the front. An empty one has no memory, since most connections
 * are idle. Zero it before use.
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
	size_t there = es_buffer_len(b);
	uint8_t *bytes;

	if (b->size - b->end >= len)
		return b->bytes + b->end;
	if (b->size - there < len) {
		bytes = realloc(b->bytes, there + len + b->at);
		if (!bytes)
			return NULL;
		b->bytes = bytes;
		b->size = there + len + b->at;
	}
	if (b->size - b->end < len) {
		memmove(b->bytes, b->bytes + b->at, there);
		b->at = 0;
		b->end = there;
	}
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
	free(b->bytes);
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
