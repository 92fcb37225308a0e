// SPDX-License-Identifier: GPL-2.0-or-later
/* The memory of buffers: pieces of powers of two, of which some are kept for the next that needs one. */
#include "tls/serve/buffer.h"

#define PIECE_MIN 4096
#define CLASSES	  6 /* 4 to 128 KB; of larger ones none is kept */
#define KEPT_MAX  8 /* of each class */

struct piece {
	struct piece *next;
};

static struct {
	struct piece *first;
	unsigned int count;
} kept[CLASSES];

static unsigned int class_of(size_t size)
{
	unsigned int class = 0;

	while (class < CLASSES && (size_t)PIECE_MIN << class < size)
		class ++;
	return class;
}

uint8_t *es_buffer_piece_new(size_t *size)
{
	unsigned int class = class_of(*size);
	struct piece *piece;

	if (class == CLASSES)
		return malloc(*size);
	*size = (size_t)PIECE_MIN << class;
	piece = kept[class].first;
	if (!piece)
		return malloc(*size);
	kept[class].first = piece->next;
	kept[class].count--;
	return (uint8_t *)piece;
}

void es_buffer_piece_free(uint8_t *bytes, size_t size)
{
	unsigned int class = class_of(size);
	struct piece *piece = (struct piece *)bytes;

	if (!bytes)
		return;
	if (class == CLASSES || kept[class].count == KEPT_MAX) {
		free(bytes);
		return;
	}
	piece->next = kept[class].first;
	kept[class].first = piece;
	kept[class].count++;
}
