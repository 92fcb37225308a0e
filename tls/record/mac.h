/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_MAC_H
#define ES_TLS_MAC_H

/* HMAC. Private to tls/record/. */
#include <stddef.h>
#include <stdint.h>

#define ES_TLS_MAC_MAX 48

/**
 * es_tls_mac() - HMAC with SHA-256 (@hash_size 32) or SHA-384 (48); the key is of that size
 * Returns 0 or -ENOMEM.
 */
int es_tls_mac(size_t hash_size, const uint8_t *key, const uint8_t *text, size_t len,
	       uint8_t ret_mac[ES_TLS_MAC_MAX]);

#endif
