// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * HMAC (RFC 2104) over OpenSSL's digests, which are looked up once: its own HMAC does that for each key, and
 * takes twice the time of all the rest. One thread per process.
 */
#include "tls/record/mac.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#define BLOCK_MAX 128

static const EVP_MD *digest_of(size_t hash_size)
{
	static EVP_MD *digests[2];
	int is_384 = hash_size == 48;

	if (!digests[is_384])
		digests[is_384] = EVP_MD_fetch(NULL, is_384 ? "SHA2-384" : "SHA2-256", NULL);
	return digests[is_384];
}

/* The digest of the key, each byte of it with @pad, and then the text. */
static int half(EVP_MD_CTX *context, const EVP_MD *digest, const uint8_t *key, uint8_t pad,
		const uint8_t *text, size_t len, uint8_t *ret)
{
	size_t block = (size_t)EVP_MD_get_block_size(digest), size = (size_t)EVP_MD_get_size(digest);
	uint8_t padded[BLOCK_MAX];
	int is_good;

	for (size_t i = 0; i < block; i++)
		padded[i] = i < size ? key[i] ^ pad : pad;
	is_good = EVP_DigestInit_ex(context, digest, NULL) == 1 &&
		  EVP_DigestUpdate(context, padded, block) == 1 &&
		  EVP_DigestUpdate(context, text, len) == 1 && EVP_DigestFinal_ex(context, ret, NULL) == 1;
	OPENSSL_cleanse(padded, sizeof(padded));
	return is_good;
}

int es_tls_mac(size_t hash_size, const uint8_t *key, const uint8_t *text, size_t len,
	       uint8_t ret_mac[ES_TLS_MAC_MAX])
{
	static EVP_MD_CTX *context;
	const EVP_MD *digest = digest_of(hash_size);
	uint8_t inner[ES_TLS_MAC_MAX];
	int is_good;

	if (!context)
		context = EVP_MD_CTX_new();
	is_good = context && digest && half(context, digest, key, 0x36, text, len, inner) &&
		  half(context, digest, key, 0x5c, inner, hash_size, ret_mac);
	OPENSSL_cleanse(inner, sizeof(inner));
	return is_good ? 0 : -ENOMEM;
}
