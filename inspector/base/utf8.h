/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_UTF8_H
#define ES_UTF8_H

/*
 * UTF-8 (RFC 3629), for texts that others wrote: names of files and paths of requests may have any bytes.
 */
#include <stddef.h>
#include <string.h>

/* es_utf8_len() - bytes of the character that @text begins with, 1 to 4; 0 if it begins with none */
static inline size_t es_utf8_len(const char *text, size_t size)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t len;

	if (!size)
		return 0;
	if (c[0] < 0x80)
		return 1;
	len = c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : c[0] < 0xf5 ? 4 : 0;
	if (!len || len > size)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong forms, surrogates, and what is above U+10FFFF. */
	if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf0 && c[1] < 0x90) ||
	    (c[0] == 0xf4 && c[1] > 0x8f))
		return 0;
	return len;
}

/* es_utf8_mark_len() - bytes of the byte order mark that some editors put before a file; 0 without */
static inline size_t es_utf8_mark_len(const char *text, size_t size)
{
	return size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

/**
 * es_utf8_copy() - copy @text as UTF-8: each byte that begins no character becomes U+FFFD, three bytes
 * @ret: has room for 3 * @size bytes. Returns how many it has.
 */
static inline size_t es_utf8_copy(const char *text, size_t size, char *ret)
{
	size_t used = 0;

	for (size_t at = 0, len; at < size; at += len) {
		len = es_utf8_len(text + at, size - at);
		memcpy(ret + used, len ? text + at : "\xef\xbf\xbd", len ? len : 3);
		used += len ? len : 3;
		len += !len;
	}
	return used;
}

/* es_utf16_is() - does @text begin with the mark of a file in UTF-16? */
static inline int es_utf16_is(const char *text, size_t size)
{
	return size >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2));
}

#endif
