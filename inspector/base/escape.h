/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ESCAPE_H
#define ES_ESCAPE_H

/* Texts that strangers wrote, for a terminal: what would steer it is shown instead. */
#include <stdio.h>
#include "inspector/base/utf8.h"

/**
 * es_escape() - copy @text with control characters, backslashes and bytes that are no UTF-8 as \xNN
 * Control characters are those of ASCII and of ISO 8859 (U+0080 to U+009F). @ret: has room for 4 * @size + 1
 * bytes.
 */
static inline void es_escape(const char *text, size_t size, char *ret)
{
	for (size_t at = 0, len; at < size; at += len) {
		unsigned char c = (unsigned char)text[at];
		int is_control = c < 0x20 || c == 0x7f || c == '\\';

		len = es_utf8_len(text + at, size - at);
		if (len == 2 && c == 0xc2 && (unsigned char)text[at + 1] < 0xa0)
			is_control = 1;
		if (len && !is_control) {
			memcpy(ret, text + at, len);
			ret += len;
			continue;
		}
		len += !len;
		for (size_t i = 0; i < len; i++)
			ret += snprintf(ret, 5, "\\x%02x", (unsigned char)text[at + i]);
	}
	*ret = 0;
}

#endif
