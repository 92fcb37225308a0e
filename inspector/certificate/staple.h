/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CERTIFICATE_STAPLE_H
#define ES_CERTIFICATE_STAPLE_H

/* An OCSP response in a file (RFC 6960, DER), which servers show with a certificate (RFC 6066 section 8). */
#include "inspector/certificate/pem.h"

/**
 * struct es_certificate_staple - a response
 * @until_s: clients refuse it after that second since 1970
 */
struct es_certificate_staple {
	unsigned char *der;
	size_t len;
	long long until_s;
};

/**
 * es_certificate_staple_read() - @certificate: the one that it must be about, and call good
 * Its signature is not verified: the clients do. Returns 0 or -errno; @err names the file and what is wrong.
 */
int es_certificate_staple_read(const char *file, const struct es_certificate *certificate,
			       struct es_certificate_staple *ret_staple, struct es_conf_error *err);

void es_certificate_staple_fini(struct es_certificate_staple *staple);

#endif
