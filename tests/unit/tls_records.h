/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_RECORDS_H
#define ES_TLS_RECORDS_H

/*
 * Records of a server, by the RFCs alone (8446 section 5.2; 5246 section 6.2.3.3, 5288, 7905) and without the
 * project's own record layer: what a test goes on with from a handshake's state.
 */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdio.h>
#include <string.h>
#include "cmocka_all.h"
#include "tls/record/state.h"

#define TYPE_ALERT 21
#define TYPE_DATA  23
#define TAG_BYTES  16

/* struct suite - what a number of IANA's registry means */
struct suite {
	uint16_t number;
	const char *cipher;
	size_t key_len;
	const char *digest;
};

static inline const struct suite *suite_of(uint16_t number)
{
	static const struct suite suites[] = {
		{0x1301, "AES-128-GCM", 16, "SHA256"},	     {0x1302, "AES-256-GCM", 32, "SHA384"},
		{0x1303, "ChaCha20-Poly1305", 32, "SHA256"}, {0xc02b, "AES-128-GCM", 16, NULL},
		{0xc02f, "AES-128-GCM", 16, NULL},	     {0xc02c, "AES-256-GCM", 32, NULL},
		{0xc030, "AES-256-GCM", 32, NULL},	     {0xcca9, "ChaCha20-Poly1305", 32, NULL},
		{0xcca8, "ChaCha20-Poly1305", 32, NULL},
	};

	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		if (suites[i].number == number)
			return &suites[i];
	fail_msg("suite %#x", number);
	return NULL;
}

/* HKDF-Expand-Label without a context (RFC 8446 section 7.1) */
static inline void expand_label(const struct suite *suite, const uint8_t *secret, const char *label,
				uint8_t *out, size_t len)
{
	uint8_t info[64] = {0, (uint8_t)len, (uint8_t)(6 + strlen(label))};
	size_t info_len = 3 + 6 + strlen(label) + 1;
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)suite->digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret,
						  strcmp(suite->digest, "SHA384") ? 32 : 48),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, info_len),
		OSSL_PARAM_construct_end(),
	};
	EVP_KDF *hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(hkdf);

	snprintf((char *)info + 3, sizeof(info) - 3, "tls13 %s", label);
	assert_int_equal(EVP_KDF_derive(ctx, out, len, params), 1);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(hkdf);
}

static inline void store_be64(uint8_t *bytes, uint64_t value)
{
	for (int i = 7; i >= 0; i--, value >>= 8)
		bytes[i] = (uint8_t)value;
}

/*
 * The key of a direction, and the nonce of its next record; @explicit_nonce: the record's, in TLS 1.2 with
 * GCM
 */
static inline void key_and_nonce(const struct es_tls_state *state, const struct es_tls_half *half,
				 const uint8_t *explicit_nonce, uint8_t key[32], uint8_t nonce[12])
{
	const struct suite *suite = suite_of(state->suite);

	if (state->version == ES_TLS_1_3) {
		expand_label(suite, half->secret, "key", key, suite->key_len);
		expand_label(suite, half->secret, "iv", nonce, 12);
	} else {
		memcpy(key, half->secret, suite->key_len);
		memcpy(nonce, half->secret + suite->key_len, explicit_nonce ? 4 : 12);
	}
	if (explicit_nonce)
		memcpy(nonce + 4, explicit_nonce, 8);
	else
		for (int i = 0; i < 8; i++)
			nonce[4 + i] ^= (uint8_t)(half->number >> (56 - 8 * i));
}

/* Opens or seals; returns whether the tag is right. @tag stands after the text. */
static inline int aead(const struct es_tls_state *state, const uint8_t *key, const uint8_t *nonce,
		       const uint8_t *aad, size_t aad_len, const uint8_t *in, size_t len, uint8_t *out,
		       uint8_t *tag, int is_sealing)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, suite_of(state->suite)->cipher, NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n, is_right;

	assert_true(EVP_CipherInit_ex2(ctx, cipher, key, nonce, is_sealing, NULL));
	assert_true(EVP_CipherUpdate(ctx, NULL, &n, aad, (int)aad_len));
	assert_true(EVP_CipherUpdate(ctx, out, &n, in, (int)len));
	if (!is_sealing)
		assert_true(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag));
	is_right = EVP_CipherFinal_ex(ctx, out + n, &n) == 1;
	if (is_sealing)
		assert_true(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, tag));
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(cipher);
	return is_right;
}

static inline int has_explicit_nonce(const struct es_tls_state *state)
{
	return state->version == ES_TLS_1_2 && strstr(suite_of(state->suite)->cipher, "GCM");
}

/* Writes down what is authenticated with a record; returns its length. */
static inline size_t put_aad(const struct es_tls_state *state, const struct es_tls_half *half,
			     const uint8_t *header, size_t text_len, uint8_t aad[13])
{
	if (state->version == ES_TLS_1_3) {
		memcpy(aad, header, 5);
		return 5;
	}
	store_be64(aad, half->number);
	memcpy(aad + 8, header, 3);
	aad[11] = (uint8_t)(text_len >> 8);
	aad[12] = (uint8_t)text_len;
	return 13;
}

/* seal_record() - as the server of @state; returns the record's length */
static inline size_t seal_record(struct es_tls_state *state, uint8_t type, const void *text, size_t len,
				 uint8_t *record)
{
	int is_13 = state->version == ES_TLS_1_3, is_explicit = has_explicit_nonce(state);
	uint8_t key[32], nonce[12], aad[13], *body = record + 5 + (is_explicit ? 8 : 0);
	size_t inner = len + (is_13 ? 1 : 0), whole = inner + TAG_BYTES + (is_explicit ? 8 : 0);

	record[0] = is_13 ? TYPE_DATA : type;
	record[1] = record[2] = 3;
	record[3] = (uint8_t)(whole >> 8);
	record[4] = (uint8_t)whole;
	if (is_explicit)
		store_be64(record + 5, state->server.number);
	memcpy(body, text, len);
	if (is_13)
		body[len] = type;
	key_and_nonce(state, &state->server, is_explicit ? record + 5 : NULL, key, nonce);
	assert_true(aead(state, key, nonce, aad, put_aad(state, &state->server, record, len, aad), body,
			 inner, body, body + inner, 1));
	state->server.number++;
	return 5 + whole;
}

/* open_record() - one that the client has sent; returns its type, or -1: it is not authentic */
static inline int open_record(struct es_tls_state *state, const uint8_t *record, size_t len, uint8_t *text,
			      size_t *ret_len)
{
	int is_explicit = has_explicit_nonce(state);
	const uint8_t *body = record + 5 + (is_explicit ? 8 : 0);
	size_t text_len = len - (size_t)(body - record) - TAG_BYTES;
	uint8_t key[32], nonce[12], aad[13], tag[TAG_BYTES];
	int type = record[0];

	assert_int_equal(len, 5 + (record[3] << 8 | record[4]));
	memcpy(tag, body + text_len, TAG_BYTES);
	key_and_nonce(state, &state->client, is_explicit ? record + 5 : NULL, key, nonce);
	if (!aead(state, key, nonce, aad, put_aad(state, &state->client, record, text_len, aad), body,
		  text_len, text, tag, 0))
		return -1;
	state->client.number++;
	if (state->version == ES_TLS_1_3) {
		while (text_len && !text[text_len - 1])
			text_len--;
		type = text[--text_len];
	}
	*ret_len = text_len;
	return type;
}

#endif
