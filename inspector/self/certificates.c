// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the certificates of services when their configuration is read: metrics tell when they end, and nodes
 * compare which they are. earshot-tls reads them for itself.
 */
#include "inspector/self/certificates.h"

#include <string.h>

#include "inspector/certificate/certificate.h"

/* All of a service's certificates are as one text; the digest of a file that cannot be read is none. */
static int note_service(struct es_conf_tls *tls, struct es_conf_error *err)
{
	unsigned char sha256[ES_CONF_CERTIFICATES_MAX][ES_CERTIFICATE_DIGEST_SIZE] = {};
	int first = 0;

	for (unsigned int i = 0; i < tls->certificate_count; i++) {
		struct es_certificate_facts facts;
		struct es_conf_error why;
		int rc = es_certificate_look(tls->certificate[i], tls->key[i], &facts, &why);

		if (rc && !first)
			*err = why;
		first = first ? first : rc;
		if (rc)
			continue;
		tls->until_s[i] = facts.until_s;
		/* One that cannot be used is not shown; `earshot check` says why. */
		if (tls->ocsp[i][0])
			(void)es_certificate_look_staple(tls->ocsp[i], tls->certificate[i],
							 &tls->ocsp_until_s[i], &why);
		memcpy(sha256[i], facts.sha256, sizeof(sha256[i]));
		es_certificate_facts_free(&facts);
	}
	tls->certificates_digest =
		es_conf_digest((const char *)sha256, tls->certificate_count * sizeof(sha256[0]));
	return first;
}

int es_certificates_note(struct es_conf *conf, unsigned int self, struct es_conf_error *err)
{
	int first = 0;

	for (unsigned int i = 0; i < conf->service_count; i++) {
		struct es_conf_service *service = &conf->services[i];
		struct es_conf_error why;
		int rc;

		if (!service->tls.line || !es_conf_service_is_on(service, self))
			continue;
		rc = note_service(&service->tls, &why);
		if (rc && !first)
			es_conf_error_set(err, "%s:%d: service %s: tls: %s", conf->path, service->tls.line,
					  service->name, why.text);
		first = first ? first : rc;
	}
	return first;
}
