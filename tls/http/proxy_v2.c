// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes the header of the PROXY protocol.
 */
#include "tls/http/proxy_v2.h"

#include <string.h>
#include "tls/record/bytes.h"
#include "tls/record/suite.h"

#define SIGNATURE     "\r\n\r\n\0\r\nQUIT\n"
#define SIGNATURE_LEN 12
#define VERSION_PROXY 0x21
#define TCP4	      0x11
#define TCP6	      0x21

enum tlv {
	TLV_ALPN = 0x01,
	TLV_AUTHORITY = 0x02,
	TLV_SSL = 0x20,
	TLV_SSL_VERSION = 0x21,
	TLV_SSL_CIPHER = 0x23,
};

#define CLIENT_SSL	 0x01
#define CLIENT_CERT_CONN 0x02
#define CLIENT_CERT_SESS 0x04

static uint8_t *put(uint8_t *at, const void *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

static uint8_t *put_tlv(uint8_t *at, uint8_t type, const void *bytes, size_t len)
{
	at[0] = type;
	es_tls_put(at + 1, 2, len);
	return put(at + 3, bytes, len);
}

static uint8_t *put_text(uint8_t *at, uint8_t type, const char *text)
{
	return put_tlv(at, type, text, strlen(text));
}

static uint8_t *put_addresses(uint8_t *at, const struct es_flow *flow, int is_v4)
{
	size_t from = is_v4 ? 12 : 0;

	at = put(at, (const uint8_t *)&flow->client + from, sizeof(flow->client) - from);
	at = put(at, (const uint8_t *)&flow->service + from, sizeof(flow->service) - from);
	at = put(at, &flow->client_port, 2);
	return put(at, &flow->service_port, 2);
}

static uint8_t *put_ssl(uint8_t *at, const struct es_tls_state *state)
{
	const struct es_tls_suite *suite = es_tls_suite_find(state->version, state->suite);
	uint8_t *begin = at;

	at += 3;
	*at++ = state->has_client ? CLIENT_SSL | CLIENT_CERT_CONN | CLIENT_CERT_SESS : CLIENT_SSL;
	/* 0: a certificate was shown, and verified. */
	es_tls_put(at, 4, !state->has_client);
	at = put_text(at + 4, TLV_SSL_VERSION, state->version == ES_TLS_1_3 ? "TLSv1.3" : "TLSv1.2");
	if (suite)
		at = put_text(at, TLV_SSL_CIPHER, suite->name);
	begin[0] = TLV_SSL;
	es_tls_put(begin + 1, 2, (uint64_t)(at - begin - 3));
	return at;
}

size_t es_tls_proxy_v2_put(const struct es_flow *flow, const struct es_tls_state *state,
			   uint8_t ret_bytes[ES_TLS_PROXY_V2_MAX])
{
	int is_v4 = es_addr_is_v4(&flow->client) && es_addr_is_v4(&flow->service);
	uint8_t *at = put(ret_bytes, SIGNATURE, SIGNATURE_LEN), *length;

	*at++ = VERSION_PROXY;
	*at++ = is_v4 ? TCP4 : TCP6;
	length = at;
	at = put_addresses(at + 2, flow, is_v4);
	if (state->alpn == ES_TLS_ALPN_HTTP1)
		at = put_text(at, TLV_ALPN, "http/1.1");
	if (state->alpn == ES_TLS_ALPN_HTTP2)
		at = put_text(at, TLV_ALPN, "h2");
	if (*state->name)
		at = put_text(at, TLV_AUTHORITY, state->name);
	at = put_ssl(at, state);
	if (state->has_client)
		at = put_tlv(at, ES_TLS_PROXY_V2_DIGEST, state->client_digest, ES_TLS_DIGEST_SIZE);
	es_tls_put(length, 2, (uint64_t)(at - length - 2));
	return (size_t)(at - ret_bytes);
}
