/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOAD_MANIFEST_H
#define ES_LOAD_MANIFEST_H

/*
 * The files to fetch, and what they must be: the list that make_docroot.py writes, "path <tab> size <tab>
 * sha256" a line.
 */
#include <stddef.h>
#include <stdint.h>

#define ES_LOAD_DIGEST 32

struct es_load_object {
	char *path;
	uint64_t size;
	unsigned char digest[ES_LOAD_DIGEST];
	char node[16]; /* that served it last; empty before the first time */
};

/* Sorted by size, so that "not larger than" is a beginning of the list. */
struct es_load_manifest {
	struct es_load_object *objects;
	size_t count;
};

/**
 * es_load_manifest_read() - all objects up to max_bytes
 * Returns 0 or -errno; -EINVAL for a line that is none and for an empty list.
 */
int es_load_manifest_read(const char *file, uint64_t max_bytes, struct es_load_manifest *ret_manifest);
void es_load_manifest_free(struct es_load_manifest *manifest);

/* How many objects, from the beginning, are not larger than @bytes. */
size_t es_load_manifest_up_to(const struct es_load_manifest *manifest, uint64_t bytes);

#endif
