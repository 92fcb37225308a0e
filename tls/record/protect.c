// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records over EVP. A context keeps its key schedule from record to record, each of which gives it only a
 * nonce; keys are expanded when a connection begins or is moved here, and with KeyUpdate.
 */
#include "tls/record/protect.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include "tls/record/bytes.h"
#include "tls/record/mac.h"
#include "tls/record/record.h"

#define LABEL_MAX 32 /* of an HkdfLabel: its length, "tls13 " and a label, no context */

/* Looked up once: OpenSSL 3 does it anew for each context otherwise. */
static const EVP_CIPHER *cipher_of(enum es_tls_aead aead)
{
	static const char *const names[] = {
		[ES_TLS_AES_128_GCM] = "AES-128-GCM",
		[ES_TLS_AES_256_GCM] = "AES-256-GCM",
		[ES_TLS_CHACHA20_POLY1305] = "ChaCha20-Poly1305",
	};
	static EVP_CIPHER *ciphers[ES_TLS_AEAD_COUNT];

	if (!ciphers[aead])
		ciphers[aead] = EVP_CIPHER_fetch(NULL, names[aead], NULL);
	return ciphers[aead];
}

/* HKDF-Expand-Label (RFC 8446 section 7.1) of at most one hash, without context: one HMAC. */
static int expand_label(const struct es_tls_suite *suite, const uint8_t *secret, const char *label,
			size_t size, uint8_t *ret_bytes)
{
	uint8_t info[LABEL_MAX], mac[ES_TLS_MAC_MAX];
	size_t len = strlen(label);
	uint8_t *at = info;

	es_tls_put(at, 2, size);
	at[2] = (uint8_t)(6 + len);
	memcpy(at + 3, "tls13 ", 6);
	memcpy(at + 9, label, len);
	at += 9 + len;
	*at++ = 0; /* context */
	*at++ = 1; /* HKDF-Expand's first block */
	if (es_tls_mac(suite->hash_size, secret, info, (size_t)(at - info), mac))
		return -ENOMEM;
	memcpy(ret_bytes, mac, size);
	OPENSSL_cleanse(mac, sizeof(mac));
	return 0;
}

int es_tls_protect_key(const struct es_tls_protect *protect, uint8_t ret_key[ES_TLS_KEY_SIZE])
{
	const struct es_tls_suite *suite = protect->suite;

	if (suite->version == ES_TLS_1_3)
		return expand_label(suite, protect->half.secret, "key", suite->key_size, ret_key);
	memcpy(ret_key, protect->half.secret, suite->key_size);
	return 0;
}

/* Put the half's secret in force. */
static int set_key(struct es_tls_protect *p)
{
	const EVP_CIPHER *cipher = cipher_of(p->suite->aead);
	uint8_t key[ES_TLS_KEY_SIZE];
	int rc = es_tls_protect_key(p, key);

	memset(p->iv, 0, sizeof(p->iv));
	if (!rc && p->suite->version == ES_TLS_1_3)
		rc = expand_label(p->suite, p->half.secret, "iv", sizeof(p->iv), p->iv);
	else if (!rc)
		memcpy(p->iv, p->half.secret + p->suite->key_size, p->suite->fixed_size);
	if (!rc && (!cipher || EVP_CipherInit_ex(p->ctx, cipher, NULL, key, NULL, p->writes) != 1))
		rc = -ENOMEM;
	OPENSSL_cleanse(key, sizeof(key));
	return rc;
}

int es_tls_protect_init(struct es_tls_protect *protect, const struct es_tls_suite *suite,
			const struct es_tls_half *half, int writes)
{
	memset(protect, 0, sizeof(*protect));
	protect->suite = suite;
	protect->half = *half;
	protect->writes = writes;
	protect->ctx = EVP_CIPHER_CTX_new();
	return protect->ctx ? set_key(protect) : -ENOMEM;
}

void es_tls_protect_fini(struct es_tls_protect *protect)
{
	EVP_CIPHER_CTX_free(protect->ctx);
	OPENSSL_cleanse(protect, sizeof(*protect));
}

int es_tls_protect_next(struct es_tls_protect *protect)
{
	uint8_t next[ES_TLS_SECRET_MAX];
	int rc = expand_label(protect->suite, protect->half.secret, "traffic upd", protect->suite->hash_size,
			      next);

	if (!rc) {
		memcpy(protect->half.secret, next, protect->suite->hash_size);
		protect->half.number = 0;
		rc = set_key(protect);
	}
	OPENSSL_cleanse(next, sizeof(next));
	return rc;
}

