/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CERTIFICATE_WHOLE_FILE_H
#define ES_CERTIFICATE_WHOLE_FILE_H

/* A small file's bytes, which may be secret. */
#include <stddef.h>
#include "inspector/base/error.h"

#define ES_WHOLE_FILE_MAX (1 << 20)

struct es_whole_file {
	unsigned char *bytes;
	size_t len;
	unsigned int mode;
};

/* es_whole_file_read() - 0 or -errno; @err names the file. */
int es_whole_file_read(const char *path, struct es_whole_file *ret_file, struct es_conf_error *err);

/* es_whole_file_fini() - overwrites it */
void es_whole_file_fini(struct es_whole_file *file);

#endif
