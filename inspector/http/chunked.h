/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HTTP_CHUNKED_H
#define ES_HTTP_CHUNKED_H
/*
 * Where a body in chunked transfer coding ends (RFC 9112 section 7.1): the framing is followed, the data is
 * not touched. Works on a stream of pieces of any size with a constant-size state. Only the exact grammar is
 * accepted, since a boundary must not depend on how lenient a server is: what is merely tolerated elsewhere
 * (bare LF, white space around the size, sizes of more than 16 digits) is an error, after which the caller
 * pins the connection.
 */

#include <stddef.h>
#include <stdint.h>

/* Longest chunk extension, and longest trailer section without its LFs (RFC 9112 section 7.1.1). */
#define ES_HTTP_CHUNK_EXT_MAX 4096u
#define ES_HTTP_TRAILER_MAX   65536u
/* Leading zeros count: servers disagree about more digits than fit 64 bits. */
#define ES_HTTP_CHUNK_DIGITS_MAX 16u

enum es_http_chunked_result {
	ES_HTTP_CHUNKED_MORE,  /* all bytes belong to the body, and there are more to come */
	ES_HTTP_CHUNKED_DONE,  /* the body has ended */
	ES_HTTP_CHUNKED_ERROR, /* malformed: where the body ends is unknown */
};

enum es_http_chunked_error {
	ES_HTTP_CHUNKED_ERROR_NONE,
	ES_HTTP_CHUNKED_ERROR_SIZE,	/* a chunk size that is not 1*16HEXDIG followed by ';' or CR LF */
	ES_HTTP_CHUNKED_ERROR_OVERFLOW, /* a chunk, or all of them together, above INT64_MAX bytes */
	ES_HTTP_CHUNKED_ERROR_EXT,	/* a control byte in a chunk extension, or one that is too long */
	ES_HTTP_CHUNKED_ERROR_DATA_END, /* chunk data without CR LF behind it */
	ES_HTTP_CHUNKED_ERROR_LINE_END, /* bare CR or bare LF */
	ES_HTTP_CHUNKED_ERROR_TRAILER,	/* not a header line in the trailer section, or too much of it */
	ES_HTTP_CHUNKED_ERROR_COUNT,
};

/* Read-only for callers. */
struct es_http_chunked {
	uint64_t body_bytes;	   /* chunk data seen, without framing */
	uint64_t chunk_left_bytes; /* data of the current chunk still to come: at least so many bytes are body
				    */
	enum es_http_chunked_result result;
	enum es_http_chunked_error error;
	/* The decoder's own state. */
	uint32_t state;
	uint32_t count; /* digits, extension bytes or trailer bytes, by state */
};

/* Is the next byte one of the trailer section, or of the empty line that ends it? Also at the end. */
int es_http_chunked_in_trailer(const struct es_http_chunked *c);

/* Prepares @c for the first byte of a body. */
void es_http_chunked_init(struct es_http_chunked *c);

/*
 * Reads the next @len bytes of the body, or of what may follow it. *@ret_used is the number of them that
 * belong to the body: all with ES_HTTP_CHUNKED_MORE; those up to the end, trailer section included, with
 * ES_HTTP_CHUNKED_DONE; those before the offending byte with ES_HTTP_CHUNKED_ERROR. The last two are final:
 * further calls repeat them and use nothing. Results do not depend on how the bytes are cut.
 */
enum es_http_chunked_result es_http_chunked_scan(struct es_http_chunked *c, const char *buf, size_t len,
						 size_t *ret_used);

#endif
