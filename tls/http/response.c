// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Follows a response with kmod/core/response.h, which knows where it ends, and looks at what that does not
 * need: the version, and Connection.
 */
#include "tls/http/response.h"

#include <string.h>
#include "inspector/http/text.h"

#define CONNECTION     "connection:"
#define CONNECTION_LEN (sizeof(CONNECTION) - 1)

void es_tls_response_init(struct es_tls_response *response, int is_head, int is_connect)
{
	memset(response, 0, sizeof(*response));
	es_response_init(&response->scan, is_head);
	response->is_head = is_head;
	response->is_connect = is_connect;
}

/* Lines are kept in lower case. */
static int is_connection(const struct es_tls_response *r)
{
	return r->line_len >= CONNECTION_LEN && !memcmp(r->line, CONNECTION, CONNECTION_LEN);
}

static void read_connection(struct es_tls_response *r)
{
	struct es_http_span list = es_http_span_make(CONNECTION_LEN, r->line_len), option;

	/* Nobody knows how a longer one goes on. */
	if (r->line_len == sizeof(r->line))
		r->says_close = 1;
	while (es_http_span_next(r->line, ',', &list, &option)) {
		if (ES_HTTP_SPAN_IS(r->line, option, "close"))
			r->says_close = 1;
		if (ES_HTTP_SPAN_IS(r->line, option, "keep-alive"))
			r->says_keep_alive = 1;
	}
}

static void line_end(struct es_tls_response *r, int is_status)
{
	if (r->line_len && r->line[r->line_len - 1] == '\r')
		r->line_len--;
	if (is_status) {
		r->is_1_1 = r->line_len > 7 && r->line[7] == '1';
		r->says_close = 0;
		r->says_keep_alive = 0;
	} else if (is_connection(r)) {
		read_connection(r);
	}
	r->line_len = 0;
}

/* The empty line after a head; @status: the head's */
static void head_end(struct es_tls_response *r, unsigned int status)
{
	r->status = status;
	r->heads++;
	r->keeps = !r->says_close && (r->is_1_1 || r->says_keep_alive);
	if (r->is_connect && status >= 200 && status < 300)
		r->scan.phase = ES_RESPONSE_UPGRADED;
}

/* A byte that es_response_reads() says must be read. */
static void take_byte(struct es_tls_response *r, uint8_t c)
{
	unsigned int status = r->scan.status;
	uint8_t phase = r->scan.phase;

	es_response_byte(&r->scan, c);
	if (phase > ES_RESPONSE_CODING)
		return;
	if (c != '\n') {
		if (r->line_len < sizeof(r->line))
			r->line[r->line_len++] = (char)es_response_lower(c);
		return;
	}
	line_end(r, phase == ES_RESPONSE_STATUS);
	if (phase == ES_RESPONSE_LINE)
		head_end(r, status);
}

/* Eight bytes at once, of lines that say nothing. Returns 0 if they must be read one by one. */
static int take_word(struct es_tls_response *r, const uint8_t *bytes, size_t len)
{
	uint64_t word;

	if (len < sizeof(word) || r->scan.phase != ES_RESPONSE_SKIP || r->line_len < CONNECTION_LEN ||
	    is_connection(r))
		return 0;
	memcpy(&word, bytes, sizeof(word));
	return es_response_word(&r->scan, word);
}

static size_t take_body(struct es_tls_response *r, size_t len)
{
	return es_response_skip(&r->scan, len < UINT32_MAX ? (uint32_t)len : UINT32_MAX);
}

/* Read on, by one byte or more. Returns how many. */
static size_t take_some(struct es_tls_response *r, const uint8_t *bytes, size_t len)
{
	if (!es_response_reads(&r->scan))
		return take_body(r, len);
	if (take_word(r, bytes, len))
		return sizeof(uint64_t);
	take_byte(r, *bytes);
	return 1;
}

static enum es_tls_response_end end_of(const struct es_tls_response *r)
{
	switch (r->scan.phase) {
	case ES_RESPONSE_DONE:
		return ES_TLS_RESPONSE_OVER;
	case ES_RESPONSE_UNTIL_CLOSE:
		return ES_TLS_RESPONSE_AT_CLOSE;
	case ES_RESPONSE_UPGRADED:
		return ES_TLS_RESPONSE_TUNNEL;
	case ES_RESPONSE_UNCLEAR:
		return ES_TLS_RESPONSE_BAD;
	default:
		return ES_TLS_RESPONSE_OPEN;
	}
}

enum es_tls_response_end es_tls_response_take(struct es_tls_response *response, const uint8_t *bytes,
					      size_t len, size_t *ret_used)
{
	size_t used = 0;

	while (used < len && response->scan.phase < ES_RESPONSE_DONE)
		used += take_some(response, bytes + used, len - used);
	*ret_used = response->scan.phase == ES_RESPONSE_UNTIL_CLOSE ? len : used;
	return end_of(response);
}

static enum es_tls_response_part part_of(uint8_t phase)
{
	switch (phase) {
	case ES_RESPONSE_CHUNK_SIZE:
	case ES_RESPONSE_CHUNK_EXT:
	case ES_RESPONSE_CHUNK_END:
		return ES_TLS_PART_CODING;
	case ES_RESPONSE_TRAILER_LINE:
	case ES_RESPONSE_TRAILER:
		return ES_TLS_PART_TRAILER;
	default:
		return phase < ES_RESPONSE_CHUNK_SIZE ? ES_TLS_PART_HEAD : ES_TLS_PART_BODY;
	}
}

enum es_tls_response_end es_tls_response_part(struct es_tls_response *response, const uint8_t *bytes,
					      size_t len, size_t *ret_used,
					      enum es_tls_response_part *ret_part)
{
	const struct es_response *scan = &response->scan;
	unsigned int heads = response->heads;
	size_t used = 0;

	*ret_part = part_of(scan->phase);
	if (scan->phase == ES_RESPONSE_UNTIL_CLOSE)
		used = len;
	while (used < len && scan->phase < ES_RESPONSE_DONE && part_of(scan->phase) == *ret_part &&
	       response->heads == heads)
		used += take_some(response, bytes + used, len - used);
	*ret_used = used;
	return end_of(response);
}
