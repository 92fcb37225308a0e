/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_SECRET_H
#define ES_TLS_SECRET_H

/*
 * Memory for secrets: locked, so that it is never in swap, left out of cores, and wiped when it is given
 * back. It is taken from the kernel by slabs, since each mapping that is locked or left out alone is a
 * mapping of its own, and kept. For one thread of a process; a child has copies that are not locked
 * (mlock(2)).
 *
 * Key schedules that OpenSSL makes lie in its own heap, which it wipes: a process that holds any forbids
 * cores as a whole and locks what it can.
 */
#include <stddef.h>

#define ES_SECRET_MAX 4096

/* es_secret_new() - zeroed memory of up to ES_SECRET_MAX bytes, aligned as malloc's; NULL: none is left */
void *es_secret_new(size_t size);

/* es_secret_free() - wipe @memory, of the @size that it was made with; NULL is allowed */
void es_secret_free(void *memory, size_t size);

/* es_secret_is_locked() - has all of it been locked so far? Otherwise RLIMIT_MEMLOCK has not allowed it. */
int es_secret_is_locked(void);

#endif
