/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_STATE_H
#define ES_TLS_STATE_H

/*
 * All that another process needs to go on with an established TLS connection (RFC 8446, RFC 5246): what the
 * handshake has left, without the handshake. It holds traffic secrets, so it lives in memory that is locked,
 * left out of cores and wiped after use (es_tls_wipe()).
 */
#include <stddef.h>
#include <stdint.h>

#define ES_TLS_1_2 0x0303
#define ES_TLS_1_3 0x0304

#define ES_TLS_SECRET_MAX  48  /* HKDF-SHA384's */
#define ES_TLS_DIGEST_SIZE 32  /* SHA-256 */
#define ES_TLS_NAME_SIZE   256 /* of a server's name, with its NUL */

/* The protocol that ALPN has agreed on. */
enum es_tls_alpn {
	ES_TLS_ALPN_NONE, /* the client has offered nothing: HTTP/1.1 */
	ES_TLS_ALPN_HTTP1,
	ES_TLS_ALPN_HTTP2,
	ES_TLS_ALPN_COUNT,
};

/**
 * struct es_tls_half - one direction of a connection
 * @secret: TLS 1.3: its traffic secret, which KeyUpdate replaces (RFC 8446 section 7.2). TLS 1.2, which has
 * none for a direction: the write key, then the fixed part of the nonce (RFC 5288 section 3: 4 bytes; RFC
 * 7905 section 2: 12 bytes).
 * @number: of the next record
 */
struct es_tls_half {
	uint8_t secret[ES_TLS_SECRET_MAX];
	uint64_t number;
};

/**
 * struct es_tls_state - a connection between two records
 * @version: ES_TLS_1_2 or ES_TLS_1_3
 * @suite: the cipher suite's number in IANA's registry
 * @client: protects what the client sends; @server: what it is sent
 * @consumed: so many bytes of the next record's text have been dealt with already
 * @alpn: enum es_tls_alpn
 * @has_client: @client_digest is the SHA-256 of the certificate that the client has shown, and that was
 * verified
 * @name: the server's name that the client asked for; "": none
 * @text_max: no record for the client may have more bytes of text (RFC 6066 section 4); 0: as many as TLS
 * allows
 * @window: TCP's congestion window that its next socket may begin with, in segments; 0: as any
 * @from: es_tls_node_digest() of the node that has written it down, 0: of a version that does not say
 */
struct es_tls_state {
	uint16_t version;
	uint16_t suite;
	uint16_t consumed;
	uint8_t alpn;
	uint8_t has_client;
	struct es_tls_half client;
	struct es_tls_half server;
	uint8_t client_digest[ES_TLS_DIGEST_SIZE];
	char name[ES_TLS_NAME_SIZE];
	uint16_t text_max;
	uint16_t window;
	uint64_t from;
};

/* All states have one length, so that nothing can be told from it. */
#define ES_TLS_STATE_BYTES 432

/* es_tls_node_digest() - of a node's name */
uint64_t es_tls_node_digest(const char *name);

/*
 * es_tls_state_put() - write it down, in network order, with a version of this layout
 * One with @text_max is of a layout that the first version refuses, which would send longer records: whoever
 * sends it must know that the other node can read it, by @from of what has come from there.
 */
void es_tls_state_put(const struct es_tls_state *state, uint8_t ret_bytes[ES_TLS_STATE_BYTES]);

/*
 * es_tls_state_get() - read it again; 0, or -EPROTO: that is none, or of a layout or a suite that is not
 * known
 */
int es_tls_state_get(const uint8_t bytes[ES_TLS_STATE_BYTES], struct es_tls_state *ret_state);

void es_tls_state_wipe(struct es_tls_state *state);

#endif
