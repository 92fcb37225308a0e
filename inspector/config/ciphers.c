// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which ciphers a service offers: tls/record/ has AES-GCM and ChaCha20-Poly1305, after ECDHE, and no others.
 */
#include "inspector/config/ciphers.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

/* https://wiki.mozilla.org/Security/Server_Side_TLS, intermediate, version 5.7, without DHE. */
#define INTERMEDIATE                                                                                         \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"           \
	"ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define INTERMEDIATE_SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define WORD_SIZE	    128

/* The next word of a list; 0: there is none. */
static int next_word(const char **list, char word[WORD_SIZE])
{
	static const char separators[] = ": ,;";
	size_t len;

	*list += strspn(*list, separators);
	len = strcspn(*list, separators);
	if (!len)
		return 0;
	snprintf(word, WORD_SIZE, "%.*s", (int)(len < WORD_SIZE ? len : WORD_SIZE - 1), *list);
	*list += len;
	return 1;
}

/* OpenSSL passes over words of a list that it does not know, so each is tried alone. */
static int know_ciphers(const char *ciphers, struct es_conf_error *err)
{
	SSL_CTX *alone = SSL_CTX_new(TLS_server_method());
	char word[WORD_SIZE];
	int r = alone ? 0 : -ENOMEM;

	while (!r && next_word(&ciphers, word))
		if (!strchr("!-+@", word[0]) && !SSL_CTX_set_cipher_list(alone, word)) {
			es_conf_error_set(err,
					  "ciphers: OpenSSL knows no %s: expected names of "
					  "openssl-ciphers(1), as in %s",
					  word, INTERMEDIATE);
			r = -EINVAL;
		}
	SSL_CTX_free(alone);
	return r;
}

static int is_usable(const SSL_CIPHER *cipher)
{
	int nid = SSL_CIPHER_get_cipher_nid(cipher);

	return SSL_CIPHER_get_kx_nid(cipher) == NID_kx_ecdhe &&
	       (SSL_CIPHER_get_auth_nid(cipher) == NID_auth_rsa ||
		SSL_CIPHER_get_auth_nid(cipher) == NID_auth_ecdsa) &&
	       (nid == NID_aes_128_gcm || nid == NID_aes_256_gcm || nid == NID_chacha20_poly1305);
}

static int check_ciphers(const SSL_CTX *ssl, struct es_conf_error *err)
{
	const STACK_OF(SSL_CIPHER) *all = SSL_CTX_get_ciphers(ssl);

	for (int i = 0; i < sk_SSL_CIPHER_num(all); i++) {
		const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(all, i);

		if (SSL_CIPHER_get_kx_nid(cipher) == NID_kx_any || is_usable(cipher)) /* any: TLS 1.3's */
			continue;
		es_conf_error_set(err,
				  "ciphers: %s cannot be used: expected ECDHE with AES-GCM or "
				  "CHACHA20-POLY1305, as in %s",
				  SSL_CIPHER_get_name(cipher), INTERMEDIATE);
		return -EINVAL;
	}
	return 0;
}

static int check_suites(const char *suites, struct es_conf_error *err)
{
	char word[WORD_SIZE], known[WORD_SIZE];
	unsigned int count = 0;

	for (; next_word(&suites, word); count++) {
		const char *all = INTERMEDIATE_SUITES;

		while (next_word(&all, known) && strcmp(known, word) != 0)
			;
		if (strcmp(known, word) != 0) {
			es_conf_error_set(err, "suites: %s cannot be used: expected of %s", word,
					  INTERMEDIATE_SUITES);
			return -EINVAL;
		}
	}
	if (count)
		return 0;
	es_conf_error_set(err, "suites: none: expected of %s", INTERMEDIATE_SUITES);
	return -EINVAL;
}

int es_ciphers_set(SSL_CTX *ssl, const char *ciphers, const char *suites, struct es_conf_error *err)
{
	int r = ciphers ? know_ciphers(ciphers, err) : 0;

	if (!r && suites)
		r = check_suites(suites, err);
	if (r)
		return r;
	if (!SSL_CTX_set_cipher_list(ssl, ciphers ? ciphers : INTERMEDIATE)) {
		es_conf_error_set(err, "ciphers: none: expected ECDHE with AES-GCM or CHACHA20-POLY1305");
		return -EINVAL;
	}
	if (!SSL_CTX_set_ciphersuites(ssl, suites ? suites : INTERMEDIATE_SUITES)) {
		es_conf_error_set(err, "suites: OpenSSL refuses %s", suites ? suites : INTERMEDIATE_SUITES);
		return -EINVAL;
	}
	return check_ciphers(ssl, err);
}

int es_ciphers_judge(const char *ciphers, const char *suites, struct es_conf_error *err)
{
	SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());
	int r = ssl ? es_ciphers_set(ssl, ciphers, suites, err) : -ENOMEM;

	if (!ssl)
		es_conf_error_set(err, "OpenSSL cannot be used: expected its default provider");
	SSL_CTX_free(ssl);
	ERR_clear_error();
	return r;
}
