/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_OUTPUT_H
#define ES_OUTPUT_H

/*
 * For programs whose output is their result: one that could not be written, as to a full disk, is a failure.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void es_output_check(void)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return;
	fprintf(stderr, "%s: standard output: %s\n", program_invocation_short_name,
		strerror(errno ? errno : EIO));
	_exit(EXIT_FAILURE);
}

/*
 * es_output_watch() - whatever the program exits with then, also after --help, which argp prints. For main().
 */
static inline void es_output_watch(void)
{
	atexit(es_output_check);
}

#endif
