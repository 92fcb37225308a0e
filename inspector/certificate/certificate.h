/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CERTIFICATE_H
#define ES_CERTIFICATE_H

/*
 * An operator's certificate and key, in PEM files: can they be used, for which names, until when. Those who
 * only report need nothing else (`earshot check`, metrics); who serves with them reads them by pem.h.
 */
#include <stddef.h>
#include "inspector/base/error.h"

#define ES_CERTIFICATE_NAME_SIZE   256
#define ES_CERTIFICATE_DIGEST_SIZE 32

/**
 * struct es_certificate_facts - what a certificate says
 * @from_s, @until_s: it is valid between, in seconds since 1970
 * @key: "RSA", "ECDSA" or "Ed25519"; @key_bits: of the key
 * @weak: why no client should trust it, or NULL; a constant
 * @name: the DNS names of its subjectAltName, in lower case, @name_count of them; a name may begin with "*."
 * @sha256: of the whole certificate, its fingerprint
 */
struct es_certificate_facts {
	long long from_s;
	long long until_s;
	const char *key;
	unsigned int key_bits;
	const char *weak;
	unsigned int name_count;
	char (*name)[ES_CERTIFICATE_NAME_SIZE];
	unsigned char sha256[ES_CERTIFICATE_DIGEST_SIZE];
};

/**
 * es_certificate_look() - read a certificate's file, and the key's if @key_file is not NULL
 * Returns 0, and the caller frees the facts; or -errno, and @err names the file and what is wrong with it: it
 * cannot be read, is no PEM, holds a key of a kind that TLS has no use for; a key's file that all may read, a
 * key that does not fit. A certificate that is weak, or not valid now, is none of these.
 */
int es_certificate_look(const char *certificate_file, const char *key_file,
			struct es_certificate_facts *ret_facts, struct es_conf_error *err);

/*
 * es_certificate_look_staple() - until when the OCSP response in @ocsp_file may be shown with that
 * certificate, in seconds since 1970. Returns 0, or -errno and @err as es_certificate_staple_read().
 */
int es_certificate_look_staple(const char *ocsp_file, const char *certificate_file, long long *ret_until_s,
			       struct es_conf_error *err);

void es_certificate_facts_free(struct es_certificate_facts *facts);

/**
 * es_certificate_judge() - may it be shown to clients at @wall_s, seconds since 1970?
 * Returns 0, -EKEYEXPIRED: not now, or -EKEYREJECTED: it is weak; @err says which.
 */
int es_certificate_judge(const struct es_certificate_facts *facts, const char *certificate_file,
			 long long wall_s, struct es_conf_error *err);

enum es_certificate_match { ES_CERTIFICATE_OTHER, ES_CERTIFICATE_WILDCARD, ES_CERTIFICATE_EXACT };

/* es_certificate_match() - is it for that server's name? In any case; "*." is one label (RFC 6125 6.4.3). */
enum es_certificate_match es_certificate_match(const struct es_certificate_facts *facts, const char *name);

#endif
