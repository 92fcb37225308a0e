// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Look-ups in a scanned head, and names for logs. Answers from what head.c has recorded and does not
 * read the buffer anew; values are not decoded.
 */
#include "inspector/http/head.h"
#include "inspector/http/text.h"

#include <string.h>

bool es_http_head_find_nth(const struct es_http_head *h, const char *buf, const char *name, uint32_t n,
			   const char **ret_value, size_t *ret_len)
{
	size_t len = strlen(name);

	for (uint32_t i = 0; i < es_http_head_headers(h); i++) {
		const struct es_http_header *header = &h->headers[i];

		if (!len || header->name.len != len ||
		    !es_http_equals_nocase(buf + header->name.off, name, len) || n--)
			continue;
		*ret_value = buf + header->value.off;
		*ret_len = header->value.len;
		return true;
	}
	return false;
}

bool es_http_head_find(const struct es_http_head *h, const char *buf, const char *name,
		       const char **ret_value, size_t *ret_len)
{
	return es_http_head_find_nth(h, buf, name, 0, ret_value, ret_len);
}

bool es_http_head_cookie_nth(const struct es_http_head *h, const char *buf, const char *name, uint32_t n,
			     const char **ret_value, size_t *ret_len)
{
	size_t len = strlen(name);

	for (uint32_t i = 0; i < es_http_head_headers(h); i++) {
		struct es_http_span pair, rest = h->headers[i].value;

		if (!ES_HTTP_SPAN_IS(buf, h->headers[i].name, "Cookie"))
			continue;
		while (es_http_span_next(buf, ';', &rest, &pair)) {
			struct es_http_span value = pair, key;

			/* A pair without '=' is a value without a name: no match. */
			if (!memchr(buf + pair.off, '=', pair.len) ||
			    !es_http_span_next(buf, '=', &value, &key))
				continue;
			if (key.len != len || memcmp(buf + key.off, name, len) != 0 || n--)
				continue;
			value = es_http_span_trim(buf, value.off, value.off + value.len);
			*ret_value = buf + value.off;
			*ret_len = value.len;
			return true;
		}
	}
	return false;
}

bool es_http_head_cookie(const struct es_http_head *h, const char *buf, const char *name,
			 const char **ret_value, size_t *ret_len)
{
	return es_http_head_cookie_nth(h, buf, name, 0, ret_value, ret_len);
}

bool es_http_head_host(const struct es_http_head *h, const char *buf, const char **ret_value, size_t *ret_len)
{
	struct es_http_span host = h->authority.len ? h->authority : h->host;

	if (!h->authority.len && !h->has_host)
		return false;
	*ret_value = buf + host.off;
	*ret_len = host.len;
	return true;
}

const char *es_http_result_str(enum es_http_result result)
{
	static const char *const names[] = {
		[ES_HTTP_MORE] = "more", [ES_HTTP_DONE] = "done", [ES_HTTP_NOT_HTTP] = "not HTTP/1.x",
		[ES_HTTP_TLS] = "TLS",	 [ES_HTTP_H2] = "HTTP/2", [ES_HTTP_AMBIGUOUS] = "ambiguous",
	};

	return (unsigned int)result < sizeof(names) / sizeof(names[0]) ? names[result] : "?";
}

const char *es_http_ambiguity_str(enum es_http_ambiguity ambiguity)
{
	static const char *const names[ES_HTTP_AMBIGUITY_COUNT] = {
		[ES_HTTP_AMBIGUITY_NONE] = "none",
		[ES_HTTP_AMBIGUITY_BARE_LF] = "line ends without CR",
		[ES_HTTP_AMBIGUITY_BARE_CR] = "CR without LF",
		[ES_HTTP_AMBIGUITY_NUL] = "NUL byte",
		[ES_HTTP_AMBIGUITY_CONTROL] = "control byte",
		[ES_HTTP_AMBIGUITY_OBS_FOLD] = "folded header line",
		[ES_HTTP_AMBIGUITY_SPACE_BEFORE_COLON] = "white space before colon",
		[ES_HTTP_AMBIGUITY_EMPTY_NAME] = "empty header name",
		[ES_HTTP_AMBIGUITY_BAD_NAME] = "invalid character in header name",
		[ES_HTTP_AMBIGUITY_NO_COLON] = "header line without colon",
		[ES_HTTP_AMBIGUITY_METHOD] = "invalid character in method",
		[ES_HTTP_AMBIGUITY_REQUEST_LINE] = "white space in request line",
		[ES_HTTP_AMBIGUITY_TARGET] = "invalid request target",
		[ES_HTTP_AMBIGUITY_VERSION] = "unknown HTTP version",
		[ES_HTTP_AMBIGUITY_LENGTH_MALFORMED] = "malformed Content-Length",
		[ES_HTTP_AMBIGUITY_LENGTH_OVERFLOW] = "Content-Length too large",
		[ES_HTTP_AMBIGUITY_LENGTH_LIST] = "list of Content-Length values",
		[ES_HTTP_AMBIGUITY_LENGTH_DUPLICATE] = "duplicate Content-Length",
		[ES_HTTP_AMBIGUITY_LENGTH_DIFFERS] = "differing Content-Length",
		[ES_HTTP_AMBIGUITY_LENGTH_AND_TE] = "both Content-Length and Transfer-Encoding",
		[ES_HTTP_AMBIGUITY_TE_CODING] = "Transfer-Encoding other than chunked",
		[ES_HTTP_AMBIGUITY_TE_DUPLICATE] = "duplicate Transfer-Encoding",
		[ES_HTTP_AMBIGUITY_TE_HTTP10] = "Transfer-Encoding in HTTP/1.0",
		[ES_HTTP_AMBIGUITY_HOST_DUPLICATE] = "duplicate Host",
		[ES_HTTP_AMBIGUITY_TRUNCATED] = "head longer than the limit",
		[ES_HTTP_AMBIGUITY_URGENT] = "urgent data",
	};

	return (unsigned int)ambiguity < ES_HTTP_AMBIGUITY_COUNT ? names[ambiguity] : "?";
}
