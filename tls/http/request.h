/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_REQUEST_H
#define ES_TLS_REQUEST_H

/*
 * A client's HTTP/1 requests on their way to the server behind: the head gets the headers that tell of the
 * client, those of the same names that the client has sent are left out, and it is known where the request
 * ends.
 */
#include <stddef.h>
#include <stdint.h>
#include "inspector/http/chunked.h"
#include "inspector/http/head.h"
#include "kmod/core/flow.h"
#include "tls/record/state.h"

/* How the server is told of the client. */
enum es_tls_tell {
	/*
	 * X-Forwarded-For: the client's address; X-Forwarded-Proto: https; X-Forwarded-Port: the service's
	 * port. Host stays, so there is no X-Forwarded-Host.
	 */
	ES_TLS_TELL_X_FORWARDED,
	/* Forwarded: for=ADDRESS;by="ADDRESS:PORT";proto=https (RFC 7239), by being the service's */
	ES_TLS_TELL_FORWARDED,
	/* the PROXY protocol, version 2: nothing in the head, and a connection for each client */
	ES_TLS_TELL_PROXY,
	ES_TLS_TELL_NOTHING,
};

#define ES_TLS_HEAD_MAX 65536 /* bytes of a request's head; a longer one is answered 431 */

/* The most that a head grows by. */
#define ES_TLS_HEAD_EXTRA 512

/**
 * es_tls_request_head() - the head as the server shall read it
 * @head: ES_HTTP_DONE, scanned from @text
 * @out: with room for the head's length + ES_TLS_HEAD_EXTRA bytes
 * With X-Forwarded-* and with Forwarded, a client whose certificate has been verified is told by
 * X-SSL-Client-Sha256: its digest, in 64 hexadecimal digits.
 *
 * Headers that could lie about the client are taken out, whatever is told: Forwarded, X-Forwarded*,
 * X-Real-IP, Client-Cert* (RFC 9440), X-Client-Cert*, SSL-Client* and X-SSL*; whatever their case, and
 * whatever stands for their hyphens, since servers make the same variable of X-Real-IP, X_Real_IP and
 * X.Real.IP. Connection keeps its other options: with it a client could have a server take our headers for
 * ones that end there. Hop-by-hop headers stay otherwise, since the server sees the client's connection.
 * Returns the bytes written.
 */
size_t es_tls_request_head(const struct es_http_head *head, const char *text, enum es_tls_tell tell,
			   const struct es_flow *flow, const struct es_tls_state *state, char *out);

enum es_tls_body_kind { ES_TLS_BODY_NONE, ES_TLS_BODY_LENGTH, ES_TLS_BODY_CHUNKED, ES_TLS_BODY_TUNNEL };

/**
 * struct es_tls_body - how much of a request follows its head
 * @kind: ES_TLS_BODY_TUNNEL: of CONNECT, whose bytes have no end
 * @left: of ES_TLS_BODY_LENGTH: bytes to come
 * @pass: so many of the bytes that were taken last, from the first, are for the server. A chunked body's
 * trailers are not: a server that takes them for headers would believe what they say of the client
 * @ends_with_line: and then CR LF, which ends the body
 */
struct es_tls_body {
	enum es_tls_body_kind kind;
	uint64_t left;
	size_t pass;
	int ends_with_line;
	struct es_http_chunked chunked;
};

/* es_tls_body_init() - @head: ES_HTTP_DONE */
void es_tls_body_init(struct es_tls_body *body, const struct es_http_head *head);

/**
 * es_tls_body_take() - how many of the next @len bytes belong to it
 * Returns them, or -EBADMSG: malformed, and the connection must end. @ret_is_over: the request ends with
 * them; a request without a body is over with none.
 */
long es_tls_body_take(struct es_tls_body *body, const uint8_t *bytes, size_t len, int *ret_is_over);

#endif
