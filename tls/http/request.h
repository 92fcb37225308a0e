/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_REQUEST_H
#define ES_TLS_REQUEST_H

/*
 * A client's HTTP/1 requests on their way to the server behind: the head gets the headers that tell of the
 * client, those of the same names that the client has sent are left out, and it is known where the request ends.
 */
#include <stddef.h>
#include <stdint.h>
#include "inspector/http/chunked.h"
#include "inspector/http/head.h"
#include "kmod/core/flow.h"

/* How the server is told of the client. */
enum es_tls_tell {
	ES_TLS_TELL_X_FORWARDED, /* X-Forwarded-For, -Proto, -Port (and Host stays) */
	ES_TLS_TELL_FORWARDED,	 /* RFC 7239 */
	ES_TLS_TELL_PROXY, /* the PROXY protocol, version 2: nothing in the head, and a connection for each client */
	ES_TLS_TELL_NOTHING,
};

#define ES_TLS_HEAD_MAX 65536 /* bytes of a request's head; a longer one is answered 431 */

/**
 * es_tls_request_head() - the head as the server shall read it
 * @head: complete, scanned from @text and unambiguous
 * @out: with room for the head's length + ES_TLS_HEAD_EXTRA bytes
 * Hop-by-hop headers stay (the server sees the client's connection); only headers that could lie about the
 * client (Forwarded, X-Forwarded-*, X-Real-IP, and those of client certificates) are taken out, whatever their
 * case.
 * Returns the bytes written.
 */
#define ES_TLS_HEAD_EXTRA 512
struct es_tls_state;
size_t es_tls_request_head(const struct es_http_head *head, const char *text, enum es_tls_tell tell,
			   const struct es_flow *flow, const struct es_tls_state *state, char *out);

/**
 * struct es_tls_body - how much of a request follows its head
 */
enum es_tls_body_kind { ES_TLS_BODY_NONE, ES_TLS_BODY_LENGTH, ES_TLS_BODY_CHUNKED, ES_TLS_BODY_TUNNEL };
struct es_tls_body {
	enum es_tls_body_kind kind;
	uint64_t left;
	struct es_http_chunked chunked;
};

void es_tls_body_init(struct es_tls_body *body, const struct es_http_head *head);

/**
 * es_tls_body_take() - how many of the next @len bytes belong to it
 * Returns them, or -EBADMSG: malformed, and the connection must end. @ret_is_over: the request ends with them.
 */
long es_tls_body_take(struct es_tls_body *body, const uint8_t *bytes, size_t len, int *ret_is_over);

#endif
