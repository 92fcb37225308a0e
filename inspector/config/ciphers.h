/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CIPHERS_H
#define ES_CIPHERS_H

/* Which ciphers a service may offer: who reads the configuration and who does handshakes judge alike. */
#include "inspector/base/error.h"

struct ssl_ctx_st;

/**
 * es_ciphers_set() - let OpenSSL's context offer these; NULL: Mozilla's intermediate ones
 * Returns 0, or -EINVAL or -ENOMEM; @err names the key, the wrong one and what would be accepted.
 */
int es_ciphers_set(struct ssl_ctx_st *ssl, const char *ciphers, const char *suites,
		   struct es_conf_error *err);

/* es_ciphers_judge() - could they be set? Returns as es_ciphers_set(). */
int es_ciphers_judge(const char *ciphers, const char *suites, struct es_conf_error *err);

#endif
