// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Seals a connection's state for another node, and opens what others have sealed: AES-256-GCM. Which have
 * been opened is taken.c's.
 */
#include "tls/record/sealed.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>
#include "tls/record/bytes.h"
#include "tls/record/mac.h"
#include "tls/record/taken.h"

#define LAYOUT	   1
#define SALT_SIZE  12
#define NONCE_SIZE 12
#define TAG_SIZE   16

enum place {
	AT_FIRST = 0,
	AT_LAYOUT = 1,
	AT_ZERO = 2,
	AT_KEY = 4,
	AT_MADE = 8,
	AT_SALT = 16,
	AT_NONCE = AT_SALT + SALT_SIZE,
	AT_STATE = AT_NONCE + NONCE_SIZE,
	AT_TAG = AT_STATE + ES_TLS_STATE_BYTES,
};
_Static_assert(AT_STATE == ES_TLS_SEALED_HEADER && AT_TAG + TAG_SIZE == ES_TLS_SEALED_BYTES,
	       "a sealed state is as long as it says");

/* Looked up once. */
static const EVP_CIPHER *cipher(void)
{
	static EVP_CIPHER *fetched;

	if (!fetched)
		fetched = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	return fetched;
}

/* Begin an operation: the message's key and nonce, and what is authenticated beside the state. */
static EVP_CIPHER_CTX *begin(const uint8_t key[32], const uint8_t *sealed, const struct es_flow *flow,
			     const char *target, int seals)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t own[ES_TLS_MAC_MAX];
	int done, is_good;

	is_good = ctx && !es_tls_mac(32, key, sealed + AT_SALT, SALT_SIZE, own) &&
		  EVP_CipherInit_ex(ctx, cipher(), NULL, own, sealed + AT_NONCE, seals) == 1 &&
		  EVP_CipherUpdate(ctx, NULL, &done, sealed, ES_TLS_SEALED_HEADER) == 1 &&
		  EVP_CipherUpdate(ctx, NULL, &done, (const uint8_t *)flow, sizeof(*flow)) == 1 &&
		  EVP_CipherUpdate(ctx, NULL, &done, (const uint8_t *)target, (int)strlen(target) + 1) == 1;
	OPENSSL_cleanse(own, sizeof(own));
	if (!is_good) {
		EVP_CIPHER_CTX_free(ctx);
		ctx = NULL;
	}
	return ctx;
}

int es_tls_seal(const struct es_tls_seal_keys *keys, const struct es_flow *flow, const char *target,
		uint64_t wall_ns, const struct es_tls_state *state, uint8_t ret_sealed[ES_TLS_SEALED_BYTES])
{
	uint8_t bytes[ES_TLS_STATE_BYTES], sealed[ES_TLS_SEALED_BYTES];
	EVP_CIPHER_CTX *ctx;
	int done, is_good;

	if (!keys->count)
		return -ENOKEY;
	sealed[AT_FIRST] = ES_TLS_SEALED_FIRST;
	sealed[AT_LAYOUT] = LAYOUT;
	es_tls_put(sealed + AT_ZERO, 2, 0);
	es_tls_put(sealed + AT_KEY, 4, keys->id[0]);
	es_tls_put(sealed + AT_MADE, 8, wall_ns);
	if (RAND_bytes(sealed + AT_SALT, SALT_SIZE + NONCE_SIZE) != 1)
		return -ENOMEM;
	ctx = begin(keys->key[0], sealed, flow, target, 1);
	if (!ctx)
		return -ENOMEM;
	es_tls_state_put(state, bytes);
	is_good = EVP_CipherUpdate(ctx, sealed + AT_STATE, &done, bytes, sizeof(bytes)) == 1 &&
		  EVP_CipherFinal_ex(ctx, sealed + AT_TAG, &done) == 1 &&
		  EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_SIZE, sealed + AT_TAG) == 1;
	OPENSSL_cleanse(bytes, sizeof(bytes));
	EVP_CIPHER_CTX_free(ctx);
	if (!is_good)
		return -ENOMEM;
	memcpy(ret_sealed, sealed, sizeof(sealed));
	return 0;
}

static const uint8_t *key_find(const struct es_tls_seal_keys *keys, uint64_t id)
{
	for (unsigned int i = 0; i < keys->count; i++)
		if (keys->id[i] == id)
			return keys->key[i];
	return NULL;
}

/* Decrypt the state's bytes, if all of it is authentic. */
static int decrypt(const uint8_t *key, const uint8_t *sealed, const struct es_flow *flow, const char *self,
		   uint8_t ret_bytes[ES_TLS_STATE_BYTES])
{
	EVP_CIPHER_CTX *ctx = begin(key, sealed, flow, self, 0);
	uint8_t tag[TAG_SIZE], last[16];
	int done, is_good;

	memcpy(tag, sealed + AT_TAG, sizeof(tag));
	is_good = ctx &&
		  EVP_CipherUpdate(ctx, ret_bytes, &done, sealed + AT_STATE, ES_TLS_STATE_BYTES) == 1 &&
		  EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, sizeof(tag), tag) == 1 &&
		  EVP_CipherFinal_ex(ctx, last, &done) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return is_good;
}

/* It is authentic: look at its time and its layout, then take it. */
static enum es_tls_opened take(struct es_tls_taken *taken, const uint8_t *sealed, uint64_t wall_ns,
			       const uint8_t *bytes, struct es_tls_state *state)
{
	uint64_t made_ns = es_tls_get(sealed + AT_MADE, 8);

	if (made_ns + ES_TLS_SEALED_LATE_NS < wall_ns || made_ns > wall_ns + ES_TLS_SEALED_LATE_NS)
		return ES_TLS_SEALED_LATE;
	if (es_tls_state_get(bytes, state))
		return ES_TLS_SEALED_UNKNOWN;
	return es_tls_taken_take(taken, es_tls_get(sealed + AT_NONCE, 8), made_ns, wall_ns);
}

enum es_tls_opened es_tls_unseal(const struct es_tls_seal_keys *keys, struct es_tls_taken *taken,
				 const struct es_flow *flow, const char *self, uint64_t wall_ns,
				 const uint8_t sealed[ES_TLS_SEALED_BYTES], struct es_tls_state *ret_state)
{
	const uint8_t *key = key_find(keys, es_tls_get(sealed + AT_KEY, 4));
	enum es_tls_opened opened = ES_TLS_SEALED_BAD;
	uint8_t bytes[ES_TLS_STATE_BYTES];
	struct es_tls_state state;

	if (sealed[AT_FIRST] != ES_TLS_SEALED_FIRST)
		return ES_TLS_SEALED_BAD;
	if (sealed[AT_LAYOUT] != LAYOUT)
		return ES_TLS_SEALED_UNKNOWN;
	if (!key)
		return ES_TLS_SEALED_BAD;
	memset(&state, 0, sizeof(state));
	if (decrypt(key, sealed, flow, self, bytes))
		opened = take(taken, sealed, wall_ns, bytes, &state);
	if (opened == ES_TLS_OPENED)
		*ret_state = state;
	OPENSSL_cleanse(bytes, sizeof(bytes));
	es_tls_state_wipe(&state);
	return opened;
}
