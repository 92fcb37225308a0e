// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads the list of objects. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/lab/load/manifest.h"

static int digest_parse(const char *text, unsigned char digest[ES_LOAD_DIGEST])
{
	char pair[3] = "";

	for (size_t i = 0; i < ES_LOAD_DIGEST; i++) {
		char *end;

		memcpy(pair, text + 2 * i, 2);
		digest[i] = (unsigned char)strtoul(pair, &end, 16);
		if (end != pair + 2)
			return -EINVAL;
	}
	return text[2 * ES_LOAD_DIGEST] && text[2 * ES_LOAD_DIGEST] != '\n' ? -EINVAL : 0;
}

static int object_parse(char *line, struct es_load_object *ret_object)
{
	char *size = strchr(line, '\t'), *digest = size ? strchr(size + 1, '\t') : NULL, *end;

	memset(ret_object, 0, sizeof(*ret_object));
	if (!digest || line[0] != '/' || strlen(digest + 1) < 2 * (size_t)ES_LOAD_DIGEST)
		return -EINVAL;
	*size++ = *digest++ = '\0';
	ret_object->size = strtoull(size, &end, 10);
	if (end == size || *end || digest_parse(digest, ret_object->digest))
		return -EINVAL;
	ret_object->path = strdup(line);
	return ret_object->path ? 0 : -ENOMEM;
}

static int object_compare(const void *a, const void *b)
{
	const struct es_load_object *x = a, *y = b;

	return x->size != y->size ? (x->size < y->size ? -1 : 1) : strcmp(x->path, y->path);
}

static int object_add(struct es_load_manifest *manifest, const struct es_load_object *object)
{
	struct es_load_object *more;

	if (!(manifest->count & (manifest->count - 1))) { /* 0 or a power of two: full */
		size_t room = manifest->count ? 2 * manifest->count : 1;

		more = reallocarray(manifest->objects, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		manifest->objects = more;
	}
	manifest->objects[manifest->count++] = *object;
	return 0;
}

int es_load_manifest_read(const char *file, uint64_t max_bytes, struct es_load_manifest *ret_manifest)
{
	FILE *stream = fopen(file, "re");
	struct es_load_object object;
	char line[4096];
	int rc = 0;

	memset(ret_manifest, 0, sizeof(*ret_manifest));
	if (!stream)
		return -errno;
	while (!rc && fgets(line, sizeof(line), stream)) {
		rc = object_parse(line, &object);
		if (rc)
			break;
		if (object.size <= max_bytes)
			rc = object_add(ret_manifest, &object);
		if (rc || object.size > max_bytes)
			free(object.path);
	}
	fclose(stream);
	if (!rc && !ret_manifest->count)
		rc = -EINVAL;
	if (rc)
		es_load_manifest_free(ret_manifest);
	else
		qsort(ret_manifest->objects, ret_manifest->count, sizeof(object), object_compare);
	return rc;
}

void es_load_manifest_free(struct es_load_manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++)
		free(manifest->objects[i].path);
	free(manifest->objects);
	memset(manifest, 0, sizeof(*manifest));
}

size_t es_load_manifest_up_to(const struct es_load_manifest *manifest, uint64_t bytes)
{
	size_t n = 0;

	while (n < manifest->count && manifest->objects[n].size <= bytes)
		n++;
	return n;
}
