/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_RESPONSE_H
#define ES_TLS_RESPONSE_H

/*
 * Where a response of the server behind ends, and whether its connection serves another request. The bytes go
 * to the client as they are.
 */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/response.h"

enum es_tls_response_end {
	ES_TLS_RESPONSE_OPEN,	  /* more is to come */
	ES_TLS_RESPONSE_OVER,	  /* it is complete */
	ES_TLS_RESPONSE_AT_CLOSE, /* it ends when the server closes */
	ES_TLS_RESPONSE_TUNNEL,	  /* 101, or 2xx to CONNECT: both sides go on until one closes */
	ES_TLS_RESPONSE_BAD,	  /* no HTTP/1 response, or one that nobody can tell the end of */
};

#define ES_TLS_RESPONSE_LINE 128 /* bytes of a line of the head that are looked at */

/**
 * struct es_tls_response - @status: of the last head, 0 before; interim ones (1xx but 101) do not end it
 * @keeps: after ES_TLS_RESPONSE_OVER: the server's connection may be asked again (RFC 9112 section 9.3)
 * @heads: how many have been read, interim ones among them
 * Its own: the line that is being read, and what the head's lines have said so far.
 */
struct es_tls_response {
	struct es_response scan;
	unsigned int status;
	int keeps;
	unsigned int heads;
	int is_head; /* it answers HEAD */
	int is_connect;
	char line[ES_TLS_RESPONSE_LINE];
	size_t line_len;
	int is_1_1;
	int says_close;
	int says_keep_alive;
};

void es_tls_response_init(struct es_tls_response *response, int is_head, int is_connect);

/**
 * es_tls_response_take() - the next @len bytes that the server has sent
 * @bytes: may be anything if @len is at most es_tls_response_left()
 * @ret_used: so many belong to this response; after ES_TLS_RESPONSE_TUNNEL the rest is the tunnel's
 */
enum es_tls_response_end es_tls_response_take(struct es_tls_response *response, const uint8_t *bytes,
					      size_t len, size_t *ret_used);

/* es_tls_response_left() - bytes of the body that come next for certain, and say nothing about its end */
static inline uint64_t es_tls_response_left(const struct es_tls_response *response)
{
	return response->scan.phase == ES_RESPONSE_BODY || response->scan.phase == ES_RESPONSE_CHUNK
		       ? response->scan.left
		       : 0;
}

/* Parts of a response, for who does not give them to the client as they are. */
enum es_tls_response_part {
	ES_TLS_PART_HEAD,    /* of a head, with its empty line */
	ES_TLS_PART_BODY,    /* of the body itself */
	ES_TLS_PART_CODING,  /* of what stands around chunks */
	ES_TLS_PART_TRAILER, /* of the trailer section, with its empty line */
};

/**
 * es_tls_response_part() - as es_tls_response_take(), but no further than one part goes; a head is one
 * @ret_part: what the @ret_used bytes are
 */
enum es_tls_response_end es_tls_response_part(struct es_tls_response *response, const uint8_t *bytes,
					      size_t len, size_t *ret_used,
					      enum es_tls_response_part *ret_part);

#endif