/* Begin a record's operation: its nonce, then what is authenticated beside its text. */
static int begin(struct es_tls_protect *p, const uint8_t *record, size_t text_len, const uint8_t *explicit)
{
	uint8_t nonce[ES_TLS_NONCE_SIZE], aad[13];
	int aad_len = ES_TLS_RECORD_HEADER, done;

	es_tls_put(aad, 8, p->half.number);
	memcpy(nonce, p->iv, sizeof(nonce));
	for (size_t i = 0; i < 8; i++)
		nonce[4 + i] ^= aad[i];
	if (explicit)
		memcpy(nonce + 4, explicit, 8);
	if (p->suite->version == ES_TLS_1_2) {
		memcpy(aad + 8, record, 3);
		es_tls_put(aad + 11, 2, text_len);
		record = aad;
		aad_len = sizeof(aad);
	}
	return EVP_CipherInit_ex(p->ctx, NULL, NULL, NULL, nonce, -1) == 1 &&
	       EVP_CipherUpdate(p->ctx, NULL, &done, record, aad_len) == 1;
}

long es_tls_protect_seal(struct es_tls_protect *protect, uint8_t type, const uint8_t *text, size_t len,
			 uint8_t *out)
{
	const struct es_tls_suite *suite = protect->suite;
	uint8_t *at = out + ES_TLS_RECORD_HEADER;
	int is_1_3 = suite->version == ES_TLS_1_3;
	size_t body = len + es_tls_protect_adds(suite);
	int done;

	out[0] = is_1_3 ? ES_TLS_APPLICATION_DATA : type;
	es_tls_put(out + 1, 2, ES_TLS_1_2);
	es_tls_put(out + 3, 2, body);
	/* The number is unique under the key, on whatever node: no random nonce is. */
	if (suite->explicit_size)
		es_tls_put(at, 8, protect->half.number);
	at += suite->explicit_size;
	if (!begin(protect, out, len, NULL))
		return -ENOMEM;
	if (len && EVP_CipherUpdate(protect->ctx, at, &done, text, (int)len) != 1)
		return -ENOMEM;
	at += len;
	if (is_1_3 && EVP_CipherUpdate(protect->ctx, at, &done, &type, 1) != 1)
		return -ENOMEM;
	at += is_1_3;
	if (EVP_CipherFinal_ex(protect->ctx, at, &done) != 1 ||
	    EVP_CIPHER_CTX_ctrl(protect->ctx, EVP_CTRL_AEAD_GET_TAG, ES_TLS_TAG_SIZE, at) != 1)
		return -ENOMEM;
	protect->half.number++;
	return (long)(ES_TLS_RECORD_HEADER + body);
}

/* TLS 1.3: the type is the last byte that is not 0 (RFC 8446 section 5.4). */
static long find_type(const uint8_t *text, size_t len, const uint8_t *tail, size_t tail_len,
		      uint8_t *ret_type)
{
	size_t at = len + tail_len;

	while (at && !(at > len ? tail[at - len - 1] : text[at - 1]))
		at--;
	if (!at)
		return -EPROTO;
	at--;
	*ret_type = at >= len ? tail[at - len] : text[at];
	return at <= ES_TLS_TEXT_MAX ? (long)at : -EMSGSIZE;
}

long es_tls_protect_open(struct es_tls_protect *protect, const uint8_t *record, size_t len, uint8_t *text,
			 uint8_t *ret_type)
{
	const struct es_tls_suite *suite = protect->suite;
	size_t before = ES_TLS_RECORD_HEADER + suite->explicit_size;
	size_t size = len - suite->explicit_size - ES_TLS_TAG_SIZE;
	size_t part = size < ES_TLS_TEXT_MAX ? size : ES_TLS_TEXT_MAX;
	/* OpenSSL decrypts in place, or elsewhere, but not a few bytes to the left. */
	uint8_t *place = text == record ? text + before : text;
	uint8_t tail[256], tag[ES_TLS_TAG_SIZE], last[16];
	const uint8_t *from = record + before;
	int done, is_good;
	long rc;

	if (size - part > sizeof(tail) || (suite->version == ES_TLS_1_2 && size > part))
		return -EMSGSIZE;
	*ret_type = record[0];
	memcpy(tag, from + size, sizeof(tag));
	is_good = begin(protect, record, size, suite->explicit_size ? record + ES_TLS_RECORD_HEADER : NULL);
	is_good = is_good && (!part || EVP_CipherUpdate(protect->ctx, place, &done, from, (int)part) == 1);
	/* The end of a record that is padded to its utmost is in no buffer of the caller's. */
	is_good = is_good && (size == part || EVP_CipherUpdate(protect->ctx, tail, &done, from + part,
							       (int)(size - part)) == 1);
	is_good = is_good &&
		  EVP_CIPHER_CTX_ctrl(protect->ctx, EVP_CTRL_AEAD_SET_TAG, ES_TLS_TAG_SIZE, tag) == 1 &&
		  EVP_CipherFinal_ex(protect->ctx, last, &done) == 1;
	rc = is_good ? (long)size : -EBADMSG;
	if (is_good && suite->version == ES_TLS_1_3)
		rc = find_type(place, part, tail, size - part, ret_type);
	if (size > part)
		OPENSSL_cleanse(tail, sizeof(tail));
	if (rc < 0) {
		OPENSSL_cleanse(place, part);
		return rc;
	}
	protect->half.number++;
	if (place != text)
		memmove(text, place, (size_t)rc);
	return rc;
}
