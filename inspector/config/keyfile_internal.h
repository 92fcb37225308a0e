/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_KEYFILE_INTERNAL_H
#define ES_INSPECTOR_KEYFILE_INTERNAL_H

/* The key file's own content, before derivation; only this folder sees it, and wipes it after use. */
#include <openssl/kdf.h>
#include <stddef.h>
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

typedef int es_keyfile_derive_fn(EVP_KDF_CTX *kdf, const struct es_keyfile *file, void *keys);

/* es_keyfile_use() - read a file and let @derive make @keys of it; then it is wiped */
int es_keyfile_use(const char *path, es_keyfile_derive_fn *derive, void *keys, struct es_conf_error *err);

/* es_keyfile_kdf_new() - for es_keyfile_derive(), or NULL: OpenSSL has none */
EVP_KDF_CTX *es_keyfile_kdf_new(void);

/* es_keyfile_derive() - HKDF-SHA256 without salt (RFC 5869), of @info's bytes; 0 or -EIO */
int es_keyfile_derive(EVP_KDF_CTX *kdf, const unsigned char secret[ES_SECRET_BYTES], const void *info,
		      size_t info_len, unsigned char *ret_key, size_t len);

/* es_keyfile_derive_sipkey() - the same, 16 bytes: k0, then k1, little endian */
int es_keyfile_derive_sipkey(EVP_KDF_CTX *kdf, const unsigned char secret[ES_SECRET_BYTES], const char *info,
			     struct es_sipkey *ret_key);

#define ES_KEYFILE_HOMES "earshot tls homes" /* the daemon has this key, and earshot-tls */

int es_keyfile_read(const char *path, struct es_keyfile *ret_file, struct es_conf_error *err);

#endif
