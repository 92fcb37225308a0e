// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Request boundaries from heads and bodies (RFC 9112 sections 6 and 9.3).
 */
#include <string.h>
#include "inspector/http/boundary.h"
#include "inspector/http/chunked.h"

/* Sequence numbers compare within half their space; a request that long could not be told from the past. */
#define ES_BOUNDARY_MAX 0x40000000u

static enum es_pin es_boundary_chunked(const char *body, size_t len, uint64_t *ret_len)
{
	struct es_http_chunked chunked;
	size_t used = 0;

	es_http_chunked_init(&chunked);
	switch (es_http_chunked_scan(&chunked, body, len, &used)) {
	case ES_HTTP_CHUNKED_DONE:
		*ret_len = used;
		return ES_PIN_none;
	case ES_HTTP_CHUNKED_MORE:
		return ES_PIN_chunked;
	default:
		return ES_PIN_ambiguous;
	}
}

static enum es_pin es_boundary_body(const struct es_http_head *head, const char *text, size_t len,
				    uint64_t *ret_len)
{
	switch (head->body) {
	case ES_HTTP_BODY_NONE:
		*ret_len = 0;
		return ES_PIN_none;
	case ES_HTTP_BODY_LENGTH:
		*ret_len = head->content_length_bytes;
		return ES_PIN_none;
	case ES_HTTP_BODY_CHUNKED:
		return es_boundary_chunked(text + head->head_len_bytes, len - head->head_len_bytes, ret_len);
	default:
		return ES_PIN_ambiguous;
	}
}

void es_boundary_find(const struct es_http_head *head, const char *text, size_t len, struct es_boundary *ret)
{
	uint64_t body = 0;

	memset(ret, 0, sizeof(*ret));
	switch (head->result) {
	case ES_HTTP_DONE:
		break;
	case ES_HTTP_TLS:
		ret->pin = ES_PIN_tls;
		return;
	case ES_HTTP_H2:
		ret->pin = ES_PIN_http2;
		return;
	case ES_HTTP_AMBIGUOUS:
		ret->pin = head->truncated ? ES_PIN_truncated : ES_PIN_ambiguous;
		return;
	default:
		ret->pin = head->truncated ? ES_PIN_truncated : ES_PIN_not_http;
		return;
	}
	if (head->method == ES_HTTP_METHOD_CONNECT) {
		ret->pin = ES_PIN_connect;
		return;
	}
	ret->is_head = head->method == ES_HTTP_METHOD_HEAD;
	ret->pin = es_boundary_body(head, text, len, &body);
	if (ret->pin == ES_PIN_none && body > ES_BOUNDARY_MAX - head->head_len_bytes)
		ret->pin = ES_PIN_length;
	if (ret->pin == ES_PIN_none && len > head->head_len_bytes + body)
		ret->pin = ES_PIN_pipelined;
	if (ret->pin == ES_PIN_none)
		ret->len_bytes = head->head_len_bytes + (uint32_t)body;
}

int es_boundary_is_reached(const struct es_http_head *head, const char *text, size_t len)
{
	struct es_boundary boundary;

	if (head->result == ES_HTTP_DONE && head->expect_continue)
		return 1;
	es_boundary_find(head, text, len, &boundary);
	return boundary.pin == ES_PIN_pipelined || (boundary.pin == ES_PIN_none && len >= boundary.len_bytes);
}
