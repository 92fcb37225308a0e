// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Takes what another record layer needs to go on, by documented ways: TLS 1.3's secrets as the key log has
 * them, TLS 1.2's keys from the master secret (RFC 5246 section 6.3), and the records that were made with
 * them.
 */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <string.h>

#include "inspector/base/hex.h"
#include "tls/handshake/internal.h"

#define MASTER_SECRET_SIZE 48
#define KEY_BLOCK_MAX	   (2 * (32 + 12))

/* NSS's key log: LABEL SP CLIENT_RANDOM SP SECRET. Returns whether @line is about @label. */
static int take_secret(const char *line, const char *label, struct es_tls_half *half)
{
	size_t len = strlen(label), i;
	const char *secret;

	if (strncmp(line, label, len) != 0 || line[len] != ' ')
		return 0;
	secret = strchr(line + len + 1, ' ');
	if (!secret)
		return 0;
	secret++;
	for (i = 0; i < ES_TLS_SECRET_MAX; i++) {
		int high = es_hex_digit(secret[2 * i]), low = high < 0 ? -1 : es_hex_digit(secret[2 * i + 1]);

		if (low < 0)
			break;
		half->secret[i] = (uint8_t)(high << 4 | low);
	}
	half->number = 0;
	return 1;
}

/* OpenSSL calls it when it begins to use a secret, and overwrites the line itself. */
static void log_secret(const SSL *ssl, const char *line)
{
	struct es_tls_handshake *handshake = es_tls_handshake_of(ssl);

	handshake->has_client_secret |= take_secret(line, "CLIENT_TRAFFIC_SECRET_0", &handshake->client);
	handshake->has_server_secret |= take_secret(line, "SERVER_TRAFFIC_SECRET_0", &handshake->server);
}

/* OpenSSL calls it for each record that it makes; in TLS 1.2 the keys are new after ChangeCipherSpec. */
static void log_record(int is_written, int version, int type, const void *bytes, size_t len, SSL *ssl,
		       void *argument)
{
	struct es_tls_handshake *handshake = es_tls_handshake_of(ssl);

	(void)version;
	(void)argument;
	if (!is_written || type != SSL3_RT_HEADER || len != SSL3_RT_HEADER_LENGTH)
		return;
	handshake->sent_told++;
	if (*(const uint8_t *)bytes == SSL3_RT_CHANGE_CIPHER_SPEC)
		handshake->server.number = 0;
	else
		handshake->server.number++;
}

void es_tls_secrets_attach(struct es_tls_context *context)
{
	SSL_CTX_set_keylog_callback(context->ssl, log_secret);
	SSL_CTX_set_msg_callback(context->ssl, log_record);
}

static int derive(EVP_KDF *prf, const EVP_MD *md, uint8_t master[MASTER_SECRET_SIZE], uint8_t *seed,
		  size_t seed_len, uint8_t *block, size_t block_len)
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)EVP_MD_get0_name(md), 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, master, MASTER_SECRET_SIZE),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, seed_len),
		OSSL_PARAM_construct_end(),
	};
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(prf);
	int r = ctx && EVP_KDF_derive(ctx, block, block_len, params) > 0 ? 0 : -EPROTO;

	EVP_KDF_CTX_free(ctx);
	return r;
}

static int key_block(const struct es_tls_handshake *handshake, uint8_t *block, size_t len)
{
	static const char label[] = "key expansion";
	const EVP_MD *md = SSL_CIPHER_get_handshake_digest(SSL_get_current_cipher(handshake->ssl));
	uint8_t seed[sizeof(label) - 1 + 2 * SSL3_RANDOM_SIZE], master[MASTER_SECRET_SIZE];
	uint8_t *random = seed + sizeof(label) - 1;
	int r = -EPROTO;

	memcpy(seed, label, sizeof(label) - 1);
	if (md && SSL_get_server_random(handshake->ssl, random, SSL3_RANDOM_SIZE) == SSL3_RANDOM_SIZE &&
	    SSL_get_client_random(handshake->ssl, random + SSL3_RANDOM_SIZE, SSL3_RANDOM_SIZE) ==
		    SSL3_RANDOM_SIZE &&
	    SSL_SESSION_get_master_key(SSL_get_session(handshake->ssl), master, sizeof(master)) ==
		    sizeof(master))
		r = derive(handshake->context->prf, md, master, seed, sizeof(seed), block, len);
	OPENSSL_cleanse(master, sizeof(master));
	return r;
}

static void put_half(struct es_tls_half *half, const uint8_t *key, size_t key_len, const uint8_t *iv,
		     size_t iv_len, uint64_t number)
{
	memcpy(half->secret, key, key_len);
	memcpy(half->secret + key_len, iv, iv_len);
	half->number = number;
}

/* No MAC keys come first: an AEAD has none (RFC 5246 section 6.3). */
static int take_keys(const struct es_tls_handshake *handshake, struct es_tls_state *state)
{
	int nid = SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(handshake->ssl));
	size_t key_len = nid == NID_aes_128_gcm ? 16 : 32, iv_len = nid == NID_chacha20_poly1305 ? 12 : 4;
	uint8_t block[KEY_BLOCK_MAX];
	const uint8_t *ivs = block + 2 * key_len;
	int r = key_block(handshake, block, 2 * (key_len + iv_len));

	if (!r) {
		put_half(&state->client, block, key_len, ivs, iv_len, handshake->client.number);
		put_half(&state->server, block + key_len, key_len, ivs + iv_len, iv_len,
			 handshake->server.number);
	}
	OPENSSL_cleanse(block, sizeof(block));
	return r;
}

static int take_secrets(const struct es_tls_handshake *handshake, struct es_tls_state *state)
{
	if (!handshake->has_client_secret || !handshake->has_server_secret)
		return -EPROTO;
	state->client = handshake->client;
	state->client.number = 0; /* its Finished, the last that OpenSSL has read, was under another key */
	state->server = handshake->server;
	return 0;
}

static int take_client(const struct es_tls_handshake *handshake, struct es_tls_state *state)
{
	X509 *x = SSL_get0_peer_certificate(handshake->ssl);

	if (!x)
		return 0;
	if (SSL_get_verify_result(handshake->ssl) != X509_V_OK ||
	    !X509_digest(x, EVP_sha256(), state->client_digest, NULL))
		return -EPROTO;
	state->has_client = 1;
	return 0;
}

static enum es_tls_alpn alpn_of(const SSL *ssl)
{
	const unsigned char *name;
	unsigned int len;

	SSL_get0_alpn_selected(ssl, &name, &len);
	if (!len)
		return ES_TLS_ALPN_NONE;
	return len == 2 ? ES_TLS_ALPN_HTTP2 : ES_TLS_ALPN_HTTP1;
}

int es_tls_handshake_state(struct es_tls_handshake *handshake, struct es_tls_state *ret_state)
{
	struct es_tls_state state = {.version = (uint16_t)SSL_version(handshake->ssl)};
	int r;

	/* a number that is wrong would use a nonce twice */
	if (handshake->progress != ES_TLS_SHAKEN || !es_tls_records_agree(handshake))
		return -EPROTO;
	state.suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(handshake->ssl));
	state.alpn = (uint8_t)alpn_of(handshake->ssl);
	r = state.version == ES_TLS_1_3 ? take_secrets(handshake, &state) : take_keys(handshake, &state);
	if (!r)
		r = take_client(handshake, &state);
	memcpy(state.name, handshake->name, sizeof(state.name));
	if (!r)
		*ret_state = state;
	OPENSSL_cleanse(&state, sizeof(state));
	return r;
}
