// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The names of content. URIs that are one content to every server have one name; nothing else is normalised.
 */
#include <string.h>
#include "inspector/base/hex.h"
#include "inspector/policy/name.h"

static void es_name_put(struct es_name *name, char c)
{
	if (name->len < sizeof(name->text))
		name->text[name->len++] = c;
}

static char es_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* RFC 3986 section 2.3 */
static int es_is_unreserved(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
	       c == '.' || c == '_' || c == '~';
}

size_t es_name_host_len(const char *host, size_t len)
{
	/* An IPv6 address keeps its brackets. */
	const char *bracket = len && host[0] == '[' ? memchr(host, ']', len) : NULL;
	const char *colon = bracket ? NULL : memchr(host, ':', len);

	if (bracket)
		len = (size_t)(bracket - host) + 1;
	else if (colon)
		len = (size_t)(colon - host);
	/* The root of the name space says nothing. */
	return len && host[len - 1] == '.' ? len - 1 : len;
}

static void es_name_put_uri(struct es_name *name, const char *uri, size_t len)
{
	static const char digits[] = "0123456789ABCDEF";

	for (size_t i = 0; i < len; i++) {
		int high = uri[i] == '%' && len - i > 2 ? es_hex_digit(uri[i + 1]) : -1;
		int low = high >= 0 ? es_hex_digit(uri[i + 2]) : -1;

		if (low < 0) {
			es_name_put(name, uri[i]);
			continue;
		}
		i += 2;
		if (es_is_unreserved(high << 4 | low)) {
			es_name_put(name, (char)(high << 4 | low));
			continue;
		}
		es_name_put(name, '%');
		es_name_put(name, digits[high]);
		es_name_put(name, digits[low]);
	}
}

void es_name_make(struct es_name *name, const char *host, size_t host_len, const char *uri, size_t uri_len)
{
	name->len = 0;
	host_len = host ? es_name_host_len(host, host_len) : 0;
	if (host_len) {
		es_name_put(name, '/');
		es_name_put(name, '/');
	}
	for (size_t i = 0; i < host_len; i++)
		es_name_put(name, es_lower(host[i]));
	if (!uri_len || uri[0] == '?')
		es_name_put(name, '/');
	es_name_put_uri(name, uri, uri_len);
}
