/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HTTP_TEXT_H
#define ES_HTTP_TEXT_H
/*
 * Character classes and spans, shared by the files of earshot-http and private to them. Unlike <ctype.h> they
 * are ASCII whatever the locale is.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "inspector/http/head.h"

/* tchar of RFC 9110 section 5.6.2, as a set of bits. */
static inline bool es_http_is_tchar(char c)
{
	static const uint64_t set[4] = {0x03ff6cfa00000000, 0x57ffffffc7fffffe};
	unsigned char byte = (unsigned char)c;

	return set[byte / 64] >> byte % 64 & 1;
}

static inline bool es_http_is_ows(char c)
{
	return c == ' ' || c == '\t';
}

static inline bool es_http_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline char es_http_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static inline bool es_http_is_alpha(char c)
{
	return es_http_lower(c) >= 'a' && es_http_lower(c) <= 'z';
}

/* Not printable ASCII: controls, space, DEL and everything above. */
static inline bool es_http_is_outside_vchar(char c)
{
	return (unsigned char)c <= 0x20 || (unsigned char)c >= 0x7f;
}

static inline bool es_http_equals_nocase(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (es_http_lower(a[i]) != es_http_lower(b[i]))
			return false;
	return true;
}

/* @lit is a string literal. */
#define ES_HTTP_SPAN_IS(buf, span, lit)                                                                      \
	((span).len == sizeof(lit) - 1 && es_http_equals_nocase((buf) + (span).off, lit, sizeof(lit) - 1))

static inline struct es_http_span es_http_span_make(size_t off, size_t end)
{
	return (struct es_http_span){.off = (uint32_t)off, .len = (uint32_t)(end - off)};
}

static inline struct es_http_span es_http_span_trim(const char *buf, size_t off, size_t end)
{
	while (off < end && es_http_is_ows(buf[off]))
		off++;
	while (off < end && es_http_is_ows(buf[end - 1]))
		end--;
	return es_http_span_make(off, end);
}

/*
 * Cuts the next element off *@list at @sep; elements are trimmed and may be empty. False at the end of the
 * list.
 */
static inline bool es_http_span_next(const char *buf, char sep, struct es_http_span *list,
				     struct es_http_span *ret_element)
{
	const char *start = buf + list->off;
	const char *at;
	size_t len;

	if (!list->len)
		return false;
	at = memchr(start, sep, list->len);
	len = at ? (size_t)(at - start) : list->len;
	*ret_element = es_http_span_trim(buf, list->off, list->off + len);
	if (at)
		len++;
	list->off += (uint32_t)len;
	list->len -= (uint32_t)len;
	return true;
}

#endif
