// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The state of a connection as bytes, and back. It checks that a state makes sense, not that it is authentic:
 * that is sealed.c's.
 */
#include "tls/record/state.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include "tls/record/bytes.h"
#include "tls/record/record.h"
#include "tls/record/suite.h"

/* The layout below. Fields that an older reader may pass over are appended under the same number. */
#define LAYOUT	     1
#define LAYOUT_SHORT 2 /* the same; but a reader must heed AT_TEXT_MAX */

enum place {
	AT_LAYOUT = 0,
	AT_VERSION = 1,
	AT_SUITE = 3,
	AT_CONSUMED = 5,
	AT_ALPN = 7,
	AT_HAS_CLIENT = 8,
	AT_CLIENT = 9,
	AT_SERVER = AT_CLIENT + ES_TLS_SECRET_MAX + 8,
	AT_DIGEST = AT_SERVER + ES_TLS_SECRET_MAX + 8,
	AT_NAME = AT_DIGEST + ES_TLS_DIGEST_SIZE,
	AT_TEXT_MAX = AT_NAME + ES_TLS_NAME_SIZE,
	AT_FROM = AT_TEXT_MAX + 2,
	AT_WINDOW = AT_FROM + 8,
	AT_END = AT_WINDOW + 2,
};
_Static_assert(AT_END <= ES_TLS_STATE_BYTES, "a state has room");

static void half_put(const struct es_tls_half *half, uint8_t *bytes)
{
	memcpy(bytes, half->secret, ES_TLS_SECRET_MAX);
	es_tls_put(bytes + ES_TLS_SECRET_MAX, 8, half->number);
}

static void half_get(const uint8_t *bytes, struct es_tls_half *half)
{
	memcpy(half->secret, bytes, ES_TLS_SECRET_MAX);
	half->number = es_tls_get(bytes + ES_TLS_SECRET_MAX, 8);
}

void es_tls_state_put(const struct es_tls_state *state, uint8_t ret_bytes[ES_TLS_STATE_BYTES])
{
	memset(ret_bytes, 0, ES_TLS_STATE_BYTES);
	ret_bytes[AT_LAYOUT] = state->text_max ? LAYOUT_SHORT : LAYOUT;
	es_tls_put(ret_bytes + AT_TEXT_MAX, 2, state->text_max);
	es_tls_put(ret_bytes + AT_FROM, 8, state->from);
	es_tls_put(ret_bytes + AT_WINDOW, 2, state->window);
	es_tls_put(ret_bytes + AT_VERSION, 2, state->version);
	es_tls_put(ret_bytes + AT_SUITE, 2, state->suite);
	es_tls_put(ret_bytes + AT_CONSUMED, 2, state->consumed);
	ret_bytes[AT_ALPN] = state->alpn;
	ret_bytes[AT_HAS_CLIENT] = state->has_client;
	half_put(&state->client, ret_bytes + AT_CLIENT);
	half_put(&state->server, ret_bytes + AT_SERVER);
	memcpy(ret_bytes + AT_DIGEST, state->client_digest, ES_TLS_DIGEST_SIZE);
	/* Nothing that stands after the NUL is anybody's business. */
	memcpy(ret_bytes + AT_NAME, state->name, strnlen(state->name, ES_TLS_NAME_SIZE - 1));
}

int es_tls_state_get(const uint8_t bytes[ES_TLS_STATE_BYTES], struct es_tls_state *ret_state)
{
	uint16_t version = (uint16_t)es_tls_get(bytes + AT_VERSION, 2);
	uint16_t suite = (uint16_t)es_tls_get(bytes + AT_SUITE, 2);
	uint16_t consumed = (uint16_t)es_tls_get(bytes + AT_CONSUMED, 2);
	uint16_t text_max = (uint16_t)es_tls_get(bytes + AT_TEXT_MAX, 2);

	if (bytes[AT_LAYOUT] != (text_max ? LAYOUT_SHORT : LAYOUT) || text_max > ES_TLS_TEXT_MAX ||
	    !es_tls_suite_find(version, suite) || consumed > ES_TLS_TEXT_MAX ||
	    bytes[AT_ALPN] >= ES_TLS_ALPN_COUNT || bytes[AT_HAS_CLIENT] > 1 ||
	    !memchr(bytes + AT_NAME, '\0', ES_TLS_NAME_SIZE))
		return -EPROTO;
	memset(ret_state, 0, sizeof(*ret_state));
	ret_state->version = version;
	ret_state->suite = suite;
	ret_state->consumed = consumed;
	ret_state->text_max = text_max;
	ret_state->from = es_tls_get(bytes + AT_FROM, 8);
	ret_state->window = (uint16_t)es_tls_get(bytes + AT_WINDOW, 2);
	ret_state->alpn = bytes[AT_ALPN];
	ret_state->has_client = bytes[AT_HAS_CLIENT];
	half_get(bytes + AT_CLIENT, &ret_state->client);
	half_get(bytes + AT_SERVER, &ret_state->server);
	memcpy(ret_state->client_digest, bytes + AT_DIGEST, ES_TLS_DIGEST_SIZE);
	memcpy(ret_state->name, bytes + AT_NAME, strlen((const char *)bytes + AT_NAME));
	return 0;
}

/* FNV-1a: names of one cluster, of which nobody chooses any to do harm. */
uint64_t es_tls_node_digest(const char *name)
{
	uint64_t digest = 0xcbf29ce484222325ULL;

	for (; *name; name++)
		digest = (digest ^ (uint8_t)*name) * 0x100000001b3ULL;
	return digest;
}

void es_tls_state_wipe(struct es_tls_state *state)
{
	OPENSSL_cleanse(state, sizeof(*state));
}
