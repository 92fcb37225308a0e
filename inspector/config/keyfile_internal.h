/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_KEYFILE_INTERNAL_H
#define ES_INSPECTOR_KEYFILE_INTERNAL_H

/* The key file's own content, before derivation; only keyfile*.c see it, and wipe it after use. */
#include "inspector/config/keyfile.h"

#define ES_SECRET_BYTES 32

struct es_keyfile_key {
	unsigned int id;
	unsigned char secret[ES_SECRET_BYTES];
};

struct es_keyfile {
	unsigned char ring[ES_SECRET_BYTES];
	unsigned int count;
	struct es_keyfile_key key[ES_KEYS_MAX];
};

int es_keyfile_read(const char *path, struct es_keyfile *ret_file, struct es_conf_error *err);

#endif
