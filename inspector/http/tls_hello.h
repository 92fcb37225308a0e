/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_HELLO_H
#define ES_TLS_HELLO_H

/*
 * The ClientHello that begins a TLS connection, from a buffer that grows: server name, ALPN list and
 * tickets, which is all that routing needs (RFC 8446 sections 4.1.2, 4.2.11 and 5.1, RFC 6066 section 3,
 * RFC 7301, RFC 5077 section 3.2). The message may be cut anywhere, into segments and into records. The
 * outcome is a function of the bytes alone; nothing is allocated. Bytes that no TLS implementation would
 * take are no hello, and never half of one.
 */
#include <stddef.h>
#include <stdint.h>

/* A longer message is none; those of browsers with post-quantum key shares have 1.7 KB. */
#define ES_TLS_HELLO_MAX 65536u
#define ES_TLS_NAME_MAX	 255u
#define ES_TLS_ALPN_MAX	 512u

/* So many tickets are looked at; their first bytes are all that can be read without their key. */
#define ES_TLS_TICKETS_MAX  4
#define ES_TLS_TICKET_FRONT 32

enum es_tls_result {
	ES_TLS_NONE, /* no ClientHello */
	ES_TLS_MORE, /* so far so good */
	ES_TLS_DONE,
};

/**
 * struct es_tls_hello - what was found
 * @more_bytes: with ES_TLS_MORE: from so many bytes on it is worth looking again; else 0
 * @sni, @sni_len: the server name; 0 for none
 * @alpn, @alpn_len: the protocols, each behind a byte with its length, as far as they fit
 * @ticket, @ticket_count: how the tickets begin by which the client would resume a session, of TLS 1.2 or
 * 1.3
 */
struct es_tls_hello {
	enum es_tls_result result;
	size_t more_bytes;
	unsigned int sni_len;
	unsigned int alpn_len;
	char sni[ES_TLS_NAME_MAX];
	uint8_t alpn[ES_TLS_ALPN_MAX];
	unsigned int ticket_count;
	uint8_t ticket[ES_TLS_TICKETS_MAX][ES_TLS_TICKET_FRONT];
};

/* es_tls_hello_parse() - look at the first @len bytes of a connection; returns ret_hello->result */
enum es_tls_result es_tls_hello_parse(const void *bytes, size_t len, struct es_tls_hello *ret_hello);

/* es_tls_hello_alpn() - the @n-th protocol; NULL behind the last one */
const char *es_tls_hello_alpn(const struct es_tls_hello *hello, unsigned int n, size_t *ret_len);

#endif
