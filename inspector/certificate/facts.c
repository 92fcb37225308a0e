// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads what a certificate says of itself, and judges whether clients can be expected to trust it. */
#include "inspector/certificate/facts.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/asn1.h>
#include <openssl/objects.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define RSA_BITS_MIN	  2048 /* as browsers and OpenSSL's security level 2 */
#define SECURITY_BITS_MIN 112  /* of a signature: SHA-1 has less */
#define DAY_TEXT_SIZE	  32

static int seconds_of(const ASN1_TIME *time, long long *ret_s)
{
	struct tm tm = {};

	if (!ASN1_TIME_to_tm(time, &tm))
		return -EBADMSG;
	*ret_s = timegm(&tm);
	return 0;
}

/* Ordinary curves alone: no client knows others. */
static const char *kind_of(EVP_PKEY *key)
{
	char curve[64] = "";

	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_RSA:
	case EVP_PKEY_RSA_PSS:
		return "RSA";
	case EVP_PKEY_ED25519:
		return "Ed25519";
	case EVP_PKEY_EC:
		if (EVP_PKEY_get_group_name(key, curve, sizeof(curve), NULL) &&
		    (!strcmp(curve, SN_X9_62_prime256v1) || !strcmp(curve, SN_secp384r1) ||
		     !strcmp(curve, SN_secp521r1)))
			return "ECDSA";
		return NULL;
	default:
		return NULL;
	}
}

/* A root's own signature proves nothing, and nobody looks at it. */
static const char *weakness_of(X509 *x, int is_leaf)
{
	EVP_PKEY *key = X509_get0_pubkey(x);
	int bits = 0;

	if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA && EVP_PKEY_get_bits(key) < RSA_BITS_MIN)
		return is_leaf ? "its RSA key has less than 2048 bits"
			       : "an RSA key in its chain has less than 2048 bits";
	if (!is_leaf && X509_get_extension_flags(x) & EXFLAG_SS)
		return NULL;
	if (!X509_get_signature_info(x, NULL, NULL, &bits, NULL) || bits < SECURITY_BITS_MIN)
		return is_leaf ? "it is signed with SHA-1 or something as old"
			       : "a certificate of its chain is signed with SHA-1 or something as old";
	return NULL;
}

static const char *weakness(const struct es_certificate *certificate)
{
	const char *weak = weakness_of(certificate->leaf, 1);

	for (int i = 0; !weak && i < sk_X509_num(certificate->chain); i++)
		weak = weakness_of(sk_X509_value(certificate->chain, i), 0);
	return weak;
}

static void put_name(const GENERAL_NAME *general, struct es_certificate_facts *facts)
{
	const ASN1_STRING *text = general->type == GEN_DNS ? general->d.dNSName : NULL;
	const unsigned char *bytes = text ? ASN1_STRING_get0_data(text) : NULL;
	int len = text ? ASN1_STRING_length(text) : 0;
	char *name = facts->name[facts->name_count];

	if (len <= 0 || len >= ES_CERTIFICATE_NAME_SIZE || memchr(bytes, 0, (size_t)len))
		return;
	for (int i = 0; i < len; i++)
		name[i] = (char)tolower(bytes[i]);
	name[len] = 0;
	facts->name_count++;
}

static int tell_names(X509 *leaf, struct es_certificate_facts *facts)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
	int count = names ? sk_GENERAL_NAME_num(names) : 0;

	if (count > 0)
		facts->name = calloc((size_t)count, sizeof(*facts->name));
	for (int i = 0; facts->name && i < count; i++)
		put_name(sk_GENERAL_NAME_value(names, i), facts);
	GENERAL_NAMES_free(names);
	return count > 0 && !facts->name ? -ENOMEM : 0;
}

int es_certificate_tell(const struct es_certificate *certificate, const char *certificate_file,
			struct es_certificate_facts *ret_facts, struct es_conf_error *err)
{
	EVP_PKEY *key = X509_get0_pubkey(certificate->leaf);
	struct es_certificate_facts facts = {};

	if (seconds_of(X509_get0_notBefore(certificate->leaf), &facts.from_s) ||
	    seconds_of(X509_get0_notAfter(certificate->leaf), &facts.until_s) ||
	    !X509_digest(certificate->leaf, EVP_sha256(), facts.sha256, NULL)) {
		es_conf_error_set(err, "%s: its first certificate is malformed", certificate_file);
		return -EINVAL;
	}
	facts.key = key ? kind_of(key) : NULL;
	if (!facts.key) {
		es_conf_error_set(err,
				  "%s: its key is of a kind that browsers do not take: expected RSA, ECDSA "
				  "(P-256, P-384, P-521) or Ed25519",
				  certificate_file);
		return -EINVAL;
	}
	facts.key_bits = (unsigned int)EVP_PKEY_get_bits(key);
	facts.weak = weakness(certificate);
	if (tell_names(certificate->leaf, &facts)) {
		es_conf_error_set(err, "%s: out of memory", certificate_file);
		return -ENOMEM;
	}
	*ret_facts = facts;
	return 0;
}

void es_certificate_facts_free(struct es_certificate_facts *facts)
{
	free(facts->name);
	*facts = (struct es_certificate_facts){};
}

static const char *day(long long s, char text[DAY_TEXT_SIZE])
{
	time_t at = (time_t)s;
	struct tm tm;

	if (!gmtime_r(&at, &tm) || !strftime(text, DAY_TEXT_SIZE, "%Y-%m-%d %H:%M UTC", &tm))
		return "?";
	return text;
}

int es_certificate_judge(const struct es_certificate_facts *facts, const char *certificate_file,
			 long long wall_s, struct es_conf_error *err)
{
	char text[DAY_TEXT_SIZE];

	if (wall_s > facts->until_s) {
		es_conf_error_set(err, "%s: the certificate has expired on %s", certificate_file,
				  day(facts->until_s, text));
		return -EKEYEXPIRED;
	}
	if (wall_s < facts->from_s) {
		es_conf_error_set(err, "%s: the certificate is not valid before %s", certificate_file,
				  day(facts->from_s, text));
		return -EKEYEXPIRED;
	}
	if (facts->weak) {
		es_conf_error_set(err, "%s: the certificate is weak: %s", certificate_file, facts->weak);
		return -EKEYREJECTED;
	}
	return 0;
}

enum es_certificate_match es_certificate_match(const struct es_certificate_facts *facts, const char *name)
{
	enum es_certificate_match best = ES_CERTIFICATE_OTHER;
	const char *parent = strchr(name, '.');

	for (unsigned int i = 0; i < facts->name_count; i++) {
		const char *own = facts->name[i];

		if (!strcasecmp(own, name))
			return ES_CERTIFICATE_EXACT;
		if (own[0] == '*' && own[1] == '.' && parent && parent > name && !strcasecmp(own + 1, parent))
			best = ES_CERTIFICATE_WILDCARD;
	}
	return best;
}
