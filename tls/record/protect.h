/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_PROTECT_H
#define ES_TLS_PROTECT_H

/*
 * The protection of one direction's records (RFC 8446 section 5.2, RFC 5246 section 6.2.3.3), without any
 * meaning of what is in them. Private to tls/record/.
 */
#include <openssl/evp.h>
#include <stddef.h>
#include <stdint.h>
#include "tls/record/state.h"
#include "tls/record/suite.h"

/**
 * struct es_tls_protect
 * @iv: TLS 1.3 and ChaCha20: the nonce of record 0; otherwise the fixed part of the nonce, then zeros
 */
struct es_tls_protect {
	const struct es_tls_suite *suite;
	EVP_CIPHER_CTX *ctx;
	struct es_tls_half half;
	uint8_t iv[ES_TLS_NONCE_SIZE];
	int writes;
};

/* es_tls_protect_init() - 0 or -ENOMEM; es_tls_protect_fini() in either case */
int es_tls_protect_init(struct es_tls_protect *protect, const struct es_tls_suite *suite,
			const struct es_tls_half *half, int writes);
void es_tls_protect_fini(struct es_tls_protect *protect);

/* es_tls_protect_key() - the key that belongs to @iv. Returns 0 or -ENOMEM; the caller wipes it. */
int es_tls_protect_key(const struct es_tls_protect *protect, uint8_t ret_key[ES_TLS_KEY_SIZE]);

/* es_tls_protect_next() - TLS 1.3: go on with the next traffic secret (RFC 8446 section 7.2); 0 or -ENOMEM */
int es_tls_protect_next(struct es_tls_protect *protect);

/* es_tls_protect_is_used_up() - may its key protect no further record of application data? */
static inline int es_tls_protect_is_used_up(const struct es_tls_protect *protect)
{
	return protect->suite->record_limit && protect->half.number >= protect->suite->record_limit;
}

/* es_tls_protect_adds() - bytes that a record of a text of none has after its header */
static inline size_t es_tls_protect_adds(const struct es_tls_suite *suite)
{
	return suite->explicit_size + (suite->version == ES_TLS_1_3) + ES_TLS_TAG_SIZE;
}

/**
 * es_tls_protect_seal() - write a record of up to ES_TLS_TEXT_MAX bytes of @text
 * Returns its bytes, or -ENOMEM.
 */
long es_tls_protect_seal(struct es_tls_protect *protect, uint8_t type, const uint8_t *text, size_t len,
			 uint8_t *out);

/**
 * es_tls_protect_open() - read the record at @record, of @len bytes after its header
 * @len: at least es_tls_protect_adds(), at most what the version allows
 * @text: of ES_TLS_TEXT_MAX bytes; may be @record
 * Returns the bytes of @text; -EBADMSG: not authentic; -EMSGSIZE: too long a text; -EPROTO: TLS 1.3, nothing
 * but padding. Nothing is left in @text after an error.
 */
long es_tls_protect_open(struct es_tls_protect *protect, const uint8_t *record, size_t len, uint8_t *text,
			 uint8_t *ret_type);

#endif
