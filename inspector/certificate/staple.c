// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads an OCSP response, and refuses one that clients would: of another certificate, or not good. */
#include "inspector/certificate/staple.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <string.h>
#include <time.h>

#include "inspector/certificate/whole_file.h"

/* The response names the issuer by digests of its name and key; its name is what the certificate has, too. */
static int is_about(const OCSP_CERTID *id, const X509 *leaf)
{
	const ASN1_OCTET_STRING *issuer_hash = NULL;
	const ASN1_INTEGER *serial = NULL;
	unsigned char digest[EVP_MAX_MD_SIZE];
	const ASN1_OBJECT *algorithm = NULL;
	unsigned int len = 0;
	const EVP_MD *md;

	/* takes no const, and changes nothing */
	OCSP_id_get0_info((ASN1_OCTET_STRING **)&issuer_hash, (ASN1_OBJECT **)&algorithm, NULL,
			  (ASN1_INTEGER **)&serial, (OCSP_CERTID *)id);
	md = EVP_get_digestbyobj(algorithm);
	return !ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(leaf)) && md &&
	       X509_NAME_digest(X509_get_issuer_name(leaf), md, digest, &len) &&
	       ASN1_STRING_length(issuer_hash) == (int)len &&
	       !memcmp(ASN1_STRING_get0_data(issuer_hash), digest, len);
}

static const char *judge(OCSP_BASICRESP *basic, const X509 *leaf, long long *ret_until_s)
{
	for (int i = 0; i < OCSP_resp_count(basic); i++) {
		OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
		ASN1_GENERALIZEDTIME *until = NULL;
		struct tm tm = {};

		if (!is_about(OCSP_SINGLERESP_get0_id(single), leaf))
			continue;
		if (OCSP_single_get0_status(single, NULL, NULL, NULL, &until) != V_OCSP_CERTSTATUS_GOOD)
			return "does not call the certificate good";
		if (!until || !ASN1_TIME_to_tm(until, &tm))
			return "says no time until which it is valid";
		*ret_until_s = timegm(&tm);
		return NULL;
	}
	return "is about another certificate";
}

static const char *examine(const struct es_whole_file *file, const X509 *leaf, long long *ret_until_s)
{
	const unsigned char *at = file->bytes;
	OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, (long)file->len);
	OCSP_BASICRESP *basic = NULL;
	const char *why;

	if (!response || at != file->bytes + file->len)
		why = "is no OCSP response in DER";
	else if (OCSP_response_status(response) != OCSP_RESPONSE_STATUS_SUCCESSFUL)
		why = "is a responder's error, no answer";
	else if (!(basic = OCSP_response_get1_basic(response)))
		why = "is an OCSP response of an unknown kind";
	else
		why = judge(basic, leaf, ret_until_s);
	OCSP_BASICRESP_free(basic);
	OCSP_RESPONSE_free(response);
	return why;
}

int es_certificate_staple_read(const char *file, const struct es_certificate *certificate,
			       struct es_certificate_staple *ret_staple, struct es_conf_error *err)
{
	struct es_certificate_staple staple = {};
	struct es_whole_file whole;
	const char *why;
	int r = es_whole_file_read(file, &whole, err);

	if (r)
		return r;
	why = examine(&whole, certificate->leaf, &staple.until_s);
	ERR_clear_error();
	if (!why) {
		staple.len = whole.len;
		staple.der = OPENSSL_memdup(whole.bytes, whole.len);
		why = staple.der ? NULL : "is too much for the memory";
	}
	es_whole_file_fini(&whole);
	if (why) {
		es_conf_error_set(err, "%s: %s", file, why);
		return -EINVAL;
	}
	*ret_staple = staple;
	return 0;
}

void es_certificate_staple_fini(struct es_certificate_staple *staple)
{
	OPENSSL_free(staple->der);
	*staple = (struct es_certificate_staple){};
}

int es_certificate_look_staple(const char *ocsp_file, const char *certificate_file, long long *ret_until_s,
			       struct es_conf_error *err)
{
	struct es_certificate_staple staple;
	struct es_certificate certificate;
	int r = es_certificate_read(certificate_file, NULL, &certificate, err);

	if (r)
		return r;
	r = es_certificate_staple_read(ocsp_file, &certificate, &staple, err);
	es_certificate_fini(&certificate);
	if (r)
		return r;
	*ret_until_s = staple.until_s;
	es_certificate_staple_fini(&staple);
	return 0;
}
