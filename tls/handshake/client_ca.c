// SPDX-License-Identifier: GPL-2.0-or-later
/* Whose client certificates are believed. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "inspector/certificate/whole_file.h"
#include "tls/handshake/internal.h"

/* Any certificate of the file will do as the end of a chain, whoever has issued it. */
static int add_all(SSL_CTX *ssl, BIO *bio)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ssl);
	X509 *x;
	int count = 0;

	X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
	while ((x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		int is_added = X509_STORE_add_cert(store, x) && SSL_CTX_add_client_CA(ssl, x);

		X509_free(x);
		if (!is_added)
			return -1;
		count++;
	}
	return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE ? count : -1;
}

int es_tls_client_ca_set(SSL_CTX *ssl, const char *file, int must, uint8_t ret_digest[ES_TLS_DIGEST_SIZE],
			 struct es_conf_error *err)
{
	struct es_whole_file whole;
	int count, r = es_whole_file_read(file, &whole, err);
	BIO *bio;

	if (r)
		return r;
	ERR_clear_error();
	bio = BIO_new_mem_buf(whole.bytes, (int)whole.len);
	count = bio ? add_all(ssl, bio) : -1;
	ERR_clear_error();
	BIO_free(bio);
	if (count <= 0 || !EVP_Digest(whole.bytes, whole.len, ret_digest, NULL, EVP_sha256(), NULL)) {
		es_conf_error_set(err, "%s: %s: expected PEM (-----BEGIN CERTIFICATE-----)", file,
				  count ? "a certificate in it is damaged" : "has no certificate");
		r = -EINVAL;
	}
	es_whole_file_fini(&whole);
	SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | (must ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
	return r;
}
