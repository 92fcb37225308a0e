/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CLI_ARCHIVE_H
#define ES_CLI_ARCHIVE_H

/* A .tar.gz that is written as it grows, readable by its owner only; gzip(1) packs it. */
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* struct es_archive - @folder: in which all is; @error: the first thing that failed, 0: nothing */
struct es_archive {
	FILE *pipe;
	pid_t gzip;
	const char *folder;
	int error;
};

/* es_archive_open() - make @path, which must not be there yet. Returns 0 or -errno. */
int es_archive_open(struct es_archive *archive, const char *path, const char *folder);

/* es_archive_add() - a file of it; what fails is told at the end */
void es_archive_add(struct es_archive *archive, const char *name, const void *bytes, size_t len);

/* es_archive_close() - returns 0 if all of it is there, or -errno */
int es_archive_close(struct es_archive *archive);

#endif
