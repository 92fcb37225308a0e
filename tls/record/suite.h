/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_SUITE_H
#define ES_TLS_SUITE_H

/*
 * The cipher suites whose records tls/record/ can read and write: all AEAD ones of Mozilla's intermediate
 * list.
 */
#include <stdint.h>

enum es_tls_aead { ES_TLS_AES_128_GCM, ES_TLS_AES_256_GCM, ES_TLS_CHACHA20_POLY1305, ES_TLS_AEAD_COUNT };

#define ES_TLS_TAG_SIZE	  16
#define ES_TLS_NONCE_SIZE 12
#define ES_TLS_KEY_SIZE	  32 /* of the longest */

/**
 * struct es_tls_suite
 * @number: in IANA's registry; @version: the one version of TLS that has it
 * @hash_size: 32 (SHA-256) or 48 (SHA-384): of TLS 1.3's secrets, of TLS 1.2's PRF
 * @fixed_size: bytes of the nonce that the key block gives in TLS 1.2 (RFC 5288 section 3, RFC 7905 section
 * 2)
 * @explicit_size: bytes of the nonce that stand in each record
 * @record_limit: records under one key (RFC 8446 section 5.5 allows about 2^24.5 of full size); 0: no limit
 * @name: as OpenSSL and HAProxy have it
 */
struct es_tls_suite {
	uint16_t number;
	uint16_t version;
	enum es_tls_aead aead;
	unsigned int key_size;
	unsigned int hash_size;
	unsigned int fixed_size;
	unsigned int explicit_size;
	uint64_t record_limit;
	const char *name;
};

#define ES_TLS_GCM_RECORDS (1ULL << 23)

/* es_tls_suite_find() - NULL: not known for this version */
const struct es_tls_suite *es_tls_suite_find(uint16_t version, uint16_t number);

#endif
