// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The chunked transfer coding as a state machine over bytes; chunk data is skipped, not read. Responsible for
 * finding the end of a body and refusing every input whose end is debatable; not for the meaning of
 * extensions and trailers.
 */
#include "inspector/http/chunked.h"
#include "inspector/http/text.h"

#include <stdbool.h>

enum state {
	STATE_SIZE,	     /* at or in the digits of a chunk size */
	STATE_EXT,	     /* in a chunk extension */
	STATE_SIZE_LF,	     /* behind the CR of the size line */
	STATE_DATA,	     /* chunk_left_bytes of data to come */
	STATE_DATA_CR,	     /* behind the data */
	STATE_DATA_LF,	     /* behind the data's CR */
	STATE_TRAILER_START, /* at the start of a trailer line */
	STATE_TRAILER_NAME,  /* in a trailer's name */
	STATE_TRAILER_VALUE, /* in a trailer's value */
	STATE_TRAILER_LF,    /* behind the CR of a trailer line */
	STATE_END_LF,	     /* behind the CR of the empty line that ends the body */
};

static int hex_digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool control(unsigned char c)
{
	return (c < 0x20 && c != '\t') || c == 0x7f;
}

static void fail(struct es_http_chunked *c, enum es_http_chunked_error error)
{
	c->error = error;
	c->result = ES_HTTP_CHUNKED_ERROR;
}

static void next(struct es_http_chunked *c, enum state state)
{
	c->state = state;
	c->count = 0;
}

static void scan_size(struct es_http_chunked *c, unsigned char byte)
{
	int digit = hex_digit(byte);

	if (digit >= 0 && c->count < ES_HTTP_CHUNK_DIGITS_MAX) {
		if (c->chunk_left_bytes > (uint64_t)INT64_MAX >> 4) {
			fail(c, ES_HTTP_CHUNKED_ERROR_OVERFLOW);
			return;
		}
		c->chunk_left_bytes = c->chunk_left_bytes << 4 | (unsigned int)digit;
		c->count++;
		if (c->chunk_left_bytes > (uint64_t)INT64_MAX - c->body_bytes)
			fail(c, ES_HTTP_CHUNKED_ERROR_OVERFLOW);
	} else if (digit < 0 && c->count && byte == ';') {
		next(c, STATE_EXT);
	} else if (digit < 0 && c->count && byte == '\r') {
		next(c, STATE_SIZE_LF);
	} else {
		fail(c,
		     byte == '\n' && c->count ? ES_HTTP_CHUNKED_ERROR_LINE_END : ES_HTTP_CHUNKED_ERROR_SIZE);
	}
}

static void scan_ext(struct es_http_chunked *c, unsigned char byte)
{
	if (byte == '\r')
		next(c, STATE_SIZE_LF);
	else if (byte == '\n')
		fail(c, ES_HTTP_CHUNKED_ERROR_LINE_END);
	else if (control(byte) || ++c->count > ES_HTTP_CHUNK_EXT_MAX)
		fail(c, ES_HTTP_CHUNKED_ERROR_EXT);
}

/* RFC 9112 section 7.1.2: header lines up to an empty one; obs-fold and empty names are refused. */
static void scan_trailer(struct es_http_chunked *c, unsigned char byte)
{
	bool in_value = c->state == STATE_TRAILER_VALUE;
	bool at_start = c->state == STATE_TRAILER_START;

	c->count++;
	if (byte == '\n')
		fail(c, ES_HTTP_CHUNKED_ERROR_LINE_END);
	else if (byte == '\r' && at_start)
		c->state = STATE_END_LF;
	else if (byte == '\r' && in_value)
		c->state = STATE_TRAILER_LF;
	else if (byte == ':' && !at_start)
		c->state = STATE_TRAILER_VALUE;
	else if (in_value ? control(byte) : !es_http_is_tchar((char)byte))
		fail(c, ES_HTTP_CHUNKED_ERROR_TRAILER);
	else if (at_start)
		c->state = STATE_TRAILER_NAME;
	if (c->count > ES_HTTP_TRAILER_MAX && !c->error)
		fail(c, ES_HTTP_CHUNKED_ERROR_TRAILER);
}

/* One byte outside of chunk data. */
static void scan_byte(struct es_http_chunked *c, unsigned char byte)
{
	switch ((enum state)c->state) {
	case STATE_SIZE:
		scan_size(c, byte);
		break;
	case STATE_EXT:
		scan_ext(c, byte);
		break;
	case STATE_SIZE_LF:
		if (byte != '\n')
			fail(c, ES_HTTP_CHUNKED_ERROR_LINE_END);
		else
			next(c, c->chunk_left_bytes ? STATE_DATA : STATE_TRAILER_START);
		break;
	case STATE_DATA:
		break;
	case STATE_DATA_CR:
		if (byte != '\r')
			fail(c, ES_HTTP_CHUNKED_ERROR_DATA_END);
		else
			next(c, STATE_DATA_LF);
		break;
	case STATE_DATA_LF:
		if (byte != '\n')
			fail(c, ES_HTTP_CHUNKED_ERROR_DATA_END);
		else
			next(c, STATE_SIZE);
		break;
	case STATE_TRAILER_START:
	case STATE_TRAILER_NAME:
	case STATE_TRAILER_VALUE:
		scan_trailer(c, byte);
		break;
	case STATE_TRAILER_LF:
		if (byte != '\n')
			fail(c, ES_HTTP_CHUNKED_ERROR_LINE_END);
		else
			c->state = STATE_TRAILER_START; /* c->count goes on: it bounds the whole section */
		break;
	case STATE_END_LF:
		if (byte != '\n')
			fail(c, ES_HTTP_CHUNKED_ERROR_LINE_END);
		else
			c->result = ES_HTTP_CHUNKED_DONE;
		break;
	}
}

int es_http_chunked_in_trailer(const struct es_http_chunked *c)
{
	return c->state >= STATE_TRAILER_START;
}

void es_http_chunked_init(struct es_http_chunked *c)
{
	*c = (struct es_http_chunked){.state = STATE_SIZE};
}

enum es_http_chunked_result es_http_chunked_scan(struct es_http_chunked *c, const char *buf, size_t len,
						 size_t *ret_used)
{
	size_t at = 0;

	while (at < len && c->result == ES_HTTP_CHUNKED_MORE) {
		if (c->state == STATE_DATA) {
			size_t left = len - at;

			if (left > c->chunk_left_bytes)
				left = (size_t)c->chunk_left_bytes;
			at += left;
			c->body_bytes += left;
			c->chunk_left_bytes -= left;
			if (!c->chunk_left_bytes)
				next(c, STATE_DATA_CR);
			continue;
		}
		scan_byte(c, (unsigned char)buf[at]);
		if (c->result != ES_HTTP_CHUNKED_ERROR)
			at++;
	}
	*ret_used = at;
	return c->result;
}
