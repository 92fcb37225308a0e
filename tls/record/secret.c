// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slabs of locked memory, cut into pieces of powers of two; a piece that is given back serves the next of its
 * size.
 */
#include "tls/record/secret.h"

#include <openssl/crypto.h>
#include <string.h>
#include <sys/mman.h>

#define SLAB_BYTES (64 * 1024)
#define PIECE_MIN  64
#define CLASSES	   7 /* 64 to 4096 bytes */
_Static_assert(PIECE_MIN << (CLASSES - 1) == ES_SECRET_MAX, "the largest class is the largest piece");

struct piece {
	struct piece *next;
};

static struct {
	struct piece *free[CLASSES];
	unsigned char *slab; /* what is left of the last one */
	size_t left;
	int is_unlocked;
} secrets;

static unsigned int class_of(size_t size)
{
	unsigned int class = 0;

	while ((size_t)PIECE_MIN << class < size)
		class ++;
	return class;
}

/* The rest of the slab before is lost: less than a piece, of 16 or more. */
static int slab_next(void)
{
	void *slab = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (slab == MAP_FAILED)
		return -1;
	madvise(slab, SLAB_BYTES, MADV_DONTDUMP);
	if (mlock(slab, SLAB_BYTES))
		secrets.is_unlocked = 1;
	secrets.slab = slab;
	secrets.left = SLAB_BYTES;
	return 0;
}

void *es_secret_new(size_t size)
{
	unsigned int class;
	struct piece *piece;
	size_t bytes;

	if (size > ES_SECRET_MAX)
		return NULL;
	class = class_of(size);
	bytes = (size_t)PIECE_MIN << class;
	piece = secrets.free[class];
	if (piece) {
		secrets.free[class] = piece->next;
		piece->next = NULL;
		return piece;
	}
	if (secrets.left < bytes && slab_next())
		return NULL;
	secrets.left -= bytes;
	return secrets.slab + secrets.left;
}

void es_secret_free(void *memory, size_t size)
{
	struct piece *piece = memory;

	if (!memory)
		return;
	OPENSSL_cleanse(memory, size);
	piece->next = secrets.free[class_of(size)];
	secrets.free[class_of(size)] = piece;
}

int es_secret_is_locked(void)
{
	return !secrets.is_unlocked;
}
