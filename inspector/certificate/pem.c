// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads certificates and keys of PEM files, and says in words of an operator why one cannot be used. */
#include "inspector/certificate/pem.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "inspector/certificate/facts.h"
#include "inspector/certificate/whole_file.h"

/* Nobody is there to be asked; @data remembers that somebody should have been. */
static int no_passphrase(char *text, int size, int is_writing, void *data)
{
	int *is_encrypted = data;

	(void)text;
	(void)size;
	(void)is_writing;
	*is_encrypted = 1;
	return -1;
}

static int parse_certificates(BIO *bio, const char *path, struct es_certificate *certificate,
			      struct es_conf_error *err)
{
	int is_encrypted = 0;
	X509 *x;

	certificate->leaf = PEM_read_bio_X509(bio, NULL, no_passphrase, &is_encrypted);
	certificate->chain = sk_X509_new_null();
	if (!certificate->leaf) {
		es_conf_error_set(err,
				  "%s: has no certificate: expected PEM (-----BEGIN CERTIFICATE-----), "
				  "the server's own first, then its chain",
				  path);
		return -EINVAL;
	}
	while (certificate->chain && (x = PEM_read_bio_X509(bio, NULL, no_passphrase, &is_encrypted)) != NULL)
		if (!sk_X509_push(certificate->chain, x)) {
			X509_free(x);
			return -ENOMEM;
		}
	if (!certificate->chain)
		return -ENOMEM;
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
		es_conf_error_set(err, "%s: certificate %d is damaged", path,
				  sk_X509_num(certificate->chain) + 2);
		return -EINVAL;
	}
	return 0;
}

static int read_certificates(const char *path, struct es_certificate *certificate, struct es_conf_error *err)
{
	struct es_whole_file file;
	int r = es_whole_file_read(path, &file, err);
	BIO *bio;

	if (r)
		return r;
	bio = BIO_new_mem_buf(file.bytes, (int)file.len);
	r = bio ? parse_certificates(bio, path, certificate, err) : -ENOMEM;
	if (r == -ENOMEM)
		es_conf_error_set(err, "%s: out of memory", path);
	BIO_free(bio);
	es_whole_file_fini(&file);
	return r;
}

static int parse_key(const struct es_whole_file *file, const char *path, EVP_PKEY **ret_key,
		     struct es_conf_error *err)
{
	BIO *bio = BIO_new_mem_buf(file->bytes, (int)file->len);
	int is_encrypted = 0;

	*ret_key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &is_encrypted) : NULL;
	BIO_free(bio);
	if (*ret_key)
		return 0;
	if (is_encrypted)
		es_conf_error_set(err, "%s: the key is encrypted: expected one without a passphrase", path);
	else
		es_conf_error_set(err, "%s: has no key: expected PEM (-----BEGIN PRIVATE KEY-----)", path);
	return -EINVAL;
}

static int read_key(const char *path, EVP_PKEY **ret_key, struct es_conf_error *err)
{
	struct es_whole_file file;
	int r = es_whole_file_read(path, &file, err);

	if (r)
		return r;
	if (file.mode & 007) {
		es_conf_error_set(err, "%s: mode %04o lets everybody use the key: expected 0600 or 0640",
				  path, file.mode);
		r = -EPERM;
	} else {
		r = parse_key(&file, path, ret_key, err);
	}
	es_whole_file_fini(&file);
	return r;
}

int es_certificate_read(const char *certificate_file, const char *key_file,
			struct es_certificate *ret_certificate, struct es_conf_error *err)
{
	struct es_certificate certificate = {};
	int r;

	ERR_clear_error();
	r = read_certificates(certificate_file, &certificate, err);
	if (!r)
		r = es_certificate_tell(&certificate, certificate_file, &certificate.facts, err);
	if (!r && key_file)
		r = read_key(key_file, &certificate.key, err);
	if (!r && key_file && X509_check_private_key(certificate.leaf, certificate.key) != 1) {
		es_conf_error_set(err,
				  "%s: the key does not fit: expected that of the first certificate in %s",
				  key_file, certificate_file);
		r = -EINVAL;
	}
	ERR_clear_error();
	if (r)
		es_certificate_fini(&certificate);
	else
		*ret_certificate = certificate;
	return r;
}

void es_certificate_fini(struct es_certificate *certificate)
{
	X509_free(certificate->leaf);
	sk_X509_pop_free(certificate->chain, X509_free);
	EVP_PKEY_free(certificate->key);
	es_certificate_facts_free(&certificate->facts);
	*certificate = (struct es_certificate){};
}

int es_certificate_look(const char *certificate_file, const char *key_file,
			struct es_certificate_facts *ret_facts, struct es_conf_error *err)
{
	struct es_certificate certificate;
	int r = es_certificate_read(certificate_file, key_file, &certificate, err);

	if (r)
		return r;
	*ret_facts = certificate.facts;
	certificate.facts = (struct es_certificate_facts){};
	es_certificate_fini(&certificate);
	return 0;
}
