/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CERTIFICATE_PEM_H
#define ES_CERTIFICATE_PEM_H

/* A certificate, its chain and its key as OpenSSL has them, for those who serve with them. */
#include <openssl/x509.h>
#include "inspector/certificate/certificate.h"

/**
 * struct es_certificate - what two files hold
 * @chain: the certificates after the first one, in the file's order; may be empty
 * @key: NULL if no key was asked for
 */
struct es_certificate {
	X509 *leaf;
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
	struct es_certificate_facts facts;
};

/* es_certificate_read() - as es_certificate_look() */
int es_certificate_read(const char *certificate_file, const char *key_file,
			struct es_certificate *ret_certificate, struct es_conf_error *err);

void es_certificate_fini(struct es_certificate *certificate);

#endif
