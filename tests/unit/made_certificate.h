/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MADE_CERTIFICATE_H
#define ES_MADE_CERTIFICATE_H

/* Certificates and keys that a test makes, in files of a directory of its own. */
#include <dirent.h>
#include <fcntl.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmocka_all.h"

/**
 * struct made - how a certificate is made
 * @key: "rsa", "rsa1024", "p256", "p384", "k256" or "ed25519"
 * @names: "DNS:a.example,DNS:*.b.example", or NULL
 * @from_s, @until_s: from now
 * @is_sha1: signed with it
 */
struct made {
	const char *key;
	const char *names;
	long from_s;
	long until_s;
	int is_ca;
	int is_sha1;
};

/* A certificate and its key; a root has issued itself. */
struct pair {
	X509 *x;
	EVP_PKEY *key;
};

static char made_directory[] = "/tmp/earshot-made-XXXXXX";

static inline int make_directory(void **state)
{
	(void)state;
	return mkdtemp(made_directory) ? 0 : -1;
}

static inline int remove_directory(void **state)
{
	DIR *directory = opendir(made_directory);
	const struct dirent *entry;

	(void)state;
	while ((entry = readdir(directory)) != NULL)
		unlinkat(dirfd(directory), entry->d_name, 0);
	closedir(directory);
	return rmdir(made_directory);
}

/* made_path() - of a file of the directory; one of the last few that were asked for */
static inline const char *made_path(const char *name)
{
	static char paths[16][128];
	static unsigned int next;
	char *path = paths[next++ % 16];

	snprintf(path, sizeof(paths[0]), "%s/%s", made_directory, name);
	return path;
}

static inline EVP_PKEY *made_key(const char *kind)
{
	if (!strncmp(kind, "rsa", 3))
		return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)(kind[3] ? 1024 : 2048));
	if (!strcmp(kind, "p256"))
		return EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	if (!strcmp(kind, "p384"))
		return EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-384");
	if (!strcmp(kind, "k256"))
		return EVP_PKEY_Q_keygen(NULL, NULL, "EC", "secp256k1");
	assert_string_equal(kind, "ed25519");
	return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
}

static inline void add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert_non_null(extension);
	assert_true(X509_add_ext(x, extension, -1));
	X509_EXTENSION_free(extension);
}

static inline struct pair made_pair(const struct made *made, const struct pair *issuer)
{
	struct pair pair = {.x = X509_new(), .key = made_key(made->key)};
	const struct pair *by = issuer ? issuer : &pair;
	X509_NAME *subject = X509_get_subject_name(pair.x);
	static long serial;
	char name[32];

	assert_non_null(pair.key);
	snprintf(name, sizeof(name), "made %ld", ++serial);
	X509_set_version(pair.x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(pair.x), serial);
	X509_gmtime_adj(X509_getm_notBefore(pair.x), made->from_s ? made->from_s : -3600);
	X509_gmtime_adj(X509_getm_notAfter(pair.x), made->until_s ? made->until_s : 36000);
	X509_set_pubkey(pair.x, pair.key);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(pair.x, X509_get_subject_name(by->x));
	if (made->is_ca)
		add_extension(pair.x, by->x, NID_basic_constraints, "critical,CA:TRUE");
	if (made->names)
		add_extension(pair.x, by->x, NID_subject_alt_name, made->names);
	assert_true(X509_sign(pair.x, by->key,
			      EVP_PKEY_get_base_id(by->key) == EVP_PKEY_ED25519 ? NULL
			      : made->is_sha1					? EVP_sha1()
										: EVP_sha256()) > 0);
	return pair;
}

static inline void pair_free(struct pair *pair)
{
	X509_free(pair->x);
	EVP_PKEY_free(pair->key);
	*pair = (struct pair){};
}

static inline FILE *made_file(const char *name, unsigned int mode)
{
	int fd = open(made_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	return fdopen(fd, "w");
}

/* put_pair() - writes @name.pem, with @issuer after it if there is one, and @name.key */
static inline void put_pair(const char *name, const struct pair *pair, const struct pair *issuer)
{
	char file[64];
	FILE *f;

	snprintf(file, sizeof(file), "%s.pem", name);
	f = made_file(file, 0644);
	PEM_write_X509(f, pair->x);
	if (issuer)
		PEM_write_X509(f, issuer->x);
	fclose(f);
	snprintf(file, sizeof(file), "%s.key", name);
	f = made_file(file, 0600);
	PEM_write_PrivateKey(f, pair->key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
}

static inline void put_text(const char *name, const char *text)
{
	FILE *f = made_file(name, 0600);

	fputs(text, f);
	fclose(f);
}

/* put_staple() - a response by @issuer that says @status of @pair, until @until_s from now; 0: no end */
static inline void put_staple(const char *name, const struct pair *pair, const struct pair *issuer,
			      int status, long until_s)
{
	OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), pair->x, issuer->x);
	OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
	ASN1_TIME *from = X509_gmtime_adj(NULL, -7200);
	ASN1_TIME *until = until_s ? X509_gmtime_adj(NULL, until_s) : NULL;
	OCSP_RESPONSE *response;
	unsigned char *der = NULL;
	int len;
	FILE *f;

	assert_non_null(OCSP_basic_add1_status(
		basic, id, status, 0, status == V_OCSP_CERTSTATUS_REVOKED ? from : NULL, from, until));
	assert_true(OCSP_basic_sign(basic, issuer->x, issuer->key, EVP_sha256(), NULL, 0));
	response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
	len = i2d_OCSP_RESPONSE(response, &der);
	f = made_file(name, 0644);
	assert_int_equal(fwrite(der, 1, (size_t)len, f), len);
	fclose(f);
	OPENSSL_free(der);
	OCSP_RESPONSE_free(response);
	OCSP_BASICRESP_free(basic);
	OCSP_CERTID_free(id);
	ASN1_TIME_free(from);
	ASN1_TIME_free(until);
}

#endif
